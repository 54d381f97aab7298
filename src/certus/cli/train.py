"""certus train: a grammar or a dependency parser from a treebank, a tagger from tagged sentences."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

train = typer.Typer(
    help="Train a grammar, a tagger or a dependency parser.", rich_markup_mode=None, no_args_is_help=False
)


class Column(StrEnum):
    """The columns of CoNLL-U that hold tags."""

    upos = "upos"
    xpos = "xpos"


@train.callback(invoke_without_command=True)
def help_on_train(context: typer.Context) -> None:
    """Train a grammar, a tagger or a parser."""
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


class Learner(StrEnum):
    """How the weights of a parser are found."""

    mira = "mira"
    perceptron = "perceptron"
    adagrad = "adagrad"


@train.command()
def parser(
    train: Annotated[list[Path], typer.Option(help="Trees in .conllu, plain or .gz; may be repeated")],
    output: Annotated[Path, typer.Option(help="Folder for the model; made if there is none")],
    dev: Annotated[Path | None, typer.Option(help="Trees to choose the best epoch by")] = None,
    order: Annotated[int, typer.Option(min=1, max=3, help="1 arcs, 2 siblings and grandparents, 3 both at once")] = 3,
    projective: Annotated[bool, typer.Option(help="Trees without crossing arcs, or any; any needs order 1")] = True,
    learner: Annotated[Learner, typer.Option(help="How weights are found")] = Learner.mira,
    clusters: Annotated[Path | None, typer.Option(help="Word clusters, from certus cluster")] = None,
    tagger: Annotated[bool, typer.Option(help="Train a tagger too, for words that come without tags")] = False,
    epochs: Annotated[int, typer.Option(min=1, help="Times through the trees, at most")] = 10,
    bits: Annotated[int, typer.Option(min=10, max=30, help="2 to this power weights")] = 22,
    seed: Annotated[int, typer.Option(min=0, help="Order of the sentences")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was broken off")] = False,
) -> None:
    """Train a dependency parser with labels on trees with tags.

    After every epoch the state is saved in the folder; a training that was killed goes on with --resume and ends with
    the same model.
    """
    from certus.cli.progress import watched
    from certus.errors import InvalidInput
    from certus.features.brown import Clusters
    from certus.io.conllu import read_conllu
    from certus.models.parser import FILE, Settings
    from certus.models.training import train_parser

    settings = Settings(order=order, projective=projective, learner=str(learner), epochs=epochs, bits=bits, seed=seed)
    paths = Clusters.load(clusters).paths if clusters is not None else None
    trees = [s for path in train for s in watched(read_conllu(path, require_heads=True), "reading")]
    held_out = list(read_conllu(dev, require_heads=True)) if dev is not None else []
    if not trees:
        raise InvalidInput(f"{train[0]}: holds no sentences; a parser is trained on at least one.")
    output.mkdir(parents=True, exist_ok=True)

    def report(stage: str, epoch: int, epochs: int, errors: float, score: float | None) -> None:
        dev = "" if score is None else f", dev UAS {100 * score:.2f}"
        typer.echo(f"{stage} {epoch}/{epochs}: {100 * errors:.2f}% wrong{dev}", err=True)

    if tagger:
        from certus.models.pipeline import TAGGER_FILE
        from certus.models.tagger import Tagger

        columns = ["upos", "xpos"] if any(token.xpos != "_" for tree in trees for token in tree) else ["upos"]
        named = Tagger.train(trees, held_out or None, column=columns, clusters=paths, seed=seed)
        named.save(output / TAGGER_FILE)
        typer.echo(f"{output / TAGGER_FILE}: a tagger of {' and '.join(columns)}", err=True)

    trained = train_parser(
        trees,
        held_out,
        settings=settings,
        clusters=paths,
        progress=report,
        checkpoint=output / "checkpoint.safetensors",
        resume=resume,
    )
    trained.save(output / FILE)
    typer.echo(f"{output / FILE}: a parser of order {order}, from {len(trees)} sentences", err=True)
