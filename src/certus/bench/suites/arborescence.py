"""Best trees with crossing arcs, first order, in batches: against ufal.chu_liu_edmonds and the same loop in C++.

The peers find trees with any number of roots, so that is asked of ours too; the default, a single root, is shown beside
it. All sentences differ.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, Skipped, best_seconds, exponent, random_arcs
from certus.bench.native import build, pointer


def run(sentences: int = 64, sizes: tuple[int, ...] = (25, 40, 70)) -> Iterator[Case | Row | Skipped]:
    peers = list(_peers())
    yield from (peer for peer in peers if isinstance(peer, Skipped))
    for n in sizes:
        arc = random_arcs(n, sentences)
        runs = {name: make(arc) for name, make in (peer for peer in peers if not isinstance(peer, Skipped))}
        yield Case(
            f"DependencyBatch.decode, n = {n}",
            lambda a=arc: certus.DependencyBatch(a, projective=False, root="multi").decode(),
            runs,
            items=sentences,
            agrees=lambda ours, _, theirs: np.testing.assert_allclose(ours.score, theirs, rtol=1e-9),
            bar={25: "ufal / ours at least 5", 40: "ufal / ours at least 10"}.get(n, ""),
        )
        yield Case(
            f"the same, single root, n = {n}",
            lambda a=arc: certus.DependencyBatch(a, projective=False).decode(),
            items=sentences,
        )
    for n in (10, 25, 40):
        arc = random_arcs(n, sentences)
        yield Case(
            f"Dependency.decode one by one, n = {n}",
            lambda a=arc: [certus.Dependency(page, projective=False).decode() for page in a],
            items=sentences,
        )
    yield _growth(sentences)


def _peers() -> Iterator[Any]:
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds
    except ImportError:
        yield Skipped("ufal.chu_liu_edmonds is not installed")
    else:

        def ufal(arc: Any) -> Any:
            pages = [np.ascontiguousarray(page.T) for page in arc]  # theirs is score[modifier, head]
            for page in pages:
                page[0] = np.nan  # the root has no head
                np.fill_diagonal(page, np.nan)
            return lambda: [chu_liu_edmonds(page)[1] for page in pages]

        yield "ufal", ufal
    library = build("arborescence")
    if library is None:
        yield Skipped("g++ is not installed")
        return
    decode = library.best_heads_batch
    decode.restype = None

    def cpp(arc: Any) -> Any:
        lengths = np.full(len(arc), arc.shape[1] - 1)
        heads, values = np.empty(arc.shape[:2], dtype=np.int64), np.empty(len(arc))

        def call() -> Any:
            decode(pointer(arc), arc.shape[1], pointer(lengths), len(arc), 0, pointer(heads), pointer(values))
            return values

        return call

    yield "C++", cpp


def _growth(sentences: int) -> Row:
    times = {}
    for n in (10, 20, 40, 80, 160):
        batch = certus.DependencyBatch(random_arcs(n, sentences), projective=False, workers=1)
        times[n] = best_seconds(batch.decode) / sentences
    return Row("growth", {"power of n": exponent(times), **{f"us at {n}": 1e6 * t for n, t in times.items()}})
