"""certus train tagger: a tagger from tagged sentences."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Option
from certus.cli.corpora import read_corpus, read_dev
from certus.cli.messages import report_epoch, say
from certus.cli.options import ClustersFile, Resume, Seed, TrainFiles, TrainWorkers
from certus.cli.overwriting import refuse_overwriting
from certus.errors import InvalidInput
from certus.features.brown import Clusters
from certus.learn.learners import online
from certus.models.corpus import read_tagged, tag_columns
from certus.models.tagger import Tagger
from certus.tagging import HMM


class Column(StrEnum):
    """The columns of CoNLL-U that hold tags."""

    upos = "upos"
    xpos = "xpos"
    feats = "feats"


def tagger(
    train: TrainFiles,
    output: Annotated[Path, Option(help="Where the tagger goes")],
    dev: Annotated[Path | None, Option(help="Tagged sentences to choose the best epoch by")] = None,
    column: Annotated[
        list[Column] | None, Option(help="Which tags of .conllu files; may be repeated", show_default="upos")
    ] = None,
    learner: Annotated[str, Option(metavar="|".join(online()), help="How weights are found")] = "adagrad",
    clusters: ClustersFile = None,
    epochs: Annotated[int, Option(min=1, help="Times through the sentences, at most")] = 12,
    bits: Annotated[int, Option(min=8, max=28, help="2 to this power weights for each column")] = 20,
    seed: Seed = 0,
    resume: Resume = False,
    workers: TrainWorkers = None,
    hmm: Annotated[bool, Option("--hmm", help="A hidden Markov model, to be joined with a grammar")] = False,
) -> None:
    """Train a trigram tagger; after every epoch the state is saved beside the output, for --resume."""
    columns = [str(c) for c in column or [Column.upos]]
    refuse_overwriting(output, *train, dev, clusters)
    if hmm and (dev is not None or clusters is not None or resume or len(columns) > 1 or columns == ["feats"]):
        raise InvalidInput("--hmm counts tags of one column, upos or xpos; leave --dev, --clusters, --resume out.")
    sentences = read_corpus(train, read_tagged, "a tagger")
    trained: Tagger | HMM
    if hmm:
        trained = HMM.estimate([sentence.tagged(columns[0]) for sentence in sentences])
        trained.save(output)
    else:
        held_out = None if dev is None else read_dev(dev, read_tagged)
        for name in columns:
            if held_out is not None and name not in tag_columns(held_out):
                raise InvalidInput(f'{dev}: every word has "_" in column {name}; give tagged sentences, or no --dev.')
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
            progress=report_epoch,
            say=say,
            workers=workers,
        )
        trained.save(output)
        if checkpoint is not None:
            checkpoint.unlink(missing_ok=True)
    say(f"{output}: {trained}, from {len(sentences)} sentences")
