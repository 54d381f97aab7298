"""Learners of first-order dependency models compared on treebanks, as in DEP tables 4.2 and 4.3.

    python benchmarks/learners.py DATA [DATA ...] [--sentences 800] [--learners perceptron,mira,...] [--json FILE]

DATA are folders with train.conllu.gz, dev.conllu.gz and test.conllu.gz. Every learner trains on the first sentences of
train, projective (p, on trees made projective) and with crossing arcs (np), with the same features and the same arcs,
those that the dictionary of lengths allows; the epoch is chosen on dev. Prints UAS on test over all words, then, with p
or np chosen on dev for each learner, the comparison of learners and its mean; on stderr the course of each training.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from certus.features import templates as T
from certus.features.encode import Encoded, Encoder
from certus.io.conllu import read_conllu
from certus.learn.learners import LEARNERS, TreeTask, new_trainer, new_weights
from certus.learn.parts import Features, Parts
from certus.learn.trees import TreeModel, projectivised
from certus.models.cascade import PASS, Cascade, longest_arcs, with_tree
from certus.text import Sentence

BITS = 20
EPOCHS = {"perceptron": 10, "mira": 10, "log-linear": 8, "max-margin": 14, "log-linear-eg": 12, "log-linear-lbfgs": 4}


class Held:
    """Sentences to measure on, with the arcs that are allowed."""

    def __init__(self, sentences: list[Sentence], encoder: Encoder, model: TreeModel, cascade: Cascade) -> None:
        self.gold = [s.heads for s in sentences]
        batch = encoder.encode(sentences)
        self.features = Features(model, batch, BITS)
        self.parts = [Parts(model, cascade.survivors(batch, s)) for s in range(len(sentences))]

    def accuracy(self, weight: np.ndarray) -> float:
        """Percentage of words with the right head."""
        right = words = 0
        for s, (gold, parts) in enumerate(zip(self.gold, self.parts, strict=True)):
            if parts.n:
                _, best = parts.best(self.features.scores(s, parts.rows, weight))
                _, h, m = parts.rows[best > 0, :3].T
                right += int((gold[m] == h).sum())
                words += parts.n
        return 100 * right / words


def train_one(
    name: str, model: TreeModel, batch: Encoded, trees: list[np.ndarray], cascade: Cascade, dev: Held, test: Held
) -> tuple[float, float]:
    """UAS on dev and on test of the epoch that is best on dev."""
    allowed = [with_tree(cascade.survivors(batch, s), tree) for s, tree in enumerate(trees)]
    weights = new_weights(name, BITS)
    start = time.process_time()
    trainer = new_trainer(name, TreeTask(model, batch, trees, allowed.__getitem__, weights, 1))
    course, best = [], (-1.0, -1.0)
    for epoch in range(EPOCHS.get(name, 10)):
        for _ in trainer.epoch(epoch):
            pass
        weight = weights.averaged().astype(np.float64)
        course.append(dev.accuracy(weight))
        if course[-1] > best[0]:
            best = (course[-1], test.accuracy(weight))
    seconds = time.process_time() - start
    kind = "p " if model.projective else "np"
    print(f"  {name:<16} {kind} {seconds:6.0f} s  dev", *(f"{c:.1f}" for c in course), file=sys.stderr, flush=True)
    return best


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path, nargs="+")
    arguments.add_argument("--sentences", type=int, default=800)
    arguments.add_argument("--held-out", type=int, default=250, help="sentences of dev and of test")
    arguments.add_argument("--learners", default="perceptron,mira,max-margin,log-linear")
    arguments.add_argument("--json", type=Path)
    options = arguments.parse_args()
    learners = options.learners.split(",")
    if unknown := set(learners) - set(LEARNERS):
        arguments.error(f"no learner is called {', '.join(unknown)}; there are {', '.join(LEARNERS)}")
    found: dict[str, dict[str, tuple[float, float]]] = {}
    print("UAS on test: " + ", ".join(f"{name} p / np" for name in learners))
    for data in options.data:
        most = {"train": options.sentences, "dev": options.held_out, "test": options.held_out}
        parts = {part: list(read_conllu(data / f"{part}.conllu.gz"))[:size] for part, size in most.items()}
        words = sum(len(s) for s in parts["train"])
        print(f"{data.name}: {len(parts['train'])} sentences, {words} words", file=sys.stderr)
        encoder = Encoder.of(parts["train"])
        batch = encoder.encode(parts["train"])
        own = found[data.name] = {}
        for projective in (True, False):
            trees = [projectivised(s.heads) if projective else s.heads for s in parts["train"]]
            model = TreeModel((T.ARC,), projective, True)
            cascade = Cascade(longest_arcs(batch, trees), PASS, PASS, 10**6, projective, True)
            dev, test = (Held(parts[part], encoder, model, cascade) for part in ("dev", "test"))
            for name in learners:
                own[f"{name} {'p' if projective else 'np'}"] = train_one(name, model, batch, trees, cascade, dev, test)
        cells = (f"{own[f'{name} p'][1]:6.2f} {own[f'{name} np'][1]:6.2f}" for name in learners)
        print(f"{data.name:<14}", "   ".join(cells), flush=True)
    print("\np or np chosen on dev: " + ", ".join(learners))
    chosen = np.array([[max(own[f"{name} p"], own[f"{name} np"])[1] for name in learners] for own in found.values()])
    for name, row in zip([*found, "mean"], [*chosen, chosen.mean(axis=0)], strict=True):
        print(f"{name:<14}", "   ".join(f"{value:6.2f}" for value in row))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
