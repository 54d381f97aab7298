"""Normal forms of dependency problems against all structures, one by one."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus.dependency.automata_problem import AutomataDependency
from certus.dependency.head_automata import HeadAutomata, PartAutomaton
from certus.dependency.lineages import Lineages
from certus.dependency.vine import Vine
from tests.dependency.cases import MODELS, draw_problem, problems, whole_scores
from tests.dependency.test_head_automata import Parity
from tests.oracles.normal import check
from tests.oracles.spaces import check_normal_form

BY_HEADS = [name for name, (kinds, _) in MODELS.items() if kinds and "greatgrandparent" not in kinds]
ROOTS = st.sampled_from(["single", "multi"])


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(BY_HEADS), st.integers(0, 2), ROOTS, st.booleans())
def test_head_automata(seed, model, n, root, listed):
    listed = listed and not {"stop", "null"} & set(MODELS[model][0])
    check_normal_form(
        HeadAutomata.of(draw_problem(np.random.default_rng(seed), model, n, root, projective=False, listed=listed))
    )


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(BY_HEADS), st.integers(0, 2), ROOTS)
def test_head_automata_that_are_known_by_their_steps_only(seed, model, n, root):
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, model, n, root, projective=False)
    check_normal_form(HeadAutomata(problem.arc, lambda g, h, side: Parity(), by_head=bool(seed % 2), root=root))
    by_head = HeadAutomata.of(problem).by_head
    check_normal_form(
        HeadAutomata(problem.arc, lambda g, h, side: PartAutomaton(problem, g, h, side), by_head=by_head, root=root)
    )


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4), ROOTS)
def test_trees_with_crossing_arcs(seed, n, root):
    check_normal_form(draw_problem(np.random.default_rng(seed), "first order", n, root, projective=False))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(MODELS)[1:]), st.integers(0, 2), ROOTS)
def test_trees_with_crossing_arcs_and_scores_above_them(seed, model, n, root):
    check_normal_form(draw_problem(np.random.default_rng(seed), model, n, root, projective=False))


@pytest.mark.parametrize("n", range(3))
def test_trees_scored_by_automata(n):
    rng = np.random.default_rng(n)
    arc = rng.integers(-5, 6, size=(n + 1, n + 1))
    for by_head in (True, False):
        check_normal_form(AutomataDependency(arc, lambda g, h, side: Parity(), by_head=by_head))


@settings(max_examples=150)
@given(problems(largest=4))
def test_projective_trees(problem):
    check(problem)


@settings(max_examples=30)
@given(problems(models=("first order", "siblings", "carreras", "model 1", "model 2", "trisiblings"), listed=True))
def test_projective_trees_of_listed_parts(problem):
    check(problem)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.integers(1, 3))
def test_vines(seed, n, band):
    rng = np.random.default_rng(seed)
    arc, *outer = (whole_scores(rng, shape, 0.2) for shape in ((n + 1, n + 1), (n + 1, 2), (n + 1, 2)))
    check(Vine(arc, *outer, band=band))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2), st.booleans())
def test_lineages(seed, n, few):
    rng = np.random.default_rng(seed)
    problem = draw_problem(rng, "great-grandparents", n + few, projective=False)
    allowed = problem.arc > -np.inf
    if few:
        allowed &= rng.random(allowed.shape) < 0.4
    check_normal_form(Lineages(allowed, problem.scores["greatgrandparent"]))


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(MODELS)), st.integers(0, 3), ROOTS, st.booleans())
def test_labelled_trees(seed, model, n, root, projective):
    rng = np.random.default_rng(seed)
    n = n if projective or model == "first order" else min(n, 2)
    trees = draw_problem(rng, model, n, root, projective=projective)
    problem = trees.labelled(whole_scores(rng, (n + 1, n + 1, 2), 0.2))
    (check if projective else check_normal_form)(problem)


def test_normal_forms_need_no_numba():
    code = (
        "import sys\nsys.modules['numba'] = None\nimport certus\nimport numpy as np\n"
        "arc, sibling, heads = np.zeros((3, 3)), np.ones((3, 3, 3)), [-1, 0, 1]\n"
        "for projective in (True, False):\n"
        "    for scores in ({}, {'sibling': sibling, 'grandparent': sibling}):\n"
        "        p = certus.Dependency(arc, **scores, projective=projective)\n"
        "        p.normal_form(), p.normal_structure(heads)\n"
        "        p = p.labelled(np.zeros((3, 3, 2)))\n"
        "        p.normal_form(), p.normal_structure((heads, [-1, 0, 1]))\n"
        "certus.Vine(arc, arc[:, :2], arc[:, :2], band=1).normal_form()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
