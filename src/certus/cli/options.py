"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Inputs = Annotated[
    list[str] | None, typer.Argument(metavar="[TEXT|FILE|-]...", help="A sentence, a file, or - for stdin")
]
TaggerFile = Annotated[Path | None, typer.Option(help="A trained tagger [bundled]")]
Tokenised = Annotated[bool, typer.Option("--tokenised", help="Words are separated by blanks already")]
JsonLines = Annotated[bool, typer.Option("--json", help="Print one JSON object a line")]
