"""What word clusters add to a parser that sees all columns, forms and coarse tags, or forms alone (DEP 3).

``clusters`` is a file that certus cluster wrote for a text of the same language. UAS on dev and test, the epoch chosen
on dev, the mean over seeds (orders of the sentences).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from certus.bench.cases import Row, data_folder
from certus.errors import InvalidInput
from certus.features.brown import Clusters
from certus.io.conllu import read_conllu
from certus.models.parser import Settings
from certus.models.training import train_parser

SEEN: dict[str, dict[str, Any]] = {
    "all columns": {},
    "forms, coarse tags": {"lemma": "_", "xpos": "_", "feats": "_"},
    "forms": {"lemma": "_", "xpos": "_", "feats": "_", "upos": "_"},
}


def run(
    data: str = "",
    treebank: str = "en_ewt",
    clusters: str = "",
    order: int = 3,
    epochs: int = 6,
    seeds: tuple[int, ...] = (1,),
) -> Iterator[Row]:
    if not clusters:
        raise InvalidInput("give the file of the clusters: --set clusters=FILE, made by certus cluster.")
    folder = data_folder(data, "ud", treebank)
    parts = [list(read_conllu(folder / f"{part}.conllu.gz")) for part in ("train", "dev", "test")]
    paths = dict(Clusters.load(clusters).paths)
    for seen, blank in SEEN.items():
        train, dev, test = (
            [replace(s, tokens=[replace(token, **blank) for token in s]) for s in part] for part in parts
        )
        for name, given in (("without clusters", None), ("with clusters", paths)):
            found = []
            for seed in seeds:
                settings = Settings(order=order, epochs=epochs, label_epochs=1, seed=seed)
                parser = train_parser(train, dev, settings=settings, clusters=given)
                found.append([100 * parser.accuracy(part) for part in (dev, test)])
            on_dev, on_test = np.mean(found, axis=0)
            yield Row(f"{seen}, {name}", {"UAS on dev": float(on_dev), "UAS on test": float(on_test)})
