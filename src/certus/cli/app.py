"""The command tree."""

from typing import Annotated

import typer

from certus import __version__
from certus.cli.bench import bench
from certus.cli.cluster import cluster
from certus.cli.constituents import constituents
from certus.cli.evaluate import evaluate
from certus.cli.explain import explain
from certus.cli.parse import parse
from certus.cli.projectivize import projectivize
from certus.cli.search_errors import search_errors
from certus.cli.tag import tag
from certus.cli.train_grammar import grammar
from certus.cli.train_lm import lm
from certus.cli.train_parser import parser
from certus.cli.train_tagger import tagger
from certus.cli.translate import translate
from certus.cli.verify import verify

app = typer.Typer(
    name="certus",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
train = typer.Typer(rich_markup_mode=None, no_args_is_help=False)


def _print_version(asked: bool) -> None:
    if asked:
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


@train.callback(invoke_without_command=True)
def help_on_train(context: typer.Context) -> None:
    """Train a grammar, a tagger, a dependency parser or a language model."""
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command()(parse)
app.command()(constituents)
app.command()(tag)
app.command()(explain)
app.command()(verify)
app.command()(evaluate)
app.command()(projectivize)
app.command()(cluster)
app.command()(translate)
app.command()(search_errors)
app.command()(bench)
train.command()(grammar)
train.command()(tagger)
train.command()(parser)
train.command()(lm)
app.add_typer(train, name="train")
