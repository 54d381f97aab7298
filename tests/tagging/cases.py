"""Random tagging problems, small enough to enumerate."""

import numpy as np
from hypothesis import strategies as st

from certus import Tagging


def random_tagging(rng, n, size, *, order=3, boundary=True, per_position=False, forbid=0.0, whole=True):
    """A problem with tables up to ``order`` that are all alike, some cells -inf."""

    def draw(*shape):
        scores = rng.integers(-8, 9, shape).astype(float) if whole else rng.normal(size=shape)
        return np.where(rng.random(shape) < forbid, -np.inf, scores)

    side = size + boundary
    rows = (n + boundary,) if per_position else ()
    tables = [draw(*rows, *[side] * k) if order >= k else None for k in (2, 3)]
    return Tagging(draw(n, size), *tables)


@st.composite
def taggings(draw, max_n=4, max_size=3):
    """Problems whose two tables differ in kind, with integer scores in [-8, 8] and some cells -inf."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, size = draw(st.integers(0, max_n)), draw(st.integers(1, max_size))
    forbid = draw(st.sampled_from([0.0, 0.1, 0.4]))

    def scores(*shape):
        return np.where(rng.random(shape) < forbid, -np.inf, rng.integers(-8, 9, shape).astype(float))

    tables = []
    for order in (2, 3):
        kind = draw(st.sampled_from(["none", "plain", "boundary", "plain rows", "boundary rows"]))
        boundary = kind.startswith("boundary")
        rows = (n + boundary,) if kind.endswith("rows") else ()
        tables.append(None if kind == "none" else scores(*rows, *[size + boundary] * order))
    return Tagging(scores(n, size), *tables)
