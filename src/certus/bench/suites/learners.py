"""Learners of first-order dependency models compared on treebanks, as in DEP tables 4.2 and 4.3: UAS on test.

Every learner trains on the first sentences of train, projective (on trees made projective) and with crossing arcs, with
the same features and the same arcs, those that the dictionary of lengths allows; the epoch is chosen on dev.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from certus.bench.cases import Row, data_folder
from certus.features import templates as T
from certus.features.encode import Encoder
from certus.io.conllu import read_conllu
from certus.learn.learners import new_trainer, new_weights
from certus.learn.parts import Features, Parts
from certus.learn.trees import TreeModel, TreeTask, projectivised
from certus.models.cascade import Cascade
from certus.models.filters import LengthDictionary, Treebank, with_tree
from certus.text import Sentence

BITS = 20
EPOCHS = {"perceptron": 10, "mira": 10, "log-linear": 8, "max-margin": 14, "log-linear-eg": 12, "log-linear-lbfgs": 4}


def run(
    data: str = "",
    treebanks: tuple[str, ...] = ("sl_sst", "tr_imst", "da_cdt", "nl_cdb"),
    learners: tuple[str, ...] = ("perceptron", "mira", "max-margin", "log-linear"),
    sentences: int = 800,
    held_out: int = 250,
) -> Iterator[Row]:
    """``held_out`` is the number of sentences of dev and of test."""
    for name in treebanks:
        folder = data_folder(data, "ud", name)
        sizes = {"train": sentences, "dev": held_out, "test": held_out}
        parts = {part: list(read_conllu(folder / f"{part}.conllu.gz"))[:size] for part, size in sizes.items()}
        encoder = Encoder.of(parts["train"])
        batch = encoder.encode(parts["train"])
        for projective in (True, False):
            trees = [projectivised(s.heads) if projective else s.heads for s in parts["train"]]
            model = TreeModel((T.ARC,), projective, True)
            cascade = Cascade((LengthDictionary.of(Treebank.of(batch, trees), projective=projective),))
            allowed = [with_tree(cascade.survivors(batch, s), tree) for s, tree in enumerate(trees)]
            dev, test = (_Held(parts[part], encoder, model, cascade) for part in ("dev", "test"))
            for learner in learners:
                task = TreeTask(model, batch, trees, allowed.__getitem__)
                title = f"{name}, {learner}, {'projective' if projective else 'crossing'}"
                yield Row(title, _trained(learner, task, dev, test))


class _Held:
    """Sentences to measure on, with the arcs that are allowed."""

    def __init__(self, sentences: list[Sentence], encoder: Encoder, model: TreeModel, cascade: Cascade) -> None:
        batch = encoder.encode(sentences)
        self.gold = [s.heads for s in sentences]
        self.features = Features(model, batch, BITS)
        self.parts = [Parts(model, cascade.survivors(batch, s)) for s in range(len(sentences))]

    def accuracy(self, weight: Any) -> float:
        """Percentage of words with the right head."""
        right = words = 0
        for s, (gold, parts) in enumerate(zip(self.gold, self.parts, strict=True)):
            if parts.n:
                _, best = parts.best(self.features.scores(s, parts.rows, weight))
                _, h, m = parts.rows[best > 0, :3].T
                right += int((gold[m] == h).sum())
                words += parts.n
        return 100 * right / words


def _trained(learner: str, task: TreeTask, dev: _Held, test: _Held) -> dict[str, float]:
    """The epoch that is best on dev."""
    start = time.process_time()
    weights = new_weights(learner, BITS)
    trainer = new_trainer(learner, task, weights, 1)
    best = (-1.0, -1.0)
    for epoch in range(EPOCHS.get(learner, 10)):
        for _ in trainer.epoch(epoch):
            pass
        weight = weights.averaged().astype(np.float64)
        on_dev = dev.accuracy(weight)
        if on_dev > best[0]:
            best = (on_dev, test.accuracy(weight))
    return {"UAS on dev": best[0], "UAS on test": best[1], "seconds": time.process_time() - start}
