"""Upper bounds of the sum of exp(scale * score) over all translations, from relaxations that can be summed.

A relaxation gives every translation its score or more, over a dynamic program that has a path for each. For phrases it
is the lattice of all coverages with the last words; for forests that of first and last words, with the scores that the
words before the last could have at most (``lm_lookup``). Summed over a graph that is a superset, exponentials of scores
that are too large bound the true sum. All is numpy, in logarithms; SLACK allows for rounding.
"""

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from certus.checks import Bools, Floats
from certus.errors import InvalidInput, NotSupported
from certus.translation.forest import TranslationForest
from certus.translation.forest_proof import sides_of
from certus.translation.forest_sides import Layout, Sides, adjacent, all_ends, lay_out
from certus.translation.forest_tables import Tables
from certus.translation.lm_lookup import pair_tables
from certus.translation.phrase_coverings import sweep
from certus.translation.phrase_proof import SearchSpace, search_of
from certus.translation.scored_forest import END, prepare

if TYPE_CHECKING:
    from certus.translation.forest_problem import ForestTranslation
    from certus.translation.phrase_problem import PhraseTranslation

SLACK = 1e-6  # of a logarithm, for all that is rounded on the way
LOST = 690.0  # exponentials smaller than exp(-LOST) beside the largest are not summed, but allowed for
MOST_EMPTY = 1000  # derivations without words of one vertex
MOST_CELLS = 2e8  # of sweeps that tell states of the language model apart


def phrase_mass_bounds(problem: "PhraseTranslation", above: float, scales: list[float]) -> list[float]:
    """For each scale, the largest last, the logarithm of a bound of the sum over all translations.

    Where states of the language model are told apart nothing is relaxed: the last is the sum itself, but for rounding,
    and the others are not asked for (inf).
    """
    zero, options = np.zeros(problem.n), np.zeros(len(problem.options))
    try:
        search = search_of(problem, above, options, None, zero)
        if _cells(search) <= MOST_CELLS:
            search = search_of(problem, above, options, None, zero, exact=True)
            whole = _phrase_sum(search, scales[-1] * search.step) + SLACK
            return [np.inf] * (len(scales) - 1) + [whole]
    except InvalidInput as wrong:
        raise NotSupported(f"the mass left out cannot be bounded: {wrong}") from None
    return [_phrase_sum(search, scale * search.step) + SLACK for scale in scales]


def _cells(search: SearchSpace) -> float:
    """The size of a sweep over states of the language model."""
    states = (search.places.context >= 0).sum(axis=1)
    near = np.array([values.shape[1] for values in search.places.value])
    nodes = np.zeros(len(states))
    for _, p, a, b in search.lattice.group:
        nodes[p] += b - a
    return float((nodes * states * near).sum())


def _phrase_sum(search: SearchSpace, unit: float) -> float:
    """ln of the sum over the paths of the lattice, scores being whole numbers of steps worth ``unit`` each."""
    places = search.places
    scaled = places._replace(value=[unit * v for v in places.value], end=[unit * v for v in places.end])
    sums = sweep(search.limits.n, search.options, search.lattice, scaled, -np.inf, log_sum)
    return float(sums.value[int(sums.ptr[0]) + int(places.context[0, search.start])])


def log_sum(terms: Floats) -> Floats:
    """ln of the sum of exponentials along the last axis."""
    top = terms.max(axis=-1, initial=-np.inf, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        out: Floats = np.log(np.exp(terms - np.where(top == -np.inf, 0.0, top)).sum(axis=-1)) + top[..., 0]
    return out


def log_product(a: Floats, b: Floats) -> Floats:
    """[i, j]: ln of the sum over k of exp(a[i, k] + b[k, j]), or a little more: what would be lost is added."""
    (n, inner), m = a.shape, b.shape[1]
    if not (n and inner and m):
        return np.full((n, m), -np.inf)
    rows, columns = a.max(axis=1, keepdims=True), b.max(axis=0, keepdims=True)
    left = np.exp(a - np.where(rows == -np.inf, 0.0, rows))
    right = np.exp(b - np.where(columns == -np.inf, 0.0, columns))
    out: Floats = np.log(left @ right + inner * np.exp(-LOST)) + (rows + columns)
    return out


class SumTables(Tables):
    """``Tables`` with sums of exponentials in place of maxima; inside only. ``best`` is their logarithm, or more."""

    plus = np.logaddexp
    product = staticmethod(log_product)
    total = staticmethod(log_sum)


def forest_mass_bounds(problem: "ForestTranslation", pairs: Floats, scales: list[float]) -> list[float]:
    """For each scale the logarithm of a bound of the sum over all derivations; ``pairs`` are multipliers, any."""
    _check_empty(problem.translation_forest)
    prepared = prepare(problem.translation_forest, problem.lm, problem.translation_forest.weights, k=MOST_EMPTY)
    sides, words = sides_of(prepared)
    layout = lay_out(sides, len(words))
    first, last = all_ends(layout, sides.in_ptr, len(words))
    allowed = adjacent(layout, first, last)
    u = np.zeros(allowed.shape)
    if problem.lm.order > 2:
        u = prepared.multipliers(pairs)
        u[:, END] = 0.0
    high = np.zeros(problem.lm.n_states)  # no multipliers of longer contexts: any are valid
    q = pair_tables(problem.lm, problem.lm_weight, words, allowed).optimistic(u, high, allowed)
    return [_forest_sum(sides, layout, q, (first, last), scale) + SLACK for scale in scales]


def _check_empty(forest: TranslationForest) -> None:
    """NotSupported if a vertex has more derivations without words than are told apart."""
    graph, bare = forest.graph, np.diff(forest.token_ptr) == np.diff(forest.graph.tail_ptr)
    if not bare.any():
        return
    count = [0] * graph.n_vertices
    for e, v in enumerate(graph.heads.tolist()):
        if bare[e] and forest.weights[e] > -np.inf:
            count[v] += prod(count[u] for u in graph.tail_of(e).tolist())
    if max(count) > MOST_EMPTY:
        raise NotSupported(f"a vertex of the forest has {max(count)} derivations without words; at most {MOST_EMPTY}.")


def _forest_sum(sides: Sides, layout: Layout, q: Floats, ends_: tuple[Bools, Bools], scale: float) -> float:
    with np.errstate(invalid="ignore"):
        weight = np.where(sides.weight == -np.inf, -np.inf, scale * sides.weight)
        scaled = np.where(q == -np.inf, -np.inf, scale * q)
        return SumTables(sides._replace(weight=weight), layout, scaled, *ends_).best
