"""Exact search in a translation forest under an n-gram language model, bounded by optimistic bigram scores.

``bigram_scores`` tells what q, u and phi are. Words are numbered within the forest, 0 is <s>; ``lm_word`` gives their
numbers in the model.

An item is a piece with its first words, the state of the model after its last word, and that word. It is closed once
no word further on depends on what stands before it: it has as many first words as the model looks at, or no context of
the model is longer and ends in those it has; then it keeps no more of them. It scores its best derivation: q of its
first words, phi of the state after them once it is closed, and what the words after them score. What is still to pay
before its completion is bounded by the outside score is phi of the state after its last word. A way to make an item is
(item, left part or -1, right part or -1, edge or -1).
"""

from typing import NamedTuple

import numpy as np

from certus.kernels.arrays import largest, longer
from certus.kernels.compiling import njit
from certus.kernels.forest_pieces import APPEND, BEGIN, HOOK, JOIN, NODE, WORD
from certus.kernels.language_model import advance

BITS = 21  # a word of a left context, plus 1, takes so many bits; three words fill an int64
MASK = (1 << BITS) - 1
CLOSED = 8  # added to the number of first words of an item that is closed
PIECE, LEFT0, LEFT1, STATE, BEFORE_LAST, LAST, COUNT, WAY = range(8)  # columns of an item; the last is its best way
NONE = np.int64(-1)


class Model(NamedTuple):
    """The language model over the words of a forest: its tables, its weight, and the optimistic scores."""

    lm: NamedTuple  # LmArrays
    weight: float
    lm_word: np.ndarray
    q: np.ndarray
    u: np.ndarray
    high: np.ndarray  # per state of the model; not read up to trigrams
    allowed: np.ndarray  # (W, W) pairs of words that may be adjacent


class Signature(NamedTuple):
    """What tells the items of a piece apart: first words, packed into two numbers, state and last word.

    ``before_last`` is the word before the last one in the best derivation. ``count`` is the number of first words, plus
    CLOSED if it is.
    """

    left0: int
    left1: int
    state: int
    before_last: int
    last: int
    count: int


class Found(NamedTuple):
    """All items, parts before what is made of them; all ways to make them, or the best of each."""

    done: bool  # False: out of budget
    lost: float  # largest bound of what a beam dropped; -inf if nothing
    best_way: np.ndarray  # (n,)
    score: np.ndarray  # (n,)
    way: np.ndarray  # (k, 4)
    way_score: np.ndarray
    tried: int  # combinations
    top: int  # the top's item, -1 if there is none or the search is not done


@njit(cache=True, nogil=True, inline="always")
def _left_word(left0, left1, k):
    return ((left0 >> (BITS * k)) & MASK if k < 3 else (left1 >> (BITS * (k - 3))) & MASK) - 1


@njit(cache=True, nogil=True, inline="always")
def _phi(model, state, before_last, last):
    """What the multipliers say of a state after these two words; nothing at the begin of a sentence."""
    if before_last < 0 or model.lm.order < 3:
        return 0.0
    return model.u[before_last, last] + (model.high[state] if model.lm.order > 3 else 0.0)


@njit(cache=True, nogil=True)
def _step(model, full, sig, score, w):
    """An item with the word w after it. Words with too little context before them add q, the others their exact score.

    ``full`` is order - 1: as many words as the model looks at.
    """
    left0, left1, state, _, last, count = sig
    p, following = advance(model.lm, state if count > 0 else np.int64(0), model.lm_word[w])
    if count >= CLOSED:
        return Signature(left0, left1, np.int64(following), last, w, count), score + model.weight * p
    if count > 0:
        score += model.q[last, w]
    if count < 3:
        left0 |= (w + 1) << (BITS * count)
    else:
        left1 |= (w + 1) << (BITS * (count - 3))
    count += 1
    known = model.lm.state_length[following]
    if count == full or (count > 1 and (known < count or not model.lm.state_extendable[following])):
        score += _phi(model, following, last, w)
        count += CLOSED
    return Signature(left0, left1, np.int64(following), last, w, count), score


@njit(cache=True, nogil=True)
def _slot(slots, item, piece, sig):
    """Slot of the item with this signature, or the empty one where it belongs."""
    mask = np.uint64(slots.shape[0] - 1)
    h = np.uint64(sig.left0) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(sig.left1)
    h = (h ^ (h >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(sig.state)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0x94D049BB133111EB) + np.uint64(sig.last)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(piece)
    i = (h ^ (h >> np.uint64(32))) & mask
    while slots[i] >= 0:
        k = slots[i]
        if (
            item[k, PIECE] == piece
            and item[k, LEFT0] == sig.left0
            and item[k, LEFT1] == sig.left1
            and item[k, STATE] == sig.state
            and item[k, LAST] == sig.last
        ):
            break
        i = (i + np.uint64(1)) & mask
    return i


@njit(cache=True, nogil=True, inline="always")
def _signature(item, k):
    return Signature(
        item[k, LEFT0], item[k, LEFT1], item[k, STATE], item[k, BEFORE_LAST], item[k, LAST], item[k, COUNT]
    )


@njit(cache=True, nogil=True)
def _more_slots(slots, item, n):
    """A table of the first n items with four times the slots."""
    slots = np.full(4 * slots.shape[0], -1, np.int64)
    for k in range(n):
        slots[_slot(slots, item, item[k, PIECE], _signature(item, k))] = k
    return slots


@njit(cache=True, nogil=True)
def _recipe(g, p, e):
    """(x, y, w, edge, gain): piece p, by edge e if it is a vertex, is x, then y, then the word w; -1 for none."""
    kind, left, right = g.kind[p], g.left[p], g.right[p]
    if kind == NODE:
        hook = g.edge_right[e]
        return g.edge_left[e], g.right[hook] if hook >= 0 else NONE, NONE, g.edge_id[e], g.edge_weight[e]
    if kind == WORD:
        return NONE, NONE, left, NONE, 0.0
    if kind == APPEND:
        return left, NONE, right, NONE, 0.0
    return left, g.right[right] if kind == JOIN else right, NONE, NONE, 0.0


@njit(cache=True, nogil=True)
def _follow(model, full, sig, s, second):
    """(signature, score) of an item with signature ``sig`` and score s, joined with the item ``second`` after it."""
    before, word = NONE, NONE
    for k in range(second.count & (CLOSED - 1)):
        before, word = word, _left_word(second.left0, second.left1, k)
        if before >= 0:  # the second has scored its first words by q; now they get what they are worth
            s -= model.q[before, word]
        sig, s = _step(model, full, sig, s, word)
    if second.count >= CLOSED:
        s -= _phi(model, sig.state, before, word)
        sig = Signature(sig.left0, sig.left1, second.state, second.before_last, second.last, sig.count)
    return sig, s


@njit(cache=True, nogil=True)
def _number(words, place):
    """place[words[i]] <- i where it is -1; and back to -1 at the second call."""
    for i in range(words.shape[0]):
        place[words[i]] = i if place[words[i]] < 0 else -1


@njit(cache=True, nogil=True)
def _keep(bound, begin, end, beam, kept, n_kept):
    """(kept, or a longer copy; how many; largest bound dropped): with the best items from begin to end appended.

    At most ``beam`` of them, of equals the first; all if the beam is 0.
    """
    room, cut, lost = end - begin, -np.inf, -np.inf
    if beam > 0 and room > beam:
        room = np.int64(beam)
        cut = largest(bound[begin:end], room)
    for i in range(begin, end):
        if bound[i] >= cut and room > 0:
            if n_kept == kept.shape[0]:
                kept = longer(kept)
            kept[n_kept] = i
            n_kept += 1
            room -= 1
        else:
            lost = max(lost, bound[i])
    return kept, n_kept, lost


@njit(cache=True, nogil=True, inline="always")
def _later(item, score, to_pay, a, b):
    """Whether item a stands after item b: by first word, by last word, then by what it is worth, the best first."""
    if item[a, LEFT0] & MASK != item[b, LEFT0] & MASK:
        return item[a, LEFT0] & MASK > item[b, LEFT0] & MASK
    if item[a, LAST] != item[b, LAST]:
        return item[a, LAST] > item[b, LAST]
    worth_a, worth_b = score[a] - to_pay[a], score[b] - to_pay[b]
    return worth_a < worth_b or (worth_a == worth_b and a > b)


@njit(cache=True, nogil=True)
def _group(kept, begin, group_end, item, score, to_pay):
    """Sorts the items kept[begin:] so that those with one first and last word stand together, the best of them first.

    group_end[i] <- where those of kept[i] end, all places in ``kept``.
    """
    end, gap = kept.shape[0], 1
    while gap < (end - begin) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            k, j = kept[i], i
            while j - gap >= begin and _later(item, score, to_pay, kept[j - gap], k):
                kept[j] = kept[j - gap]
                j -= gap
            kept[j] = k
        gap //= 3
    for i in range(end - 1, begin - 1, -1):
        group_end[i] = i + 1
        if i + 1 < end:
            a, b = kept[i], kept[i + 1]
            if item[a, LEFT0] & MASK == item[b, LEFT0] & MASK and item[a, LAST] == item[b, LAST]:
                group_end[i] = group_end[i + 1]


@njit(cache=True, nogil=True)
def search(g, out, model, least, beam, budget, all_ways):
    """Exact items of the pieces, bottom-up, without those whose best completion is below ``least``.

    ``out`` bounds every completion. With a ``beam`` above 0 only so many items of a piece are kept, the best by score +
    completion. Stops after ``budget`` combinations. With ``all_ways`` every way to make an item is listed, else only
    the best. Returns a Found.
    """
    q, allowed = model.q, model.allowed
    full = max(model.lm.order, 2) - 1
    n_pieces = g.kind.shape[0]
    item, score, bound, to_pay = np.empty((1024, 8), np.int64), np.empty(1024), np.empty(1024), np.empty(1024)
    way, way_score = np.empty((1024, 4), np.int64), np.empty(1024)
    slots = np.full(4096, -1, np.int64)
    kept = np.empty(1024, np.int64)  # items of the pieces, piece by piece: what combinations run over
    kept_ptr, group_end = np.zeros(n_pieces + 1, np.int64), np.empty(1024, np.int64)
    n, n_ways, n_kept, tried, done, lost = np.int64(0), np.int64(0), np.int64(0), np.int64(0), True, -np.inf
    nothing = Signature(np.int64(0), np.int64(0), np.int64(0), NONE, NONE, np.int64(0))
    begin = Signature(
        np.int64(BEGIN + 1), np.int64(0), np.int64(model.lm.begin_state), NONE, np.int64(BEGIN), np.int64(1 + CLOSED)
    )
    row_of, column_of = np.full(q.shape[0], -1, np.int64), np.full(q.shape[0], -1, np.int64)
    for p in range(n_pieces):
        first_item = n
        kept_ptr[p + 1] = n_kept
        o = g.offset[p]
        if g.kind[p] == HOOK or o == g.offset[p + 1] or not done:
            continue
        m = g.n_last[p]
        _number(g.word[g.first[p] : g.first[p] + g.n_first[p]], row_of)
        _number(g.word[g.last[p] : g.last[p] + m], column_of)
        start, stop = np.int64(0), np.int64(1)
        if g.kind[p] == NODE:
            start, stop = g.edge_ptr[g.left[p]], g.edge_ptr[g.left[p] + 1]
        for e in range(start, stop):
            x, y, w, edge, gain = _recipe(g, p, e)
            a0, a1 = (kept_ptr[x], kept_ptr[x + 1]) if x >= 0 else (np.int64(0), np.int64(1))
            b0, b1 = (kept_ptr[y], kept_ptr[y + 1]) if y >= 0 else (np.int64(0), np.int64(1))
            for ai in range(a0, a1):
                following_b = b0
                while following_b < b1:
                    bi = following_b
                    following_b += 1
                    tried += 1
                    a, b, sig, s, owed = NONE, NONE, nothing, gain, 0.0
                    if x >= 0:
                        a = kept[ai]
                        sig = _signature(item, a)
                        s += score[a]
                        owed = to_pay[a]
                    if y >= 0:
                        b = kept[bi]
                        row, column = row_of[(sig.left0 & MASK) - 1], column_of[item[b, LAST]]
                        following = (item[b, LEFT0] & MASK) - 1
                        if row < 0 or column < 0 or not allowed[sig.last, following]:
                            following_b = group_end[bi]
                            continue
                        s += score[b]
                        if s - owed - to_pay[b] + q[sig.last, following] + out[o + row * m + column] < least:
                            following_b = group_end[bi]  # nor do the others with these ends, which are worth less
                            continue
                        sig, s = _follow(model, full, sig, s, _signature(item, b))
                    elif w == BEGIN:
                        sig = begin
                    elif w >= 0:
                        if sig.last >= 0 and not allowed[sig.last, w]:
                            continue
                        sig, s = _step(model, full, sig, s, w)
                    row, column = row_of[(sig.left0 & MASK) - 1], column_of[sig.last]
                    if row < 0 or column < 0:
                        continue
                    owed = _phi(model, sig.state, sig.before_last, sig.last) if sig.count >= CLOSED else 0.0
                    total = s - owed + out[o + row * m + column]
                    if not total >= least:
                        continue
                    if p == n_pieces - 1:  # nothing follows the top: all its items are one
                        sig = Signature(sig.left0, sig.left1, np.int64(0), NONE, sig.last, sig.count)
                    if 2 * n >= slots.shape[0]:
                        slots = _more_slots(slots, item, n)
                    at = _slot(slots, item, p, sig)
                    i = slots[at]
                    new = i < 0
                    if new:
                        if n == score.shape[0]:
                            item, score, bound, to_pay = longer(item), longer(score), longer(bound), longer(to_pay)
                        i = n
                        n += 1
                        slots[at] = i
                        item[i, PIECE], item[i, LEFT0], item[i, LEFT1], item[i, STATE] = (
                            p,
                            sig.left0,
                            sig.left1,
                            sig.state,
                        )
                        item[i, LAST], item[i, COUNT] = sig.last, sig.count
                        score[i] = -np.inf
                    k = item[i, WAY]
                    if all_ways or new:
                        if n_ways == way_score.shape[0]:
                            way, way_score = longer(way), longer(way_score)
                        k = n_ways
                        n_ways += 1
                    if all_ways or s > score[i]:
                        way[k, 0], way[k, 1], way[k, 2], way[k, 3] = i, a, b, edge
                        way_score[k] = s
                    if s > score[i]:
                        score[i], bound[i], item[i, WAY] = s, total, k
                        to_pay[i], item[i, BEFORE_LAST] = owed, sig.before_last
                if tried > budget:
                    done = False
                    break
            if not done:
                break
        _number(g.word[g.first[p] : g.first[p] + g.n_first[p]], row_of)
        _number(g.word[g.last[p] : g.last[p] + m], column_of)
        kept, n_kept, dropped = _keep(bound, first_item, n, beam, kept, n_kept)
        lost = max(lost, dropped)
        if group_end.shape[0] < kept.shape[0]:
            group_end = longer(group_end)
        _group(kept[:n_kept], kept_ptr[p], group_end, item, score, to_pay)
        kept_ptr[p + 1] = n_kept
    top = n - 1 if done and n > 0 and item[n - 1, PIECE] == n_pieces - 1 else NONE
    return Found(done, lost, item[:n, WAY], score[:n], way[:n_ways], way_score[:n_ways], tried, top)
