"""certus cluster: Brown clusters of the words of a text."""

from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Argument, Option
from certus.cli.messages import say
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import counted
from certus.features import brown


def cluster(
    text: Annotated[Path, Argument(help="Tokenised text, one sentence a line; plain or .gz")],
    output: Annotated[Path, Option(help="Where bit string, word and count of each word go")],
    clusters: Annotated[int, Option(min=1, help="How many clusters")] = 1000,
    min_count: Annotated[int, Option(min=1, help="Leave out words seen less often")] = 1,
) -> None:
    """Cluster words by the words around them (Brown clusters); a heuristic."""
    refuse_overwriting(output, text)
    with counted("clustering") as advance:
        found = brown.cluster(brown.read_sentences(text), clusters, min_count=min_count, progress=advance)
    found.save(output)
    say(f"{output}: {len(found.paths)} words in {len(found)} clusters")
