"""Ways of pruning compared, as in LR tables 8.1 and 8.2 and figure 8-7, on one treebank.

    python benchmarks/cascade.py DATA [--model FILE ...] [--train-sentences 3000] [--dev-sentences 300] [--clusters F]
                                 [--error 0.002]

DATA is a folder with train.conllu.gz and dev.conllu.gz. A final model of order 1, 2 and 3 each comes from --model, as
benchmarks/parser.py saves it, or is trained on the first sentences of train. All ways of pruning are trained on these
sentences too, with the features of a parser's second filter, except the dictionary, which has seen all of train, and
the cascade that a model brings with it. Thresholds are tuned on every second sentence of dev, so that each stage loses
at most a share --error of the right arcs; what is measured is a sample of the others. Sentences of up to 40 words.

Prints, for each final order: speed relative to the first-order model without pruning, the share of wrong arcs that is
pruned (PE), right heads that are left (oracle), UAS; the share of time of each round; how much faster the third-order
parser is than without pruning, by length; what it costs to prune more; and how time grows with length. A parser's own
cascade runs in one kernel, all others stage by stage from Python, sentence by sentence. Times are of the processor,
without labels and encoding.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from parser_speed import growth

from certus.features import templates as T
from certus.features.brown import Clusters
from certus.features.encode import Encoded, Encoder
from certus.io.conllu import read_conllu
from certus.learn.trees import arc_scores, projectivised
from certus.models.cascade import PASS, Cascade, Pruning, stages
from certus.models.filters import ERROR, StagedCascade, Treebank, highest_threshold, of_parser, train_filter
from certus.models.parser import Parser, Settings
from certus.models.training import ROUNDING, train_parser
from certus.text import Sentence

DICTIONARY = "length dictionary"
CASCADES = {
    "no pruning": (),
    "length dictionary": (DICTIONARY,),
    "local short": (DICTIONARY, "local short"),
    "local": (DICTIONARY, "local"),
    "first only": (DICTIONARY, "first order"),
    "first only, width": (DICTIONARY, "first order width"),
    "first and second": (DICTIONARY, "first order", "second order"),
    "posterior": (DICTIONARY, "posterior"),
    "marginal beam": (DICTIONARY, "marginal beam"),
    "vine posterior": (DICTIONARY, "vine posterior", "posterior"),
    "vine cascade": (DICTIONARY, "vine", "first order", "second order"),
    "the same, widths": (DICTIONARY, "vine width", "first order width", "second order width"),
}
LONGEST = 40
BINS = ((1, 10), (11, 20), (21, 30), (31, 40))


def tell(text: str) -> None:
    print(f"{time.process_time():7.1f} s  {text}", file=sys.stderr, flush=True)


class Pool:
    """Cascades trained and tuned on the same sentences; those that begin alike share filters."""

    def __init__(self, everything: Treebank, train: Treebank, tune: Treebank, error: float) -> None:
        self.everything, self.error = everything, error
        self.made: dict[tuple[str, ...], tuple[StagedCascade, Treebank, Treebank]] = {
            (): (StagedCascade(()), train, tune)
        }

    def cascade(self, kinds: tuple[str, ...]) -> StagedCascade:
        if kinds not in self.made:
            self.cascade(kinds[:-1])
            before, train, tune = self.made[kinds[:-1]]
            if kinds[-1] == DICTIONARY:
                stage = train_filter(DICTIONARY, self.everything)
            else:
                stage = train_filter(kinds[-1], train, templates=T.SECOND_FILTER, bits=20).tuned(tune, self.error)
            tell(f"{', '.join(kinds)}: threshold {stage.threshold:.4g}")
            self.made[kinds] = StagedCascade((*before.filters, stage)), train.after(stage), tune.after(stage)
        return self.made[kinds][0]


@dataclass(frozen=True)
class Measured:
    """Words a second, share of wrong arcs pruned, right heads left, UAS."""

    speed: float
    pruned: float
    oracle: float
    uas: float


def decode(parser: Parser, batch: Encoded, s: int, allowed: np.ndarray) -> np.ndarray:
    """The best tree of the parser's model over the allowed arcs."""
    from certus.kernels.parser import best_above_first, best_tree

    sentence, model = batch.sentence(s), parser.model.weighted(parser.settings.bits, parser.weight.value)
    heads = np.empty(sentence.n + 1, dtype=np.int64)
    arc = arc_scores(sentence, allowed, model._replace(templates=model.templates[0]))
    if parser.model.first_order:
        best_tree(arc, parser.model.crossing, parser.model.single, heads)
    else:
        names = parser.namer.names(batch, s, allowed)
        best_above_first(sentence, names, arc, allowed, parser.model.single, model, heads)
    return heads


def share_right(found: Sequence[np.ndarray], gold: Sequence[np.ndarray]) -> float:
    right = sum(int((a[1:] == b[1:]).sum()) for a, b in zip(found, gold, strict=True))
    return right / sum(len(b) - 1 for b in gold)


def measured(parser: Parser, cascade: StagedCascade, held: Treebank, batch: Encoded) -> Measured:
    """Pruning by a cascade over its encoding, then the parser's model over its own."""
    words, seconds = int(batch.length.sum()), []
    for s in range(3):
        decode(parser, batch, s, cascade.survivors(held.batch, s))  # compile
    while sum(seconds) < 1.5 and len(seconds) < 5:
        start = time.process_time()
        left = [cascade.survivors(held.batch, s) for s in range(len(held.trees))]
        found = [decode(parser, batch, s, allowed) for s, allowed in enumerate(left)]
        seconds.append(time.process_time() - start)
    last = stages(cascade, held.batch, held.trees)[-1:]
    pruned, oracle = (last[0].pruned, last[0].oracle) if last else (0.0, 1.0)
    return Measured(words / min(seconds), pruned, oracle, share_right(found, held.trees))


def measured_own(parser: Parser, held: Treebank, batch: Encoded) -> Measured:
    """The parser as it is."""
    words, seconds = int(batch.length.sum()), []
    for _ in range(4):  # the first compiles
        start = time.process_time()
        trees = parser.decode(batch)
        seconds.append(time.process_time() - start)
    found = [trees.heads[at : at + len(tree)] for at, tree in zip(trees.start, held.trees, strict=True)]
    last = stages(parser.cascade, batch, held.trees)[-1]
    return Measured(words / min(seconds), last.pruned, last.oracle, share_right(found, held.trees))


def tuned_own(parser: Parser, tune: list[Sentence], error: float) -> Parser:
    """The parser with filters as narrow as held-out sentences allow."""
    batch, trees = parser.encoder.encode(tune), [s.heads for s in tune]
    cascade = parser.cascade

    def width(stage, before: Cascade) -> float:  # type: ignore[no-untyped-def]
        left = Treebank(batch, trees, [before.survivors(batch, k) for k in range(len(trees))])
        return max(0.0, -highest_threshold(of_parser(stage, cascade).right_levels(left), error)) + ROUNDING

    first = replace(cascade.first, width=width(cascade.first, cascade.prefixes()["dictionary"]))
    second = cascade.second
    if not second.idle:
        second = replace(second, width=width(second, replace(cascade, first=first, second=PASS)))
    tell(f"order {parser.settings.order}: widths {first.width:.2f} and {second.width:.2f}")
    return replace(parser, cascade=replace(cascade, first=first, second=second))


def rounds(cascade: Pruning, batch: Encoded, trees: Sequence[np.ndarray], speed: float) -> str:
    """The share of time of each round of pruning, and of the final one, from the speed of it all."""
    runs = [stages(cascade, batch, trees) for _ in range(3)]
    up_to = [1.0 / max(run[k].speed for run in runs) for k in range(len(runs[0]))]
    took = np.maximum(np.diff([0.0, *up_to, 1.0 / speed]), 0.0)
    names = [*(stage.name for stage in runs[0]), "final"]
    return ", ".join(f"{name} {100 * t / took.sum():.0f}%" for name, t in zip(names, took, strict=True))


def by_length(parser: Parser, sentences: list[Sentence]) -> None:
    """Third order with its cascade and without any, in all and by length."""
    print(f"\norder {parser.settings.order}, words a second with its own cascade and without pruning, by length:")
    seconds = np.zeros((len(BINS), 2))
    words = np.zeros(len(BINS))
    for k, (least, most) in enumerate(BINS):
        some = [s for s in sentences if least <= len(s) <= most]
        batch = parser.encoder.encode(some)
        words[k] = batch.length.sum()
        everything = Treebank.of(batch, [s.heads for s in some]).allowed
        start = time.process_time()
        parser.decode(batch)
        middle = time.process_time()
        for s, allowed in enumerate(everything):
            decode(parser, batch, s, allowed)
        seconds[k] = middle - start, time.process_time() - middle
    for (least, most), n, (own, without) in zip(BINS, words, seconds, strict=True):
        print(f"  {least:>2}-{most} words {n / own:>10,.0f} {n / without:>10,.0f}   {without / own:7.0f} times faster")
    own, without = seconds.sum(axis=0)
    n = words.sum()
    print(f"  all         {n / own:>10,.0f} {n / without:>10,.0f}   {without / own:7.0f} times faster")


def by_error(parser: Parser, tune: list[Sentence], held: list[Sentence]) -> None:
    """What a parser is like when its own filters are tuned to lose more and more."""
    print(f"\norder {parser.settings.order}, own cascade tuned to lose a share of right arcs at each filter, "
          f"on {len(held)} sentences:")  # fmt: skip
    batch = parser.encoder.encode(held)
    bank = Treebank(batch, [s.heads for s in held], [])
    for error in (0.002, 0.005, 0.01, 0.015, 0.02):
        row = measured_own(tuned_own(parser, tune, error), bank, batch)
        print(f"  {100 * error:.1f}%  PE {100 * row.pruned:5.1f}  oracle {100 * row.oracle:6.2f}  "
              f"UAS {100 * row.uas:5.2f}  {row.speed:8,.0f} words/s", flush=True)  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--model", type=Path, action="append", default=[], help="final models, of different orders")
    arguments.add_argument("--train-sentences", type=int, default=3000)
    arguments.add_argument("--dev-sentences", type=int, default=300)
    arguments.add_argument("--clusters", type=Path)
    arguments.add_argument("--error", type=float, default=ERROR, help="share of right arcs that each stage may lose")
    options = arguments.parse_args()
    every = {part: list(read_conllu(options.data / f"{part}.conllu.gz")) for part in ("train", "dev")}
    short = {part: [s for s in some if 0 < len(s) <= LONGEST] for part, some in every.items()}
    train, tune, rest = short["train"][: options.train_sentences], short["dev"][::2], short["dev"][1::2]
    held = rest[:: max(len(rest) // options.dev_sentences, 1)][: options.dev_sentences]
    encoder = Encoder.of(every["train"])  # with the numbers of tags that a model of the whole has
    banks = [Treebank.of(encoder.encode(some), [s.heads for s in some]) for some in (tune, held)]
    known = [
        Treebank.of(encoder.encode(some), [projectivised(s.heads) for s in some]) for some in (every["train"], train)
    ]
    pool = Pool(*known, banks[0], options.error)
    words = sum(len(s) for s in held)
    print(f"{options.data.name}: pruning learnt from {len(train)} sentences, tuned on {len(tune)} to lose at most "
          f"{100 * options.error:.1f}% of right arcs a stage, measured on {len(held)} with {words} words")  # fmt: skip
    parsers = {parser.settings.order: parser for parser in map(Parser.load, options.model)}
    paths = dict(Clusters.load(options.clusters).paths) if options.clusters else None
    for order in (1, 2, 3):
        if order not in parsers:
            parsers[order] = train_parser(train, tune, settings=Settings(order=order, epochs=5), clusters=paths)
            tell(f"final model of order {order} trained on {len(train)} sentences")
    shares = []
    baseline = 0.0
    for order, parser in sorted(parsers.items()):
        batch = parser.encoder.encode(held)
        print(f"\norder {order}            speed     PE   oracle    UAS   words/s", flush=True)
        found: dict[str, Measured] = {}
        for name, kinds in CASCADES.items():
            if order < 3:
                if name == "first and second":
                    continue
                kinds = tuple(kind for kind in kinds if not kind.startswith("second"))
            cascade = pool.cascade(kinds)
            found[name] = measured(parser, cascade, banks[1], batch)
            if name == "vine cascade":
                share = rounds(cascade, banks[1].batch, banks[1].trees, found[name].speed)
                shares.append(f"order {order}, vine cascade: {share}")
        found["own cascade"] = measured_own(parser, banks[1], batch)
        share = rounds(parser.cascade, batch, banks[1].trees, found["own cascade"].speed)
        shares.append(f"order {order}, own cascade: {share}")
        found[f"own, {100 * options.error:.1f}%"] = measured_own(
            tuned_own(parser, tune, options.error), banks[1], batch
        )
        baseline = baseline or found["no pruning"].speed
        for name, row in found.items():
            print(f"{name:<18} {row.speed / baseline:6.2f}  {100 * row.pruned:5.1f}   {100 * row.oracle:6.2f}  "
                  f"{100 * row.uas:5.2f}  {row.speed:8,.0f}", flush=True)  # fmt: skip
    print("\nshare of time by round:", *shares, sep="\n  ")
    by_length(parsers[3], held)
    for order in (1, 3):
        by_error(parsers[order], tune, rest)
    print("\ngrowth of time with length, 5 to 60 words, as a power of length, with its own cascade:")
    for order in (1, 3):
        parser = parsers[order]
        trees = growth(parser.heads, every["dev"], parser.encoder.encode)
        whole = growth(lambda some, parser=parser: list(parser.parse(some)), every["dev"])
        print(f"  order {order}: trees alone {trees:.2f}, from sentences to labelled sentences {whole:.2f}")


if __name__ == "__main__":
    main()
