"""What the scripts over batches of random sentences share: the sentences, times taken in turns, and the report."""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

Rows = dict[str, dict[str, float]]


def random_batch(n: int, sentences: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Arc scores (B, n + 1, n + 1) from a normal distribution, and lengths."""
    return scale * np.random.default_rng(n).normal(size=(sentences, n + 1, n + 1)), np.full(sentences, n)


def best_seconds(runs: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Best time of each over several rounds in which they take turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}


def exponent(times: dict[int, float]) -> float:
    """Power of n that times grow with, fitted over all n."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def report(doc: str, sections: dict[str, Callable[[int], Rows]], sentences: int, unit: str) -> None:
    """Run the sections on batches of the size asked for on the command line, and print their rows, or JSON."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=sentences, help="in a batch")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = {name: section(options.sentences) for name, section in sections.items()}
    if options.json:
        print(json.dumps(found))
        return
    for name, rows in found.items():
        print(f"{name} ({unit}, batches of {options.sentences})")
        for row, cells in rows.items():
            print(f"  {row:<14}" + "  ".join(f"{key} {value:.2f}" for key, value in cells.items()))
