"""Parts that are forbidden or required: every question keeps its answer, whatever the kind of problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Joint, NotSupported, Tagging
from certus.constraints import at_most, exactly, forbid, require
from certus.relax.constrained import Constrained
from tests.fuzz import problems as fuzzed  # noqa: F401 (registers the kinds)
from tests.fuzz.cases import KINDS
from tests.fuzz.scores import Scores

DECIDED = ["tagging", "hyperpath", "constituency", "lexicalized constituency", "dependency", "labelled dependency"]


def drawn(rng, kind):
    """A problem with whole scores, under constraints that decide parts; and the structures that are left."""
    case = {"kind": kind, **KINDS[kind].draw(rng, Scores(rng, "whole"))}
    base, made = KINDS[kind].make(case), []
    view = str(rng.choice(list(base.views)))
    if 0 in base.views[view]:
        return base, base, []
    for _ in range(int(rng.integers(1, 3))):
        part = [int(rng.integers(size)) for size in base.views[view]]
        required = rng.random() < 0.4 and view != "outer_modifier"  # which vine parses decide by a row, and say so
        made.append(require(view, part) if required else forbid(view, part))
    every = [y for y, parts in KINDS[kind].listed(case, base) if -np.inf not in parts]
    return (
        base,
        base.subject_to(*made),
        [y for y in every if all(c.holds({view: base.indicator(y, view)}) for c in made)],
    )


@pytest.mark.parametrize("kind", [*DECIDED, "vine"])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=12)
def test_every_question_equals_enumeration(kind, seed):
    base, problem, kept = drawn(np.random.default_rng(seed), kind)
    if not kept:
        return
    values = np.array([base.score(y) for y in kept])
    result = problem.decode()
    assert result.score == pytest.approx(values.max(), abs=1e-9)
    certus.verify(problem, result)
    total = np.logaddexp.reduce(values)
    p = np.exp(values - total)
    used = [{view: base.indicator(y, view) for view in base.views} for y in kept]
    try:
        assert [r.score for r in problem.kbest(2)] == pytest.approx(sorted(values, reverse=True)[:2], abs=1e-9)
        assert problem.log_partition() == pytest.approx(total, abs=1e-9)
        assert problem.entropy() == pytest.approx(-(p * np.log(np.maximum(p, 1e-300))).sum(), abs=1e-8)
        marginals, best = problem.marginals(), problem.max_marginals()
    except NotSupported:
        with pytest.raises(NotSupported):
            base.log_partition()  # higher-order trees with crossing arcs, which do not answer it at all
        return
    for view in base.views:
        assert np.allclose(marginals[view], sum(x * u[view] for x, u in zip(p, used, strict=True)), atol=1e-9)
        most = np.max([np.where(u[view] > 0, v, -np.inf) for v, u in zip(values, used, strict=True)], axis=0)
        assert np.allclose(best[view], most, atol=1e-9)


def test_the_problem_stays_of_its_kind():
    base = Tagging(np.zeros((3, 2)), tags=("N", "V"))
    none = at_most(0, "tags", [(0, 0), (1, 0)])
    for constraints in ([forbid("tags", (0, 1))], [none], [exactly(0, "tags", [(0, 0)]), require("tags", (1, 1))]):
        problem = base.subject_to(*constraints)
        assert type(problem) is Tagging
        assert problem.tags == base.tags
    joint = Joint(base, base, on="tags").subject_to(none)
    assert type(joint) is Joint
    assert joint.decode().structure[0].tolist()[:2] == [1, 1]


def test_what_is_decided_beside_rows_goes_into_the_problem():
    base = Tagging([[3.0, 0.0]] * 3)
    problem = base.subject_to(at_most(1, "tags", [(i, 0) for i in range(3)]), forbid("tags", (0, 0)))
    assert isinstance(problem, Constrained)
    assert len(problem.constraints) == 1
    assert problem.problem.unary[0, 0] == -np.inf
    again = problem.subject_to(require("tags", (2, 0)))
    assert len(again.constraints) == 1
    assert again.decode().structure.tolist() == [1, 1, 0]


def test_an_edge_that_is_required_beside_rows_is_required_of_the_relaxation():
    graph = certus.Hypergraph(in_ptr=[0, 2, 4, 5], tail_ptr=[0, 0, 0, 0, 0, 2], tail=[0, 1])
    base = certus.Hyperpath(graph, [3, 1, 3, 1, 0])
    problem = base.subject_to(at_most(1, "edges", [(0,), (2,)]), require("edges", (1,)))
    assert len(problem.constraints) == 2
    assert problem.decode().score == 4.0
    assert base.subject_to(require("edges", (1,))).decode().score == 4.0


def test_parts_that_no_structure_has():
    base = certus.Dependency(np.zeros((3, 3)))
    assert base.subject_to(forbid("arcs", (1, 1)), forbid("arcs", (2, 0))).decode().score == 0.0
    for part in ((1, 1), (2, 0)):
        with pytest.raises(certus.Infeasible):
            base.subject_to(require("arcs", part)).decode()
    vine = KINDS["vine"].make(
        {"kind": "vine", **KINDS["vine"].draw(np.random.default_rng(0), Scores(np.random.default_rng(0), "whole"))}
    )
    with pytest.raises(NotSupported):
        vine.with_fixed("outer_modifier", (0, 0), 1)
