import numpy as np

from certus.relax.engine import Engine
from certus.relax.fixing import removable, remove
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
        relaxation = Relaxation.of(problem)
        engine = Engine(relaxation)
        engine.descend(np.zeros(relaxation.n_rows), engine.initial, max_iterations=3)
        multipliers = rng.normal(size=relaxation.n_rows)
        removed = removable(engine, multipliers, engine.initial)
        if engine.leaves is None:
            assert removed == ()
            continue
        gone = np.zeros(int(np.prod(problem.views["tags"])), dtype=bool)
        for part in removed:
            gone[list(part.indices)] = True
            removals += len(part.indices)
        for y in problem.all_structures():
            if (problem.indicator(y, "tags").ravel()[gone] > 0).any():
                assert problem.score(y) <= engine.score + 1e-9
    assert removals > 100


def test_parts_are_removed_in_every_copy():
    rng = np.random.default_rng(3)
    problem = enumerated_joint(rng)
    while optimum(problem) == -np.inf or problem.views["tags"][0] < 2:
        problem = enumerated_joint(rng)
    relaxation = Relaxation.of(problem)
    engine = Engine(relaxation)
    engine.leaves, engine.score = (0, 0), 1e6  # an incumbent so good that everything goes
    removed = removable(engine, np.zeros(relaxation.n_rows), engine.initial)
    assert remove(engine, engine.initial, removed).zeros.all()
