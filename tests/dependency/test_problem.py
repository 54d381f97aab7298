"""What certus.Dependency takes, refuses and says; JSON; fixed arcs; the choice of algorithm."""

import json

import numpy as np
import pytest
from hypothesis import given, settings

import certus
from certus import Dependency, InvalidInput, NotSupported
from tests.dependency.cases import MODELS, draw_problem, problems
from tests.oracles.trees import all_trees, arc_score, projective_trees


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("listed", [False, True])
def test_json_round_trip_keeps_every_score(model, listed):
    if listed and {"stop", "null"} & set(MODELS[model][0]):
        pytest.skip("end-of-side parts come as arrays only")
    problem = draw_problem(np.random.default_rng(0), model, 3, "multi", listed=listed)
    again = Dependency.from_json(json.loads(json.dumps(problem.to_json(), allow_nan=False)))
    for heads in projective_trees(3, "multi"):
        assert again.score(np.array(heads)) == problem.score(np.array(heads))
    structure = np.array(projective_trees(3, "multi")[0])
    assert (again.structure_from_json(problem.structure_to_json(structure)) == structure).all()


@settings(max_examples=40, deadline=None)
@given(problems(largest=3))
def test_fixing_an_arc_leaves_the_trees_with_or_without_it(problem):
    every = [tuple(y) for y in problem.all_structures()]
    for h, m in ((0, 1), (2, 1), (1, 3)):
        if max(h, m) > problem.n:
            continue
        with_arc = [tuple(y) for y in problem.with_fixed("arcs", (h, m), 1).all_structures()]
        without = [tuple(y) for y in problem.with_fixed("arcs", (h, m), 0).all_structures()]
        assert sorted(with_arc) == sorted(y for y in every if y[m] == h)
        assert sorted(without) == sorted(y for y in every if y[m] != h)


@settings(max_examples=40, deadline=None)
@given(problems(models=("first order", "siblings", "model 1", "model 2"), largest=3))
def test_verify_accepts_what_decode_returns(problem):
    try:
        result = problem.decode()
    except certus.Infeasible:
        return
    certus.verify(problem, result)


@settings(max_examples=60, deadline=None)
@given(problems(models=[model for model in MODELS if model != "first order"], largest=3))
def test_marginals_of_higher_order_parts(problem):
    """Which parts a tree uses is told by problems that score one part alone."""
    every = list(problem.all_structures())
    scores = np.array([problem.score(y) for y in every])
    if not len(every) or scores.max() == -np.inf:
        return
    probability = np.exp(scores - np.logaddexp.reduce(scores))
    for kind in problem.scores:
        found = problem.part_marginals(kind)
        used = np.zeros((len(every), found.size))  # trees by parts
        for part in range(found.size):
            unit = np.zeros(found.size)
            unit[part] = 1.0
            alone = Dependency(
                np.zeros(problem.arc.shape),
                **{kind: unit.reshape(found.shape)},
                projective=True,
                root=problem.root,
                grandparents=problem.grandparents,
            )
            used[:, part] = [alone.score(y) for y in every]
        assert np.allclose(found.ravel(), probability @ used, atol=1e-9, rtol=0)


@pytest.mark.parametrize("root", ["single", "multi"])
def test_crossing_arcs_are_allowed_by_default(root):
    rng = np.random.default_rng(1)
    for n in (0, 1, 2, 4):
        arc = rng.integers(-8, 9, (n + 1, n + 1)).astype(float)
        problem = Dependency(arc, root=root)
        trees = all_trees(n, root)
        values = sorted((arc_score(arc, y) for y in trees), reverse=True)
        assert sorted(tuple(y) for y in problem.all_structures()) == sorted(trees)
        result = problem.decode()
        assert result.certificate.kind == "combinatorial"
        assert result.score == values[0]
        assert [r.score for r in problem.kbest(5)] == values[:5]
        assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(values), abs=1e-10)
        assert problem.max_marginals()["arcs"].max(initial=-np.inf) == (values[0] if n else -np.inf)
        assert problem.entropy() >= 0
        assert tuple(problem.sample(1, seed=0)[0]) in trees


@pytest.mark.parametrize("question", ["log_partition", "marginals", "entropy"])
def test_intractable_questions_say_what_to_ask_instead(question):
    problem = Dependency(np.zeros((4, 4)), np.zeros((4, 4, 4)))
    with pytest.raises(NotSupported, match="NP-hard"):
        getattr(problem, question)()


def test_part_marginals_are_of_parts_that_were_given():
    with pytest.raises(InvalidInput, match="kind is 'grandparent'; expected one of 'arc', 'sibling'"):
        Dependency(np.zeros((4, 4)), np.zeros((4, 4, 4)), projective=True).part_marginals("grandparent")
    with pytest.raises(NotSupported, match="projective=True"):
        Dependency(np.zeros((4, 4)), np.zeros((4, 4, 4))).part_marginals("sibling")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arc": np.zeros((3, 4))}, r"arc has shape \(3, 4\)"),
        ({"arc": [[0.0, np.nan], [0.0, 0.0]]}, r"arc\[0, 1\] is nan"),
        ({"arc": np.zeros((3, 3)), "sibling": np.zeros((3, 3))}, "sibling has shape"),
        ({"arc": np.zeros((3, 3)), "root": "double"}, "root is 'double'"),
        ({"arc": np.zeros((3, 3)), "grandparents": "some"}, "grandparents is 'some'"),
        ({"arc": "no"}, "not an array of numbers"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Dependency(**arguments)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([-1, 0], "3 whole numbers"),
        ([0, 0, 1], r"structure\[0\] is 0"),
        ([-1, 1, 0], r"structure\[1\] is 1"),
        ([-1, 0, 0], "2 words have node 0 as head"),
        ([-1, 2, 1], "0 words"),
    ],
)
def test_what_is_no_tree_is_named(heads, message):
    with pytest.raises(InvalidInput, match=message):
        Dependency(np.zeros((3, 3)), projective=True).score(np.array(heads))


def test_cycles_and_crossings_are_named():
    problem = Dependency(np.zeros((5, 5)), projective=True, root="multi")
    with pytest.raises(InvalidInput, match=r"words \[2, 3\] form a cycle"):
        problem.score(np.array([-1, 0, 3, 2, 0]))
    with pytest.raises(InvalidInput, match="crosses"):
        problem.score(np.array([-1, 0, 4, 1, 0]))


def test_unread_cells_are_ignored():
    arc = np.zeros((3, 3))
    arc[:, 0] = np.nan
    np.fill_diagonal(arc, np.inf)
    assert Dependency(arc, projective=True).decode().score == 0.0


def test_lists_of_parts_are_checked():
    with pytest.raises(InvalidInput, match="index m of arc"):
        Dependency.from_parts(2, arc=([0], [3], [1.0]))
    with pytest.raises(InvalidInput, match="expected h, s, m and the scores"):
        Dependency.from_parts(2, arc=([0], [1], [1.0]), sibling=([0], [1], [1.0]))
    with pytest.raises(InvalidInput, match="n is -1"):
        Dependency.from_parts(-1, arc=([], [], []))


def test_a_part_listed_twice_does_not_count_twice():
    with pytest.raises(InvalidInput, match="arc lists the part h=1, m=2 twice, at 1 and 3; give each part once"):
        Dependency.from_parts(2, arc=([0, 1, 0, 1], [1, 2, 2, 2], [1.0, 1.0, 1.0, 49.0]))
    arcs = ([0, 1, 0], [1, 2, 2], [1.0, 0.0, 0.0])
    with pytest.raises(InvalidInput, match="sibling lists the part h=0, s=0, m=1 twice, at 0 and 1"):
        Dependency.from_parts(2, arc=arcs, sibling=([0, 0], [0, 0], [1, 1], [1.0, 49.0]), unlisted=0.0)
    data = Dependency.from_parts(2, arc=arcs, sibling=([0], [0], [1], [1.0])).to_json()
    data["sibling"]["keys"] *= 2
    data["sibling"]["scores"] *= 2
    with pytest.raises(InvalidInput, match="sibling: sibling lists the part h=0, s=0, m=1 twice"):
        Dependency.from_json(data)


def test_unlisted_parts_score_what_was_asked():
    lists = {"arc": ([0, 1], [1, 2], [1.0, 1.0]), "sibling": ([0], [0], [1], [5.0]), "projective": True}
    assert Dependency.from_parts(2, **lists, unlisted=0.0).decode().score == 7.0
    with pytest.raises(certus.Infeasible):
        Dependency.from_parts(2, **lists).decode()
