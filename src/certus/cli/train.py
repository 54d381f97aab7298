"""certus train: a grammar from a treebank, a tagger from tagged sentences."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

train = typer.Typer(help="Estimate a grammar or a tagger.", rich_markup_mode=None, no_args_is_help=False)


class Column(StrEnum):
    """The columns of CoNLL-U that hold tags."""

    upos = "upos"
    xpos = "xpos"


@train.callback(invoke_without_command=True)
def help_on_train(context: typer.Context) -> None:
    """Estimate a grammar or a tagger."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@train.command()
def grammar(
    treebank: Annotated[list[Path], typer.Option(help="Bracketed trees, plain or .gz; may be repeated")],
    output: Annotated[Path, typer.Option(help="Where the grammar goes")],
    horizontal: Annotated[int, typer.Option(min=0, help="Children before it that a child depends on")] = 1,
    vertical: Annotated[int, typer.Option(min=1, help="Labels a rule depends on: 1 its own, 2 its parent's too")] = 2,
    fallback: Annotated[str | None, typer.Option(help="Label that holds anything, so that all sentences parse")] = None,
) -> None:
    """Estimate a probabilistic grammar from a treebank; traces and function tags are removed."""
    from certus.cli.progress import watched
    from certus.constituency import Grammar
    from certus.errors import InvalidInput
    from certus.io.brackets import read_trees

    trees = [tree for path in treebank for tree in watched(read_trees(path, clean=True), "reading")]
    if not trees:
        raise InvalidInput(f"{treebank[0]}: holds no trees; a grammar is estimated from at least one.")
    estimated = Grammar.from_treebank(trees, horizontal=horizontal, vertical=vertical, fallback=fallback)
    estimated.save(output)
    typer.echo(f"{output}: {estimated}, from {len(trees)} trees", err=True)


@train.command()
def tagger(
    train: Annotated[list[Path], typer.Option(help=".conllu, or bracketed trees; plain or .gz; may be repeated")],
    output: Annotated[Path, typer.Option(help="Where the tagger goes")],
    column: Annotated[Column, typer.Option(help="Which tags of a .conllu file")] = Column.upos,
) -> None:
    """Estimate a trigram hidden Markov model from tagged sentences."""
    from certus.cli.progress import watched
    from certus.cli.tagged import read_tagged
    from certus.errors import InvalidInput
    from certus.tagging import HMM

    sentences = [sentence for path in train for sentence in watched(read_tagged(path, column=column), "reading")]
    if not sentences:
        raise InvalidInput(f"{train[0]}: holds no sentences; a tagger is estimated from at least one.")
    estimated = HMM.estimate(sentences)
    estimated.save(output)
    typer.echo(f"{output}: {estimated}, from {len(sentences)} sentences", err=True)
