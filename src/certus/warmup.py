"""What the features of certus compile at their first use, and how to have it compiled before: one table.

A feature is a few small calls, as users make them. Each call runs in a process of its own, several at a time, by
``python -m certus.warmup FEATURE PLACE``, and leaves what it compiled in the cache.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import certus
from certus.checks import Floats
from certus.data import demo_grammar, demo_tagger
from certus.errors import CertusError, InvalidInput
from certus.io.conllu import parse_conllu
from certus.models.parser import Parser, Settings
from certus.models.pipeline import bundled_tagger, load
from certus.models.rewriting import prepared, with_labels
from certus.models.tagger import Tagger
from certus.models.training import train_parser
from certus.text import Sentence
from certus.threads import thread_count
from certus.translation.kneser_ney import estimate_kneser_ney

WORDS = ["Red", "flies", "some", "large", "jet"]
TREE = """\
1\tRed\t_\tADJ\tJJ\t_\t2\tnsubj\t_\t_
2\tflies\t_\tVERB\tVBZ\t_\t0\troot\t_\t_
3\tsome\t_\tDET\tDT\t_\t5\tdet\t_\t_
4\tlarge\t_\tADJ\tJJ\t_\t5\tamod\t_\t_
5\tjet\t_\tNOUN\tNN\t_\t2\tobj\t_\t_

"""
RULES = """
[X] ||| le chien ||| the dog ||| p=-0.5
[X] ||| aboie ||| barks ||| p=-0.1
[X] ||| [X,1] aboie ||| [1] barks loudly ||| p=-0.9
[S] ||| [X,1] ||| [1]
"""


def _scores(*shape: int) -> Floats:
    return np.random.default_rng(0).normal(size=shape)


def _tree() -> list[Sentence]:
    return list(parse_conllu(TREE.encode().splitlines(keepends=True), path="warmup"))


def _tag() -> None:
    bundled_tagger().of_text("web").conllu([" ".join(WORDS)], whole=False)


def _heads() -> None:
    parser = load().parser
    parser.decode(parser.encode(_tree()))


def _labels() -> None:
    pipeline = load()
    assert isinstance(pipeline.parser, Parser)
    piece = prepared(pipeline, pipeline.parser, TREE.encode(), "warmup", (0, 0))
    with_labels(pipeline.parser, piece, np.array([0]), _tree()[0].heads)


def _confidences() -> None:
    list(load().parse(_tree(), confidences=True, certificates=True))


def _kbest() -> None:
    list(load().kbest(_tree(), 2))


def _tagging() -> None:
    problem = certus.Tagging(_scores(4, 3), bigram=_scores(4, 4))
    problem.decode()
    problem.marginals()
    problem.kbest(2)


def _projective() -> None:
    certus.Dependency(_scores(5, 5), projective=True).decode()
    certus.Dependency(_scores(5, 5), projective=True).marginals()


def _siblings() -> None:
    certus.Dependency(_scores(5, 5), sibling=_scores(5, 5, 5), projective=True).decode()


def _crossing() -> None:
    certus.Dependency(_scores(5, 5), projective=False).decode()


def _crossing_siblings() -> None:
    certus.Dependency(_scores(5, 5), sibling=_scores(5, 5, 5)).decode()


def _matrix_tree() -> None:
    problem = certus.Dependency(_scores(5, 5), projective=False)
    problem.marginals()
    problem.sample(1, seed=1)


def _batch() -> None:
    batch = certus.DependencyBatch(_scores(3, 5, 5), projective=False)
    batch.decode()
    batch.marginals()


def _single(*shape: int) -> NDArray[np.float32]:
    """Scores as networks have them."""
    return _scores(*shape).astype(np.float32)


def _trees_of_batches() -> None:
    batches: tuple[certus.Batch, ...] = (
        certus.DependencyBatch(_single(9, 10, 10)),
        certus.DependencyBatch(_single(9, 10, 10), projective=True),
        certus.DependencyBatch(_single(9, 10, 10), _single(9, 10, 10, 10), projective=True),
        certus.LabelledDependencyBatch(_single(9, 10, 10, 9)),
        certus.SpanningTreeBatch(np.zeros((2, 4, 4), dtype=np.float32)),
    )
    for batch in batches:
        batch.decode()
        batch.part_sums()


def _sequences_of_batches() -> None:
    batches: tuple[certus.Batch, ...] = (
        certus.TaggingBatch(_single(9, 4, 3), _single(3, 3)),
        certus.SegmentationBatch(_single(2, 4, 2, 2), _single(2, 2)),
        certus.CTCBatch(_single(2, 4, 3), [[1], [2]]),
    )
    for batch in batches:
        batch.decode()
        batch.log_partition_and_marginals()


def _spans_of_batches() -> None:
    batches: tuple[certus.Batch, ...] = (
        certus.SpanTreesBatch(_single(2, 4, 4, 9)),
        certus.AnchoredGrammarBatch(_single(2), _single(2, 4, 4), _single(1, 3, 2)),
    )
    for batch in batches:
        batch.decode()
        batch.log_partition_and_marginals()


def _graphs() -> None:
    certus.AssignmentBatch(_single(2, 3, 3)).decode()
    certus.DependencyGraph(*(_scores(*(4,) * k) for k in (2, 3, 3, 3))).decode()


def _joint() -> None:
    phrases = certus.Constituency(demo_grammar(), WORDS)
    certus.Joint(phrases, demo_tagger().tagging(WORDS), on="tags").decode()


def _constituents() -> None:
    problem = certus.Constituency(demo_grammar(), WORDS)
    problem.decode()
    problem.kbest(2)


def _model() -> certus.LanguageModel:
    text = ["the dog barks loudly", "the dog sleeps", "a cat sleeps", "the cat barks at the dog"]
    return certus.LanguageModel(estimate_kneser_ney([line.split() for line in text], order=3).arpa)


def _forests() -> None:
    grammar = certus.SynchronousGrammar.from_text(RULES, weights={"p": 1.0})
    forest = grammar.forest(["le", "chien", "aboie"], unknown="error")
    certus.ForestTranslation(forest, _model(), lm_weight=1.0).decode()


def _phrases() -> None:
    spans = [(0, 1, "the dog"), (2, 2, "barks"), (2, 2, "sleeps"), (3, 3, "loudly")]
    options = [certus.PhraseOption(i, j, tuple(words.split()), -0.5) for i, j, words in spans]
    source = ["le", "chien", "aboie", "fort"]
    certus.PhraseTranslation(options, _model(), source=source, distortion=0.1, distortion_limit=6).decode()


def _train_parser() -> None:
    train_parser(_tree() * 2, [], settings=Settings(epochs=1, bits=10))


def _train_tagger() -> None:
    Tagger.train(_tree() * 2, epochs=1, bits=16)


class Feature(NamedTuple):
    """Something that people use: in words, and calls that compile all that it needs, which are independent."""

    about: str
    calls: tuple[Callable[[], object], ...]


FEATURES = {
    "parse": Feature("certus parse, with the bundled model", (_heads, _tag, _labels)),
    "confidences": Feature("certus parse --confidences, --certificates, --kbest", (_confidences, _kbest)),
    "tag": Feature("certus tag, with the bundled model", (_tag,)),
    "constituents": Feature("phrase structure by a grammar", (_constituents,)),
    "tagging": Feature("sequences of tags: decode, marginals, k-best", (_tagging,)),
    "projective": Feature("trees without crossing arcs, arcs and siblings", (_projective, _siblings)),
    "crossing": Feature("trees with crossing arcs, arcs alone", (_crossing,)),
    "crossing-siblings": Feature("trees with crossing arcs, second order", (_crossing_siblings,)),
    "matrix-tree": Feature("marginals and samples of trees with crossing arcs", (_matrix_tree,)),
    "batches": Feature("batches of trees", (_batch,)),
    "neural": Feature(
        "batches of the structures of networks: best ones, sums and gradients",
        (_trees_of_batches, _sequences_of_batches, _spans_of_batches, _graphs),
    ),
    "joint": Feature("a grammar and a tagger that agree", (_joint,)),
    "forests": Feature("exact translation with a synchronous grammar", (_forests,)),
    "phrases": Feature("exact translation with phrases", (_phrases,)),
    "training": Feature("certus train parser and tagger", (_train_parser, _train_tagger)),
}


class Warmed(NamedTuple):
    """A call that is done: its feature, seconds, and what it said if it failed."""

    feature: str
    call: str
    seconds: float
    error: str


def chosen(features: Sequence[str]) -> list[str]:
    """The features of these names, all without any; InvalidInput for one that there is not."""
    for name in features:
        if name not in FEATURES:
            raise InvalidInput(f"there is no feature {name!r}; there are {', '.join(FEATURES)}.")
    return list(dict.fromkeys(features)) or list(FEATURES)


def calls_of(features: Sequence[str]) -> list[tuple[str, int]]:
    """The calls of features, each once, as the feature and the place of the call in it."""
    found: dict[Callable[[], object], tuple[str, int]] = {}
    for name in features:
        for k, call in enumerate(FEATURES[name].calls):
            found.setdefault(call, (name, k))
    return list(found.values())


def command(feature: str, place: int) -> list[str]:
    """How a call is run in a process of its own."""
    return [sys.executable, "-m", "certus.warmup", feature, str(place)]


def warm(
    features: Sequence[str] = (), *, workers: int | None = None, variables: dict[str, str] | None = None
) -> Iterator[Warmed]:
    """Compile what features need, in several processes; yields the calls as they are done.

    ``variables`` are added to the environment of the processes.
    """
    calls = calls_of(chosen(features))
    source = str(Path(__file__).resolve().parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": paths} | (variables or {})

    def run(call: tuple[str, int]) -> Warmed:
        begun = perf_counter()
        done = subprocess.run(command(*call), env=environment, capture_output=True, text=True, errors="replace")
        lines = done.stderr.strip().splitlines()
        error = "" if done.returncode == 0 else (lines[-1] if lines else f"exit code {done.returncode}")
        name = FEATURES[call[0]].calls[call[1]].__name__.strip("_").replace("_", " ")
        return Warmed(call[0], name, perf_counter() - begun, error)

    with ThreadPoolExecutor(thread_count(workers)) as pool:
        for done in as_completed([pool.submit(run, call) for call in calls]):
            yield done.result()


def main(feature: str, place: str) -> int:
    """Make one call."""
    try:
        FEATURES[feature].calls[int(place)]()
    except CertusError as error:
        print(f"certus: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
