"""Batches: whole numbers by the thousand against all trees and tag sequences at once; any scores, item by item.

Sums of at most 14 whole numbers up to 1e14 are exact in float64, so that scores compare with ==.
"""

from collections.abc import Iterator
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

import certus
from tests.fuzz import cases
from tests.fuzz.cases import Case
from tests.fuzz.claims import Claim, about, ordinary
from tests.fuzz.runner import Finding, Tally
from tests.fuzz.scores import ORDINARY, REGIMES, Rng, Scores
from tests.fuzz.sequences import sequences, tag_parts
from tests.fuzz.trees import trees
from tests.oracles.exact import Exact

ITEMS = 2000  # of a batch of whole numbers
LONGEST = 4
Batch = certus.DependencyBatch | certus.TaggingBatch


class Batches:
    """One case is one batch."""

    name = "batches"

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        which = rng.random()
        if which < 0.6:
            case, check = whole(rng), check_whole
        elif which < 0.9:
            case, check = mixed(rng), check_mixed
        else:
            case, check = grouped(rng), check_grouped
        tally[f"items of {case['kind']}"] += len(case["lengths"])
        for name, detail in checked(case, check, tally):
            yield Finding(case["kind"], name, detail, partial(fewer, case, check, name))

    def replay(self, data: Any) -> list[Claim]:
        case = cases.from_json(data)
        checks = {"whole": check_whole, "grouped": check_grouped}
        return checked(case, checks.get(case["kind"].split()[0], check_mixed))


def checked(case: Case, check: Any, tally: Tally | None = None) -> list[Claim]:
    try:
        return list(check(case, Tally() if tally is None else tally))
    except certus.CertusError as error:
        return [Claim(f"{type(error).__name__} where none is due", str(error))]
    except Exception as error:
        return [Claim(f"bare {type(error).__name__}", str(error))]


def fewer(case: Case, check: Any, name: str) -> Any:
    """The case with as few items as still make it fail, as JSON."""
    items = len(case["lengths"])
    while items > 1:
        halves = [part(case, slice(0, items // 2)), part(case, slice(items // 2, items))]
        case = next((h for h in halves if name in {c.claim for c in checked(h, check)}), {}) or case
        if len(case["lengths"]) == items:
            break
        items = len(case["lengths"])
    return cases.to_json(case)


def part(case: Case, items: slice) -> Case:
    """Some items of a case; tables without a leading axis are shared."""
    cut = {name: case[name][items] for name in case["by item"]}
    return {**case, **cut, "lengths": case["lengths"][items]}


# -- what is drawn ---------------------------------------------------------------------------------------------------


def whole(rng: Rng) -> Case:
    """Many items of whole numbers, with ties, masks and forbidden parts; every item has a structure."""
    case = arrays(rng, ITEMS, partial(whole_scores, rng, int(rng.choice([1, 8, 10**6, 2**40]))), "whole")
    scores = enumerated(case)
    for b in np.flatnonzero([s.max() == -np.inf for s in scores]).tolist():
        for name in case["by item"]:
            case[name][b] = np.maximum(case[name][b], -1e14)
    shared = [name for name in ("bigram", "trigram") if name in case and name not in case["by item"]]
    if any(s.max() == -np.inf for s in enumerated(case)):
        for name in shared:
            case[name] = np.maximum(case[name], -1e14)
    return case


def whole_scores(rng: Rng, largest: int, *shape: int) -> np.ndarray:
    values = rng.integers(-largest, largest + 1, shape).astype(float)
    values[rng.random(shape) < rng.choice([0.0, 0.1, 0.25])] = float(rng.choice([-1e4, -1e9, -1e14, -np.inf]))
    return values


def mixed(rng: Rng) -> Case:
    """A few items of any regime."""
    regime = str(rng.choice(REGIMES))
    return {**arrays(rng, int(rng.integers(1, 6)), Scores(rng, regime), "mixed"), "regime": regime}


def grouped(rng: Rng) -> Case:
    """Second-order items of up to 16 words, of which those of about the same length are decoded side by side."""
    items, size = int(rng.integers(1, 20)), int(rng.integers(2, 17))
    lengths = rng.integers(0 if rng.random() < 0.7 else max(size - 3, 0), size, items)
    arc, sibling = (rng.integers(-8, 9, (items,) + (size,) * d).astype(float) for d in (2, 3))
    if rng.random() < 0.3:
        arc, sibling = arc + rng.normal(size=arc.shape), sibling * rng.normal(size=sibling.shape)
    if rng.random() < 0.2:
        sibling = np.where(rng.random(sibling.shape) < 0.2, -np.inf, sibling)
        sibling[:, range(size), range(size)] = 0.0  # some tree is left
    options = {"projective": True, "root": str(rng.choice(["single", "multi"]))}
    by_item = ["arc", "sibling"]
    return {
        "kind": "grouped trees",
        "arc": arc,
        "sibling": sibling,
        "lengths": lengths.tolist(),
        "options": options,
        "by item": by_item,
    }


def arrays(rng: Rng, items: int, scores: Any, sort: str) -> Case:
    n = int(rng.integers(1, LONGEST + 1))
    lengths = rng.integers(0, n + 1, items).tolist()
    if rng.random() < 0.5:
        projective = bool(rng.integers(2))
        case = {"arc": scores(items, n + 1, n + 1), "by item": ["arc"]}
        if projective and rng.integers(2):
            case |= {"sibling": scores(items, n + 1, n + 1, n + 1), "by item": ["arc", "sibling"]}
        options = {"projective": projective, "root": str(rng.choice(["single", "multi"]))}
        return {"kind": f"{sort} trees", **case, "lengths": lengths, "options": options}
    size = int(rng.integers(1, 4))
    case = {"kind": f"{sort} taggings", "unary": scores(items, n, size), "lengths": lengths, "by item": ["unary"]}
    for order, name in ((2, "bigram"), (3, "trigram")):
        if rng.random() < 0.5:
            boundary, rows = int(rng.integers(2)), bool(rng.integers(2))
            shape = ((items, n + boundary) if rows else ()) + (size + boundary,) * order
            case[name] = scores(*shape)
            if rows:
                case["by item"].append(name)
    return case


def made(case: Case) -> Batch:
    lengths = np.array(case["lengths"], dtype=np.int64)
    if "arc" in case:
        return certus.DependencyBatch(case["arc"], case.get("sibling"), lengths=lengths, workers=1, **case["options"])
    return certus.TaggingBatch(case["unary"], case.get("bigram"), case.get("trigram"), lengths=lengths, workers=1)


# -- what is checked -------------------------------------------------------------------------------------------------


def check_whole(case: Case, tally: Tally) -> Iterator[Claim]:
    result = made(case).decode()
    c = result.certificate
    best = np.array([scores.max() for scores in enumerated(case)])
    own = np.array([scores[k] for scores, k in zip(enumerated(case), places(case, result.structure), strict=True)])
    tally["not proved"] += int((~c.exact).sum())
    for claim, wrong in {
        "a false certificate": c.exact & (own != best),
        "not the best": own != best,
        "a score that is not the structure's": (result.score != own) | (c.score != own),
        "a bound below the optimum": c.bound < best,
        "a tolerance above 1e-9 of the parts": c.tolerance > 14 * 2e14 * 1e-9,
        "not proved, though all is ordinary": ~c.exact & (best > -1e4),
    }.items():
        if wrong.any():
            b = int(np.argmax(wrong))
            yield Claim(claim, f"{int(wrong.sum())} items, the first {b}: {own[b]!r}, best {best[b]!r}, {c.bound[b]!r}")


def check_mixed(case: Case, tally: Tally) -> Iterator[Claim]:
    tables = [Exact(one(case, b)) for b in range(len(case["lengths"]))]
    feasible = all(len(table) for table in tables)
    try:
        result = made(case).decode()
    except certus.Infeasible as error:
        if feasible:
            yield Claim("infeasible, though there is a structure", str(error))
        return
    except certus.InvalidInput as error:
        tally["refused"] += 1
        if "overflow" not in str(error) or all(ordinary(table, case["regime"] in ORDINARY) for table in tables):
            yield Claim("InvalidInput where none is due", str(error))
        return
    if not feasible:
        yield Claim("structures, though some item has none", "")
        return
    c = result.certificate
    for b, (table, n) in enumerate(zip(tables, case["lengths"], strict=True)):
        numbers = {name: float(getattr(c, name)[b]) for name in ("score", "bound", "tolerance")}
        certificate = SimpleNamespace(kind=c.kind, duals=None, rank=1, exact=bool(c.exact[b]), **numbers)
        alone = SimpleNamespace(
            structure=result.structure[b, : n + ("arc" in case)], score=float(result.score[b]), certificate=certificate
        )
        for claim in about(table, alone, best=table.order[0]):  # type: ignore[arg-type]
            yield Claim(claim.claim, f"item {b}: {claim.detail}")
        if not certificate.exact:
            tally[f"not proved, {case['regime']}"] += 1
            if ordinary(table, case["regime"] in ORDINARY):
                yield Claim("not proved, though all is ordinary", f"item {b}: {certificate}")


def check_grouped(case: Case, tally: Tally) -> Iterator[Claim]:
    together = made(case).decode()
    for b in range(len(case["lengths"])):
        alone = made(part(case, slice(b, b + 1))).decode()
        same = (together.structure[b] == alone.structure[0]).all() and together.score[b] == alone.score[0]
        if not same or together.certificate.bound[b] != alone.certificate.bound[0]:
            yield Claim("an item that answers otherwise alone", f"item {b}")


@cache
def heads_of(n: int, projective: bool, root: str) -> tuple[np.ndarray, np.ndarray]:
    """Heads (T, n) of every tree, and for each word the modifier next inside it, or its head."""
    found = trees(n, projective, root, ("sibling",), False)
    heads = np.array([heads[1:] for heads, _ in found]).reshape(len(found), n)
    inner = np.zeros((len(found), n), dtype=np.int64)
    for t, (_, parts) in enumerate(found):
        for kind, cell in parts:
            if kind == "sibling":
                _, s, m = np.unravel_index(cell, (n + 1,) * 3)
                inner[t, m - 1] = s
    return heads, inner


def enumerated(case: Case) -> list[np.ndarray]:
    """For every item the scores of all its structures, computed for all items of a length at once."""
    lengths = np.array(case["lengths"])
    out: list[Any] = [None] * len(lengths)
    for n in np.unique(lengths).tolist():
        items = np.flatnonzero(lengths == n)
        total = tree_scores(case, items, n) if "arc" in case else tag_scores(case, items, n)
        for b, row in zip(items.tolist(), total, strict=True):
            out[b] = row
    return out


def tree_scores(case: Case, items: np.ndarray, n: int) -> np.ndarray:
    heads, inner = heads_of(n, case["options"]["projective"], case["options"]["root"])
    m = np.arange(1, n + 1)
    total = case["arc"][items][:, heads, m].sum(axis=-1)
    return total + case["sibling"][items][:, heads, inner, m].sum(axis=-1) if "sibling" in case else total


def tag_scores(case: Case, items: np.ndarray, n: int) -> np.ndarray:
    size = case["unary"].shape[2]
    tags = np.array(sequences(n, size), dtype=np.int64).reshape(size**n, n)
    total = case["unary"][items][:, np.arange(n), tags].sum(axis=-1)
    padded = np.pad(tags, ((0, 0), (2, 1)), constant_values=size)
    for order, name in ((2, "bigram"), (3, "trigram")):
        if name in case:
            table = case[name]
            boundary = table.shape[-1] == size + 1
            for i in range(n + 1) if boundary else range(order - 1, n):
                ending = tuple(padded[:, i + 3 - order + k] for k in range(order))
                total = total + (table[items, i][(slice(None), *ending)] if name in case["by item"] else table[ending])
    return total


def places(case: Case, structure: np.ndarray) -> list[int]:
    """Which of the enumerated structures each item has."""
    out = []
    for b, n in enumerate(case["lengths"]):
        if "arc" in case:
            rows, own = heads_of(n, case["options"]["projective"], case["options"]["root"])[0], structure[b, 1 : n + 1]
        else:
            size = case["unary"].shape[2]
            rows, own = np.array(sequences(n, size), dtype=np.int64).reshape(size**n, n), structure[b, :n]
        found = np.flatnonzero((rows == own).all(axis=1))
        assert len(found) == 1, f"item {b} has {own}"
        out.append(int(found[0]))
    return out


def one(case: Case, b: int) -> Iterator[tuple[Any, list[float]]]:
    """The structures of one item with their parts."""
    n = case["lengths"][b]
    if "arc" in case:
        options, end = case["options"], n + 1
        flat = {
            name: case[name][(b, *[slice(end)] * (case[name].ndim - 1))].ravel().tolist() for name in case["by item"]
        }
        kinds = ("sibling",) if "sibling" in case else ()
        for heads, parts in trees(n, options["projective"], options["root"], kinds, False):
            yield heads, [flat[kind][cell] for kind, cell in parts]
        return
    alone = {"unary": case["unary"][b, :n]}
    size = case["unary"].shape[2]
    for name in ("bigram", "trigram"):
        if name in case:
            boundary = int(case[name].shape[-1] == size + 1)
            alone[name] = case[name][b, : n + boundary] if name in case["by item"] else case[name]
    yield from tag_parts(alone)
