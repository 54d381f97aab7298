"""A class of four methods gets decoding, constraints, joint problems, traces, verification and saving."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus.constraints import at_most
from certus.problem import PROBLEMS


class Pick(certus.Problem):
    """k of n items."""

    name = "pick"

    def __init__(self, values, k):
        self.values, self.k = np.asarray(values, dtype=float), k

    @property
    def views(self):
        return {"items": self.values.shape}

    def score(self, structure):
        return float(self.values[list(structure)].sum())

    def solve(self, penalties=None):
        weights = self.values + (penalties or {}).get("items", 0.0)
        best = np.argsort(-weights, kind="stable")[: self.k]
        if len(best) < self.k or not np.isfinite(weights[best]).all():
            raise certus.Infeasible("fewer items are left than are to be picked.")
        return certus.Solution(tuple(sorted(best.tolist())), float(weights[best].sum()))

    def indicator(self, structure, view):
        used = np.zeros(self.values.shape)
        used[list(structure)] = 1.0
        return used


@pytest.fixture
def registered():
    yield certus.register(Pick)
    del PROBLEMS["pick"]


def test_decoding_and_what_is_believed():
    problem = Pick([3, 1, 2, 5], 2)
    result = problem.decode()
    assert (result.structure, result.score, result.certificate.exact) == ((0, 3), 8.0, True)
    checked = certus.verify(problem, result)
    assert checked.trusts == ("Pick.solve",)
    assert repr(checked) == "Verified(trusting Pick.solve)"
    assert problem.terms((0, 3)) == [8.0]
    assert problem.extent().length >= 2
    with pytest.raises(certus.Infeasible):
        Pick([1.0], 2).decode()


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_constraints_and_joint_problems_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    k = int(rng.integers(1, n))
    a, b = (Pick(rng.integers(-8, 9, n), k) for _ in range(2))
    every = list(itertools.combinations(range(n), k))
    together = certus.Joint(a, b, on="items")
    found = together.decode()
    assert found.score == max(a.score(y) + b.score(y) for y in every)
    assert found.certificate.exact or found.score == 0.0  # 1e-9 of nothing is nothing
    certus.verify(together, found)
    row = at_most(1, "items", [(0,), (1,)])
    left = [y for y in every if not {0, 1} <= set(y)]
    if not left:
        with pytest.raises(certus.Infeasible):
            a.subject_to(row).decode()
        return
    result = a.subject_to(row).decode()
    assert result.score == max(map(a.score, left))
    assert result.certificate.exact or result.score == 0.0
    certus.verify(a.subject_to(row), result)


def test_scores_far_below_the_best_are_no_proof_that_there_is_nothing():
    """Nothing is known of the least score: a structure that scores -1e9 beside 1 is found all the same."""
    problem = Pick([1.0, 1.0, -1e9, -1e9], 2).subject_to(at_most(0, "items", [(0,), (1,)]))
    assert problem.decode().structure == (2, 3)
    assert Pick([1.0], 1).least_score() == -np.inf


def test_saving_needs_registration_and_reading_imports_nothing(tmp_path):
    problem = Pick([3, 1, 2, 5], 2)
    with pytest.raises(certus.InvalidInput, match=r"certus\.register"):
        certus.save_result(tmp_path / "r.json", problem, problem.decode())
    with pytest.raises(certus.NotSupported, match=r"to_json\(\)"):
        problem.to_json()
    certus.register(Pick)
    try:
        joint = certus.Joint(problem, Pick([0, 4, 0, -3], 2), on="items")
        result = joint.decode()
        certus.save_result(tmp_path / "r.json", joint, result)
        again, read = certus.load_result(tmp_path / "r.json")
        assert read.structure == result.structure
        assert certus.verify(again, read).trusts == ("Pick.solve",)
        assert again.problems[0].to_json().keys() == {"values", "k"}
    finally:
        del PROBLEMS["pick"]
    with pytest.raises(certus.FormatError, match="pick"):
        certus.load_result(tmp_path / "r.json")


def test_a_file_cannot_replace_a_method(registered):
    with pytest.raises(certus.InvalidInput, match="solve is a method of Pick"):
        Pick.from_json({"solve": 1, "values": [1], "k": 1})


def test_a_file_cannot_answer_for_a_method(registered):
    with pytest.raises(certus.InvalidInput, match=r"Problem\.extent"):
        Pick.from_json({"Problem.extent()": [1, 0.0, 0.0], "values": [1], "k": 1})


def test_attributes_that_are_not_plain_are_named(registered):
    problem = Pick([1.0], 1)
    problem.extra = {"a": (1, 2.5, None, "x", np.array([True]), np.inf, np.float64(2))}
    assert repr(Pick.from_json(problem.to_json()).extra) == repr(problem.extra).replace("np.float64(2.0)", "2.0")
    problem.extra = [object()]
    with pytest.raises(certus.NotSupported, match=r"Pick\.extra\[0\] is object"):
        problem.to_json()


def test_names_are_taken_once(registered):
    class Other(Pick):
        name = "pick"

    class Nameless(Pick):
        name = ""

    assert certus.register(Pick) is Pick
    for kind, said in ((Other, "taken by Pick"), (Nameless, "has no name")):
        with pytest.raises(certus.InvalidInput, match=said):
            certus.register(kind)


def test_a_class_that_lists_its_structures_is_not_believed():
    class Listed(Pick):
        def all_structures(self):
            return itertools.combinations(range(len(self.values)), self.k)

    problem = Listed([3, 1, 2, 5], 2)
    assert certus.verify(problem, problem.decode()).trusts == ()


def test_proposals_become_candidates():
    class Proposing(Pick):
        def propose(self, structure):
            return (1, 2)

    problem = Proposing([3, 1, 2, 5], 2).subject_to(at_most(1, "items", [(0,), (3,)]))
    result = problem.decode(max_iterations=1, exact=False)
    assert result.score >= 3.0
    assert problem.decode().score == 7.0


def test_a_class_without_a_score_says_so():
    class Nothing(Pick):
        score = certus.Problem.score

    with pytest.raises(certus.NotSupported, match="neither score"):
        Nothing([1.0], 1).decode()
