"""Dependency parsers of orders 1 to 3, projective and with crossing arcs, on many treebanks.

    python benchmarks/treebanks.py DATA [DATA ...] --work FOLDER [--orders 1,2,3] [--epochs 6] [--clusters NAME=FILE]

DATA are folders with train.conllu.gz, dev.conllu.gz and test.conllu.gz, named for the table. Each parser is trained on
train with the tags of the files, the epoch chosen on dev, and measured on test: UAS and LAS over all words (labels up
to the first colon), the share of sentences whose tree is proved the best, in brackets that without branching, and words
a second of processor time on one core. --clusters gives a treebank Brown clusters too, in a row of its own. Parsers and
results are kept in --work, and a run that was broken off goes on from there; without its .json a parser is measured
again.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

from parser import Measured, measured

from certus.features.brown import Clusters
from certus.io.conllu import read_conllu
from certus.models.parser import Parser, Settings
from certus.models.training import train_parser


def trained(data: Path, order: int, crossing: bool, epochs: int, clusters: Path | None, work: Path, name: str) -> None:
    """Train and measure one parser, unless that was done before."""
    result = work / f"{name}.json"
    if result.exists():
        return
    train, dev, test = (list(read_conllu(data / f"{part}.conllu.gz")) for part in ("train", "dev", "test"))
    model = work / f"{name}.model"
    if not model.exists():
        start = time.process_time()
        checkpoint = work / f"{name}.checkpoint"
        train_parser(
            train,
            dev,
            settings=Settings(order=order, epochs=epochs, projective=not crossing),
            clusters=dict(Clusters.load(clusters).paths) if clusters else None,
            checkpoint=checkpoint,
            resume=True,
        ).save(model)
        checkpoint.unlink(missing_ok=True)
        print(f"{name}: trained in {time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    found = measured(Parser.load(model), test)
    result.write_text(json.dumps(asdict(found)))
    print(f"{name}: {found}", file=sys.stderr, flush=True)


def table(work: Path, rows: list[str], orders: list[int]) -> None:
    """What there is so far."""
    kinds = [(order, crossing) for crossing in (False, True) for order in orders]
    heads = [f"order {order}{', crossing' if crossing else ''}" for order, crossing in kinds]
    print("UAS / LAS, certified % (without branching), words/s\n")
    print("| | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 1))
    for row in rows:
        cells = []
        for order, crossing in kinds:
            file = work / f"{row}-{order}{'x' if crossing else ''}.json"
            if not file.exists():
                cells.append("")
                continue
            m = Measured(**json.loads(file.read_text()))
            proof = f"{m.certified:.1f}" + (f" ({m.at_once:.1f})" if crossing and order > 1 else "")
            cells.append(f"{m.heads:.2f} / {m.labelled:.2f}, {proof}, {m.speed:,.0f}")
        print(f"| {row} | " + " | ".join(cells) + " |")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path, nargs="+")
    arguments.add_argument("--work", type=Path, required=True)
    arguments.add_argument("--orders", default="1,2,3")
    arguments.add_argument("--epochs", type=int, default=6)
    arguments.add_argument("--clusters", action="append", default=[], metavar="NAME=FILE")
    options = arguments.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    orders = [int(order) for order in options.orders.split(",")]
    clusters = dict(pair.split("=", 1) for pair in options.clusters)
    runs: list[tuple[str, Path, Path | None]] = []
    for data in options.data:
        runs.append((data.name, data, None))
        if data.name in clusters:
            runs.append((f"{data.name}, clusters", data, Path(clusters[data.name])))
    for crossing in (False, True):
        for order in orders:
            for row, data, paths in runs:
                name = f"{row}-{order}{'x' if crossing else ''}"
                trained(data, order, crossing, options.epochs, paths, options.work, name)
    table(options.work, [row for row, *_ in runs], orders)


if __name__ == "__main__":
    main()
