"""Ways of pruning compared, as in LR tables 8.1 and 8.2: speed, arcs pruned, right heads left, UAS at orders 1 to 3.

Final models come from ``models``, folders or files of certus train parser, or are trained on the first sentences of
train; all ways of pruning are trained on these too. Thresholds are tuned on every second sentence of dev, so that each
stage loses at most a share ``error`` of the right arcs; what is measured is a sample of the others, up to 40 words. A
parser's own cascade runs in one kernel, the others stage by stage from Python.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from certus import kernels
from certus.bench.cases import Row, data_folder, evenly
from certus.features import templates as T
from certus.features.encode import Encoded, Encoder
from certus.io.conllu import read_conllu
from certus.learn.trees import arc_scores, projectivised
from certus.models.cascade import Cascade, stages
from certus.models.filter_training import train_filter
from certus.models.filters import ERROR, LinearFilter, Treebank
from certus.models.parser import FILE, Parser, Settings
from certus.models.training import train_parser

DICTIONARY = "length dictionary"
CASCADES = {
    "no pruning": (),
    "length dictionary": (DICTIONARY,),
    "local": (DICTIONARY, "local"),
    "first only": (DICTIONARY, "first order"),
    "first and second": (DICTIONARY, "first order", "second order"),
    "posterior": (DICTIONARY, "posterior"),
    "marginal beam": (DICTIONARY, "marginal beam"),
    "vine posterior": (DICTIONARY, "vine posterior", "posterior"),
    "vine cascade": (DICTIONARY, "vine", "first order", "second order"),
}
LONGEST = 40


def run(
    data: str = "",
    treebank: str = "en_ewt",
    models: tuple[str, ...] = ("",),
    sentences: int = 3000,
    held_out: int = 300,
    error: float = ERROR,
) -> Iterator[Row]:
    folder = data_folder(data, "ud", treebank)
    every, dev = (list(read_conllu(folder / f"{part}.conllu.gz")) for part in ("train", "dev"))
    train = [s for s in every if 0 < len(s) <= LONGEST][:sentences]
    short = [s for s in dev if 0 < len(s) <= LONGEST]
    tune, held = short[::2], evenly(short[1::2], held_out)
    encoder = Encoder.of(every)  # with the numbers of tags that a model of the whole has
    tuned, measured = (Treebank.of(encoder.encode(some), [s.heads for s in some]) for some in (tune, held))
    known = [Treebank.of(encoder.encode(some), [projectivised(s.heads) for s in some]) for some in (every, train)]
    pool = _Pool(known[0], known[1], tuned, error)
    files = [Path(name) / FILE if Path(name).is_dir() else Path(name) for name in models if name]
    parsers = {parser.settings.order: parser for parser in map(Parser.load, files)}
    for order in (1, 2, 3):
        parser = parsers.get(order) or train_parser(train, tune, settings=Settings(order=order, epochs=5))
        batch = parser.encoder.encode(held)
        for name, kinds in CASCADES.items():
            if order == 3 or not any(kind.startswith("second") for kind in kinds):
                cascade = pool.cascade(kinds)
                yield Row(f"order {order}, {name}", _staged(parser, cascade, measured, batch))
        yield Row(f"order {order}, own cascade", _own(parser, measured, batch))


class _Pool:
    """Cascades trained and tuned on the same sentences; those that begin alike share filters."""

    def __init__(self, everything: Treebank, train: Treebank, tune: Treebank, error: float) -> None:
        self.everything, self.error = everything, error
        self.made: dict[tuple[str, ...], tuple[Cascade, Treebank, Treebank]] = {(): (Cascade(()), train, tune)}

    def cascade(self, kinds: tuple[str, ...]) -> Cascade:
        if kinds not in self.made:
            self.cascade(kinds[:-1])
            before, train, tune = self.made[kinds[:-1]]
            known = self.everything if kinds[-1] == DICTIONARY else train
            stage = train_filter(kinds[-1], known, templates=T.SECOND_FILTER, bits=20)
            if isinstance(stage, LinearFilter):
                stage = stage.tuned(tune, self.error)
            self.made[kinds] = Cascade((*before.filters, stage)), train.after(stage), tune.after(stage)
        return self.made[kinds][0]


def _best(parser: Parser, batch: Encoded, s: int, allowed: Any) -> Any:
    """The best tree of the parser's model over the allowed arcs."""
    sentence, model = batch.sentence(s), parser.model.weighted(parser.settings.bits, parser.weight.value)
    heads = np.empty(sentence.n + 1, dtype=np.int64)
    arc = arc_scores(sentence, allowed, model._replace(templates=model.templates[0]))
    if parser.model.first_order:
        kernels.parser.best_tree(arc, parser.model.crossing, parser.model.single, heads)
    else:
        names = parser.namer.names(batch, s, allowed)
        kernels.parser.best_above_first(sentence, names, arc, allowed, parser.model.single, model, heads)
    return heads


def _staged(parser: Parser, cascade: Cascade, held: Treebank, batch: Encoded) -> dict[str, float]:
    def parse() -> list[Any]:
        left = [cascade.survivors(held.batch, s) for s in range(len(held.trees))]
        return [_best(parser, batch, s, allowed) for s, allowed in enumerate(left)]

    last = stages(cascade, held.batch, held.trees)[-1:]
    return _cells(parse, held.trees, last)


def _own(parser: Parser, held: Treebank, batch: Encoded) -> dict[str, float]:
    def parse() -> list[Any]:
        trees = parser.decode(batch)
        return [trees.heads[at : at + len(tree)] for at, tree in zip(trees.start, held.trees, strict=True)]

    return _cells(parse, held.trees, stages(parser.cascade, batch, held.trees)[-1:])


def _cells(parse: Callable[[], list[Any]], gold: Sequence[Any], last: Sequence[Any]) -> dict[str, float]:
    parse()  # compiles
    seconds: list[float] = []
    while sum(seconds) < 1.5 and len(seconds) < 5:
        start = time.process_time()
        found = parse()
        seconds.append(time.process_time() - start)
    words = sum(len(tree) - 1 for tree in gold)
    right = sum(int((a[1:] == b[1:]).sum()) for a, b in zip(found, gold, strict=True))
    pruned, oracle = (last[0].pruned, last[0].oracle) if last else (0.0, 1.0)
    shares = {"% pruned": 100 * pruned, "oracle": 100 * oracle, "UAS": 100 * right / words}
    return {"words a second": words / min(seconds), **shares}
