"""What parsed files are written as: CoNLL-U, or Parquet with a row for each token or each sentence."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from certus.errors import InvalidInput
from certus.text import Sentence

ROWS = 4096  # sentences in a row group
_TEXTS = ("form", "lemma", "upos", "xpos", "feats", "deprel", "deps", "misc")


class Format(NamedTuple):
    """How sentences are written to a stream, and how names of such files end."""

    ending: str
    write: Callable[[BinaryIO, Iterable[Sentence]], None]


def _write_conllu(stream: BinaryIO, sentences: Iterable[Sentence]) -> None:
    for sentence in sentences:
        stream.write(str(sentence).encode())


def _token_columns(sentences: list[Sentence], first: int) -> dict[str, Any]:
    """A row for each token; ``sentence`` counts from 1 in its file, ``token`` from 1 in its sentence."""
    rows = [(number, s, t) for number, s in enumerate(sentences, first) for t in s.tokens]
    columns: dict[str, Any] = {
        "sent_id": [s.comment("sent_id") for _, s, _ in rows],
        "sentence": [number for number, _, _ in rows],
        "token": [t.id for _, _, t in rows],
    }
    for name in _TEXTS:
        columns[name] = [None if getattr(t, name) == "_" and name != "form" else getattr(t, name) for _, _, t in rows]
    return columns | {"head": [t.head for _, _, t in rows]}


def _sentence_columns(sentences: list[Sentence], first: int) -> dict[str, Any]:
    """A row for each sentence, with lists over its tokens."""
    columns: dict[str, Any] = {
        "sent_id": [s.comment("sent_id") for s in sentences],
        "sentence": list(range(first, first + len(sentences))),
        "text": [s.comment("text") or " ".join(s.words) for s in sentences],
        "comments": [list(s.comments) for s in sentences],
    }
    for name in _TEXTS:
        columns[name] = [
            [None if getattr(t, name) == "_" and name != "form" else getattr(t, name) for t in s.tokens]
            for s in sentences
        ]
    return columns | {"head": [[t.head for t in s.tokens] for s in sentences]}


def _schema(arrow: Any, rows: str) -> Any:
    """Names and types of the columns; a column that is empty in one file has its type all the same."""
    text, whole = arrow.string(), arrow.int32()
    lists = rows == "sentence"
    of = arrow.list_ if lists else lambda kind: kind
    head = [("sent_id", text), ("sentence", whole)]
    head += [("text", text), ("comments", arrow.list_(text))] if lists else [("token", whole)]
    return arrow.schema([*head, *((name, of(text)) for name in _TEXTS), ("head", of(whole))])


def _parquet(rows: str) -> Callable[[BinaryIO, Iterable[Sentence]], None]:
    columns = _token_columns if rows == "token" else _sentence_columns

    def write(stream: BinaryIO, sentences: Iterable[Sentence]) -> None:
        try:
            import pyarrow as arrow
            from pyarrow import parquet
        except ImportError:
            raise InvalidInput("Parquet is written by pyarrow: pip install 'certus[parquet]'.") from None
        schema = _schema(arrow, rows)
        with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
            for first, group in _groups(sentences):
                writer.write_table(arrow.table(columns(group, first), schema=schema))

    return write


def _groups(sentences: Iterable[Sentence]) -> Iterator[tuple[int, list[Sentence]]]:
    stream = iter(sentences)
    first = 1
    while group := list(islice(stream, ROWS)):
        yield first, group
        first += len(group)


FORMATS = {
    "conllu": Format(".conllu", _write_conllu),
    "parquet": Format(".parquet", _parquet("token")),
    "parquet-sentences": Format(".parquet", _parquet("sentence")),
}
