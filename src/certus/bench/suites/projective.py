"""Projective trees of orders 1 to 3: against torch-struct, supar and the same loops in C++; growth; memory."""

import resource
from collections.abc import Callable, Iterator
from ctypes import c_double
from importlib.util import find_spec
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, Skipped, best_seconds, exponent
from certus.bench.native import build, pointer
from certus.bench.peers import supar_structs, torch

KINDS = {"sibling": 3, "grandparent": 3, "trisibling": 4, "grandsibling": 4}
MODELS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "first order": ((), {}),
    "siblings": (("sibling",), {}),
    "Carreras": (("sibling", "grandparent"), {"grandparents": "outermost"}),
    "Model 0": (("grandparent",), {}),
    "siblings and grandparents": (("sibling", "grandparent"), {}),
    "Model 1": (("sibling", "grandparent", "grandsibling"), {}),
    "Model 2": (("sibling", "grandsibling", "trisibling"), {"grandparents": "outermost"}),
}


def run(sentences: int = 32, sizes: tuple[int, ...] = (25, 40)) -> Iterator[Case | Row | Skipped]:
    yield _memory()
    rng = np.random.default_rng(0)
    for n in sizes:
        arc = rng.normal(size=(sentences, n + 1, n + 1))
        sibling = rng.normal(size=(sentences, n + 1, n + 1, n + 1))
        yield from batches(arc, sibling)
        yield from _native(n, sentences)
    for name in MODELS:
        yield _growth(name)
    yield _growth("pruned Model 1, 4 heads a word", _pruned)


def batches(arc: Any, sibling: Any = None) -> Iterator[Case | Skipped]:
    """Best trees and marginals of a batch, beside the peers; with siblings too, if these are given."""
    peers: dict[str, dict[str, Callable[[], Any]]] = {"decode": {}, "marginals": {}, "decode 2": {}, "marginals 2": {}}
    library = torch()
    if library is None or find_spec("torch_struct") is None:
        yield Skipped("torch-struct is not installed")
    else:
        crf = _torch_struct(library, arc)
        peers["decode"]["torch-struct"] = lambda: crf().argmax
        peers["marginals"]["torch-struct"] = lambda: crf().marginals
    structs = None if library is None else supar_structs()
    if structs is None:
        yield Skipped("supar is not installed")
    else:
        lengths = library.full((len(arc),), arc.shape[1] - 1)
        arcs = library.tensor(arc).transpose(1, 2).contiguous()  # modifier, then head
        pairs = None if sibling is None else library.tensor(sibling).permute(0, 3, 1, 2).contiguous()

        def first() -> Any:
            return structs.DependencyCRF(arcs, lengths)

        def second() -> Any:
            return structs.Dependency2oCRF((arcs, pairs), lengths)

        peers["decode"]["supar"] = lambda: first().argmax
        peers["marginals"]["supar"] = lambda: first().marginals
        peers["decode 2"]["supar"] = lambda: second().argmax
        peers["marginals 2"]["supar"] = lambda: second().marginals
    for order, scores in (("", (arc,)), *([(" 2", (arc, sibling))] if sibling is not None else [])):
        for question in ("decode", "marginals"):
            yield Case(
                f"projective {question}{', siblings' if order else ''}, n = {arc.shape[1] - 1}",
                lambda s=scores, q=question: getattr(certus.DependencyBatch(*s, projective=True), q)(),
                peers[question + order],
                items=len(arc),
                agrees=_agree if question == "marginals" and not order else None,
                bar=f"peers / ours at least {40 if question == 'decode' else 15}",
            )


def _torch_struct(library: Any, arc: Any) -> Any:
    import torch_struct

    scores = library.tensor(arc[:, 1:, 1:])  # the root's scores are on the diagonal
    words = library.arange(scores.shape[1])
    scores[:, words, words] = library.tensor(arc[:, 0, 1:])

    def crf() -> Any:
        # Its marginals write in place, which autograd allows only below the leaves.
        return torch_struct.DependencyCRF(scores.detach().requires_grad_() * 1.0, multiroot=False)

    return crf


def _agree(ours: Any, name: str, theirs: Any) -> None:
    found = theirs.detach().numpy()
    roots = np.diagonal(found, axis1=1, axis2=2) if name == "torch-struct" else found[:, 1:, 0]
    np.testing.assert_allclose(ours["arcs"][:, 0, 1:], roots, atol=1e-5)


def _native(n: int, sentences: int) -> Iterator[Case | Skipped]:
    first, third = build("eisner"), build("model1")
    if first is None:
        yield Skipped("g++ is not installed")
        return
    rng = np.random.default_rng(n)
    arc = rng.normal(size=(sentences, n + 1, n + 1))
    lengths, heads = np.full(sentences, n), np.empty((sentences, n + 1), dtype=np.int64)
    values = np.empty(sentences)

    def eisner() -> Any:
        first.decode(pointer(arc), sentences, n + 1, pointer(lengths), pointer(heads), pointer(values))
        return values

    yield Case(
        f"decode beside C++, n = {n}",
        lambda: certus.DependencyBatch(arc, projective=True).decode(),
        {"C++": eisner},
        items=sentences,
        agrees=lambda ours, _, theirs: np.testing.assert_allclose(ours.score, theirs, rtol=1e-12),
    )
    third.decode.restype = c_double
    scores = [[rng.normal(size=(n + 1,) * order) for order in (2, 3, 3, 4)] for _ in range(4)]
    names = ("arc", "sibling", "grandparent", "grandsibling")

    def model1() -> list[float]:
        return [third.decode(*map(pointer, arrays), n, pointer(heads[0])) for arrays in scores]

    given: list[dict[str, Any]] = [dict(zip(names, arrays, strict=True)) for arrays in scores]
    yield Case(
        f"Model 1 beside C++, n = {n}",
        lambda: [certus.Dependency(**one, projective=True).decode() for one in given],
        {"C++": model1},
        items=len(scores),
        agrees=lambda ours, _, theirs: np.testing.assert_allclose([r.score for r in ours], theirs, rtol=1e-12),
    )


def _problem(name: str, rng: np.random.Generator, n: int) -> certus.Dependency:
    kinds, settings = MODELS[name]
    arrays: dict[str, Any] = {kind: rng.normal(size=(n + 1,) * KINDS[kind]) for kind in kinds}
    return certus.Dependency(rng.normal(size=(n + 1, n + 1)), **arrays, projective=True, **settings)


def _pruned(name: str, rng: np.random.Generator, n: int) -> certus.Dependency:
    """Few heads a word, near as in treebanks; the left neighbour is always one. All parts of these arcs are scored."""
    allowed = np.zeros((n + 1, n + 1), dtype=bool)
    for m in range(1, n + 1):
        distance = rng.geometric(0.3, 3).clip(1, 10) * rng.choice([-1, 1], 3)
        allowed[np.clip(m + distance, 0, n), m] = True
        allowed[m - 1, m] = True
    np.fill_diagonal(allowed, False)
    allowed[:, 0] = False
    return certus.Dependency.from_parts(n, **_parts(allowed, rng), projective=True)


def _parts(allowed: Any, rng: np.random.Generator) -> dict[str, Any]:
    heads, modifiers = np.nonzero(allowed)
    of = {int(h): np.flatnonzero(allowed[h]).tolist() for h in set(heads.tolist())}
    sibling = []
    for h, mods in of.items():
        for side in ([m for m in mods if m > h], [m for m in reversed(mods) if m < h]):
            sibling += [(h, h, m) for m in side] + [(h, s, m) for k, m in enumerate(side) for s in side[:k]]
    above = {h: np.flatnonzero(allowed[:, h]).tolist() for h in of}
    grandparent = [(g, h, m) for h, mods in of.items() for g in above[h] for m in mods if g != m]
    grandsibling = [(g, h, s, m) for h, s, m in sibling for g in above[h] if g not in (s, m)]
    lists: dict[str, list[Any]] = {"sibling": sibling, "grandparent": grandparent, "grandsibling": grandsibling}
    found: dict[str, Any] = {kind: (*np.array(rows).T, rng.normal(size=len(rows))) for kind, rows in lists.items()}
    return {"arc": (heads, modifiers, rng.normal(size=len(heads))), **found}


def _growth(name: str, make: Callable[[str, np.random.Generator, int], certus.Dependency] = _problem) -> Row:
    rng = np.random.default_rng(0)
    sizes = (10, 20, 40, 80) if name in ("Model 1", "Model 2") else (10, 20, 40, 80, 160)
    make(name, rng, 5).decode()
    times = {n: best_seconds(lambda n=n: make(name, rng, n).decode(), 3) for n in sizes}
    last = {n: times[n] for n in sizes[-3:]}
    return Row(f"growth, {name}", {"power of n": exponent(last), **{f"ms at {n}": 1e3 * times[n] for n in sizes[:4]}})


def _memory() -> Row:
    rng = np.random.default_rng(0)
    _pruned("", rng, 10).decode()  # numba and the kernels are in memory from here on
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _pruned("", rng, 200).decode()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Row("pruned Model 1, 200 words", {"MB beyond the kernels": (after - before) / 1024, "claim": "at most 200"})
