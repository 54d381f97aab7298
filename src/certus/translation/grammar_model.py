"""Hierarchical models: synchronous rules, a language model and weights, as cdec has them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from certus.errors import InvalidInput
from certus.io.hiero import TARGET, read_weights
from certus.io.kenlm import target_words
from certus.io.lattices import WordLattice, is_words
from certus.translation.forest_problem import ForestTranslation
from certus.translation.grammar import SynchronousGrammar
from certus.translation.language_model import LanguageModel

LM, LATTICE = "LM", "Lattice"  # the names of the weights of the language model and of the arcs of lattices


@dataclass(frozen=True)
class GrammarModel:
    """Weighted rules and a language model, and the translation problem of any sentence."""

    grammar: SynchronousGrammar
    lm: LanguageModel
    lm_weight: float
    lattice_weight: float = 1.0

    @classmethod
    def read(
        cls,
        grammar: str | os.PathLike[str],
        lm: str | os.PathLike[str] | LanguageModel,
        weights: str | os.PathLike[str] | Mapping[str, float],
        *,
        lm_unknown: float | None = None,
        glue: str | os.PathLike[str] | None = None,
        goal: str = "S",
        max_span: int | None = 10,
    ) -> "GrammarModel":
        """Read rules, plain or .gz, a language model, and weights.

        The language model is in ARPA format, or KenLM's binary one; ``lm_unknown`` is the log10 probability of unknown
        words for an ARPA model without ``<unk>``. Weights are read by ``certus.io.hiero.read_weights``, from the
        section "hiero" of a JSON file if it has one; that of the language model is called ``LM``, that of the
        arcs of lattices ``Lattice``, 1 if there is none. The other arguments
        are those of ``SynchronousGrammar.read``.
        """
        given = weights if isinstance(weights, Mapping) else read_weights(weights, "hiero")
        if LM not in given:
            where = "" if isinstance(weights, Mapping) else f"{weights}: "
            raise InvalidInput(f"{where}there is no weight for LM, the language model; give it one, 0 to leave it out.")
        if not isinstance(lm, LanguageModel):
            lm = LanguageModel.read(lm, unknown=lm_unknown, words=target_words(grammar, TARGET))
        rules = SynchronousGrammar.read(grammar, glue=glue, weights=given, goal=goal, max_span=max_span)
        return cls(rules, lm, given[LM], given.get(LATTICE, 1.0))

    def problem(self, source: Sequence[Any] | Mapping[str, Any] | WordLattice) -> ForestTranslation:
        """The translation problem of a sentence, given as its words, or of a lattice (``certus.io.lattices``)."""
        words: Any = source if is_words(source) else WordLattice.of(source)
        forest = self.grammar.forest(words, lattice_weight=self.lattice_weight)
        return ForestTranslation(forest, self.lm, self.lm_weight)
