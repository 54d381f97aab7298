"""What word clusters add to a parser, by what else it sees of a word (DEP 3).

    python benchmarks/clusters.py DATA CLUSTERS [--order 3] [--epochs 6] [--seeds 1,2,3]

DATA is a folder with train.conllu.gz, dev.conllu.gz and test.conllu.gz; CLUSTERS is what certus cluster wrote for a
text of the same language. Trains parsers with and without the clusters on everything the treebank says of a word, on
forms and coarse tags, and on forms alone; the epoch is chosen on dev. Prints UAS on dev and test, the mean over seeds
(orders of the sentences).
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from certus.features.brown import Clusters
from certus.io.conllu import read_conllu
from certus.models.parser import Settings
from certus.models.training import train_parser
from certus.text import Sentence

SEEN = {
    "all columns": {},
    "forms, coarse tags": {"lemma": "_", "xpos": "_", "feats": "_"},
    "forms": {"lemma": "_", "xpos": "_", "feats": "_", "upos": "_"},
}


def blanked(sentences: list[Sentence], blank: dict[str, str]) -> list[Sentence]:
    return [replace(s, tokens=[replace(token, **blank) for token in s]) for s in sentences]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("clusters", type=Path)
    arguments.add_argument("--order", type=int, default=3)
    arguments.add_argument("--epochs", type=int, default=6)
    arguments.add_argument("--seeds", default="1,2,3")
    options = arguments.parse_args()
    treebank = [list(read_conllu(options.data / f"{part}.conllu.gz")) for part in ("train", "dev", "test")]
    paths = dict(Clusters.load(options.clusters).paths)
    print("UAS on dev, test: without clusters; with; gain", flush=True)
    for seen, blank in SEEN.items():
        train, dev, test = (blanked(part, blank) for part in treebank)
        means = []
        for clusters in (None, paths):
            found = []
            for seed in map(int, options.seeds.split(",")):
                settings = Settings(order=options.order, epochs=options.epochs, label_epochs=1, seed=seed)
                parser = train_parser(train, dev, settings=settings, clusters=clusters)
                found.append([100 * parser.accuracy(part) for part in (dev, test)])
                print(f"{seen}, {'with' if clusters else 'without'}, seed {seed}: {found[-1]}", file=sys.stderr)
            means.append(np.mean(found, axis=0))
        without, with_them = means
        gain = with_them - without
        cells = "; ".join(f"{a:.2f}, {b:.2f}" for a, b in (without, with_them))
        print(f"{seen}: {cells}; {gain[0]:+.2f}, {gain[1]:+.2f}", flush=True)


if __name__ == "__main__":
    main()
