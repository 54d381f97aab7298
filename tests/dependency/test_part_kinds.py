"""The table of kinds of parts: the same in Python and in the kernels; all parts of arcs, those of a tree."""

from itertools import product

import numpy as np
import pytest

import certus
from certus import Dependency
from certus.dependency.head_automata import HeadAutomata
from certus.dependency.part_kinds import END, HIGHER_KINDS, LEFT, PART_KINDS, RIGHT, PartKind, model_of
from certus.dependency.parts import TreeParts, dense_scores
from certus.kernels import parts
from certus.kernels.features import ABSENT
from tests.oracles.trees import all_trees


def rows_of(heads):
    """The parts of a tree by the definitions, as rows of the kernels."""
    parts_of_tree = TreeParts(heads, model_of((), False))
    for number, kind in enumerate(PART_KINDS):
        for index in zip(*(column.tolist() for column in parts_of_tree.of(kind)), strict=True):
            node = dict(zip(kind.axes, index, strict=True))
            nodes = [ABSENT if role in "st" and node[role] == node["h"] else node[role] for role in kind.roles]
            yield (number, *nodes, *[ABSENT] * (4 - len(nodes)))


def test_kernels_have_the_same_kinds():
    named = (parts.ARC, parts.SIBLING, parts.GRANDPARENT, parts.GRANDSIBLING, parts.TRISIBLING)
    assert named == tuple(range(len(PART_KINDS)))
    assert len(PART_KINDS) == parts.KINDS
    assert tuple(len(kind.roles) for kind in PART_KINDS) == parts.ROLES
    for kind in PART_KINDS:
        assert sorted(kind.roles) == sorted(kind.axes)
        assert kind.roles[:2] == "hm"


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_the_parts_of_a_tree_are_those_of_its_words(n):
    for heads in all_trees(n, "multi"):
        found = parts.tree_parts(np.array(heads)).reshape(-1, 5)
        found = found[found[:, 0] != parts.NO_PART]
        assert sorted(map(tuple, found.tolist())) == sorted(rows_of(heads))


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_list_over_arcs_has_the_parts_of_all_trees_each_once(n):
    allowed = np.random.default_rng(n).random((n + 1, n + 1)) < 0.8
    allowed[:, 0] = False
    np.fill_diagonal(allowed, False)
    rows, at, _ = parts.list_parts(allowed, np.ones(parts.KINDS, dtype=np.bool_))
    listed = list(map(tuple, rows.tolist()))
    assert len(set(listed)) == len(listed)
    for a, (_, h, m, *_) in enumerate(listed[: len(at)]):
        own = [row for row in listed[len(at) :] if row[1:3] == (h, m)]
        for kind in range(1, parts.KINDS):
            of_kind = [row for row in own if row[0] == kind]
            assert listed[at[a, kind] : at[a, kind] + len(of_kind)] == of_kind
    found = np.empty(len(rows))
    for heads in all_trees(n, "multi"):
        if all(allowed[heads[m], m] for m in range(1, n + 1)):
            parts.mark_tree(rows, np.array(heads), found)
            assert sorted(row for row, used in zip(listed, found, strict=True) if used) == sorted(rows_of(heads))


@pytest.mark.parametrize("root", ["single", "multi"])
def test_a_kind_with_the_words_there_are_takes_a_line_of_the_table(monkeypatch, root):
    kind = PartKind("grandstop", "ghds", scored=END)  # the outermost modifier of a side, with the head of the head
    monkeypatch.setitem(HIGHER_KINDS, kind.name, kind)
    rng, n = np.random.default_rng(0), 4
    arc, scores = (rng.integers(-8, 9, size=shape).astype(float) for shape in ((n + 1, n + 1), kind.shape(n)))
    problem = Dependency(arc, projective=True, root=root)
    problem = problem.with_arcs(problem.arc, {kind.name: dense_scores(kind, scores, n)})
    expected = {}
    for heads in all_trees(n, root):
        total = sum(arc[heads[m], m] for m in range(1, n + 1))
        for h, side in product(range(1, n + 1), (LEFT, RIGHT)):
            beside = [m for m in range(1, n + 1) if heads[m] == h and (m > h) == side]
            total += scores[heads[h], h, side, (max if side else min)(beside, default=h)]
        expected[tuple(heads)] = total
    found = problem.decode()
    every = {tuple(heads.tolist()): problem.score(heads) for heads in problem.all_structures()}
    assert every == {heads: expected[heads] for heads in every}
    assert found.score == max(every.values())
    certus.verify(problem, found)
    form = HeadAutomata.of(problem).forest()  # all choices of all heads: trees among them
    assert form.best()[1] >= max(expected.values())
