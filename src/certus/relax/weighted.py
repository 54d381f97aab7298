"""Probabilities of parts from samples, and how far they may be off.

A standard error is no less than what as many equal samples as there are worth leave open: a part that none of 100 uses
may have a probability of one hundredth.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.problem import Index
from certus.result import MarginalEstimates


class Uses(NamedTuple):
    """Which sample uses which cell of a view, and how often; ``decided`` are cells that all structures use, or none."""

    shape: Index
    sample: Ints
    cell: Ints
    times: Floats
    decided: Bools | None = None


def log_mean(logs: Floats) -> float:
    """Log of the mean of exponentials."""
    most = float(logs.max())
    return most + float(np.log(np.exp(logs - most).mean())) if most > -np.inf else most


def effective_size(log_weight: Floats) -> float:
    """How many samples of equal weight would do as well; 0 if all weigh nothing."""
    most = float(log_weight.max())
    if most == -np.inf:
        return 0.0
    weight = np.exp(log_weight - most)
    return min(max(float(weight.sum()) ** 2 / float((weight**2).sum()), 1.0), float(len(weight)))


def weighted(
    log_weight: Floats, uses: Mapping[str, Uses], drawn: tuple[int, int], extra: float = 0.0
) -> MarginalEstimates:
    """By independent samples with weights, not all of them 0, whose mean times exp(extra) is the sum over structures.

    Standard errors are those of weighted means by the delta method; ``drawn`` is how many, and the seed.
    """
    weight = np.exp(log_weight - log_weight.max())
    share, size = weight / weight.sum(), effective_size(log_weight)
    square = share**2
    marginals, errors = {}, {}
    for view, own in uses.items():
        mean = _mean(own, share[own.sample] * own.times)
        # the sum over samples of share^2 (times - mean)^2, most of which use a cell no times
        once, twice = (_added(own, square[own.sample] * own.times**k) for k in (1, 2))
        error = np.sqrt(np.maximum(twice - 2.0 * mean * once + square.sum() * mean**2, 0.0))
        marginals[view], errors[view] = mean.reshape(own.shape), _at_least(error, mean, own, size)
    total = extra + log_mean(log_weight)
    return MarginalEstimates(marginals, errors, total, size, *drawn, "importance sampling")


def chained(uses: Mapping[str, Uses], total: float, drawn: tuple[int, int], chains: int) -> MarginalEstimates:
    """By the structures that independent chains came by, as many of each, in order; ``total`` is the log-partition.

    Standard errors are by how far the means of the chains are apart, the effective size by how large these errors are.
    """
    count = drawn[0]
    means, apart, spread, error = {}, {}, 0.0, 0.0
    for view, own in uses.items():
        cells, chain = int(np.prod(own.shape)), own.sample // (count // chains)
        used = np.bincount(chain * cells + own.cell, own.times, minlength=chains * cells)
        by_chain = used.reshape(chains, cells) * (chains / count)
        means[view], apart[view] = by_chain.mean(axis=0), by_chain.var(axis=0, ddof=1) / chains
        spread += float((_added(own, own.times**2) / count - means[view] ** 2).sum())
        error += float(apart[view].sum())
    size = min(max(spread / error, 1.0), float(count)) if error > 0.0 else 1.0
    marginals = {view: _mean(own, own.times / count).reshape(own.shape) for view, own in uses.items()}
    errors = {view: _at_least(np.sqrt(apart[view]), means[view], own, size) for view, own in uses.items()}
    return MarginalEstimates(marginals, errors, total, size, *drawn, "Markov chains")


def _added(uses: Uses, values: Floats) -> Floats:
    """Values of uses added up by cell."""
    return np.bincount(uses.cell, values, minlength=int(np.prod(uses.shape))).astype(np.float64)


def _mean(uses: Uses, values: Floats) -> Floats:
    """The same of uses times their shares, which add up to one."""
    mean = _added(uses, values)
    return mean if (uses.times > 1.0).any() else np.minimum(mean, 1.0)


def _at_least(error: Floats, mean: Floats, uses: Uses, size: float) -> Floats:
    """Standard errors as they are told, in the shape of the view."""
    likely = (np.minimum(mean, 1.0) * size + 1.0) / (size + 2.0)
    least = np.sqrt(likely * (1.0 - likely) / (size + 3.0))
    told = np.maximum(error, least).reshape(uses.shape)
    return told if uses.decided is None else np.where(uses.decided, error.reshape(uses.shape), told)
