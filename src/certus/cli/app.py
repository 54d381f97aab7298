"""The command tree."""

from typing import Annotated

import typer

from certus.cli.bench import bench
from certus.cli.cluster import cluster
from certus.cli.evaluate import evaluate
from certus.cli.explain import explain
from certus.cli.parse import parse
from certus.cli.search_errors import search_errors
from certus.cli.tag import tag
from certus.cli.train import train
from certus.cli.train_lm import lm
from certus.cli.translate import translate
from certus.cli.verify import verify

app = typer.Typer(
    name="certus",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from certus import __version__

        print(f"certus {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def certus(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Find the best structure for a sentence, and prove it."""
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command()(parse)
app.command()(tag)
app.command()(explain)
app.command()(verify)
app.command()(evaluate)
app.command()(cluster)
app.command()(bench)
app.command()(translate)
app.command(name="search-errors")(search_errors)
train.command()(lm)
app.add_typer(train, name="train")
