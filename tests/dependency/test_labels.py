"""Labelled trees equal enumeration: every question, projective or not, orders 1 to 3; labels under constraints."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, Infeasible, InvalidInput, LabelledDependency, LabelledTree, NotSupported
from certus.dependency import tree_constraints as trees
from tests.dependency.cases import draw_problem, whole_scores
from tests.oracles.trees import all_trees, projective_trees

seeds = st.integers(0, 2**32 - 1)
roots = st.sampled_from(["single", "multi"])
ORDERS = ["first order", "first order", "siblings", "siblings", "grandparents and siblings", "model 1", "model 2"]


def labelled(rng, model, n, n_labels, root, projective, **settings):
    """A problem, and what it was made of: the unlabelled problem and the label scores."""
    unlabelled = draw_problem(rng, model, n, root, projective=projective, **settings)
    label = whole_scores(rng, (n + 1, n + 1, n_labels), rng.choice([0.0, 0.1, 0.4]))
    return unlabelled.labelled(label), unlabelled, label


@st.composite
def problems(draw, models=tuple(ORDERS), largest=3, projective=None):
    rng = np.random.default_rng(draw(seeds))
    crossing = draw(st.booleans()) if projective is None else not projective
    sizes = draw(st.integers(0, largest)), draw(st.integers(1, 3))
    return labelled(rng, draw(st.sampled_from(models)), *sizes, draw(roots), not crossing)


def enumerated(unlabelled, label):
    """(heads, labels) -> score of every structure that uses no forbidden part."""
    out = {}
    every = projective_trees if unlabelled.projective else all_trees
    for heads in every(unlabelled.n, unlabelled.root):
        score = unlabelled.score(np.array(heads))
        words = range(1, unlabelled.n + 1)
        for labels in product(range(label.shape[2]), repeat=unlabelled.n):
            total = score + sum(label[heads[m], m, labels[m - 1]] for m in words)
            if total > -np.inf:
                out[heads, (-1, *labels)] = total
    return out


def pair(structure):
    return tuple(structure.heads.tolist()), tuple(structure.labels.tolist())


def parts(y):
    """The cells of both views that a structure uses."""
    heads, labels = y
    cells = [(heads[m], m, labels[m]) for m in range(1, len(heads))]
    return [("arcs", c[:2]) for c in cells] + [("labels", c) for c in cells]


def is_tractable(problem):
    return problem.trees.projective or not problem.trees.scores


@settings(max_examples=100, deadline=None)
@given(problems())
def test_the_best_labelled_tree(case):
    problem, unlabelled, label = case
    every = enumerated(unlabelled, label)
    finite = {pair(y): problem.score(y) for y in problem.all_structures()}
    assert {y: s for y, s in finite.items() if s > -np.inf} == every
    if not every:
        with pytest.raises(Infeasible):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == max(every.values()) == every[pair(result.structure)]
    assert result.certificate.exact
    certus.verify(problem, result)


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(1, 12))
def test_the_k_best_are_pairs_of_tree_and_labels(case, k):
    problem, unlabelled, label = case
    every = enumerated(unlabelled, label)
    if not every:
        with pytest.raises(Infeasible):
            problem.kbest(k)
        return
    found = problem.kbest(k)
    assert [r.score for r in found] == sorted(every.values(), reverse=True)[:k]
    assert all(r.score == every[pair(r.structure)] and r.certificate.exact for r in found)
    assert not problem.trees.projective or all(r.score == r.certificate.bound for r in found)
    assert len({pair(r.structure) for r in found}) == len(found)
    assert [r.certificate.rank for r in found] == list(range(1, len(found) + 1))
    if problem.trees.projective:
        certus.verify(problem, found[-1])


@pytest.mark.parametrize(("n", "n_labels"), [(1, 50), (2, 4)])
def test_every_rank_of_real_scores_is_exact(n, n_labels):
    label = np.random.default_rng(n).normal(size=(n + 1, n + 1, n_labels))
    problem = LabelledDependency(label, projective=True)
    found = problem.kbest(1000)
    assert len(found) == sum(1 for _ in problem.all_structures())
    for result in found:
        assert result.certificate.exact
        certus.verify(problem, result)


@settings(max_examples=80, deadline=None)
@given(problems(), seeds)
def test_penalties_on_arcs_and_on_labels(case, seed):
    problem, unlabelled, label = case
    rng = np.random.default_rng(seed)
    penalties = {view: whole_scores(rng, shape, 0.1) for view, shape in problem.views.items()}
    every = {
        y: score + sum(penalties[view][cell] for view, cell in parts(y))
        for y, score in enumerated(unlabelled, label).items()
    }
    every = {y: score for y, score in every.items() if score > -np.inf}
    if not every:
        with pytest.raises(Infeasible):
            problem.solve(penalties)
    else:
        solution = problem.solve(penalties)
        assert every[pair(solution.structure)] == max(every.values())
        if is_tractable(problem):
            assert solution.value == max(every.values())
        else:
            assert solution.value == pytest.approx(max(every.values()), abs=1e-9)
    if not is_tractable(problem):
        return
    best = {view: np.full(shape, -np.inf) for view, shape in problem.views.items()}
    for y, score in every.items():
        for view, cell in parts(y):
            best[view][cell] = max(best[view][cell], score)
    answers = [problem.max_marginals(penalties)]
    if problem.trees.projective and every:
        forest = problem.forest()  # labels spelt out
        answers.append(forest.max_marginals(problem.views, penalties))
        edges, value = forest.best(penalties)
        assert every[pair(problem.from_edges(edges))] == value == max(every.values())
    for found in answers:
        assert found.keys() == best.keys()
        assert all((found[view] == best[view]).all() for view in best)


@settings(max_examples=80, deadline=None)
@given(problems(), seeds)
def test_sums_over_labelled_trees(case, seed):
    problem, unlabelled, label = case
    every = enumerated(unlabelled, label)
    if not is_tractable(problem):
        with pytest.raises(NotSupported):
            problem.marginals()
        return
    if not every:
        assert problem.log_partition() == -np.inf
        for question in (problem.marginals, problem.entropy, lambda: problem.sample(1, seed=0)):
            with pytest.raises(Infeasible):
                question()
        return
    scores = np.array(list(every.values()))
    total = np.logaddexp.reduce(scores)
    probability = np.exp(scores - total)
    expected = {view: np.zeros(shape) for view, shape in problem.views.items()}
    for y, p in zip(every, probability, strict=True):
        for view, cell in parts(y):
            expected[view][cell] += p
    assert problem.log_partition() == pytest.approx(total, abs=1e-9)
    assert problem.entropy() == pytest.approx(-np.sum(probability * (scores - total)), abs=1e-9)
    assert all(pair(y) in every for y in problem.sample(3, seed=seed))
    answers = [problem.marginals()]
    if problem.trees.projective:
        answers.append(problem.forest().marginals(problem.views))
    for found in answers:
        assert found.keys() == expected.keys()
        assert all(np.allclose(found[view], expected[view], atol=1e-9, rtol=0) for view in expected)


def test_marginals_of_siblings_whatever_the_labels():
    problem, _, _ = labelled(np.random.default_rng(7), "siblings", 4, 2, "multi", True)
    siblings = problem.part_marginals("sibling")
    assert np.allclose(siblings.sum(axis=1), problem.marginals()["arcs"], atol=1e-9)  # one next sibling per arc


@pytest.mark.parametrize("projective", [True, False])
def test_samples_come_as_often_as_they_should(projective):
    rng = np.random.default_rng(5)
    label = rng.normal(size=(3, 3, 2))
    label[1, 2, 0] = -np.inf
    problem = LabelledDependency(label, projective=projective)
    every = {pair(y): problem.score(y) for y in problem.all_structures()}
    drawn = [pair(y) for y in problem.sample(4000, seed=1)]
    assert drawn == [pair(y) for y in problem.sample(4000, seed=1)]
    for y, score in every.items():
        p = np.exp(score - problem.log_partition())
        assert abs(drawn.count(y) / 4000 - p) < 5 * np.sqrt(p / 4000)


@settings(max_examples=40, deadline=None)
@given(problems(models=("first order", "siblings")), seeds)
def test_fixing_an_arc_or_a_label(case, seed):
    problem, _, _ = case
    if problem.n < 1:
        return
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, problem.n + 1))
    h = int(rng.choice([v for v in range(problem.n + 1) if v != m]))
    every = {pair(y) for y in problem.all_structures()}
    for view, cell in (("arcs", (h, m)), ("labels", (h, m, 0))):
        for value in (0, 1):
            left = {pair(y) for y in problem.with_fixed(view, cell, value).all_structures()}
            assert left == {y for y in every if ((view, cell) in parts(y)) == bool(value)}


@pytest.mark.parametrize("model", ["first order", "siblings", "model 1"])
@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("listed", [True, False])
def test_results_travel(model, projective, listed, tmp_path):
    problem, _, _ = labelled(np.random.default_rng(1), model, 4, 2, "multi", projective, listed=listed)
    again = LabelledDependency.from_json(json.loads(json.dumps(problem.to_json(), allow_nan=False)))
    for y in list(problem.all_structures())[:50]:
        assert again.score(again.structure_from_json(problem.structure_to_json(y))) == problem.score(y)
    result = problem.decode()
    certus.save_result(tmp_path / "result.json", problem, result)
    loaded, read = certus.load_result(tmp_path / "result.json")
    certus.verify(loaded, read)
    assert pair(read.structure) == pair(result.structure)
    heads, labels = result.structure
    altered = np.array([-1, *(1 - labels[1:])])
    if problem.score((heads, altered)) != result.score:
        with pytest.raises(certus.VerificationError):
            certus.verify(problem, replace(result, structure=LabelledTree(heads, altered)))


def test_relaxed_problems_with_a_proof_by_branching():
    rng = np.random.default_rng(0)
    kinds = set()
    n = 4
    for _ in range(5):
        label, sibling = rng.normal(size=(n + 1, n + 1, 3)), 3 * rng.normal(size=(n + 1,) * 3)
        grandparent = 3 * rng.normal(size=(n + 1,) * 3)
        problem = LabelledDependency(label, rng.normal(size=(n + 1, n + 1)), sibling=sibling, grandparent=grandparent)
        result = problem.decode()
        assert result.certificate.exact
        certus.verify(problem, result)
        kinds.add(result.certificate.kind)
    assert kinds == {"dual", "branch and bound"}


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("root", ["single", "multi"])
@pytest.mark.parametrize("spread", [1, 30, 300, 1000])
def test_probabilities_of_labels_sum_to_one(projective, root, spread):
    rng = np.random.default_rng(spread)
    label = rng.uniform(-spread, spread, size=(13, 13, 4))
    label[rng.random(label.shape) < 0.1] = -np.inf
    found = LabelledDependency(label, projective=projective, root=root).marginals()
    assert np.abs(found["labels"][:, 1:].sum(axis=(0, 2)) - 1).max() <= 1e-9
    assert np.abs(found["labels"].sum(axis=2) - found["arcs"]).max() <= 1e-9


@settings(max_examples=60, deadline=None)
@given(problems(models=("first order", "siblings", "grandparents and siblings")), seeds)
def test_at_most_one_modifier_with_a_label(case, seed):
    problem, unlabelled, label = case
    chosen = int(np.random.default_rng(seed).integers(label.shape[2]))

    def holds(y):
        heads, labels = y
        pairs = [(heads[m], labels[m]) for m in range(1, len(heads)) if labels[m] == chosen]
        return len(pairs) == len(set(pairs))

    best = max((s for y, s in enumerated(unlabelled, label).items() if holds(y)), default=-np.inf)
    restricted = problem.subject_to(*trees.at_most_one_labelled(problem, chosen))
    if best == -np.inf:
        with pytest.raises(Infeasible):
            restricted.decode()
        return
    result = restricted.decode()
    assert result.score == best
    assert holds(pair(result.structure))
    assert result.certificate.exact
    certus.verify(restricted, result)


def test_constraints_on_arcs_hold_for_labelled_trees():
    problem, unlabelled, label = labelled(np.random.default_rng(2), "siblings", 3, 2, "multi", False)
    wanted = [*trees.at_most_modifiers(problem, 1), certus.constraints.forbid("labels", (0, 1, 0))]
    result = problem.subject_to(*wanted).decode()
    every = enumerated(unlabelled, label)
    allowed = [
        s
        for y, s in every.items()
        if all(y[0].count(h) <= 1 for h in (1, 2, 3)) and ("labels", (0, 1, 0)) not in parts(y)
    ]
    assert result.score == max(allowed)


def test_joint_with_a_labelled_problem():
    rng = np.random.default_rng(4)
    a, unlabelled, label = labelled(rng, "siblings", 3, 2, "single", True)
    b = Dependency(whole_scores(rng, (4, 4)))
    joint = certus.Joint(a, b, on="arcs")
    result = joint.decode()
    every = enumerated(unlabelled, label)
    assert result.score == max(s + b.score(np.array(y[0])) for y, s in every.items())
    certus.verify(joint, result)


@pytest.mark.parametrize(
    ("label", "options", "message"),
    [
        (np.zeros((3, 3)), {}, r"label has shape \(3, 3\)"),
        (np.zeros((3, 3, 0)), {}, "L >= 1 labels"),
        (np.full((3, 3, 1), np.nan), {}, r"label\[0, 1, 0\] is nan"),
        (np.zeros((3, 3, 2)), {"arc": np.zeros((4, 4))}, r"label has shape \(3, 3, 2\); expected \(4, 4, any\)"),
        (np.zeros((3, 3, 2)), {"root": "double"}, "root is 'double'"),
        ("no", {}, "not an array of numbers"),
    ],
)
def test_what_cannot_be_used_is_named(label, options, message):
    with pytest.raises(InvalidInput, match=message):
        LabelledDependency(label, **options)


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        (([-1, 0, 1], [-1, 0, 2]), r"labels\[2\] is 2; labels are 0..1"),
        (([-1, 0, 1], [0, 0, 1]), r"labels\[0\] = -1"),
        (([-1, 2, 1], [-1, 0, 0]), "0 words"),
        ([-1, 0, 1], "pair"),
    ],
)
def test_what_is_no_labelled_tree_is_named(structure, message):
    with pytest.raises(InvalidInput, match=message):
        LabelledDependency(np.zeros((3, 3, 2))).score(structure)


def test_what_is_asked_is_checked():
    problem = LabelledDependency(np.zeros((3, 3, 2)))
    with pytest.raises(InvalidInput, match="no label"):
        trees.at_most_one_labelled(problem, 2)
    with pytest.raises(InvalidInput, match="outside view"):
        problem.with_fixed("labels", (0, 1, 2), 1)
    with pytest.raises(certus.NotSupported, match="no tree has the arc"):
        problem.with_fixed("arcs", (1, 1), 1)
    with pytest.raises(InvalidInput, match="0 or 1"):
        problem.with_fixed("arcs", (0, 1), 2)
    with pytest.raises(InvalidInput, match="no view"):
        problem.solve({"tags": np.zeros(3)})
    with pytest.raises(InvalidInput, match="structure is a list of 2; expected an object"):
        problem.structure_from_json([1, 2])
