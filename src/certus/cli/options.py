"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

from certus.cli.arguments import Argument, Option

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


def given(**options: Any) -> dict[str, Any]:
    """The options that were given, as keyword arguments."""
    return {name: value for name, value in options.items() if value is not None}
