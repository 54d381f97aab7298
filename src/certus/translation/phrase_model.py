"""Phrase-based models: a phrase table, a language model and weights, as Moses has them."""

import os
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from certus.checks import as_words, of_kind
from certus.errors import InvalidInput
from certus.io.hiero import read_weights
from certus.io.kenlm import target_words
from certus.io.lattices import WordLattice, is_words
from certus.io.moses import PhraseTable, read_phrase_table
from certus.translation.language_model import LanguageModel
from certus.translation.phrase_problem import PhraseTranslation
from certus.translation.phrases import PhraseOption

# Names of the weights: of the columns of a table with four scores, and of everything else.
COLUMNS = ("PhraseFE", "LexFE", "PhraseEF", "LexEF")
WORDS, PHRASES, DISTORTION, LM, LATTICE = "Words", "Phrases", "Distortion", "LM", "Lattice"


class PhraseModel:
    """Scores of phrases from a table and weights, and the translation problem of any sentence.

    The score of an option is the weighted sum of the natural logarithms of its table scores, plus ``Words`` for each
    target word and ``Phrases``. Distortion is weighted by ``Distortion`` and the language model by ``LM``.

    Parameters
    ----------
    table : PhraseTable
        As ``certus.io.moses.read_phrase_table`` gives it.
    lm : LanguageModel
    weights : mapping of names to numbers
        ``PhraseFE``, ``LexFE``, ``PhraseEF`` and ``LexEF`` for the columns of a table with four scores, ``Score1``,
        ``Score2``, ... for others; ``Words``, ``Phrases``, ``Distortion`` and ``LM``; ``Lattice`` for the scores of
        the arcs of lattices, 1 if it is missing.
    distortion_limit, window
        As in PhraseTranslation.
    unknown : float or None
        A source word without an entry of its own is copied for this score, plus ``Words`` and ``Phrases``; None leaves
        such words without an option.

    Raises
    ------
    InvalidInput : a weight is missing; the message names it.
    """

    def __init__(
        self,
        table: PhraseTable,
        lm: LanguageModel,
        weights: Mapping[str, float],
        *,
        distortion_limit: int | None = 6,
        window: bool = True,
        unknown: float | None = -100.0,
    ) -> None:
        of_kind("table", table, PhraseTable, "a phrase table of certus.io.moses; for files call PhraseModel.read")
        of_kind("lm", lm, LanguageModel, 'a certus.LanguageModel: LanguageModel.read("lm.arpa")')
        of_kind("weights", weights, Mapping, "numbers by the names of features")
        named = {name: f"score {k} of the phrase table" for k, name in enumerate(columns(table.n_scores), 1)}
        named |= {WORDS: "target words", PHRASES: "phrases", DISTORTION: "distortion", LM: "the language model"}
        missing = [f"{name!r} ({what})" for name, what in named.items() if name not in weights]
        if missing:
            raise InvalidInput(f"the weights lack {', '.join(missing)}; give a number for each, 0 to leave it out.")
        self.table, self.lm = table, lm
        self.weights = {name: float(weights[name]) for name in named}
        self.lattice_weight = float(weights.get(LATTICE, 1.0))
        self.distortion_limit, self.window, self.unknown = distortion_limit, window, unknown
        self._scored: dict[tuple[str, ...], list[tuple[tuple[str, ...], float]]] = {}

    @classmethod
    def read(
        cls,
        phrase_table: str | os.PathLike[str],
        lm: str | os.PathLike[str] | LanguageModel,
        weights: str | os.PathLike[str] | Mapping[str, float],
        *,
        lm_unknown: float | None = None,
        sentences: Iterable[Sequence[str]] | None = None,
        distortion_limit: int | None = 6,
        window: bool = True,
        unknown: float | None = -100.0,
    ) -> "PhraseModel":
        """Read a phrase table, plain or .gz, as far as ``sentences`` need it; a language model; and weights.

        The language model is in ARPA format, or KenLM's binary one; ``lm_unknown`` is the log10 probability of unknown
        words for an ARPA model without ``<unk>``. Weights are read by ``certus.io.hiero.read_weights``, from the
        section "phrase_based" of a JSON file if it has one.
        """
        given = weights if isinstance(weights, Mapping) else read_weights(weights, "phrase_based")
        if not isinstance(lm, LanguageModel):
            lm = LanguageModel.read(lm, unknown=lm_unknown, words=target_words(phrase_table, 1))
        table = read_phrase_table(phrase_table, sentences)
        return cls(table, lm, given, distortion_limit=distortion_limit, window=window, unknown=unknown)

    def options(self, source: Sequence[str] | WordLattice) -> list[PhraseOption]:
        """The options of a sentence, by place; those of a lattice cover its nodes but the last, from the first on."""
        if isinstance(source, WordLattice):
            return self._lattice_options(source.without_epsilons())
        out = []
        longest = self.table.longest
        for i in range(len(source)):
            for j in range(i, min(len(source), max(i + longest, i + 1))):
                words = tuple(source[i : j + 1])
                out += [PhraseOption(i, j, target, score) for target, score in self._targets(words)]
        return out

    def _lattice_options(self, lattice: WordLattice) -> list[PhraseOption]:
        """Of options between the same nodes with the same target the best is kept."""
        leaving, best = lattice.leaving(), dict[tuple[int, int, tuple[str, ...]], float]()
        for start in range(lattice.n_nodes - 1):
            agenda: list[tuple[int, tuple[str, ...], float]] = [(start, (), 0.0)]
            while agenda:
                node, words, total = agenda.pop()
                for arc in leaving[node] if len(words) < max(self.table.longest, 1) else ():
                    path, score = (*words, arc.word), total + arc.score
                    agenda.append((arc.end, path, score))
                    cost = -inf if score == -inf else self.lattice_weight * score
                    for target, own in self._targets(path):
                        key = start, arc.end - 1, target
                        best[key] = max(best.get(key, -inf), own + cost)
        return [PhraseOption(*key, score) for key, score in sorted(best.items())]

    def _targets(self, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], float]]:
        """Targets of a source side, with scores; made once."""
        found = self._scored.get(words)
        if found is None:
            found = self._scored[words] = self._score(words)
        return found

    def _score(self, source: tuple[str, ...]) -> list[tuple[tuple[str, ...], float]]:
        """Targets of a source side, with scores."""
        w = self.weights
        prices = [w[name] for name in columns(self.table.n_scores)]
        out = []
        for target, logs in self.table.entries.get(source, ()):
            score = -inf if -inf in logs else sum([p * x for p, x in zip(prices, logs, strict=True)])
            out.append((target, score + w[WORDS] * len(target) + w[PHRASES]))
        if not out and len(source) == 1 and self.unknown is not None:
            out.append((source, self.unknown + w[WORDS] + w[PHRASES]))
        return out

    def problem(self, source: Sequence[Any] | Mapping[str, Any] | WordLattice) -> PhraseTranslation:
        """The translation problem of a sentence, given as its words, or of a lattice (``certus.io.lattices``).

        Positions in a lattice, and jumps, are counted by its nodes.
        """
        given = as_words("source", source) if is_words(source) else WordLattice.of(source)
        return PhraseTranslation(
            self.options(given),
            self.lm,
            source=given.positions() if isinstance(given, WordLattice) else given,
            lm_weight=self.weights[LM],
            distortion=self.weights[DISTORTION],
            distortion_limit=self.distortion_limit,
            window=self.window,
        )


def columns(n_scores: int) -> tuple[str, ...]:
    """Names of the weights of a table's columns."""
    return COLUMNS if n_scores == len(COLUMNS) else tuple(f"Score{k}" for k in range(1, n_scores + 1))
