"""Speed of projective argmax against the same loops in C++: first order, and dense Model 1.

    python benchmarks/projective_cpp.py [first] [third] [whole]

One thread; CPU time, so that other work on the machine counts little. Ours and C++ decode the same
random sentences, round after round in turns, trees read off by both; for each sentence the best of the rounds, then
the median over sentences. The C++ files are built here, with -O3 -march=native, into a temporary folder. `whole` adds
the time of `certus.Dependency(...).decode()`, checks included, to the kernels'.
"""

import ctypes
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import certus
from certus.kernels import eisner, thirdorder

CPP = Path(__file__).parent / "cpp"


def build(name, folder):
    """The C++ function `decode` of one file."""
    library = Path(folder) / f"{name}.so"
    command = ["g++", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(CPP / f"{name}.cpp")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library)).decode


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def medians(runs, count, rounds):
    """Median CPU seconds of each function over inputs 0 .. count - 1, the best round of each.

    Each function goes through all inputs before the next: none finds in the cache what another has just read.
    """
    times = np.empty((rounds, len(runs), count))
    for at in np.ndindex(times.shape):
        started = time.process_time()
        runs[at[1]](at[2])
        times[at] = time.process_time() - started
    return np.median(times.min(axis=0), axis=1)


def report(name, n, ours, theirs):
    print(f"{name:24} n={n:<4} ours {1e6 * ours:8.1f} us   C++ {1e6 * theirs:8.1f} us   ratio {theirs / ours:5.2f}")


def first_order(folder, sentences=64):
    cpp = build("eisner", folder)
    rng = np.random.default_rng(0)
    for n in (25, 40, 70):
        arcs = rng.normal(size=(sentences, 1, n + 1, n + 1))
        lengths, value, heads = np.array([n]), np.empty((2, 1)), np.empty((2, 1, n + 1), dtype=np.int64)
        fixed = (ctypes.c_int64(1), ctypes.c_int64(n + 1), pointer(lengths), pointer(heads[1]), pointer(value[1]))
        addresses = [pointer(arc) for arc in arcs]

        def ours(k, arcs=arcs, lengths=lengths, value=value, heads=heads):
            eisner.decode(arcs[k], lengths, True, heads[0], value[0])

        def theirs(k, addresses=addresses, fixed=fixed):
            cpp(addresses[k], *fixed)

        for k in range(sentences):
            ours(k)
            theirs(k)
            assert value[0] == value[1]
            assert (heads[0] == heads[1]).all()
        report("first order, argmax", n, *medians((ours, theirs), sentences, 9))


def third_order(folder, sentences=64, whole=False):
    cpp = build("model1", folder)
    cpp.restype = ctypes.c_double
    rng = np.random.default_rng(0)
    for n in (25, 40):
        size = n + 1
        absent = np.empty(0)
        heads = np.empty((2, size), dtype=np.int64)
        inputs = [[rng.normal(size=size**order) for order in (2, 3, 3, 4)] for _ in range(sentences)]
        addresses = [[pointer(array) for array in arrays] for arrays in inputs]
        fixed = (ctypes.c_int64(n), pointer(heads[1]))

        def ours(k, n=n, inputs=inputs, absent=absent, heads=heads):
            return thirdorder.decode(thirdorder.Scores(*inputs[k], absent), n, True, False, heads[0])

        def theirs(k, addresses=addresses, fixed=fixed):
            return cpp(*addresses[k], *fixed)

        for k in range(sentences):
            assert np.isclose(ours(k), theirs(k), rtol=1e-12)
            assert (heads[0] == heads[1]).all()
        report("Model 1, dense, argmax", n, *medians((ours, theirs), sentences, 5))
        if whole:

            def decode(k, size=size, inputs=inputs):
                arc, *others = (a.reshape((size,) * d) for a, d in zip(inputs[k], (2, 3, 3, 4), strict=True))
                kinds = ("sibling", "grandparent", "grandsibling")
                certus.Dependency(arc, **dict(zip(kinds, others, strict=True)), projective=True).decode()

            decode(0)
            report("  Dependency().decode()", n, *medians((decode, theirs), sentences, 3))


if __name__ == "__main__":
    asked = sys.argv[1:] or ["first", "third", "whole"]
    with tempfile.TemporaryDirectory() as temporary:
        if "first" in asked:
            first_order(temporary)
        if "third" in asked or "whole" in asked:
            third_order(temporary, whole="whole" in asked)
