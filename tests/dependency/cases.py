"""Random small dependency problems of every factorization, for hypothesis and for loops with a seed."""

import numpy as np
from hypothesis import strategies as st

from certus import Dependency
from certus.dependency.part_kinds import HIGHER_KINDS

# name: (kinds of parts, grandparents)
MODELS = {
    "first order": ((), "all"),
    "siblings": (("sibling",), "all"),
    "carreras": (("sibling", "grandparent"), "outermost"),
    "model 0": (("grandparent",), "all"),
    "model 1": (("sibling", "grandparent", "grandsibling"), "all"),
    "grandparents and siblings": (("sibling", "grandparent"), "all"),
    "model 2": (("sibling", "grandparent", "grandsibling", "trisibling"), "outermost"),
    "trisiblings": (("trisibling",), "all"),
    "ends of sides": (("stop", "null"), "all"),
    "everything": (("sibling", "grandparent", "grandsibling", "trisibling", "stop", "null"), "all"),
    "great-grandparents": (("greatgrandparent",), "all"),
    "grand-tri-siblings": (("sibling", "grandtrisibling"), "all"),
    "grand-tri-siblings, outermost": (("grandsibling", "grandtrisibling"), "outermost"),
    "both, outermost": (("grandsibling", "trisibling", "greatgrandparent", "grandtrisibling"), "outermost"),
    "everything, outermost": (("sibling", "grandparent", "grandsibling", "trisibling", "stop", "null"), "outermost"),
}


def whole_scores(rng, shape, forbidden=0.0):
    """Whole numbers in [-8, 8]: sums are exact and ties common. Some are -inf."""
    values = rng.integers(-8, 9, size=shape).astype(np.float64)
    values[rng.random(shape) < forbidden] = -np.inf
    return values


def draw_problem(rng, model, n, root="single", *, listed=False, projective=True):
    """A problem of one model; ``listed`` gives the same scores as lists of the parts that are not -inf."""
    kinds, grandparents = MODELS[model]
    arrays = {"arc": whole_scores(rng, (n + 1, n + 1), rng.choice([0.0, 0.1, 0.3]))}
    arrays |= {kind: whole_scores(rng, HIGHER_KINDS[kind].shape(n), rng.choice([0.0, 0.05])) for kind in kinds}
    settings = {"projective": projective, "root": root, "grandparents": grandparents}
    if listed:
        lists = {kind: (*np.nonzero(a > -np.inf), a[a > -np.inf]) for kind, a in arrays.items()}
        return Dependency.from_parts(n, **lists, **settings)
    return Dependency(**arrays, **settings)


@st.composite
def problems(draw, models=tuple(MODELS), largest=4, **settings):
    """A projective problem with ties, -inf, few words and either kind of root."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    model = draw(st.sampled_from(models))
    n = draw(st.integers(0, largest))
    return draw_problem(rng, model, n, draw(st.sampled_from(["single", "multi"])), **settings)
