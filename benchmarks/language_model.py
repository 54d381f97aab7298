"""Language models: queries a second, time to read, memory, and estimation against the estimates of lmplz.

    python benchmarks/language_model.py [--data FOLDER] [--json]

Reads lm.en.{2,3,4}gram.arpa.gz and train.en.gz from the folder mt of the data folder ($CERTUS_DATA, or shared/data
beside the repository). Queries: every word of the training text in order, each sentence from <s> (what decoders ask,
n-grams that exist); and words of the text in random order, each in the state that the one before it led to (back-off
all the way, nothing near in memory). One thread; times are of the processor.
"""

import argparse
import gzip
import json
import os
import time
from pathlib import Path

import numpy as np

from certus import LanguageModel
from certus.io.arpa import read_arpa
from certus.translation.kneser_ney import estimate_kneser_ney

ROOT = Path(__file__).resolve().parents[1]


def queries(lm: LanguageModel, sentences: list[list[str]], repeat: int = 5) -> dict[str, float]:
    """Millions of queries a second."""
    from certus.kernels.language_model import advance_all

    ptr = np.concatenate(([0], np.cumsum([len(s) + 1 for s in sentences], dtype=np.int64)))
    ids = np.array([i for s in sentences for i in (*lm.word_ids(s).tolist(), lm.end)], dtype=np.int32)
    shuffled = np.random.default_rng(0).permutation(ids)
    out = np.empty(len(ids))
    found = {}
    for name, words in (("text", ids), ("random", shuffled)):
        best = np.inf
        for _ in range(repeat):
            state = np.full(len(sentences), lm.begin_state, dtype=np.int32)
            started = time.thread_time()
            advance_all(lm.arrays, state, words, ptr, out)
            best = min(best, time.thread_time() - started)
        found[f"million queries a second, {name}"] = len(words) / best / 1e6
    return found


def estimation(folder: Path, sentences: list[list[str]], order: int) -> dict[str, float]:
    """Seconds to estimate, and the largest difference to the given model, in logarithms to base 10."""
    started = time.thread_time()
    ours = estimate_kneser_ney(sentences, order).arpa
    seconds = time.thread_time() - started
    theirs = read_arpa(folder / f"lm.en.{order}gram.arpa.gz")
    largest = 0.0
    for a, b in zip(ours.orders, theirs.orders, strict=True):
        i, j = np.lexsort(a.words.T[::-1]), np.lexsort(b.words.T[::-1])
        assert np.array_equal(a.words[i], b.words[j])
        difference = np.abs(a.log_probability[i] - b.log_probability[j]).max()
        largest = max(largest, float(difference), float(np.abs(a.back_off[i] - b.back_off[j]).max()))
    return {"seconds to estimate": seconds, "largest difference to lmplz": largest}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CERTUS_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = options.data / "mt"
    with gzip.open(folder / "train.en.gz", "rt", encoding="utf-8") as lines:
        sentences = [line.split() for line in lines]
    results = {}
    for order in (2, 3, 4):
        started = time.thread_time()
        arpa = read_arpa(folder / f"lm.en.{order}gram.arpa.gz")
        parsed = time.thread_time()
        lm = LanguageModel(arpa)
        built = time.thread_time()
        n_grams = sum(len(grams.words) for grams in arpa.orders)
        row: dict[str, float] = {
            "n-grams": n_grams,
            "states": lm.n_states,
            "bytes an n-gram": sum(array.nbytes for array in lm.arrays[1:]) / n_grams,  # the first two are one
            "seconds to parse": parsed - started,
            "seconds to build": built - parsed,
        }
        results[order] = row | queries(lm, sentences) | estimation(folder, sentences, order)
    if options.json:
        print(json.dumps(results))
        return
    for order, row in results.items():
        print(f"order {order}")
        for name, value in row.items():
            print(f"  {name:<40}{value:>14.6g}")


if __name__ == "__main__":
    main()
