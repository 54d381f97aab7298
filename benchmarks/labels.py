"""Labels of arcs chosen jointly with a first-order tree, or right after it; on the dev part of a treebank.

    python benchmarks/labels.py DATA --model FILE

DATA is a folder with train.conllu.gz and dev.conllu.gz, FILE a first-order parser that benchmarks/parser.py --save or
certus train parser --order 1 made from it. Jointly, a model of labels that sees the two words of an arc is trained,
and Dependency.labelled finds the best labelled tree of arc scores plus a weight times label scores; right after,
the parser's labeller sees the finished tree. Prints UAS and LAS (labels up to the first colon) for both, and for labels
given right after to jointly found trees.
"""

import argparse
from pathlib import Path

import numpy as np

from certus.io.conllu import read_conllu
from certus.kernels.labels import label_scores
from certus.kernels.tuples import LabelModel, LinearModel
from certus.learn.weights import Packed
from certus.models.labels import LabelTrainer
from certus.models.parser import Parser
from certus.text import Sentence

WEIGHTS = (0.05, 0.1, 0.2, 0.5, 1.0)
EPOCHS = 6


def labelled_arcs(trainer: LabelTrainer, weight: np.ndarray, batch, s: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """(n + 1, n + 1, labels): what each label of each arc scores by its two words, -inf if it was never seen."""
    n = int(batch.length[s])
    found = np.full((n + 1, n + 1, len(trainer.names)), -np.inf)
    none, feature = np.full(n + 1, -1), np.empty((n + 1, trainer.templates.most), dtype=np.uint64)
    score = np.empty((n + 1, len(trainer.names)))
    m = np.arange(1, n + 1)
    model = LinearModel(trainer.templates.arrays, trainer.weights.bits, weight)
    labeller = LabelModel(trainer.seen, model, trainer.pairs.arrays)
    for step in range(1, n + 1):
        heads = (np.arange(n + 1) + step) % (n + 1)
        label_scores(batch.sentence(s), heads, none, True, labeller, feature, score)
        found[heads[m], m] = score[m]
    return found


def shares(dev: list[Sentence], trees: list[np.ndarray], labels: list[list[str]]) -> str:
    words = heads = both = 0
    for sentence, tree, own in zip(dev, trees, labels, strict=True):
        for token, head, label in zip(sentence, tree[1:], own, strict=True):
            words += 1
            heads += token.head == head
            both += token.head == head and token.deprel.split(":")[0] == label.split(":")[0]
    return f"UAS {100 * heads / words:.2f}  LAS {100 * both / words:.2f}"


def after(parser: Parser, batch, trees: list[np.ndarray]) -> list[list[str]]:  # type: ignore[no-untyped-def]
    """Labels of finished trees."""
    start = np.cumsum(batch.length + 1) - batch.length - 1
    found = np.split(parser.labeller.label(batch, start, np.concatenate(trees)), start[1:])
    return [[parser.labeller.labels[k] for k in own[1:]] for own in found]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--model", type=Path, required=True)
    options = arguments.parse_args()
    train, dev = (list(read_conllu(options.data / f"{part}.conllu.gz")) for part in ("train", "dev"))
    parser = Parser.load(options.model)
    trainer = LabelTrainer(
        parser.encoder.encode(train), [s.heads for s in train], [[t.deprel for t in s] for s in train],
        bits=parser.settings.label_bits, seed=1, alone=True,
    )  # fmt: skip
    for epoch in range(EPOCHS):
        for _ in trainer.epoch(epoch):
            pass
    weight = Packed.of(trainer.weights.averaged()).floats
    batch = parser.encoder.encode(dev)
    problems = [parser.problem(sentence) for sentence in dev]
    scores = [labelled_arcs(trainer, weight, batch, s) for s in range(len(dev))]
    trees = [problem.decode().structure for problem in problems]
    print(f"right after       {shares(dev, trees, after(parser, batch, trees))}")
    for share in WEIGHTS:
        trees, labels = [], []
        for problem, score in zip(problems, scores, strict=True):
            heads, own = problem.labelled(share * score).decode().structure
            trees.append(heads)
            labels.append([trainer.names[k] for k in own[1:]])
        again = shares(dev, trees, after(parser, batch, trees))
        print(f"jointly, {share:<8g} {shares(dev, trees, labels)};  labelled right after {again}")


if __name__ == "__main__":
    main()
