"""Best non-projective trees on one thread: against ufal.chu_liu_edmonds, the same loop in C++, and the call's overhead.

    python benchmarks/arborescence.py [--sentences 64] [--json]

Claims: a padded batch of 64 random sentences is decoded at least 5 times faster than by ufal.chu_liu_edmonds in a loop
at n = 25, 10 times at n = 40 (trees with any number of roots, which is what the peer finds; our times with a single
root are shown too); no slower than 1.25 times the same loop in C++ -O3 -march=native at n = 25, 40, 70;
``Dependency.decode()`` costs at most 60 microseconds more than its kernel; time grows like n^2. All sentences differ.
A peer or compiler that is not installed is left out, and said so. Each time is the best of several rounds in which
the contestants take turns.
"""

import argparse
import ctypes
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import certus
from certus.dependency.arborescence import best_heads_batch
from certus.kernels import arborescence as kernel

Batch = tuple[np.ndarray, np.ndarray]
Decoder = Callable[[np.ndarray, np.ndarray, str], tuple[np.ndarray, np.ndarray]]


def random_batch(n: int, sentences: int, seed: int = 0) -> Batch:
    """Arc scores (B, n + 1, n + 1) from a normal distribution, and lengths."""
    arc = np.random.default_rng(seed).normal(size=(sentences, n + 1, n + 1))
    return arc, np.full(sentences, n)


def microseconds(runs: dict[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    """Best time of each over several rounds in which they take turns."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: 1e6 * min(values) for name, values in times.items()}


def build_cpp(folder: str) -> Decoder | None:
    """The C++ loop as a function like best_heads_batch; None without g++."""
    if shutil.which("g++") is None:
        return None
    source = Path(__file__).parent / "cpp" / "arborescence.cpp"
    library = Path(folder) / "arborescence.so"
    command = ["g++", "-O3", "-march=native", "-std=c++17", "-shared", "-fPIC", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    function = ctypes.CDLL(str(library)).best_heads_batch
    function.restype = None

    def decode(arc: np.ndarray, lengths: np.ndarray, root: str) -> tuple[np.ndarray, np.ndarray]:
        heads = np.empty(arc.shape[:2], dtype=np.int64)
        values = np.empty(len(arc))
        pointer = ctypes.c_void_p
        function(
            pointer(arc.ctypes.data), ctypes.c_int64(arc.shape[1]), pointer(lengths.ctypes.data),
            ctypes.c_int64(len(arc)), ctypes.c_int(root == "single"), pointer(heads.ctypes.data),
            pointer(values.ctypes.data),
        )  # fmt: skip
        return heads, values

    return decode


def against_ufal(sentences: int) -> dict[str, dict[str, float]]:
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds
    except ImportError:
        print("ufal.chu_liu_edmonds is not installed: left out", file=sys.stderr)
        return {}
    report = {}
    for n in (25, 40):
        arc, lengths = random_batch(n, sentences)
        peer = [np.ascontiguousarray(page.T) for page in arc]  # theirs is score[modifier, head]
        for page in peer:
            page[0] = np.nan  # the root has no head
            np.fill_diagonal(page, np.nan)
        found = [chu_liu_edmonds(page) for page in peer]
        _, values = best_heads_batch(arc, lengths, "multi")
        np.testing.assert_allclose([score for _, score in found], values, rtol=1e-9)
        times = microseconds(
            {
                "ours (multi)": lambda a=arc, s=lengths: best_heads_batch(a, s, "multi"),
                "ours (single)": lambda a=arc, s=lengths: best_heads_batch(a, s, "single"),
                "ufal": lambda pages=peer: [chu_liu_edmonds(page) for page in pages],
            }
        )
        report[f"n={n}"] = {
            **{name: value / sentences for name, value in times.items()},
            "ratio (multi)": times["ufal"] / times["ours (multi)"],
            "ratio (single)": times["ufal"] / times["ours (single)"],
        }
    return report


def against_cpp(sentences: int) -> dict[str, dict[str, float]]:
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        cpp = build_cpp(folder)
        if cpp is None:
            print("g++ is not installed: left out", file=sys.stderr)
            return {}
        for n in (25, 40, 70):
            arc, lengths = random_batch(n, sentences)
            for root in ("multi", "single"):
                ours, theirs = best_heads_batch(arc, lengths, root), cpp(arc, lengths, root)
                assert (ours[0] == theirs[0]).all()
                assert (ours[1] == theirs[1]).all()
                times = microseconds(
                    {
                        "ours": lambda a=arc, s=lengths, r=root: best_heads_batch(a, s, r),
                        "C++": lambda a=arc, s=lengths, r=root: cpp(a, s, r),
                    },
                    rounds=60,
                )
                report[f"n={n} {root}"] = {
                    **{name: value / sentences for name, value in times.items()},
                    "ours / C++": times["ours"] / times["C++"],
                }
    return report


def overhead(sentences: int) -> dict[str, dict[str, float]]:
    """Microseconds of Dependency.decode() for one sentence, and of its kernel alone."""
    report = {}
    for n in (10, 25, 40):
        arc, _ = random_batch(n, sentences)
        problems = [certus.Dependency(page, projective=False) for page in arc]
        n_floats, n_ints = kernel.work_sizes(n)
        work = np.empty(n + 1, dtype=np.int64), np.empty(n_floats), np.empty(n_ints, dtype=np.int64)
        pages = [page.reshape(-1) for page in arc]
        times = microseconds(
            {
                "decode": lambda ps=problems: [p.decode() for p in ps],
                "kernel": lambda ps=pages, k=n, w=work: [kernel.best_heads(p, k + 1, k, True, *w) for p in ps],
            }
        )
        times = {name: value / sentences for name, value in times.items()}
        report[f"n={n}"] = {**times, "overhead": times["decode"] - times["kernel"]}
    return report


def growth(sentences: int) -> dict[str, dict[str, float]]:
    """Microseconds by n, and the exponent fitted to them."""
    sizes = (10, 20, 40, 80, 160)
    report = {}
    for root in ("multi", "single"):
        times = {}
        for n in sizes:
            arc, lengths = random_batch(n, sentences)
            run = microseconds({"t": lambda a=arc, s=lengths, r=root: best_heads_batch(a, s, r)})
            times[f"n={n}"] = run["t"] / sentences
        exponent = np.polyfit(np.log(sizes), np.log(list(times.values())), 1)[0]
        report[root] = {**times, "exponent": float(exponent)}
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sections = {"ufal.chu_liu_edmonds": against_ufal, "C++": against_cpp, "one call": overhead, "growth": growth}
    report = {name: section(options.sentences) for name, section in sections.items()}
    if options.json:
        print(json.dumps(report))
        return
    for name, rows in report.items():
        print(f"{name} (microseconds per sentence)")
        for row, cells in rows.items():
            print(f"  {row:<12}" + "  ".join(f"{key} {value:.2f}" for key, value in cells.items()))


if __name__ == "__main__":
    main()
