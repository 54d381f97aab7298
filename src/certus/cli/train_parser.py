"""certus train parser: a dependency parser from a treebank."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Option
from certus.cli.corpora import read_corpus, read_dev
from certus.cli.messages import report_epoch, say
from certus.cli.options import ClustersFile, Resume, Seed, TrainFiles, TrainWorkers
from certus.cli.overwriting import refuse_overwriting
from certus.features.brown import Clusters
from certus.learn.learners import LEARNERS
from certus.models.corpus import read_dependencies, tag_columns
from certus.models.files import pair_of
from certus.models.parser import FILE, Settings
from certus.models.pipeline import TAGGER_FILE
from certus.models.predicted_tags import TAGS_FILE, predicted_tags, save_parser
from certus.models.training import train_parser
from certus.text import Sentence


@dataclass(frozen=True)
class Model:
    """What the parser is to be."""

    order: Annotated[int, Option(min=1, max=3, help="1 arcs, 2 siblings and grandparents, 3 both at once")] = 3
    trisiblings: Annotated[bool, Option("--trisiblings", help="At order 3, three modifiers in a row as well")] = False
    projective: Annotated[bool, Option(help="Trees without crossing arcs, or any trees")] = True
    learner: Annotated[str, Option(metavar="|".join(LEARNERS), help="How weights are found")] = "mira"
    epochs: Annotated[int, Option(min=1, help="Times through the trees, at most")] = 10
    bits: Annotated[int, Option(min=10, max=30, help="2 to this power weights")] = 22
    pruning_error: Annotated[
        float | None,
        Option(help="Share of right arcs each filter may lose, such as 0.002", show_default="filters as wide as usual"),
    ] = None
    seed: Seed = 1


def parser(
    model: Model,
    train: TrainFiles,
    output: Annotated[Path, Option(help="Folder for the model; made if there is none")],
    dev: Annotated[Path | None, Option(help="Trees to choose the best epoch by")] = None,
    clusters: ClustersFile = None,
    tagger: Annotated[
        bool, Option("--tagger", help="For plain text: train a tagger, and the parser on the tags it would give")
    ] = False,
    resume: Resume = False,
    workers: TrainWorkers = None,
) -> None:
    """Train a dependency parser with labels on trees with tags.

    With --tagger a tagger is trained too, and the parser on tags from taggers that had not seen the sentence, without
    lemmas and morphology, as it will meet them in plain text. Without it the parser trusts the columns of the trees.

    After every epoch the state is saved in the folder; a training that was killed goes on with --resume and ends with
    the same model.
    """
    settings = Settings(**asdict(model))
    paths = Clusters.load(clusters).paths if clusters is not None else None
    trees = read_corpus(train, read_dependencies, "a parser")
    held_out = [] if dev is None else read_dev(dev, read_dependencies)
    if dev is not None and not tagger:
        _compare_columns(train[0], trees, dev, held_out)
    checkpoint = output / "checkpoint.safetensors"
    for name in (checkpoint.name, FILE, TAGGER_FILE, TAGS_FILE):
        refuse_overwriting(output / name, *train, dev, clusters)
    output.mkdir(parents=True, exist_ok=True)

    pair = None
    if tagger:
        trees, held_out, pair = predicted_tags(
            trees, held_out, output, clusters=paths, seed=model.seed, resume=resume, progress=say, workers=workers
        )
    trained = train_parser(
        trees,
        held_out,
        settings=settings,
        clusters=paths,
        progress=report_epoch,
        checkpoint=checkpoint,
        resume=resume,
        say=say,
        workers=workers,
    )
    if pair is None and pair_of(output / TAGGER_FILE) is not None:
        say(f"{output / TAGGER_FILE}: removed; it is the tagger of the parser that is replaced.")
    save_parser(output, trained, pair)
    checkpoint.unlink(missing_ok=True)
    say(f"{output / FILE}: a parser of order {model.order}, from {len(trees)} sentences")


def _compare_columns(train: Path, trees: list[Sentence], dev: Path, held_out: list[Sentence]) -> None:
    """Say that one of the files has tags in a column where the other has none."""
    ours, theirs = tag_columns(trees), tag_columns(held_out)
    for name in sorted({"upos", "xpos"} & (ours ^ theirs)):
        with_tags, without = (train, dev) if name in ours else (dev, train)
        say(f"{without}: no word has a tag in column {name}, but words of {with_tags} do; dev scores will be low.")
