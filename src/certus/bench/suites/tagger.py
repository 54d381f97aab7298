"""The trained tagger beside the hidden Markov model: accuracy and words a second; and how plain text is tokenised."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import certus
from certus.bench.cases import Case, Row, data_folder
from certus.io.conllu import read_conllu
from certus.models.tagger import Tagger
from certus.text.sentence import Sentence
from certus.text.tokenizer import tokenize


def run(
    data: str = "", treebanks: tuple[str, ...] = ("en_ewt",), columns: tuple[str, ...] = ("upos",)
) -> Iterator[Case | Row]:
    for name in treebanks:
        folder = data_folder(data, "ud", name)
        train, dev, test = (list(read_conllu(folder / f"{part}.conllu.gz")) for part in ("train", "dev", "test"))
        bare = [Sentence.from_words(s.words) for s in test]
        tagger = Tagger.train(train, dev, column=list(columns))
        for column in columns:
            hmm = certus.HMM.estimate([s.tagged(column) for s in train])
            ours = [[getattr(t, column) for t in s] for s in tagger.tag(bare)]
            theirs = [hmm.tag(s.words) for s in test]
            gold = [[getattr(t, column) for t in s] for s in test]
            yield Row(f"{name}, {column}", {"tagger": _right(gold, ours), "HMM": _right(gold, theirs)})
            yield Case(
                f"{name}, {column}: Tagger.tag",
                lambda t=tagger, b=bare: [str(s) for s in t.tag(b)],
                {"HMM": lambda h=hmm, b=bare: [h.tag(s.words) for s in b]},
                items=sum(map(len, test)),
                unit="word",
            )
        yield Row(f"{name}, tokens", _tokenising(test))


def _right(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    """Share of words with the right tag, in percent."""
    pairs = [(a, b) for s, t in zip(gold, found, strict=True) for a, b in zip(s, t, strict=True)]
    return 100.0 * sum(a == b for a, b in pairs) / len(pairs)


def _spans(sentences: Iterable[Sequence[str]]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Words and sentences as spans of the characters that are not white space."""
    words, whole, at = set(), set(), 0
    for sentence in sentences:
        begin = at
        for word in sentence:
            size = len("".join(word.split()))
            words.add((at, at + size))
            at += size
        whole.add((begin, at))
    return words, whole


def _tokenising(sentences: Iterable[Sentence]) -> dict[str, float]:
    """F1 of words and of sentences over documents, whose texts are joined by blanks."""
    counts = [[0, 0, 0], [0, 0, 0]]
    for _, group in groupby(sentences, key=lambda s: (s.comment("sent_id") or "").rsplit("-", 1)[0]):
        document = list(group)
        gold = _spans(s.words for s in document)
        found = _spans(tokenize(" ".join(s.comment("text") or " ".join(s.words) for s in document)))
        for k in range(2):
            for j, number in enumerate((len(gold[k] & found[k]), len(gold[k]), len(found[k]))):
                counts[k][j] += number
    words, whole = (200.0 * both / (gold + found) for both, gold, found in counts)
    return {"F1 of words": words, "F1 of sentences": whole}
