"""Sentences of words with their annotation, in the columns of CoNLL-U."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from certus.checks import Ints, as_words, one_of, shown
from certus.draw import Drawn, Picture, arcs
from certus.errors import InvalidInput


@dataclass(slots=True)
class Token:
    """One word of a sentence: its columns as they stand in the file; ``head`` is None where the file has "_"."""

    id: int
    form: str
    lemma: str = "_"
    upos: str = "_"
    xpos: str = "_"
    feats: str = "_"
    head: int | None = None
    deprel: str = "_"
    deps: str = "_"
    misc: str = "_"

    def __str__(self) -> str:
        head = "_" if self.head is None else self.head
        word = f"{self.id}\t{self.form}\t{self.lemma}\t{self.upos}\t{self.xpos}\t{self.feats}"
        return f"{word}\t{head}\t{self.deprel}\t{self.deps}\t{self.misc}"


@dataclass(slots=True)
class Sentence(Drawn):
    """The words of a sentence, 1..n in order, with the comment lines before it.

    ``others`` are the lines of multiword tokens and empty nodes as they stand in the file, each with the number of
    words before it.
    """

    tokens: list[Token]
    comments: list[str] = field(default_factory=list)
    others: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def from_words(cls, words: Iterable[str]) -> "Sentence":
        """A sentence of bare words."""
        return cls([Token(i, word) for i, word in enumerate(as_words("words", words), start=1)])

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)

    @property
    def words(self) -> list[str]:
        """The forms of the words."""
        return [token.form for token in self.tokens]

    def tagged(self, column: str = "upos") -> list[tuple[str, str]]:
        """Pairs (form, tag), with tags from column "upos" or "xpos"."""
        one_of("column", column, ("upos", "xpos"))
        return [(token.form, token.upos if column == "upos" else token.xpos) for token in self.tokens]

    @property
    def heads(self) -> Ints:
        """Heads in shape (n + 1,): entry m is the head of word m, 0 for the root, and entry 0 is -1."""
        heads = [-1]
        for token in self.tokens:
            if token.head is None:
                raise InvalidInput(f'word {token.id} ("{token.form}") has no head; its column 7 (HEAD) is "_".')
            heads.append(token.head)
        return np.array(heads, dtype=np.int64)

    def confidences(self) -> list[float] | None:
        """The confidence in the arc into each word, from MISC; None if a word has none."""
        found = [item[11:] for token in self.tokens for item in token.misc.split("|") if item.startswith("Confidence=")]
        try:
            return [float(share) for share in found] if len(found) == len(self.tokens) else None
        except ValueError:
            return None

    def picture(self, *, other: "Sentence | None" = None, width: float = 1060.0) -> Picture:
        """Its tree as arcs above the words, coloured by confidence where MISC has it; words without heads stand alone.

        ``other`` is a second analysis of the same words: what only it has is drawn below them.
        """
        if other is not None and other.words != self.words:
            raise InvalidInput(f"the two sentences have {len(self)} and {len(other)} words, or other ones; draw each.")
        tagged = any(token.upos != "_" for token in self.tokens)
        return arcs(
            self.words,
            self._pairs(),
            labels=_labels(self.tokens),
            tags=[token.upos for token in self.tokens] if tagged else None,
            confidence=self.confidences() if other is None else None,
            other=None if other is None else other._pairs(),
            other_labels=None if other is None else _labels(other.tokens),
            width=width,
        )

    def _pairs(self) -> list[tuple[int, int]]:
        return [(token.head, token.id) for token in self.tokens if token.head is not None]

    def comment(self, key: str) -> str | None:
        """The value of a comment ``# key = value``, or None."""
        for line in self.comments:
            name, equals, value = line[1:].partition("=")
            if equals and name.strip() == key:
                return value.strip()
        return None

    def __str__(self) -> str:
        """The sentence in CoNLL-U, with the blank line that ends it."""
        lines = list(self.comments)
        others = iter([*self.others, (-1, "")])
        before, other = next(others)
        for position, token in enumerate(self.tokens):
            while before == position:
                lines.append(other)
                before, other = next(others)
            lines.append(str(token))
        while before == len(self.tokens):
            lines.append(other)
            before, other = next(others)
        return "\n".join(lines) + "\n\n"


def _labels(tokens: list[Token]) -> list[str]:
    return ["" if token.deprel == "_" else token.deprel for token in tokens]


def as_sentences(sentences: Iterable[object], *, before: int = 0) -> Iterator[Sentence]:
    """Sentences one by one; InvalidInput for what is none, or is one alone."""
    how = "Sentence.from_words(words) makes one, and parse_text(text) of a parser takes plain text"
    if isinstance(sentences, str | Sentence) or not isinstance(sentences, Iterable):
        raise InvalidInput(f"sentences is {shown(sentences)}; expected a list of certus.text.Sentence: {how}.")
    for number, sentence in enumerate(sentences, start=before + 1):
        if not isinstance(sentence, Sentence):
            raise InvalidInput(
                f"sentence {number} is {shown(sentence)}; expected a list of certus.text.Sentence: {how}."
            )
        yield sentence
