import numpy as np

from certus.relax.descent import descend
from certus.relax.fixing import removable, without
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.run import Run
from certus.relax.steps import polyak
from certus.relax.system import Relaxation
from tests.relax.random_problems import enumerated_joint, optimum


def test_no_better_structure_uses_a_removed_part():
    """At any multipliers, with any incumbent, what is removed could not have improved on it."""
    rng = np.random.default_rng(2)
    removals = 0
    for _ in range(150):
        problem = enumerated_joint(rng)
        if optimum(problem) == -np.inf:
            continue
        relaxation, run = Relaxation.of(problem), Run()
        subproblems = Subproblems(relaxation)
        oracle = Lagrangian(subproblems, subproblems.initial)
        descend(run, oracle, np.zeros(relaxation.n_rows), polyak(), max_iterations=3)
        multipliers = rng.normal(size=relaxation.n_rows)
        removed = removable(subproblems, multipliers, subproblems.initial, run.score)
        gone = np.zeros(int(np.prod(problem.views["tags"])), dtype=bool)
        for part in removed:
            gone[list(part.indices)] = True
            removals += len(part.indices)
        for y in problem.all_structures():
            if (problem.indicator(y, "tags").ravel()[gone] > 0).any():
                assert problem.score(y) <= run.score + 1e-9
    assert removals > 100


def test_parts_are_removed_in_every_copy():
    rng = np.random.default_rng(3)
    problem = enumerated_joint(rng)
    while optimum(problem) == -np.inf or problem.views["tags"][0] < 2:
        problem = enumerated_joint(rng)
    relaxation = Relaxation.of(problem)
    subproblems = Subproblems(relaxation)
    score = 1e6  # of an incumbent so good that everything goes
    removed = removable(subproblems, np.zeros(relaxation.n_rows), subproblems.initial, score)
    assert without(relaxation, subproblems.initial, removed).zeros.all()
