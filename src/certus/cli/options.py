"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

from certus.cli.arguments import Argument, Option
from certus.errors import InvalidInput
from certus.translation import GrammarModel, PhraseModel

FilesOrText = Annotated[
    list[str] | None,
    Argument(metavar="[TEXT|FILE|FOLDER|-]...", help="A sentence, a file, a folder, a pattern, or - for stdin"),
]
Inputs = Annotated[list[str] | None, Argument(metavar="[TEXT|FILE|-]...", help="A sentence, a file, or - for stdin")]
TaggerFile = Annotated[Path | None, Option(help="A trained tagger [bundled]")]
Conllu = Annotated[bool, Option("--conllu", help="stdin is CoNLL-U")]
Lines = Annotated[bool, Option("--lines", help="Every line of a text is a sentence")]
Tokenised = Annotated[bool, Option("--tokenised", help="Words are separated by blanks already")]
JsonLines = Annotated[bool, Option("--json", help="Print one JSON object a line")]
JsonObject = Annotated[bool, Option("--json", help="Print one JSON object")]
ParserModel = Annotated[str, Option(help="Name or folder of a trained parser")]
KBest = Annotated[int | None, Option(min=1, help="So many of the best of each sentence, each proved")]
TimeLimit = Annotated[float | None, Option(min=0, help="Seconds for one sentence")]

# -- training --------------------------------------------------------------------------------------------------------

TrainFiles = Annotated[list[Path], Option(help=".conllu, or bracketed trees; plain or .gz; may be repeated")]
ClustersFile = Annotated[Path | None, Option(help="Word clusters, from certus cluster")]
Seed = Annotated[int, Option(min=0, help="Order of the sentences")]
TrainWorkers = Annotated[
    int | None, Option(min=1, help="Threads; the model is the same for any number", show_default="all processors")
]
Resume = Annotated[bool, Option("--resume", help="Go on with a training that was broken off")]

# -- translation -----------------------------------------------------------------------------------------------------

GrammarFile = Annotated[Path | None, Option(help="Synchronous rules in cdec's text form, plain or .gz")]
GlueFile = Annotated[Path | None, Option(help="Glue rules, which cover any number of words from the first on")]
PhraseTableFile = Annotated[Path | None, Option(help="Phrase table of Moses, instead of a grammar")]
LmFile = Annotated[Path | None, Option(help="Language model in ARPA format, plain or .gz, or KenLM's binary one")]
LmUnknown = Annotated[float | None, Option(help="log10 probability of unknown words, for a model without <unk>", max=0)]
WeightsFile = Annotated[Path | None, Option(help="Feature weights: JSON, or lines of name and value")]
MaxSpan = Annotated[int, Option(min=1, help="Grammar: source words an ordinary rule covers at most")]
Goal = Annotated[str, Option(help="Grammar: the nonterminal that covers a sentence")]
DistortionLimit = Annotated[int, Option(min=0, help="Phrase table: longest jump")]


def translation_model(
    *,
    grammar: Path | None,
    glue: Path | None,
    phrase_table: Path | None,
    lm: Path | None,
    lm_unknown: float | None,
    weights: Path | None,
    max_span: int,
    goal: str,
    distortion_limit: int,
) -> GrammarModel | PhraseModel:
    """The model that these options name; InvalidInput if one is missing, or goes with another kind of model."""
    if (grammar is None) == (phrase_table is None):
        raise InvalidInput("give either --grammar, for rules, or --phrase-table, for phrases.")
    if lm is None or weights is None:
        raise InvalidInput(f"{'--lm' if lm is None else '--weights'} is missing; a translation needs both.")
    if grammar is not None:
        return GrammarModel.read(grammar, lm, weights, lm_unknown=lm_unknown, glue=glue, goal=goal, max_span=max_span)
    if glue is not None:
        raise InvalidInput("--glue goes with --grammar, not with --phrase-table.")
    assert phrase_table is not None
    return PhraseModel.read(phrase_table, lm, weights, lm_unknown=lm_unknown, distortion_limit=distortion_limit)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given, as keyword arguments."""
    return {name: value for name, value in options.items() if value is not None}
