"""Accuracy and speed of the trigram hidden Markov model, and time of each question of a tagging problem.

    python benchmarks/tagging.py [--data FOLDER] [--split dev] [--json]

Trains on the train part of UD English-EWT (UPOS and XPOS) and of the Penn Treebank sample, tags the dev part. The data
folder is $CERTUS_DATA, or shared/data beside the repository; corpora that are not there are left out. Questions are
asked of random dense problems, 45 tags, 25 words, a different one each time, on one thread; times are of the processor.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from certus import HMM, Tagging, TaggingBatch
from certus.io.brackets import read_trees
from certus.io.conllu import read_conllu

ROOT = Path(__file__).resolve().parents[1]
Corpus = list[list[tuple[str, str]]]


def universal(folder: Path, part: str, column: str) -> Corpus:
    return [sentence.tagged(column) for sentence in read_conllu(folder / f"{part}.conllu.gz")]


def penn(folder: Path, part: str) -> Corpus:
    trees = read_trees(folder / f"{part}.mrg.gz", clean=True)
    return [list(zip(tree.words, tree.tags, strict=True)) for tree in trees]


def accuracy(train: Corpus, test: Corpus) -> dict[str, float]:
    """Share of right tags, of all words and of words that training did not see; words per second."""
    started = time.process_time()
    model = HMM.estimate(train)
    model.tag([word for word, _ in test[0]])  # compiles
    trained = time.process_time()
    found = [model.tag([word for word, _ in sentence]) for sentence in test]
    seconds = time.process_time() - trained
    right = [
        (tag == gold, word in model.lexicon)
        for sentence, tags in zip(test, found, strict=True)
        for (word, gold), tag in zip(sentence, tags, strict=True)
    ]
    unknown = [ok for ok, known in right if not known]
    return {
        "words trained on": sum(map(len, train)),
        "words": len(right),
        "accuracy": sum(ok for ok, _ in right) / len(right),
        "unknown words": len(unknown),
        "accuracy of unknown words": sum(unknown) / max(len(unknown), 1),
        "seconds to train": trained - started,
        "words per second": len(right) / seconds,
    }


def questions(tags: int = 45, n: int = 25, problems: int = 20) -> dict[str, float]:
    """Microseconds per problem: all tags allowed, and three a word as with a tag dictionary."""
    rng = np.random.default_rng(0)
    trigram = rng.normal(size=(tags + 1,) * 3)
    times = {}
    for allowed in (tags, 3):
        unaries = rng.normal(size=(problems, n, tags))
        if allowed < tags:
            order = rng.random(unaries.shape).argsort(axis=2)
            np.put_along_axis(unaries, order[:, :, allowed:], -np.inf, axis=2)
        # One problem's table of trigrams is checked once and shared by the others.
        shared = Tagging(unaries[0], trigram=trigram)
        instances = [Tagging(unary, trigram=shared._trigram) for unary in unaries]
        for name in ("solve", "decode", "log_partition", "entropy", "marginals", "max_marginals"):
            asks: list[Callable[[], object]] = [getattr(problem, name) for problem in instances]
            asks[0]()
            started = time.process_time()
            for ask in asks:
                ask()
            times[f"{name}, {allowed} tags allowed"] = (time.process_time() - started) / problems * 1e6
    batch = TaggingBatch(rng.normal(size=(256, n, 20)), bigram=rng.normal(size=(21, 21)), workers=1)
    started = time.process_time()
    batch.decode()
    times["decode of one item in a batch of 256, 20 tags, bigrams"] = (time.process_time() - started) / 256 * 1e6
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    default = os.environ.get("CERTUS_DATA", ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--split", default="dev")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    web, news = options.data / "ud" / "en_ewt", options.data / "ptb-sample"
    corpora: dict[str, Callable[[str], Corpus]] = {}
    if web.is_dir():
        corpora["English-EWT UPOS"] = lambda part: universal(web, part, "upos")
        corpora["English-EWT XPOS"] = lambda part: universal(web, part, "xpos")
    if news.is_dir():
        corpora["Penn sample"] = lambda part: penn(news, part)
    report: dict[str, dict[str, float]] = {}
    for name, corpus in corpora.items():
        print(f"tagging {name} ...", file=sys.stderr)
        report[name] = accuracy(corpus("train"), corpus(options.split))
    report["microseconds"] = questions()
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for name, numbers in report.items():
        print(name)
        for what, value in numbers.items():
            print(f"  {what:<55} {value:.4f}" if value < 1 else f"  {what:<55} {value:.0f}")


if __name__ == "__main__":
    main()
