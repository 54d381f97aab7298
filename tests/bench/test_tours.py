"""Tours by both ways of the suite against all permutations."""

from itertools import pairwise, permutations
from pathlib import Path

import pytest

from certus.bench.tours import Tours, by_highs

EXAMPLE = Path(__file__).parents[2] / "examples" / "tsp.py"


def test_both_find_the_shortest_tour():
    made = Tours.of(EXAMPLE)
    distance = made.random_cities(7, 4)
    tours = ((0, *order, 0) for order in permutations(range(1, 7)))
    shortest = min(sum(distance[a, b] for a, b in pairwise(tour)) for tour in tours)
    length, _, proved = by_highs(distance, 10.0)
    assert proved
    assert length == pytest.approx(shortest)
    assert -made.tours(distance).decode().score == pytest.approx(shortest)
