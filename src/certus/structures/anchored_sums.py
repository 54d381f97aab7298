"""Sums and bests over the trees of a grammar with rules of its own, in numpy: no kernel.

Arrays are those of kernels.anchored. ``weighted`` adds up weights, scaled for each span, by products of matrices; where
weights lie so far apart that one may be lost, and for best scores, ``swept`` takes scores, one split after the other.
"""

from typing import Any, NamedTuple

import numpy as np

from certus.checks import Bools, Floats, Ints

LEAST = 1e-60  # five such weights make a number that is not 0
ALONE = 2**18  # multiplications up to which OpenBLAS takes one thread


class Scores(NamedTuple):
    """The scores of a sentence: ``cell`` has those of spans, and of words by tags."""

    root: Floats  # (A,)
    rule: Floats  # (A, S, S)
    cell: Floats  # (n + 1, n + 1, S)

    @property
    def n(self) -> int:
        """How many words there are."""
        return len(self.cell) - 1

    @property
    def phrases(self) -> int:
        """How many phrase symbols there are."""
        return len(self.root)


class Sums(NamedTuple):
    """The log of the sum of exp(score), the logs for each span, and the expected uses of roots, rules and cells."""

    total: float
    chart: Floats
    root: Floats
    rule: Floats
    cell: Floats


class _Width(NamedTuple):
    """The spans of one width, and the spans to the left and right of their splits."""

    i: Ints  # (I,)
    j: Ints
    left: tuple[Ints, Ints]  # (I, width - 1)
    right: tuple[Ints, Ints]


def widths(n: int) -> list[_Width]:
    """Spans of two words, of three, and so on."""
    out = []
    for width in range(2, n + 1):
        i = np.arange(n - width + 1)
        k = i[:, None] + np.arange(1, width)
        j = np.broadcast_to((i + width)[:, None], k.shape)
        out.append(_Width(i, i + width, (np.broadcast_to(i[:, None], k.shape), k), (k, j)))
    return out


class Far(Exception):
    """Weights lie too far apart."""


def _weights(scores: Floats, axis: Any) -> tuple[Floats, Floats]:
    """exp(scores) over their greatest, and its log, which is 0 where all are -inf."""
    most = scores.max(axis=axis, keepdims=True)
    most = np.where(most > -np.inf, most, 0.0)
    found = np.exp(scores - most)
    _check(found, scores > -np.inf)
    return found, most


def _check(weights: Floats, some: Bools) -> None:
    """Raise Far if one of those that are not 0 is as good as that."""
    if ((weights < LEAST) & some).any():
        raise Far


def sums(scores: Scores) -> Sums:
    """Everything about sums, by the fastest way that loses nothing."""
    try:
        return _weighted(scores)
    except Far:
        return _by_logs(scores)


def _product(a: Floats, b: Floats) -> Floats:
    """a @ b, in pieces that are too small for OpenBLAS to share among threads: on a busy machine these wait for each
    other far longer than such products take.
    """
    (m, k), n = a.shape, b.shape[1]
    pieces = max(1, -(-m * k * n // ALONE))
    found = np.empty((m, n))
    if n >= k:
        step = max(1, -(-n // pieces))
        for start in range(0, n, step):
            np.matmul(a, b[:, start : start + step], out=found[:, start : start + step])
        return found
    step = max(1, -(-k // pieces))
    np.matmul(a[:, :step], b[:step], out=found)
    for start in range(step, k, step):
        found += a[:, start : start + step] @ b[start : start + step]
    return found


def _weighted(scores: Scores) -> Sums:
    n, size, phrases = scores.n, scores.rule.shape[1], scores.phrases
    rule, most_rule = _weights(scores.rule, None)
    flat = rule.reshape(phrases, -1)
    weight, log_of = np.zeros(scores.cell.shape), np.full(scores.cell.shape[:2], -np.inf)
    word = np.arange(n)
    tags, most = _weights(scores.cell[word, word + 1, phrases:], 1)
    weight[word, word + 1, phrases:] = tags
    log_of[word, word + 1] = np.where((tags > 0.0).any(axis=1), most[:, 0], -np.inf)
    plan, kept = widths(n), []
    for w in plan:
        cell, most = _weights(scores.cell[w.i, w.j, :phrases], 1)
        both = log_of[w.left] + log_of[w.right]
        top = both.max(axis=1)
        top = np.where(top > -np.inf, top, 0.0)
        factor = np.exp(both - top[:, None])
        _check(factor, both > -np.inf)
        pairs = np.matmul((weight[w.left] * factor[:, :, None]).transpose(0, 2, 1), weight[w.right])
        found = _product(pairs.reshape(len(w.i), -1), flat.T) * cell
        scale = found.max(axis=1)
        some = scale > 0.0
        scale = np.where(some, scale, 1.0)
        weight[w.i, w.j, :phrases] = found / scale[:, None]
        _check(weight[w.i, w.j, :phrases], found > 0.0)
        log_of[w.i, w.j] = np.where(some, top + np.log(scale) + most[:, 0] + most_rule.reshape(-1)[0], -np.inf)
        kept.append((factor, pairs, cell / scale[:, None]))
    with np.errstate(divide="ignore"):
        chart = np.log(weight) + np.where(log_of > -np.inf, log_of, 0.0)[:, :, None]
    tops, most = _weights(scores.root, 0)
    total = float((tops * weight[0, n, :phrases]).sum())
    out, uses = np.zeros(weight.shape), np.zeros(flat.shape)
    if total == 0.0:
        return Sums(-np.inf, chart, np.zeros(phrases), uses.reshape(rule.shape), out)
    out[0, n, :phrases] = tops / total
    for w, (factor, pairs, cell) in zip(reversed(plan), reversed(kept), strict=True):
        above = out[w.i, w.j, :phrases] * cell
        uses += _product(above.T, pairs.reshape(len(w.i), -1))
        down = _product(above, flat).reshape(-1, size, size)
        out[w.left] += np.matmul(weight[w.right], down.transpose(0, 2, 1)) * factor[:, :, None]
        out[w.right] += np.matmul(weight[w.left], down) * factor[:, :, None]
    log_total = float(np.log(total) + most[0] + log_of[0, n])
    return Sums(
        log_total, chart, tops * weight[0, n, :phrases] / total, (uses * flat).reshape(rule.shape), out * weight
    )


def swept(scores: Scores, plus: np.ufunc) -> tuple[Floats, Floats]:
    """Inside and outside scores, added up by np.logaddexp or np.maximum; cells are part of the first alone."""
    n, phrases = scores.n, scores.phrases
    chart, out = np.full(scores.cell.shape, -np.inf), np.full(scores.cell.shape, -np.inf)
    word = np.arange(n)
    chart[word, word + 1, phrases:] = scores.cell[word, word + 1, phrases:]
    plan = widths(n)
    for w in plan:
        pairs = gathered(chart, w, plus)
        for a in range(phrases):
            over = plus.reduce((pairs + scores.rule[a]).reshape(len(w.i), -1), axis=1)
            chart[w.i, w.j, a] = over + scores.cell[w.i, w.j, a]
    out[0, n, :phrases] = scores.root
    for w in reversed(plan):
        above = out[w.i, w.j, :phrases] + scores.cell[w.i, w.j, :phrases]
        pairs = np.full((len(w.i), *scores.rule.shape[1:]), -np.inf)
        for a in range(phrases):
            pairs = plus(pairs, above[:, a, None, None] + scores.rule[a])
        for k in range(w.left[0].shape[1]):
            left, right = (w.left[0][:, k], w.left[1][:, k]), (w.right[0][:, k], w.right[1][:, k])
            out[left] = plus(out[left], plus.reduce(pairs + chart[right][:, None, :], axis=2))
            out[right] = plus(out[right], plus.reduce(pairs + chart[left][:, :, None], axis=1))
    return chart, out


def gathered(chart: Floats, w: _Width, plus: np.ufunc) -> Floats:
    """(I, S, S) the splits of spans of one width, for all pairs of symbols."""
    size = chart.shape[2]
    pairs = np.full((len(w.i), size, size), -np.inf)
    for k in range(w.left[0].shape[1]):
        left, right = chart[w.left[0][:, k], w.left[1][:, k]], chart[w.right[0][:, k], w.right[1][:, k]]
        pairs = plus(pairs, left[:, :, None] + right[:, None, :])
    return pairs


def _by_logs(scores: Scores) -> Sums:
    chart, out = swept(scores, np.logaddexp)
    n, phrases = scores.n, scores.phrases
    tops = scores.root + chart[0, n, :phrases]
    total = float(np.logaddexp.reduce(tops))
    rule = np.zeros(scores.rule.shape)
    if total == -np.inf:
        return Sums(total, chart, np.zeros(phrases), rule, np.zeros(chart.shape))
    for w in widths(n):
        pairs = gathered(chart, w, np.logaddexp)
        above = out[w.i, w.j, :phrases] + scores.cell[w.i, w.j, :phrases] - total
        for a in range(phrases):
            rule[a] += np.exp(above[:, a, None, None] + scores.rule[a] + pairs).sum(axis=0)
    return Sums(total, chart, np.exp(tops - total), rule, np.exp(chart + out - total))
