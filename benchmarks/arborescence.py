"""Best non-projective trees on one thread: against ufal.chu_liu_edmonds, the same loop in C++, and the call's overhead.

    python benchmarks/arborescence.py [--sentences 64] [--json]

Claims: ``DependencyBatch(scores).decode()`` takes a padded batch of 64 random sentences at least 5 times faster than
ufal.chu_liu_edmonds in a loop at n = 25, 10 times at n = 40, by default with a single root, and with any number of
roots, which is what the peer finds; no slower than 1.25 times the same loop in C++ -O3 -march=native at n = 25, 40, 70;
``Dependency.decode()`` costs at most 60 microseconds more than its kernel; time grows like n^2. All sentences differ.
A peer or compiler that is not installed is left out, and said so. Each time is the best of several rounds in which
the contestants take turns.
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from turns import Rows, best_seconds, exponent, random_batch, report

import certus
from certus.dependency.arborescence import best_heads_batch
from certus.kernels import arborescence as kernel

Decoder = Callable[[np.ndarray, np.ndarray, str], tuple[np.ndarray, np.ndarray]]


def microseconds(runs: dict[str, Callable[[], object]], rounds: int = 15) -> dict[str, float]:
    return {name: 1e6 * value for name, value in best_seconds(runs, rounds).items()}


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


def against_ufal(sentences: int) -> Rows:
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds
    except ImportError:
        print("ufal.chu_liu_edmonds is not installed: left out", file=sys.stderr)
        return {}
    rows = {}
    for n in (25, 40):
        arc, _ = random_batch(n, sentences)
        peer = [np.ascontiguousarray(page.T) for page in arc]  # theirs is score[modifier, head]
        for page in peer:
            page[0] = np.nan  # the root has no head
            np.fill_diagonal(page, np.nan)
        found = [chu_liu_edmonds(page) for page in peer]
        values = certus.DependencyBatch(arc, root="multi").decode().score
        np.testing.assert_allclose([score for _, score in found], values, rtol=1e-9)
        times = microseconds(
            {
                "ours (multi)": lambda a=arc: certus.DependencyBatch(a, root="multi").decode(),
                "ours (single)": lambda a=arc: certus.DependencyBatch(a).decode(),
                "ufal": lambda pages=peer: [chu_liu_edmonds(page) for page in pages],
            }
        )
        rows[f"n={n}"] = {
            **{name: value / sentences for name, value in times.items()},
            "ratio (multi)": times["ufal"] / times["ours (multi)"],
            "ratio (single)": times["ufal"] / times["ours (single)"],
        }
    return rows


def against_cpp(sentences: int) -> Rows:
    rows = {}
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
                rows[f"n={n} {root}"] = {
                    **{name: value / sentences for name, value in times.items()},
                    "ours / C++": times["ours"] / times["C++"],
                }
    return rows


def overhead(sentences: int) -> Rows:
    """Microseconds of Dependency.decode() for one sentence, and of its kernel alone."""
    rows = {}
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
        rows[f"n={n}"] = {**times, "overhead": times["decode"] - times["kernel"]}
    return rows


def growth(sentences: int) -> Rows:
    """Microseconds by n, and the exponent fitted to them."""
    sizes = (10, 20, 40, 80, 160)
    rows = {}
    for root in ("multi", "single"):
        times = {}
        for n in sizes:
            arc, lengths = random_batch(n, sentences)
            run = microseconds({"t": lambda a=arc, s=lengths, r=root: best_heads_batch(a, s, r)})
            times[n] = run["t"] / sentences
        rows[root] = {**{f"n={n}": t for n, t in times.items()}, "exponent": exponent(times)}
    return rows


if __name__ == "__main__":
    sections = {"ufal.chu_liu_edmonds": against_ufal, "C++": against_cpp, "one call": overhead, "growth": growth}
    report(__doc__, sections, 64, "microseconds per sentence")
