"""Random small problems for the relaxation tests: integer scores, ties and the odd forbidden part."""

import numpy as np

from certus import Joint, Tagging
from tests.oracles.enumerated import Enumerated


def enumerated(rng, n, size, count, exclusive=True):
    """``count`` random taggings of n positions, not all different, with integer scores."""
    parts = np.zeros((count, n, size))
    for row in parts:
        row[np.arange(n), rng.integers(size, size=n)] = 1
    scores = rng.integers(-8, 9, count)
    return Enumerated(parts.reshape(count, -1), scores, (n, size), "tags", exclusive=1 if exclusive else None)


def enumerated_joint(rng, exclusive=True):
    n, size = int(rng.integers(0, 4)), int(rng.integers(1, 4))
    a, b = (enumerated(rng, n, size, int(rng.integers(1, 10)), exclusive) for _ in range(2))
    return Joint(a, b, on="tags", weight=float(rng.choice([0.5, 1, 2])))


def scores(rng, *shape):
    values = rng.integers(-8, 9, shape).astype(float)
    values[rng.random(shape) < 0.05] = -np.inf
    return values


def taggings(rng, n, size):
    """A bigram and a trigram model over the same tags."""
    a = Tagging(scores(rng, n, size), bigram=scores(rng, size, size))
    b = Tagging(scores(rng, n, size), trigram=scores(rng, size, size, size))
    return a, b


def optimum(problem):
    """Best score by enumeration; -inf when there is no structure."""
    return max((problem.score(y) for y in problem.all_structures()), default=-np.inf)
