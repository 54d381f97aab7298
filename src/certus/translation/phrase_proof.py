"""Proofs about phrase-based translations, checked in numpy: every translation that scores more than a bound.

A witness says how to bound completions: which source words a lattice tracks and the multipliers of all words
(certus/translation/phrase_coverings.py). Any witness bounds; a good one bounds well. From the start on, all that may
follow a state (coverage, place, state of the language model) is tried. A state is left out if its best score so far and
the bound of its completions together are not above the bound to be shown; so all translations above it are paths
through the states that are left, and these make a graph, most often of nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from certus.certificates.normal import Graph, NormalForm
from certus.certificates.ragged import offsets, ranges
from certus.checks import Bools, Floats, Ints
from certus.errors import InvalidInput, NotSupported
from certus.translation.phrase_coverings import AT_ONCE, Bits, Bounds, Lattice, Limits, build, covered, free, sweep
from certus.translation.phrase_reading import read_options
from certus.translation.phrase_tables import (
    NOWHERE,
    Options,
    Places,
    Targets,
    meet,
    packed_options,
    places_of,
    read,
    rows_of,
    units_for,
)

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation

MOST_STATES = 3_000_000
WINDOW = 64  # bits of a coverage


class States(NamedTuple):
    """Partial translations that cover equally many words, each once, with the best score of any way to it."""

    node: Ints  # of the lattice
    g: Ints
    window: Bits
    state: Ints  # of the language model, as Places counts them
    score: Ints

    def at(self, which: Ints | Bools | slice) -> "States":
        """Some of the states."""
        return States(self.node[which], self.g[which], self.window[which], self.state[which], self.score[which])


class Steps(NamedTuple):
    """Steps from state to state, numbered over all, by an option as Options counts them."""

    origin: Ints
    option: Ints
    target: Ints
    score: Ints  # on arrival


class SearchSpace(NamedTuple):
    """What a search reads."""

    limits: Limits
    options: Options
    lattice: Lattice
    places: Places
    bounds: Bounds
    place: Ints  # (X,) of every node of the lattice
    own: Ints  # (n + 1, S) the jump from a place to a span, and the multipliers of its words
    start: int  # the state of the language model at the start
    above: int
    step: float  # of the scores, which are whole numbers of it

    def chunks(self, node: Ints) -> Iterator[slice]:
        """States of these nodes, as many at once as leave room for the steps from them."""
        size = np.diff(self.options.first)[self.lattice.edge_span]
        steps = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(size)))
        sums = np.cumsum(steps[self.lattice.edge_ptr[node + 1]] - steps[self.lattice.edge_ptr[node]])
        a = 0
        while a < len(node):
            before = int(sums[a - 1]) if a else 0
            b = max(a + 1, int(np.searchsorted(sums, before + AT_ONCE, side="right")))
            yield slice(a, b)
            a = b

    def follow(self, those: States) -> tuple[Ints, Ints, States]:
        """Steps that may lead above the bound: where from, by which option, and the states they lead to."""
        o, ptr = self.options, self.lattice.edge_ptr
        origin, edge = ranges(ptr[those.node], ptr[those.node + 1])
        span, node = self.lattice.edge_span[edge], self.lattice.edge_to[edge]
        g, window = those.g[origin], those.window[origin]
        if not self.lattice.full:
            start, length = o.start[span], (o.end - o.start + 1)[span]
            may = free(self.limits, g, window, start, length)
            origin, span, node = origin[may], span[may], node[may]
            g, window = covered(g[may], window[may], start[may], length[may])
        row, option = ranges(o.first[span], o.first[span + 1])
        origin, span, node = origin[row], span[row], node[row]
        before = those.state[origin]
        score = those.score[origin] + self.own[self.place[those.node[origin]], span]
        score += o.score[option] + self.places.rows.score[before, option]
        after = self.places.rows.after[before, option]
        context = self.places.context[o.end[span] + 1, np.maximum(after, 0)]
        kept = (after >= 0) & (score + self.bounds.value[self.bounds.ptr[node] + context] > self.above)
        row = row[kept]
        return origin[kept], option[kept], States(node[kept], g[row], window[row], after[kept], score[kept])


def closed_form(
    problem: "PhraseTranslation", above: float, witness: Any, penalties: Mapping[str, Floats] | None
) -> NormalForm:
    """PhraseTranslation.closed_form."""
    tracked, multipliers = _read(problem, witness)
    added = np.zeros(len(problem.options))
    for view, penalty in (penalties or {}).items():
        added = added + np.asarray(penalty, dtype=np.float64).reshape(problem.checked_view(view))
    if not (added < inf).all():
        raise InvalidInput("a penalty is nan or inf; expected finite numbers, or -inf to forbid an option.")
    if above == inf:
        none = np.zeros(0, dtype=np.int64)
        return _form(problem, Paths(none, none, none, none, none))
    search = search_of(problem, above, added, tracked, multipliers)
    return _form(problem, _above(search, *_closed(search)))


def search_of(
    problem: "PhraseTranslation",
    above: float,
    added: Floats,
    tracked: Ints | None,
    multipliers: Floats,
    exact: bool | None = None,
) -> SearchSpace:
    """What a search above a bound reads, with numbers added to the scores of the options.

    Its bounds tell apart states of the language model if ``exact``, by default where not all words are tracked.
    """
    units = units_for(problem, above, added, multipliers)
    options = packed_options(problem, units, added)
    limits = Limits(problem.n, problem.limit, problem.window)
    _check_width(limits, options)
    price = np.rint(multipliers / units.step).astype(np.int64)
    sums = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(price)))
    ids = {word: problem.lm.word_id(word) for o in problem.options for word in o.target}
    targets = [tuple([ids[word] for word in problem.options[k].target]) for k in options.number.tolist()]
    target_words = Targets(problem.lm, problem.lm_weight, units, targets)
    met = meet(problem.n, problem.limit, options, target_words)
    rows, begin = rows_of(met, options, target_words, problem.limit), int(met.number[problem.lm.begin_state])
    if problem.reader is not None:
        reading = read_options(problem.reader, [problem.options[k].target for k in options.number.tolist()])
        met, rows = read(met, rows, reading, units)
        begin = begin * reading.n_states + reading.initial
    jump = units.up(-problem.distortion * np.arange(problem.n + 1, dtype=np.float64))
    own = jump[np.abs(options.start - np.arange(problem.n + 1)[:, None])] + sums[options.end + 1] - sums[options.start]
    lattice = build(limits, options, tracked)
    told_apart = tracked is not None if exact is None else exact
    places = places_of(problem.lm, met, rows, options, own, limits.limit, told_apart)
    bounds = sweep(problem.n, options, lattice, places, units.floor, lambda s: np.maximum(s.max(axis=2), units.floor))
    place = np.concatenate([np.full(b - a, p) for _, p, a, b in lattice.group])
    return SearchSpace(
        limits, options, lattice, places, bounds, place, own, begin, units.above + int(sums[-1]), units.step
    )


def _read(problem: "PhraseTranslation", witness: Any) -> tuple[Ints | None, Floats]:
    """Tracked words, None if all are, and multipliers; InvalidInput if a witness does not fit."""
    if not isinstance(witness, Mapping) or set(witness) != {"tracked", "multipliers"}:
        raise InvalidInput('the witness is not one of this problem; expected "tracked" and "multipliers".')
    try:
        multipliers = np.asarray(witness["multipliers"], dtype=np.float64)
        tracked = np.asarray(witness["tracked"])
    except (TypeError, ValueError) as wrong:
        raise InvalidInput(f"the witness holds what is no array of numbers: {wrong}") from None
    n = problem.n
    if multipliers.shape != (n,) or not (np.abs(multipliers) < 1e200).all():
        raise InvalidInput(f"the multipliers have shape {multipliers.shape}; expected {n} numbers below 1e200 in size.")
    if tracked.ndim != 1 or (tracked.size and tracked.dtype.kind not in "iu"):
        raise InvalidInput("the tracked words are no sequence of whole numbers.")
    tracked = tracked.astype(np.int64)
    if len(tracked) and not (tracked[0] >= 0 and tracked[-1] < n and (np.diff(tracked) > 0).all()):
        raise InvalidInput(f"the tracked words are {tracked.tolist()[:10]}; expected rising ones of 0..{n - 1}.")
    if len(tracked) == n:
        return None, np.zeros(n)
    if len(tracked) > WINDOW:
        raise InvalidInput(f"{len(tracked)} words are tracked; expected at most {WINDOW}, or all.")
    return tracked, multipliers


def _check_width(limits: Limits, options: Options) -> None:
    longest = int((options.end - options.start).max(initial=-1)) + 1
    if limits.n > WINDOW and not (limits.window and max(limits.limit, longest) < WINDOW):
        raise NotSupported(f"coverage is held in {WINDOW} bits from the first uncovered word on; {limits} needs more.")


def _closed(search: SearchSpace) -> tuple[States, list[Steps]]:
    """All states that are not left out, by rising number of words covered, and the steps into each number."""
    n, options, zero = search.limits.n, search.options, np.zeros(1, dtype=np.int64)
    length = (options.end - options.start + 1)[options.span]
    waiting: list[list[tuple[Ints, Ints, States]]] = [[] for _ in range(n + 1)]
    waiting[0].append((zero[:0], zero[:0], States(zero, zero, zero.astype(np.uint64), zero + search.start, zero)))
    layers, steps, total = [], [], 0
    for count, found in enumerate(waiting):
        if not found:
            continue
        origin, option = (np.concatenate([f[k] for f in found]) for k in (0, 1))
        arrived = States(*map(np.concatenate, zip(*(f[2] for f in found), strict=True)))
        those, target = _merged(arrived)
        if count:
            steps.append(Steps(origin, option, total + target, arrived.score))
        layers.append(those)
        for some in search.chunks(those.node):
            origin, option, after = search.follow(those.at(some))
            reached = count + length[option]
            for c in np.unique(reached).tolist():
                at = reached == c
                waiting[c].append((total + some.start + origin[at], option[at], after.at(at)))
        total += len(those.node)
        if total > MOST_STATES:
            raise InvalidInput(f"the witness bounds too little: more than {MOST_STATES} partial translations are left.")
    return States(*map(np.concatenate, zip(*layers, strict=True))), steps


def _merged(found: States) -> tuple[States, Ints]:
    """The states, each once with its best score; and which of them each was."""
    order = np.lexsort((found.window, found.g, found.state, found.node))
    ordered = found.at(order)
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([x[1:] != x[:-1] for x in ordered[:4]])
    which = np.empty(len(order), dtype=np.int64)
    which[order] = np.cumsum(new) - 1
    score = np.maximum.reduceat(ordered.score, np.flatnonzero(new))
    return ordered.at(new)._replace(score=score), which


class Paths(NamedTuple):
    """The states and steps of paths above a bound: states are numbered anew, the end being one more."""

    state: Ints  # (N,) of the language model itself
    origin: Ints  # (M,) by rising target
    target: Ints
    option: Ints  # as the problem counts them; -1 for the end of the sentence
    jump: Ints


def _above(search: SearchSpace, closed: States, steps: list[Steps]) -> Paths:
    """What lies on a path whose score, rounded up, is above the bound."""
    places, above, n_states = search.places, search.above, len(closed.node)
    count = np.concatenate([np.full(b - a, c) for c, _, a, b in search.lattice.group])
    final = np.flatnonzero(count[closed.node] == search.limits.n)
    rest = np.full(n_states, NOWHERE)
    rest[final] = places.rows.end[closed.state[final]]
    kept = []
    for s in reversed(steps):
        some = s.score + rest[s.target] > above
        s = Steps(*(x[some] for x in s))
        np.maximum.at(rest, s.origin, s.score - closed.score[s.origin] + rest[s.target])
        kept.append(s)
    final = final[closed.score[final] + rest[final] > above]
    origin, option, target, _ = (np.concatenate(x) for x in zip(*kept, strict=True)) if kept else (final[:0],) * 4
    used = np.unique(np.concatenate((origin, final)))
    number = np.searchsorted(used, np.concatenate((origin, final)))
    target = np.concatenate((np.searchsorted(used, target), np.full(len(final), len(used))))
    option = np.concatenate((option, np.full(len(final), -1)))
    order = np.argsort(target, kind="stable")
    number, target, option = number[order], target[order], option[order]
    start = search.options.start[search.options.span[option]] if len(search.options.span) else option
    jump = np.abs(start - search.place[closed.node[used[number]]])
    named = np.where(option < 0, -1, np.append(search.options.number, -1)[option])
    return Paths(places.state[closed.state[used]], number, target, named, jump)


def _form(problem: "PhraseTranslation", paths: Paths) -> NormalForm:
    """The graph of paths: an edge without tails enters the start, one edge is a step, the last vertex is the end.

    An option is the part of its number, then come the jumps by length, then a part for each word of each edge.
    """
    options, n_options, n_steps = problem.options, len(problem.options), len(paths.option)
    targets = [options[k].target if k >= 0 else ("</s>",) for k in paths.option.tolist()]
    words = [tuple(map(problem.lm.word_id, target)) for target in targets]
    size = np.array([len(w) for w in words], dtype=np.int64)
    first = np.cumsum(size) - size
    state, scores = paths.state[paths.origin], np.empty(int(size.sum()))
    for k in range(int(size.max(initial=0))):
        at = np.flatnonzero(size > k)
        terms = [problem.lm.advance(q, words[e][k]) for e, q in zip(at.tolist(), state[at].tolist(), strict=True)]
        scores[first[at] + k], state[at] = [problem.lm_weight * x for x, _ in terms], [q for _, q in terms]
    jumps = -problem.distortion * np.arange(problem.n + 1, dtype=np.float64)
    own = np.array([float(o.score) for o in options], dtype=np.float64)
    a_step = (paths.option >= 0).astype(np.int64)
    end = np.cumsum(size + 2 * a_step)  # of the parts of each step
    part = np.empty(int(end[-1]) if n_steps else 0, dtype=np.int64)
    at, begin = np.flatnonzero(a_step), end - size - 2
    part[begin[at]], part[begin[at] + 1] = paths.option[at], n_options + paths.jump[at]
    step, word = ranges(first, first + size)
    part[(end - size - first)[step] + word] = n_options + problem.n + 1 + word
    lead = [0] if n_steps else []  # the edge into the start
    degree = np.bincount(np.append(lead, paths.target).astype(np.int64), minlength=len(paths.state) + 1)
    graph = Graph(
        offsets(degree),
        np.concatenate((lead, np.arange(n_steps + 1))).astype(np.int64),
        paths.origin,
        np.concatenate((lead, [0], end)).astype(np.int64),
        part,
    )
    return NormalForm(np.concatenate((own, jumps, scores)), (graph,), {"options": np.arange(n_options)})


def edges_of(form: NormalForm, structure: Sequence[int]) -> list[int] | None:
    """The edges of a translation in a form, the end first; None if it is not there."""
    (graph,) = form.spaces
    assert isinstance(graph, Graph)
    head = np.repeat(np.arange(len(graph.in_ptr) - 1), np.diff(graph.in_ptr)).tolist()
    leaving: dict[tuple[int, int], int] = {}  # vertex and option, -1 for the end -> edge
    for e, (vertex, first) in enumerate(zip(graph.tail.tolist(), graph.part_ptr[1:].tolist(), strict=False), start=1):
        leaving[vertex, int(graph.part[first]) if head[e] < head[-1] else -1] = e
    edges = [0]
    for option in (*structure, -1):
        if (edge := leaving.get((head[edges[-1]] if head else 0, option))) is None:
            return None
        edges.append(edge)
    return edges[::-1]
