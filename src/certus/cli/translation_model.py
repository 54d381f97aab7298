"""The options of commands that translate: where the model is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from certus.cli.arguments import Option, Setting
from certus.errors import InvalidInput
from certus.translation import GrammarModel, PhraseModel


@dataclass(frozen=True)
class TranslationModel:
    """Rules or phrases, a language model and weights."""

    grammar: Annotated[Path | None, Option(help="Synchronous rules in cdec's text form, plain or .gz")] = None
    glue: Annotated[Path | None, Option(help="Glue rules, which cover any number of words from the first on")] = None
    phrase_table: Annotated[Path | None, Option(help="Phrase table of Moses, instead of a grammar")] = None
    lm: Annotated[Path | None, Option(help="Language model in ARPA format, plain or .gz, or KenLM's binary one")] = None
    weights: Annotated[Path | None, Option(help="Feature weights: JSON, or lines of name and value")] = None
    lm_unknown: Annotated[
        float | None, Setting(help="log10 probability of unknown words, for a model without <unk>", max=0)
    ] = None
    max_span: Annotated[int, Setting(min=1, help="Grammar: source words an ordinary rule covers at most")] = 10
    goal: Annotated[str, Setting(help="Grammar: the nonterminal that covers a sentence")] = "S"
    distortion_limit: Annotated[int, Setting(min=0, help="Phrase table: longest jump")] = 6

    @property
    def files(self) -> tuple[Path | None, ...]:
        """All that is read."""
        return self.grammar, self.glue, self.phrase_table, self.lm, self.weights

    def read(self) -> GrammarModel | PhraseModel:
        """The model; InvalidInput if a file is missing, or goes with another kind of model."""
        if (self.grammar is None) == (self.phrase_table is None):
            raise InvalidInput("give either --grammar, for rules, or --phrase-table, for phrases.")
        if self.lm is None or self.weights is None:
            raise InvalidInput(f"{'--lm' if self.lm is None else '--weights'} is missing; a translation needs both.")
        both: Any = {"lm_unknown": self.lm_unknown}
        if self.grammar is not None:
            both |= {"glue": self.glue, "goal": self.goal, "max_span": self.max_span}
            return GrammarModel.read(self.grammar, self.lm, self.weights, **both)
        if self.glue is not None:
            raise InvalidInput("--glue goes with --grammar, not with --phrase-table.")
        assert self.phrase_table is not None
        limit = self.distortion_limit
        return PhraseModel.read(self.phrase_table, self.lm, self.weights, **both, distortion_limit=limit)
