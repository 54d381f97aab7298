"""Vine parsing against enumeration, its tie to first-order trees, and which parts survive pruning."""

from itertools import pairwise, product

import numpy as np
import pytest

from certus import Dependency, InvalidInput, NotSupported, verify
from certus.constraints import at_most
from certus.dependency.part_kinds import HIGHER_KINDS
from certus.dependency.pruning import long_arcs, supported
from certus.dependency.vine import OUTER_LEFT, OUTER_RIGHT, Vine
from tests.oracles.trees import projective_trees


def vine_parses(problem):
    """Every vine parse of a small problem, by trying all arrays."""
    n, band = problem.n, problem.band
    choices = [[-1]]
    for m in range(1, n + 1):
        near = [h for h in range(max(0, m - band), min(n, m + band) + 1) if h != m]
        choices.append([*near, OUTER_LEFT, OUTER_RIGHT])
    for head in product(*choices):
        for flags in product((0, 1), repeat=2 * (n + 1)):
            structure = np.column_stack((head, flags[: n + 1], flags[n + 1 :]))
            try:
                yield structure, problem.score(structure)
            except InvalidInput:
                continue


def draw_vine(rng, n, band, root):
    arc = rng.integers(-8, 9, (n + 1, n + 1)).astype(float)
    arc[rng.random((n + 1, n + 1)) < 0.1] = -np.inf
    arc[np.arange(n), np.arange(1, n + 1)] = 1.0  # there is a parse
    return Vine(arc, rng.integers(-8, 9, (n + 1, 2)), rng.integers(-8, 9, (n + 1, 2)), band=band, root=root)


@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize(("n", "band"), [(0, 1), (1, 1), (2, 1), (3, 1), (3, 2)])
def test_vine_parses_equal_enumeration(n, band, root):
    problem = draw_vine(np.random.default_rng(10 * n + band), n, band, root)
    parses = [(structure, score) for structure, score in vine_parses(problem) if score > -np.inf]
    values = np.array([score for _, score in parses])
    result = problem.decode()
    assert result.score == values.max() == problem.score(result.structure) == problem.reference_maximum()
    verify(problem, result)
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(values), rel=1e-12)
    best = problem.max_marginals()
    for view in problem.views:
        expected = np.full(best[view].shape, -np.inf)
        for structure, score in parses:
            expected = np.where(problem.indicator(structure, view) > 0, np.maximum(expected, score), expected)
        assert (best[view] == expected).all()


@pytest.mark.parametrize("root", ["single", "multi"])
def test_cutting_the_long_arcs_of_any_tree_leaves_a_vine_parse(root):
    n, band = 5, 2
    zero = np.zeros((n + 1, 2))
    problem = Vine(np.zeros((n + 1, n + 1)), zero, zero, band=band, root=root)
    for heads in projective_trees(n, root):
        parse = np.zeros((n + 1, 3), dtype=np.int64)
        parse[0, 0] = -1
        for m in range(1, n + 1):
            h = heads[m]
            parse[m, 0] = h if abs(h - m) <= band else OUTER_LEFT if h < m else OUTER_RIGHT
            if abs(h - m) > band:
                parse[h, 1 + (m > h)] = 1
        assert problem.score(parse) == 0.0


def test_edges_grow_linearly_with_the_words():
    edges = []
    for n in (50, 100, 200):
        zero = np.zeros((n + 1, 2))
        edges.append(Vine(np.zeros((n + 1, n + 1)), zero, zero, band=4).forest().graph.n_edges)
    assert edges[2] - edges[1] == 2 * (edges[1] - edges[0])


def test_long_arcs_need_both_outer_ends():
    n, band = 5, 2
    head, modifier = np.zeros((n + 1, 2), dtype=bool), np.zeros((n + 1, 2), dtype=bool)
    head[5, 0] = head[1, 1] = modifier[1, 1] = modifier[4, 0] = True
    inner = np.zeros((n + 1, n + 1), dtype=bool)
    inner[2, 3] = inner[0, 5] = True  # the second is longer than the band: not read
    assert np.argwhere(long_arcs(inner, head, modifier, band)).tolist() == [[1, 5], [2, 3], [4, 1]]


@pytest.mark.parametrize("kind", [name for name, kind in HIGHER_KINDS.items() if "m" in kind.axes])
def test_supported_parts_are_those_of_all_trees(kind):
    rng = np.random.default_rng(3)
    n = 5
    allowed = rng.random((n + 1, n + 1)) < 0.7
    seen = set()
    arc = np.where(allowed, 0.0, -np.inf)
    for heads in Dependency(arc, projective=True, root="multi").all_structures():
        seen |= set(parts_of(heads.tolist(), kind))
    listed = list(zip(*(index.tolist() for index in supported(kind, allowed)), strict=True))
    assert len(set(listed)) == len(listed)
    assert seen <= set(listed)
    for part in listed:
        assert all(allowed[h, m] for h, m in arcs_of(part, kind))


def parts_of(heads, kind):
    """The parts of one kind of a tree, from their definition."""
    for m in range(1, len(heads)):
        h = heads[m]
        inner = [s for s in range(1, len(heads)) if heads[s] == h and min(h, m) < s < max(h, m)]
        inner.sort(key=lambda s, h=h: abs(s - h))
        s = inner[-1] if inner else h
        t = inner[-2] if len(inner) > 1 else h
        if kind == "sibling":
            yield (h, s, m)
        elif kind == "trisibling" and inner:
            yield (h, t, s, m)
        elif h > 0 and kind in ("grandparent", "grandsibling"):
            yield (heads[h], h, m) if kind == "grandparent" else (heads[h], h, s, m)
        elif h > 0 and kind == "grandtrisibling" and inner:
            yield (heads[h], h, t, s, m)
        elif h > 0 and heads[h] > 0 and kind == "greatgrandparent":
            yield (heads[heads[h]], heads[h], h, m)


def arcs_of(part, kind):
    """The arcs that a part is made of (LR 8.3.2)."""
    if kind == "greatgrandparent":
        return list(pairwise(part))
    if "grand" in kind:
        g, h, *rest = part
        return [(g, h), *((h, m) for m in rest if m != h)]
    h, *rest = part
    return [(h, m) for m in rest if m != h]


@pytest.mark.parametrize("seed", [56, 65, 68, 118])
def test_words_whose_head_is_outside_the_band_do_not_spoil_proofs_under_constraints(seed):
    rng = np.random.default_rng(seed)
    scores = (rng.integers(-4, 5, size=shape).astype(float) for shape in ((4, 4), (4, 2), (4, 2)))
    vine = Vine(*scores, band=1, root="multi")
    scores = {k: vine.score(y) for k, y in enumerate(vine.all_structures())}
    used = [vine.indicator(y, "arcs") for y in vine.all_structures()]
    first, second, *_ = np.argwhere(used[max(scores, key=scores.get)]).tolist()
    constraint = at_most(1, "arcs", [first, second])
    problem = vine.subject_to(constraint)
    result = problem.decode()
    assert result.certificate.exact
    assert result.score == max(score for k, score in scores.items() if constraint.holds({"arcs": used[k]}))
    verify(problem, result)


@pytest.mark.parametrize("view", ["arcs", "outer_head"])
def test_every_part_that_a_parse_uses_can_be_required(view):
    """The arc from the root to the first word too, which no rivals of the root stand beside."""
    rng = np.random.default_rng(5)
    problem = Vine(rng.integers(-5, 6, (4, 4)), rng.integers(-5, 6, (4, 2)), rng.integers(-5, 6, (4, 2)), band=1)
    every = list(problem.all_structures())
    for part in np.argwhere(sum(problem.indicator(y, view) for y in every) > 0).tolist():
        best = max(problem.score(y) for y in every if problem.indicator(y, view)[tuple(part)])
        assert problem.with_fixed(view, tuple(part), 1).decode().score == best
    with pytest.raises(NotSupported, match="only forbidden"):
        problem.with_fixed("outer_modifier", (0, 1), 1)
    with pytest.raises(InvalidInput, match="outside view"):
        problem.with_fixed(view, (7, 0), 0)
