"""CoNLL-U or plain text in, CoNLL-U out, block by block: trees for files without an object for every word.

What comes out is byte for byte what reading, parsing and writing sentences one by one gives. Sentences that are out of
the ordinary (``kernels.conllu``), and those of CoNLL-U that have no tags yet, take that way. Text is made CoNLL-U with
tags first (``models.text_tagging``).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Ints
from certus.features.encode import Encoded
from certus.io.conllu import parse_conllu
from certus.io.texts import numbered_lines, pieces_of, sentences_of
from certus.kernels.tuples import TextLayout
from certus.models.lengths import MAX_WORDS, of_bounded_length
from certus.models.parser import Parser
from certus.models.text_tagging import TextTagger
from certus.models.trees import Trees
from certus.result import Certificate
from certus.text import Sentence
from certus.threads import in_order, interruptible, thread_count

if TYPE_CHECKING:
    from certus.models.pipeline import Pipeline

BLOCK = 1 << 18  # bytes of CoNLL-U that one thread takes at a time
TEXT_BLOCK = 1 << 15  # characters of text, about as many words
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SLOW = (b"\r", b"\0", b"certificate", b"confidence_estimates")  # what a block read line by line has in it


@dataclass(frozen=True)
class Rewritten:
    """Some sentences of a file with their trees, as CoNLL-U.

    ``unproved`` are those whose tree is not proved to be the best: place among the sentences, name, certificate.
    """

    text: str
    sentences: int
    words: int
    unproved: list[tuple[int, str | None, Certificate]]


@dataclass(frozen=True)
class Piece:
    """A block, laid out and encoded. ``plain`` are the sentences that are rewritten as bytes; the others are objects.

    ``ranges`` are the odd sentences of the layout, each with how many sentences it turned out to hold.
    """

    text: NDArray[np.uint8]
    layout: TextLayout
    plain: Ints
    batch: Encoded
    ranges: list[tuple[int, int]]
    others: list[Sentence]
    other_batch: Encoded

    @property
    def words(self) -> int:
        return int(self.batch.length.sum() + self.other_batch.length.sum())


def rewritten(
    pipeline: "Pipeline", stream: BinaryIO, path: object, *, time_limit: float | None, workers: int | None
) -> Iterator[Rewritten]:
    """The sentences of a stream of CoNLL-U with their trees, in order, in pieces; see ``Pipeline.parse_file``."""
    parser = pipeline.parser
    if isinstance(parser, Parser):
        yield from _in_order(parser, _pieces(pipeline, parser, stream, path), time_limit, workers)
    else:
        yield from _one_by_one(pipeline, parse_conllu(stream, path=path), time_limit, workers)


def written(
    pipeline: "Pipeline",
    stream: BinaryIO,
    path: object,
    *,
    tokenised: bool,
    lines: bool,
    time_limit: float | None,
    workers: int | None,
) -> Iterator[Rewritten]:
    """The same of a stream of plain text; ``tokenised`` and ``lines`` as ``io.texts.sentences_of`` has them."""
    parser, tagger = pipeline.parser, pipeline.tagger
    text = (line for _, line in numbered_lines(str(path), stream))
    if isinstance(parser, Parser) and tagger is not None:
        words = tagger.of_text("blank" if tokenised else "web")
        whole = tokenised or lines
        pieces = _text_pieces(pipeline, parser, words, pieces_of(text, lines=whole), path, whole)
        yield from _in_order(parser, pieces, time_limit, workers)
    else:
        yield from _one_by_one(pipeline, sentences_of(text, tokenised=tokenised, lines=lines), time_limit, workers)


def _in_order(
    parser: Parser, pieces: Iterator[Piece], time_limit: float | None, workers: int | None
) -> Iterator[Rewritten]:
    def with_trees(piece: Piece) -> Rewritten:
        return interruptible(_with_trees, parser, piece, time_limit)

    return in_order(with_trees, pieces, thread_count(workers))


def _one_by_one(
    pipeline: "Pipeline", sentences: Iterable[Sentence], time_limit: float | None, workers: int | None
) -> Iterator[Rewritten]:
    """With objects: networks look at words, not at rows of hashes."""
    for one in pipeline.results(sentences, time_limit=time_limit, workers=workers):
        found, proof = one.sentence, one.certificate
        unproved = [] if proof.exact else [(0, found.comment("sent_id"), proof)]
        yield Rewritten(str(found), 1, len(found), unproved)


def _text_pieces(
    pipeline: "Pipeline", parser: Parser, words: TextTagger, text: Iterator[str], path: object, whole: bool
) -> Iterator[Piece]:
    sentences = 0
    while block := list(_taken(text, TEXT_BLOCK)):
        made = words.conllu(block, whole=whole, before=sentences)
        piece = prepared(pipeline, parser, made, path, (0, sentences), ours=True)
        yield piece
        sentences += len(piece.plain) + len(piece.others)


def _taken(text: Iterator[str], size: int) -> Iterator[str]:
    """Pieces of a text of about so many characters."""
    for piece in text:
        yield piece
        size -= len(piece)
        if size <= 0:
            return


def _pieces(pipeline: "Pipeline", parser: Parser, stream: BinaryIO, path: object) -> Iterator[Piece]:
    line = sentences = 0
    for block in _blocks(stream):
        piece = prepared(pipeline, parser, block, path, (line, sentences))
        yield piece
        line, sentences = line + block.count(b"\n"), sentences + len(piece.plain) + len(piece.others)


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    """Whole sentences of a stream, many at a time."""
    held = bytearray()
    while data := stream.read(BLOCK):
        searched = max(len(held) - 1, 0)
        held += data
        cut = held.rfind(b"\n\n", searched) + 2
        if cut > 1:
            yield bytes(held[:cut])
            del held[:cut]
    if held:
        yield bytes(held if held.endswith(b"\n") else held + b"\n")


def prepared(
    pipeline: "Pipeline", parser: Parser, block: bytes, path: object, behind: tuple[int, int], *, ours: bool = False
) -> Piece:
    """A block, behind so many lines and sentences; ``ours`` is known to be text, without comments."""
    line, sentences = behind
    text = np.frombuffer(block, dtype=np.uint8)
    layout = _laid_out(text)
    odd = layout.odd.copy()
    if not ours and (any(map(block.__contains__, SLOW)) or block.startswith(BYTE_ORDER_MARK) or not _is_text(block)):
        odd[:] = True
    ranges, others = list[tuple[int, int]](), list[Sentence]()
    for s in np.flatnonzero(odd).tolist():
        lines = BytesIO(block[layout.start[s] : layout.end[s] + 1])
        found = parse_conllu(lines, path=path, before=line + int(layout.line[s]))
        before = sentences + s - len(ranges) + len(others)
        own = list(of_bounded_length(found, before=before))
        ranges.append((s, len(own)))
        others += own
    encoder, plain, tagged = parser.encoder, np.flatnonzero(~odd), pipeline.tagged(others)
    return Piece(text, layout, plain, encoder.encode_bytes(text, layout, plain), ranges, tagged, encoder.encode(tagged))


def _is_text(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _laid_out(text: NDArray[np.uint8]) -> TextLayout:
    lines = int(np.count_nonzero(text == ord("\n"))) + 1
    start, end, line, form, feats, head, tail = (np.zeros(lines, dtype=np.int64) for _ in range(7))
    odd, word = np.zeros(lines, dtype=np.bool_), np.zeros(lines + 1, dtype=np.int64)
    count = kernels.conllu.lay_out(text, MAX_WORDS, TextLayout(start, end, line, odd, word, form, feats, head, tail))
    own = slice(count)
    return TextLayout(start[own], end[own], line[own], odd[own], word[: count + 1], form, feats, head, tail)


def _with_trees(parser: Parser, piece: Piece, time_limit: float | None) -> Rewritten:
    trees = parser.decode(piece.batch, time_limit=time_limit)
    data, ends = with_labels(parser, piece, trees.start, trees.heads)
    if not piece.ranges:
        return Rewritten(data.decode(), len(piece.plain), piece.words, list(_unproved(piece, trees)))
    other_trees = parser.decode(piece.other_batch, time_limit=time_limit)
    others = iter(parser.labelled(piece.others, piece.other_batch, other_trees))
    return _joined(piece, data, ends, trees, (others, other_trees))


def with_labels(parser: Parser, piece: Piece, start: Ints, heads: Ints) -> tuple[bytes, list[int]]:
    """The plain sentences with these heads, from start on for each, and their best labels; where each ends."""
    labels = parser.labeller.label(piece.batch, start, heads)
    names = [name.encode() for name in parser.labeller.labels]
    ptr = np.concatenate([[0], np.cumsum([len(name) for name in names])]).astype(np.int64)
    letters = np.frombuffer(b"".join(names) or b"_", dtype=np.uint8)
    longest = max(map(len, names), default=1) + 8
    out = np.empty(len(piece.text) + (longest + 1) * (int(piece.layout.word[-1]) + 1) + len(piece.plain), np.uint8)
    ends = np.zeros(len(piece.plain) + 1, dtype=np.int64)
    kernels.conllu.write_trees(piece.text, piece.layout, piece.plain, (start, heads, labels), (ptr, letters), ends, out)
    return out[: ends[-1]].tobytes(), ends.tolist()


def _joined(
    piece: Piece, data: bytes, ends: list[int], trees: Trees, others: tuple[Iterator[Sentence], Trees]
) -> Rewritten:
    """What was written as bytes and what was read line by line, in the order of the text."""
    counts = dict(piece.ranges)
    written, count, k, other = list[str](), 0, 0, 0
    unproved = list[tuple[int, str | None, Certificate]]()
    for s in range(len(piece.layout.start)):
        if s not in counts:
            written.append(data[ends[k] : ends[k + 1]].decode())
            if not trees.exact[k]:
                unproved.append((count, _name(piece, s), trees.certificate(k)))
            k, count = k + 1, count + 1
        for _ in range(counts.get(s, 0)):
            sentence = next(others[0])
            written.append(str(sentence))
            if not others[1].exact[other]:
                unproved.append((count, sentence.comment("sent_id"), others[1].certificate(other)))
            other, count = other + 1, count + 1
    return Rewritten("".join(written), count, piece.words, unproved)


def _unproved(piece: Piece, trees: Trees) -> Iterable[tuple[int, str | None, Certificate]]:
    for k in np.flatnonzero(~trees.exact).tolist():
        yield k, _name(piece, int(piece.plain[k])), trees.certificate(k)


def _name(piece: Piece, s: int) -> str | None:
    """The value of ``# sent_id`` of a sentence."""
    text = piece.text[piece.layout.start[s] : piece.layout.end[s]].tobytes().decode()
    return Sentence([], [line for line in text.splitlines() if line.startswith("#")]).comment("sent_id")
