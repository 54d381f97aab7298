"""Random small factor graphs with integer scores, forbidden labels and cells, tables over up to three variables."""

import numpy as np

import certus


def whole(rng, *shape, forbidden=0.1):
    values = rng.integers(-8, 9, shape).astype(float)
    values[rng.random(shape) < forbidden] = -np.inf
    return values


def factor_graph(rng, *, most=5, width=None):
    n, size = int(rng.integers(0, most + 1)), int(rng.integers(1, 4))
    tables = []
    for _ in range(int(rng.integers(0, 8)) if n else 0):
        order = int(rng.integers(1, min(n, 3) + 1))
        tables.append((rng.permutation(n)[:order].tolist(), whole(rng, *(size,) * order)))
    return certus.FactorGraph(whole(rng, n, size), None, tables, width=width)


def grid_pairs(rows, columns):
    """Neighbours in a grid."""
    across = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    return across + [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]


def agrees(problem):
    """Best structure and proof are those of enumeration; the result, or None if there is no structure."""
    best = max((problem.score(y) for y in problem.all_structures()), default=-np.inf)
    try:
        result = problem.decode()
    except certus.Infeasible:
        assert best == -np.inf
        return None
    assert result.score == best
    assert result.certificate.exact
    assert not certus.verify(problem, result).trusts
    return result
