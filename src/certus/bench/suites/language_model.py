"""Language models: time to read, memory, queries a second, and estimates against those of lmplz."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, data_folder
from certus.io.arpa import read_arpa
from certus.translation.kneser_ney import estimate_kneser_ney


def run(data: str = "", orders: tuple[int, ...] = (2, 3, 4)) -> Iterator[Case | Row]:
    folder = data_folder(data, "mt")
    with gzip.open(folder / "train.en.gz", "rt", encoding="utf-8") as lines:
        sentences = [line.split() for line in lines]
    words = sum(map(len, sentences)) + len(sentences)
    for order in orders:
        file = folder / f"lm.en.{order}gram.arpa.gz"
        arpa = read_arpa(file)
        n_grams = sum(len(grams.words) for grams in arpa.orders)
        lm = certus.LanguageModel(arpa)
        size = sum(array.nbytes for array in lm.arrays[1:]) / n_grams  # the first two are one
        yield Row(f"order {order}", {"n-grams": n_grams, "states": lm.n_states, "bytes an n-gram": size})
        yield Case(f"read, order {order}", lambda f=file: _size(f), items=n_grams, unit="n-gram")
        yield Case(
            f"log_probabilities, order {order}",
            lambda m=lm: [float(p.sum()) for p in m.log_probabilities(sentences)],
            items=words,
            unit="word",
        )
        yield Case(
            f"estimate_kneser_ney, order {order}",
            lambda k=order: estimate_kneser_ney(sentences, k),
            items=words,
            unit="word",
            numbers=lambda found: len(found.arpa.orders[-1].words),
        )
        yield Row(f"lmplz, order {order}", {"largest difference, log 10": _difference(sentences, order, arpa)})


def _size(file: Path) -> int:
    return certus.LanguageModel.read(file).n_states


def _difference(sentences: list[list[str]], order: int, theirs: Any) -> float:
    largest = 0.0
    for a, b in zip(estimate_kneser_ney(sentences, order).arpa.orders, theirs.orders, strict=True):
        i, j = np.lexsort(a.words.T[::-1]), np.lexsort(b.words.T[::-1])
        np.testing.assert_array_equal(a.words[i], b.words[j])
        difference = np.abs(a.log_probability[i] - b.log_probability[j]).max()
        largest = max(largest, float(difference), float(np.abs(a.back_off[i] - b.back_off[j]).max()))
    return largest
