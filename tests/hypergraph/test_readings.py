"""What automata read: every question under constraints on sequences, against all structures."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Automaton, InvalidInput, Joint, NotSupported, Tagging
from certus.certificates import standalone
from certus.constraints import accepted, at_most, avoids, contains, count, in_order, length, require
from certus.proof_file import proof_to_json
from tests.fuzz import problems as fuzzed  # noqa: F401 (registers the kinds)
from tests.fuzz.cases import KINDS
from tests.fuzz.readings import holds, read, reading
from tests.fuzz.scores import Scores

seeds = st.integers(0, 2**32 - 1)


def drawn(seed):
    """A problem with integer scores, the structures that are accepted by their key, and their scores."""
    rng = np.random.default_rng(seed)
    case = KINDS["accepted"].draw(rng, Scores(rng, "whole"))
    base = KINDS[case["inner"]["kind"]].make(case["inner"])
    problem = base.subject_to(*(reading(r, case["symbols"]) for r in case["readings"]))
    every = [y for y, parts in KINDS[case["inner"]["kind"]].listed(case["inner"], base) if -np.inf not in parts]
    kept = [y for y in every if all(holds(r, read(case, base, y)) for r in case["readings"])]
    return base, problem, kept


@given(seeds)
@settings(max_examples=60)
def test_every_question_equals_enumeration(seed):
    base, problem, kept = drawn(seed)
    if not kept:
        with pytest.raises(certus.Infeasible):
            problem.decode()
        return
    values = np.array([base.score(y) for y in kept])
    found = problem.kbest(3)
    assert [r.score for r in found] == sorted(values, reverse=True)[:3]
    for r in found:
        certus.verify(problem, r)
        standalone.check(json.loads(json.dumps(proof_to_json(problem, r))))
    total = np.logaddexp.reduce(values)
    assert problem.log_partition() == pytest.approx(total, abs=1e-9)
    p = np.exp(values - total)
    assert problem.entropy() == pytest.approx(-(p * np.log(np.maximum(p, 1e-300))).sum(), abs=1e-9)
    used = [{view: base.indicator(y, view) for view in base.views} for y in kept]
    marginals, best = problem.marginals(), problem.max_marginals()
    for view in base.views:
        assert np.allclose(marginals[view], sum(x * u[view] for x, u in zip(p, used, strict=True)), atol=1e-9)
        most = np.max([np.where(u[view] > 0, v, -np.inf) for v, u in zip(values, used, strict=True)], axis=0)
        assert np.array_equal(best[view], most)
    keys = {json.dumps(problem.structure_to_json(y)) for y in kept}
    assert {json.dumps(problem.structure_to_json(y)) for y in problem.sample(5, seed=0)} <= keys


def test_names_of_tags_and_numbers_mean_the_same():
    base = Tagging([[1.0, 0.0]] * 3, tags=("N", "V"))
    for phrase in (["V", "N"], [1, 0]):
        assert base.subject_to(contains(phrase)).decode().structure.tolist().count(1) == 1
    assert base.names(base.subject_to(in_order("V", "N"), count(["V"], 1)).decode().structure) == ["V", "N", "N"]


def test_an_automaton_of_ones_own():
    base = Tagging([[1.0, 0.0]] * 4, tags=("a", "b"))
    even = Automaton([[0, 1], [1, 0]], finals=[1], symbols=["a", "b"])  # an odd number of b
    assert base.subject_to(accepted(even)).decode().score == 3.0
    only_a = Automaton([[0]], symbols=["a"])
    assert base.subject_to(accepted(only_a)).decode().structure.tolist() == [0, 0, 0, 0]
    with pytest.raises(InvalidInput, match="weights"):
        base.subject_to(accepted(Automaton([[0]], weights=[[1.0]], symbols=["a"])))


def test_with_parts_required_and_rows_beside():
    base = Tagging([[2.0, 0.0, 1.0]] * 4, bigram=np.eye(3))
    problem = base.subject_to(
        at_most(2, "tags", [(i, 0) for i in range(4)]), avoids([0, 0]), require("tags", (1, 1))
    ).subject_to(contains([2, 0]))
    every = [
        y
        for y in base.all_structures()
        if y[1] == 1 and (y == 0).sum() <= 2 and "00" not in (s := "".join(map(str, y))) and "20" in s
    ]
    result = problem.decode()
    assert result.score == max(map(base.score, every))
    certus.verify(problem, result)


def test_a_joint_problem_reads_what_one_of_its_problems_can():
    a, b = Tagging([[2.0, 0.0]] * 3, tags=("N", "V")), Tagging([[0.0, 1.0]] * 3)
    problem = Joint(a, b, on="tags").subject_to(contains(["V", "N"]), length(0, 5))
    result = problem.decode()
    assert result.score == 5.0
    certus.verify(problem, result)
    trees = certus.Dependency(np.zeros((3, 3)))
    with pytest.raises(NotSupported, match="sequence"):
        Joint(trees, trees, on="arcs").subject_to(contains([0]))


def test_saving(tmp_path):
    problem = Tagging([[1.0, 0.0]] * 3).subject_to(contains([1, 0]), avoids([1, 1]))
    result = problem.kbest(2)[1]
    certus.save_result(tmp_path / "r.json", problem, result)
    again, loaded = certus.load_result(tmp_path / "r.json")
    certus.verify(again, loaded)
    assert again.decode().score == problem.decode().score


def test_a_symbol_that_no_part_has_is_just_not_there():
    graph = certus.Hypergraph(in_ptr=[0, 2, 3], tail_ptr=[0, 0, 0, 1], tail=[0])
    base, symbols = certus.Hyperpath(graph, [1.0, 2.0, 0.0]), ["a", "b", None]
    assert base.subject_to(contains(["a"], symbols=symbols)).decode().score == 1.0
    assert base.subject_to(avoids(["z"], symbols=symbols)).decode().score == 2.0
    with pytest.raises(certus.Infeasible):
        base.subject_to(contains(["z"], symbols=symbols)).decode()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.subject_to(contains([5])), "none of the 2 symbols"),
        (lambda p: p.subject_to(contains(["N"])), "none of the 2 symbols"),
        (lambda p: contains([]), "one at least"),
        (lambda p: contains("NV"), "list of symbols"),
        (lambda p: in_order(0, 0), "different symbols"),
        (lambda p: length(-1), "whole number"),
        (lambda p: count([0], 1, 1.5), "whole number"),
        (lambda p: p.subject_to(contains([0], symbols=["a"])), "there are 1 symbols"),
        (lambda p: p.subject_to(contains([0], view="arcs")), "no view 'arcs'"),
        (lambda p: certus.Hyperpath(certus.Hypergraph([0, 1], [0, 0], []), [0.0]).subject_to(length(1)), "symbols="),
    ],
)
def test_errors_say_what_is_wrong(make, message):
    with pytest.raises(InvalidInput, match=message):
        make(Tagging(np.zeros((2, 2))))


def test_what_has_no_sequence_is_not_read():
    with pytest.raises(NotSupported, match="no sequence"):
        certus.Dependency(np.zeros((3, 3))).subject_to(contains([0]))
