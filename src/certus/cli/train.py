"""certus train: a grammar or a dependency parser from a treebank, a tagger from tagged sentences."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certus.cli import say
from certus.cli.overwriting import refuse_overwriting
from certus.learn.learners import LEARNERS, online

if TYPE_CHECKING:
    from collections.abc import Iterable

    from certus.io.conllu import Sentence
    from certus.models.loop import Epoch

train = typer.Typer(
    help="Train a grammar, a tagger or a dependency parser.", rich_markup_mode=None, no_args_is_help=False
)


class Column(StrEnum):
    """The columns of CoNLL-U that hold tags."""

    upos = "upos"
    xpos = "xpos"
    feats = "feats"


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
    lexicalized: Annotated[
        bool, typer.Option("--lexicalized", help="A grammar of heads and modifiers; without the three options above")
    ] = False,
    heads: Annotated[
        Path | None, typer.Option(help="Lexicalised: rules for heads", show_default="Penn Treebank")
    ] = None,
    least: Annotated[int, typer.Option(min=1, help="Lexicalised: how often a context must have been seen")] = 1,
) -> None:
    """Estimate a probabilistic grammar from a treebank; traces and function tags are removed."""
    from certus.cli.progress import watched
    from certus.constituency import Grammar, HeadRules, LexicalizedGrammar
    from certus.errors import InvalidInput
    from certus.io.brackets import read_trees

    refuse_overwriting(output, *treebank, heads)
    trees = [tree for path in treebank for tree in watched(read_trees(path, clean=True), "reading")]
    if not trees:
        raise InvalidInput(f"{treebank[0]}: holds no trees; a grammar is estimated from at least one.")
    estimated: Grammar | LexicalizedGrammar
    if lexicalized:
        rules = None if heads is None else HeadRules.load(heads)
        estimated = LexicalizedGrammar.from_treebank(trees, rules=rules, least=least)
    else:
        estimated = Grammar.from_treebank(trees, horizontal=horizontal, vertical=vertical, fallback=fallback)
    estimated.save(output)
    say(f"{output}: {estimated}, from {len(trees)} trees")


@train.command()
def tagger(
    train: Annotated[list[Path], typer.Option(help=".conllu, or bracketed trees; plain or .gz; may be repeated")],
    output: Annotated[Path, typer.Option(help="Where the tagger goes")],
    dev: Annotated[Path | None, typer.Option(help="Tagged sentences to choose the best epoch by")] = None,
    column: Annotated[
        list[Column] | None, typer.Option(help="Which tags of .conllu files; may be repeated", show_default="upos")
    ] = None,
    learner: Annotated[str, typer.Option(metavar="|".join(online()), help="How weights are found")] = "adagrad",
    clusters: Annotated[Path | None, typer.Option(help="Word clusters, from certus cluster")] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Times through the sentences, at most")] = 12,
    bits: Annotated[int, typer.Option(min=8, max=28, help="2 to this power weights for each column")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="Order of the sentences")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was broken off")] = False,
    hmm: Annotated[bool, typer.Option("--hmm", help="A hidden Markov model, to be joined with a grammar")] = False,
) -> None:
    """Train a trigram tagger; after every epoch the state is saved beside the output, for --resume."""
    from certus.cli.progress import watched
    from certus.cli.tagged import read_tagged
    from certus.errors import InvalidInput

    columns = [str(c) for c in column or [Column.upos]]
    refuse_overwriting(output, *train, dev, clusters)
    if hmm:
        from certus.tagging import HMM

        if dev is not None or clusters is not None or resume or len(columns) > 1 or columns == ["feats"]:
            raise InvalidInput("--hmm counts tags of one column, upos or xpos; leave --dev, --clusters, --resume out.")
        pairs = [s for path in train for s in watched(read_tagged(path, column=columns[0]), "reading")]
        if not pairs:
            raise InvalidInput(f"{train[0]}: holds no sentences; a tagger is estimated from at least one.")
        estimated = HMM.estimate(pairs)
        estimated.save(output)
        say(f"{output}: {estimated}, from {len(pairs)} sentences")
        return
    from certus.cli.tagged import read_sentences_with_tags, tag_columns
    from certus.features.brown import Clusters
    from certus.models.tagger import Tagger

    sentences = [s for path in train for s in watched(read_sentences_with_tags(path), "reading")]
    if not sentences:
        raise InvalidInput(f"{train[0]}: holds no sentences; a tagger is trained on at least one.")
    held_out = None if dev is None else _held_out(dev, read_sentences_with_tags(dev))
    for name in columns:
        if dev is not None and name not in tag_columns(held_out or []):
            raise InvalidInput(f'{dev}: every word has "_" in column {name}; give sentences with tags, or no --dev.')
    checkpoint = output.with_name(output.name + ".checkpoint") if output.is_file() or not output.exists() else None
    refuse_overwriting(checkpoint or output, *train, dev, clusters)
    trained = Tagger.train(
        sentences,
        held_out,
        column=columns,
        clusters=Clusters.load(clusters).paths if clusters is not None else None,
        learner=learner,
        epochs=epochs,
        bits=bits,
        seed=seed,
        checkpoint=checkpoint,
        resume=resume,
        progress=_report,
        say=say,
    )
    trained.save(output)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    say(f"{output}: {trained}, from {len(sentences)} sentences")


@train.command()
def parser(
    train: Annotated[list[Path], typer.Option(help=".conllu, or bracketed trees; plain or .gz; may be repeated")],
    output: Annotated[Path, typer.Option(help="Folder for the model; made if there is none")],
    dev: Annotated[Path | None, typer.Option(help="Trees to choose the best epoch by")] = None,
    order: Annotated[int, typer.Option(min=1, max=3, help="1 arcs, 2 siblings and grandparents, 3 both at once")] = 3,
    trisiblings: Annotated[
        bool, typer.Option("--trisiblings", help="At order 3, three modifiers in a row as well")
    ] = False,
    projective: Annotated[bool, typer.Option(help="Trees without crossing arcs, or any trees")] = True,
    learner: Annotated[str, typer.Option(metavar="|".join(LEARNERS), help="How weights are found")] = "mira",
    clusters: Annotated[Path | None, typer.Option(help="Word clusters, from certus cluster")] = None,
    tagger: Annotated[
        bool, typer.Option("--tagger", help="For plain text: train a tagger, and the parser on the tags it would give")
    ] = False,
    epochs: Annotated[int, typer.Option(min=1, help="Times through the trees, at most")] = 10,
    bits: Annotated[int, typer.Option(min=10, max=30, help="2 to this power weights")] = 22,
    pruning_error: Annotated[
        float | None,
        typer.Option(
            help="Share of right arcs each filter may lose, such as 0.002", show_default="filters as wide as usual"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Order of the sentences")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was broken off")] = False,
) -> None:
    """Train a dependency parser with labels on trees with tags.

    With --tagger a tagger is trained too, and the parser on tags from taggers that had not seen the sentence, without
    lemmas and morphology, as it will meet them in plain text. Without it the parser trusts the columns of the trees.

    After every epoch the state is saved in the folder; a training that was killed goes on with --resume and ends with
    the same model.
    """
    from certus.cli.progress import watched
    from certus.cli.tagged import read_dependencies, tag_columns
    from certus.errors import InvalidInput
    from certus.features.brown import Clusters
    from certus.models.files import pair_of
    from certus.models.parser import FILE, Settings
    from certus.models.pipeline import TAGGER_FILE
    from certus.models.predicted_tags import TAGS_FILE, predicted_tags, save_parser
    from certus.models.training import train_parser

    settings = Settings(
        order=order,
        trisiblings=trisiblings,
        projective=projective,
        learner=learner,
        epochs=epochs,
        bits=bits,
        pruning_error=pruning_error,
        seed=seed,
    )
    paths = Clusters.load(clusters).paths if clusters is not None else None
    trees = [s for path in train for s in watched(read_dependencies(path), "reading")]
    if not trees:
        raise InvalidInput(f"{train[0]}: holds no sentences; a parser is trained on at least one.")
    held_out = [] if dev is None else _held_out(dev, read_dependencies(dev))
    if dev is not None and not tagger:
        ours, theirs = tag_columns(trees), tag_columns(held_out)
        for name in sorted({"upos", "xpos"} & (ours ^ theirs)):
            with_tags, without = (train[0], dev) if name in ours else (dev, train[0])
            say(f"{without}: no word has a tag in column {name}, but words of {with_tags} do; dev scores will be low.")
    checkpoint = output / "checkpoint.safetensors"
    for name in (checkpoint.name, FILE, TAGGER_FILE, TAGS_FILE):
        refuse_overwriting(output / name, *train, dev, clusters)
    output.mkdir(parents=True, exist_ok=True)

    pair = None
    if tagger:
        trees, held_out, pair = predicted_tags(
            trees,
            held_out,
            output,
            clusters=paths,
            seed=seed,
            resume=resume,
            progress=say,
        )

    trained = train_parser(
        trees,
        held_out,
        settings=settings,
        clusters=paths,
        progress=_report,
        checkpoint=checkpoint,
        resume=resume,
        say=say,
    )
    if pair is None and pair_of(output / TAGGER_FILE) is not None:
        say(f"{output / TAGGER_FILE}: removed; it is the tagger of the parser that is replaced.")
    save_parser(output, trained, pair)
    checkpoint.unlink(missing_ok=True)
    say(f"{output / FILE}: a parser of order {order}, from {len(trees)} sentences")


def _report(epoch: "Epoch") -> None:
    loss = "" if epoch.loss is None else f", objective {epoch.loss:.4g}"
    dev = "" if epoch.score is None else f", dev {'UAS ' if epoch.stage == 'trees' else ''}{100 * epoch.score:.2f}"
    say(f"{epoch.stage} {epoch.epoch}/{epoch.epochs}: {100 * epoch.errors:.2f}% wrong{loss}{dev}")


def _held_out(dev: Path, sentences: "Iterable[Sentence]") -> "list[Sentence]":
    """The sentences of a dev file; without any, training would neither choose an epoch nor stop early."""
    from certus.errors import FormatError

    found = list(sentences)
    if not any(map(len, found)):
        raise FormatError(dev, None, "holds no words; give sentences to choose the best epoch by, or leave --dev out.")
    return found
