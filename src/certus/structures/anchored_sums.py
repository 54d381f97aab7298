"""Sums and bests over the trees of a grammar with rules of its own, in numpy: no kernel.

Arrays are those of kernels.anchored. ``weighted`` adds up weights, scaled for each span, by products of matrices; where
weights lie so far apart that one may be lost, and for best scores, ``swept`` takes scores, one split after the other.

Derivatives are those of forward differentiation: a number comes as a jet, the number itself and how it changes along a
direction, or along two directions and along both, and so do sums and expected uses, in the same two sweeps.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from certus.checks import Bools, Floats, Ints

Jet: TypeAlias = tuple[Any, ...]  # a number; with its slope; or with its slopes along two directions, and both

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


def _check(weights: Floats, some: Bools) -> None:
    """Raise Far if one of those that are not 0 is as good as that."""
    if ((weights < LEAST) & some).any():
        raise Far


def sums(scores: Scores) -> Sums:
    """Everything about sums, by the fastest way that loses nothing."""
    try:
        return weighted(scores)[0]
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


def _jet(scores: Floats, most: Floats, along: Sequence[Floats]) -> Jet:
    """exp(scores - most), with its derivatives along one direction, or two and both."""
    value = np.exp(scores - most)
    _check(value, scores > -np.inf)
    first = [value * u for u in along]
    return (value, *first, first[0] * along[1]) if len(along) == 2 else (value, *first)


def _greatest(scores: Floats, axis: Any) -> Floats:
    """The greatest of scores along axes, which are kept; 0 where all are -inf."""
    most = scores.max(axis=axis, keepdims=True)
    found: Floats = np.where(most > -np.inf, most, 0.0)
    return found


def _times(a: Jet, b: Jet, product: Callable[[Floats, Floats], Floats] = np.multiply) -> Jet:
    """A product, linear in both, with its derivatives."""
    if len(a) == 1:
        return (product(a[0], b[0]),)
    first = [product(a[0], b[k]) + product(a[k], b[0]) for k in range(1, len(a))]
    if len(a) == 4:
        first[2] += product(a[1], b[2]) + product(a[2], b[1])
    return (product(a[0], b[0]), *first)


def _inverse(x: Jet) -> Jet:
    """1 / x."""
    value = 1.0 / x[0]
    first = [-value * value * slope for slope in x[1:]]
    if len(x) == 4:
        first[2] += 2.0 * value * value * value * x[1] * x[2]
    return (value, *first)


def _each(change: Callable[[Floats], Floats], x: Jet) -> Jet:
    """What is linear, done to all of a jet."""
    return tuple(change(part) for part in x)


def _pick(x: Jet, place: Any) -> Jet:
    return tuple(part[place] for part in x)


def _add(out: Jet, place: Any, x: Jet) -> None:
    for whole, part in zip(out, x, strict=True):
        whole[place] += part


def weighted(scores: Scores, along: Sequence[Scores] = ()) -> tuple[Sums, ...]:
    """Sums by products of matrices; then their derivatives along one direction, or along two, and along both.

    Weights are scaled span by span: what is only there for that counts as constant. Raises Far.
    """
    n, size, phrases = scores.n, scores.rule.shape[1], scores.phrases
    most_rule, word = float(_greatest(scores.rule, None).reshape(-1)[0]), np.arange(n)
    flat = _each(lambda x: x.reshape(phrases, -1), _jet(scores.rule, np.array(most_rule), [u.rule for u in along]))
    turned = _each(np.transpose, flat)
    weight = tuple(np.zeros(scores.cell.shape) for _ in flat)
    log_of = np.full(scores.cell.shape[:2], -np.inf)
    tag = (word, word + 1, slice(phrases, None))
    most = _greatest(scores.cell[tag], 1)
    tags = _jet(scores.cell[tag], most, [u.cell[tag] for u in along])
    _add(weight, tag, tags)
    log_of[word, word + 1] = np.where((tags[0] > 0.0).any(axis=1), most[:, 0], -np.inf)
    plan, kept = widths(n), []
    for w in plan:
        here = (w.i, w.j, slice(None, phrases))
        most = _greatest(scores.cell[here], 1)
        cell = _jet(scores.cell[here], most, [u.cell[here] for u in along])
        both = log_of[w.left] + log_of[w.right]
        top = _greatest(both, 1)
        factor = np.exp(both - top)
        _check(factor, both > -np.inf)
        left = tuple((x * factor[:, :, None]).transpose(0, 2, 1) for x in _pick(weight, w.left))
        pairs = _each(lambda x: x.reshape(len(x), -1), _times(left, _pick(weight, w.right), np.matmul))
        found = _times(_times(pairs, turned, _product), cell)
        scale = found[0].max(axis=1)
        some = scale > 0.0
        scale = np.where(some, scale, 1.0)[:, None]
        _add(weight, here, tuple(x / scale for x in found))
        _check(weight[0][here], found[0] > 0.0)
        log_of[w.i, w.j] = np.where(some, top[:, 0] + np.log(scale[:, 0]) + most[:, 0] + most_rule, -np.inf)
        kept.append((factor, pairs, tuple(x / scale for x in cell)))
    with np.errstate(divide="ignore"):
        chart = np.log(weight[0]) + np.where(log_of > -np.inf, log_of, 0.0)[:, :, None]
    whole = (0, n, slice(None, phrases))
    most = _greatest(scores.root, 0)
    roots = _jet(scores.root, most, [u.root for u in along])
    tops = _times(roots, _pick(weight, whole))
    total = _each(np.sum, tops)
    out, uses = tuple(np.zeros(scores.cell.shape) for _ in flat), tuple(np.zeros(flat[0].shape) for _ in flat)
    if total[0] == 0.0:
        nothing = Sums(-np.inf, chart, np.zeros(phrases), np.zeros(scores.rule.shape), out[0])
        return (nothing, *(nothing._replace(total=0.0) for _ in flat[1:]))
    inverse = _inverse(total)
    _add(out, whole, _times(roots, inverse))
    for w, (factor, pairs, cell) in zip(reversed(plan), reversed(kept), strict=True):
        above = _times(_pick(out, (w.i, w.j, slice(None, phrases))), cell)
        _add(uses, ..., _times(_each(np.transpose, above), pairs, _product))
        down = _each(lambda x: x.reshape(-1, size, size), _times(above, flat, _product))
        for own, other, order in ((w.left, w.right, (0, 2, 1)), (w.right, w.left, (0, 1, 2))):
            to = _times(_pick(weight, other), tuple(x.transpose(order) for x in down), np.matmul)
            _add(out, own, tuple(x * factor[:, :, None] for x in to))
    log_total = float(np.log(total[0]) + most[0] + log_of[0, n])
    slopes = [float(x * inverse[0]) for x in total[1:]]
    if len(slopes) == 2 + 1:
        slopes[2] -= slopes[0] * slopes[1]
    parts = zip(
        (log_total, *slopes),
        _times(tops, inverse),
        _each(lambda x: x.reshape(scores.rule.shape), _times(uses, flat)),
        _times(out, weight),
        strict=True,
    )
    return tuple(Sums(value, chart, root, rule, cell) for value, root, rule, cell in parts)


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
