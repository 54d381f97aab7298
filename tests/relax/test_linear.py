import numpy as np
import pytest

import certus
from certus import Infeasible, Joint, NotSupported, Tagging
from certus.constraints import at_most, forbid, require
from certus.relax.constrained import Constrained
from certus.relax.linear import linear_program, solve_ilp, solve_lp
from tests.oracles.enumerated import Enumerated
from tests.relax.random_problems import optimum, taggings
from tests.relax.test_descent import fractional


def test_the_integer_program_equals_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(25):
        problem = Joint(*taggings(rng, int(rng.integers(1, 4)), int(rng.integers(1, 4))), on="tags", weight=2.0)
        best = optimum(problem)
        if best == -np.inf:
            with pytest.raises(Infeasible):
                solve_ilp(problem)
            continue
        result = solve_ilp(problem)
        assert result.score == best
        assert result.certificate.kind == "integer program"
        assert result.certificate.exact
        certus.verify(problem, result)


def test_the_linear_program_bounds_the_integer_one_and_equals_the_dual():
    rng = np.random.default_rng(1)
    for _ in range(15):
        problem = Joint(*taggings(rng, 4, 3), on="tags")
        if optimum(problem) == -np.inf:
            continue
        report = solve_lp(problem)
        assert report.value >= optimum(problem) - 1e-6
        if not report.fractional:
            assert report.value == pytest.approx(optimum(problem), abs=1e-6)
            assert report.parts() == []
        # Any multipliers bound the linear program from above.
        assert problem.decode(max_iterations=100, exact=False).certificate.bound >= report.value - 1e-6


def test_a_fractional_vertex_is_reported():
    report = solve_lp(fractional())
    assert report.value == pytest.approx(0.0)
    assert report.fractional
    assert {(view, index) for view, index, _ in report.parts()} == {
        ("tags", (i, t)) for i in range(2) for t in range(2)
    }
    assert repr(report) == "LPReport(value=0, fractional in 4 parts)"
    for mixture in report.mixtures:  # each side is half one structure, half another
        assert [share for share, _ in mixture] == pytest.approx([0.5, 0.5])
        assert len({tuple(structure) for _, structure in mixture}) == 2


def test_hyperpaths_are_integral():
    rng = np.random.default_rng(2)
    graph = certus.Hypergraph(in_ptr=[0, 2, 4, 6], tail_ptr=[0, 0, 0, 0, 0, 2, 3], tail=[0, 1, 1])
    for _ in range(10):
        problem = certus.Hyperpath(graph, rng.integers(-8, 9, 6))
        report = solve_lp(problem)
        assert not report.fractional
        assert report.value == pytest.approx(problem.decode().score)
        assert solve_ilp(problem).score == problem.decode().score


def test_an_edge_used_twice():
    graph = certus.Hypergraph(in_ptr=[0, 2, 3], tail_ptr=[0, 0, 0, 2], tail=[0, 0])
    problem = certus.Hyperpath(graph, [1, 3, 2])
    result = solve_ilp(problem)
    assert result.score == 8.0
    assert problem.indicator(result.structure, "edges").tolist() == [0, 2, 1]


def test_fixings_and_rows_are_part_of_the_program():
    base = Tagging([[5.0, 0.0], [5.0, 0.0], [5.0, 1.0]])
    problem = base.subject_to(
        at_most(2, "tags", [(i, 0) for i in range(3)]), forbid("tags", (0, 0)), require("tags", (1, 0))
    )
    result = solve_ilp(problem)
    assert result.structure.tolist() == [1, 0, 0]
    assert result.score == problem.decode().score == 10.0
    rows, columns = linear_program(problem).size
    assert rows > 0
    assert columns > 0


def test_what_is_no_dynamic_program_has_no_linear_program():
    with pytest.raises(NotSupported, match="Enumerated"):
        solve_lp(Enumerated([[1]], [0]))


def test_the_program_as_text():
    graph = certus.Hypergraph(in_ptr=[0, 2, 3], tail_ptr=[0, 0, 0, 1], tail=[0])
    program = linear_program(
        Constrained(certus.Hyperpath(graph, [1, 3, -0.5]), [forbid("edges", (1,)), require("edges", (2,))])
    )
    assert program.to_text(integer=True) == (
        "Maximize\n score: +1 x0 +3 x1 -0.5 x2\nSubject To\n c0: +1 x0 +1 x1 -1 x2 = 0\n c1: +1 x2 = 1\n"
        " c2: +1 x2 >= 1\nBounds\n x1 = 0\nGeneral\n x0\n x1\n x2\nEnd\n"
    )
    assert "General" not in program.to_text(integer=False)
    joint = linear_program(fractional()).to_text(integer=False)
    assert joint.count("= 1") == 2  # one root each
    assert len([line for line in joint.splitlines() if line.startswith(" c")]) == linear_program(fractional()).size[0]
