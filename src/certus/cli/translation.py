"""Translation models for commands: from the files that options name to the problem of a sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certus.errors import InvalidInput

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation
    from certus.translation.phrase_problem import PhraseTranslation

GrammarFile = Annotated[Path | None, typer.Option(help="Synchronous rules in cdec's text form, plain or .gz")]
GlueFile = Annotated[Path | None, typer.Option(help="Glue rules, which cover any number of words from the first on")]
PhraseTableFile = Annotated[Path | None, typer.Option(help="Phrase table of Moses, instead of a grammar")]
LmFile = Annotated[Path | None, typer.Option(help="Language model in ARPA format, plain or .gz, or KenLM's binary one")]
LmUnknown = Annotated[
    float | None, typer.Option(help="log10 probability of unknown words, for a model without <unk>", max=0)
]
WeightsFile = Annotated[Path | None, typer.Option(help="Feature weights: JSON, or lines of name and value")]
MaxSpan = Annotated[int, typer.Option(min=1, help="Grammar: source words an ordinary rule covers at most")]
Goal = Annotated[str, typer.Option(help="Grammar: the nonterminal that covers a sentence")]
DistortionLimit = Annotated[int, typer.Option(min=0, help="Phrase table: longest jump")]


def load_translator(
    grammar: Path | None,
    glue: Path | None,
    phrase_table: Path | None,
    lm: Path | None,
    weights: Path | None,
    *,
    lm_unknown: float | None,
    max_span: int,
    goal: str,
    distortion_limit: int,
) -> "Callable[[list[str]], ForestTranslation | PhraseTranslation]":
    """The function that makes the problem of a sentence; reads all files. InvalidInput if one is not named."""
    if (grammar is None) == (phrase_table is None):
        raise InvalidInput("give either --grammar, for rules, or --phrase-table, for phrases.")
    if lm is None or weights is None:
        raise InvalidInput(f"{'--lm' if lm is None else '--weights'} is missing; a translation needs both.")
    if phrase_table is not None and glue is not None:
        raise InvalidInput("--glue goes with --grammar, not with --phrase-table.")
    from certus.io.kenlm import is_kenlm
    from certus.translation.language_model import LanguageModel

    if is_kenlm(lm):
        table, field = (grammar, 2) if phrase_table is None else (phrase_table, 1)
        assert table is not None
        model = LanguageModel.read_kenlm(lm, _target_words(table, field))
    else:
        model = LanguageModel.read(lm, unknown=lm_unknown)
    if phrase_table is not None:
        from certus.translation.phrase_model import PhraseModel

        return PhraseModel.read(phrase_table, model, weights, distortion_limit=distortion_limit).problem
    from certus.io.hiero import read_weights
    from certus.translation.forest_problem import ForestTranslation
    from certus.translation.grammar import SynchronousGrammar

    assert grammar is not None
    given = read_weights(weights, "hiero")
    if "LM" not in given:
        raise InvalidInput(f"{weights}: has no weight for LM, the language model; give it one, 0 to leave it out.")
    rules = SynchronousGrammar.read(grammar, glue=glue, weights=given, goal=goal, max_span=max_span)
    return lambda words: ForestTranslation(rules.forest(words), model, given["LM"])


def _target_words(table: Path, field: int) -> set[str]:
    """The words on the target side of a table of rules or phrases."""
    from certus.io.files import read_text

    sides = (line.split("|||") for line in read_text(table).splitlines())
    return {word for side in sides if len(side) > field for word in side[field].split()}


def decoding_options(method: str | None, **given: Any) -> dict[str, Any]:
    """Keyword arguments of decode: those that were given."""
    out = {name: value for name, value in given.items() if value is not None}
    return out if method is None else out | {"method": method}
