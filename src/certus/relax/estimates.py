r"""Marginals of a problem that is decoded by relaxation, estimated from weighted samples.

Multipliers that make the upper bound of ``certus.relax.sums`` low also make the structures of a subproblem much like
those of the whole. So structures are drawn by the subproblems under them, each with a probability q that is known, and
weigh exp(score) / q. Rows over parts that are drawn one after the other are kept: no part is chosen after which they
could not be satisfied. Where some row is missed all the same a structure weighs nothing.

Where such weights differ too much, Markov chains go on from these structures (``certus.relax.chains``), and standard
errors are by how far the chains are apart.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from certus.certificates.sound import summed
from certus.checks import Bools, as_generator, as_positive_int
from certus.errors import Infeasible, LimitReached
from certus.problem import Problem
from certus.relax.chains import Chains
from certus.relax.sampler import Lead, Sampler, State
from certus.relax.sums import Sums, told_by_each
from certus.relax.system import Relaxation
from certus.relax.weighted import Uses, chained, effective_size, log_mean, weighted
from certus.result import MarginalEstimates

ITERATIONS = 60  # to find multipliers
PILOT = 64  # samples by which one of several ways to draw is preferred
OTHERS = 0.3  # the share of all others together, which find what it misses
NOTHING = -1e3  # what a structure that misses a row counts for then, as the log of its weight
SHARE = 0.1  # the least effective share of weighted samples that is good enough


@summed
def marginal_estimates(problem: Problem[Any], samples: int, seed: int | None) -> MarginalEstimates:
    """The estimates; see ``Problem.marginal_estimates``."""
    count = as_positive_int("samples", samples)
    if seed is None:
        seed = int(np.random.default_rng().integers(2**63))
    rng = as_generator(seed)
    sampler = _sampler(problem, rng)
    drawn = sampler.draws(count, rng)
    log_weight = np.array([-np.inf if state is None else state.log_weight for state in drawn])
    alive = [state for state in drawn if state is not None and state.log_weight > -np.inf]
    if not alive:
        problem.decode()  # which says so where there is no structure
        raise LimitReached(
            f"none of the {count} structures drawn is one: each misses a constraint, or has a forbidden part. Draw "
            "more of them (samples=), or ask decode(), which finds a structure if there is one."
        )
    if effective_size(log_weight) >= SHARE * count or not sampler.relaxation.slices[sampler.order[0]]:
        return weighted(log_weight, _uses(sampler, drawn), (count, seed))
    chains = Chains(sampler, alive, count, rng)
    warmed = log_mean(chains.warmed_up()) + float(np.log(len(alive) / count))
    total = log_mean(np.array([warmed, log_mean(log_weight)]))  # two estimates, each right on average
    found = list(chains.run())
    return chained(_uses(sampler, found), total, (len(found), seed), len(chains.states))


def _sampler(problem: Problem[Any], rng: np.random.Generator) -> Sampler:
    """The sampler: it draws in several ways, and most from that whose weights are the least apart, judged by a few."""
    plain = Sums(Relaxation.of(problem), 1)
    parts = len(plain.relaxation.subproblems) - len(plain.relaxation.measuring)
    u = plain.multipliers(ITERATIONS)
    ways = [(u, power) for power in sorted({1, 2 if parts > 1 else 1, parts})]
    if told_by_each(plain.relaxation):
        ways.append((Sums(plain.relaxation, parts).multipliers(ITERATIONS), parts))
    sampler = Sampler(problem, plain, u)
    if not all(sampler.lead(*way, 1.0) for way in ways):
        raise Infeasible("a part of what the problem is relaxed to has no structure.")
    if len(ways) > 1:
        best = int(np.argmax([_agreement(sampler, lead, rng) for lead in sampler.leads]))
        rest = OTHERS / (len(ways) - 1)
        shares = [rest if k != best else 1.0 - OTHERS for k in range(len(ways))]
        sampler.leads = [lead._replace(share=share) for lead, share in zip(sampler.leads, shares, strict=True)]
    return sampler


def _agreement(sampler: Sampler, lead: Lead, rng: np.random.Generator) -> float:
    """The mean log of the weights of one way, which falls short of the log-partition the more, the more they differ."""
    alone = copy(sampler)
    alone.leads = [lead]
    drawn = alone.draws(PILOT, rng)
    return float(np.mean([NOTHING if s is None else max(s.log_weight, NOTHING) for s in drawn]))


def _uses(sampler: Sampler, drawn: Sequence[State | None]) -> dict[str, Uses]:
    """What the structures that were drawn use."""
    problem, of_key = sampler.problem, dict[tuple[bytes, ...], list[int]]()
    for k, state in enumerate(drawn):
        if state is not None and state.log_weight > -np.inf:
            of_key.setdefault(state.key, []).append(k)
    uses = {}
    for view, shape in problem.views.items():
        found = []
        for key, places in of_key.items():
            flat = problem.indicator(sampler.known[key][0], view).reshape(-1)
            cell = np.flatnonzero(flat)
            found.append((np.repeat(places, len(cell)), np.tile(cell, len(places)), np.tile(flat[cell], len(places))))
        sample, cells, times = (np.concatenate(column) for column in zip(*found, strict=True))
        uses[view] = Uses(shape, sample, cells, times, _decided(sampler, view))
    return uses


def _decided(sampler: Sampler, view: str) -> Bools | None:
    """The cells that the first subproblem decides, by its structures alone; None if it has no such view."""
    r, problem = sampler.relaxation, sampler.problem
    for i, name in r.views.get(view, ()):
        if i == sampler.order[0] and name in r.subproblems[i].views:
            shape = problem.views[view]
            expected = sampler.leads[0].law.expected(name, shape)
            axis = r.subproblems[i].exclusive.get(name)
            alone = False if axis is None else (expected > 0.0).sum(axis=axis, keepdims=True) == 1
            decided: Bools = (expected == 0.0) | alone
            return decided
    return None
