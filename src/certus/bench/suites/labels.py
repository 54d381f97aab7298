"""Labels chosen jointly with a first-order tree, or right after it, on the dev part of a treebank.

``model`` is a first-order parser of that treebank (certus train parser --order 1). Jointly, a model of labels that sees
the two words of an arc is trained, and LabelledDependency finds the best labelled tree of arc scores plus a weight
times label scores; right after, the parser's labeller sees the finished tree.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from certus import kernels
from certus.bench.cases import Row, data_folder
from certus.errors import InvalidInput
from certus.io.conllu import read_conllu
from certus.kernels.tuples import LabelModel, LinearModel
from certus.learn.weights import Packed
from certus.models.labels import LabelTrainer
from certus.models.parser import FILE, Parser
from certus.text import Sentence


def run(
    data: str = "",
    treebank: str = "en_ewt",
    model: str = "",
    weights: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0),
    epochs: int = 6,
) -> Iterator[Row]:
    if not model:
        raise InvalidInput("give a first-order parser: --set model=FOLDER, made by certus train parser --order 1.")
    folder = data_folder(data, "ud", treebank)
    train, dev = (list(read_conllu(folder / f"{part}.conllu.gz")) for part in ("train", "dev"))
    parser = Parser.load(Path(model) / FILE if Path(model).is_dir() else model)
    labels = [[t.deprel for t in s] for s in train]
    bits = parser.settings.label_bits
    trainer = LabelTrainer(
        parser.encoder.encode(train), [s.heads for s in train], labels, bits=bits, seed=1, alone=True
    )
    for epoch in range(epochs):
        for _ in trainer.epoch(epoch):
            pass
    packed = Packed.of(trainer.weights.averaged())
    alone = LabelModel(trainer.seen, LinearModel(trainer.templates.arrays, bits, packed.floats), trainer.pairs.arrays)
    batch = parser.encoder.encode(dev)
    problems = [parser.problem(sentence) for sentence in dev]
    scores = [_label_scores(alone, batch, s) for s in range(len(dev))]
    trees = [problem.decode().structure for problem in problems]
    yield Row("right after", _shares(dev, trees, _after(parser, batch, trees)))
    for share in weights:
        found = [p.labelled(share * score).decode().structure for p, score in zip(problems, scores, strict=True)]
        trees = [heads for heads, _ in found]
        own = [[trainer.names[k] for k in numbers[1:]] for _, numbers in found]
        yield Row(f"jointly, weight {share:g}", _shares(dev, trees, own))
        yield Row(f"  labelled right after, {share:g}", _shares(dev, trees, _after(parser, batch, trees)))


def _label_scores(model: LabelModel, batch: Any, s: int) -> Any:
    """(n + 1, n + 1, labels): what each label of each arc scores by its two words, -inf if it was never seen."""
    sentence = batch.sentence(s)
    n, labels = sentence.n, model.seen.shape[3]
    found = np.full((n + 1, n + 1, labels), -np.inf)
    none, feature = np.full(n + 1, -1), np.empty((n + 1, model.model.templates.max_features), dtype=np.uint64)
    total = np.empty(kernels.labels.row_room(labels, len(model.model.weight)))
    score, m = np.empty((n + 1, labels)), np.arange(1, n + 1)
    for step in range(1, n + 1):
        heads = (np.arange(n + 1) + step) % (n + 1)
        kernels.labels.label_scores(sentence, heads, none, True, model, feature, total, score)
        found[heads[m], m] = score[m]
    return found


def _after(parser: Parser, batch: Any, trees: list[Any]) -> list[list[str]]:
    """Labels of finished trees."""
    start = np.cumsum(batch.length + 1) - batch.length - 1
    found = np.split(parser.labeller.label(batch, start, np.concatenate(trees)), start[1:])
    return [[parser.labeller.labels[k] for k in own[1:]] for own in found]


def _shares(dev: list[Sentence], trees: list[Any], labels: list[list[str]]) -> dict[str, float]:
    words = heads = both = 0
    for sentence, tree, own in zip(dev, trees, labels, strict=True):
        for token, head, label in zip(sentence, tree[1:], own, strict=True):
            words += 1
            heads += token.head == head
            both += token.head == head and token.deprel.split(":")[0] == label.split(":")[0]
    return {"UAS": 100 * heads / words, "LAS": 100 * both / words}
