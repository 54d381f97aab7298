"""The parts of dependency trees: the table of their kinds, the parts of trees and of arcs, their features and scores.

A word m with head h has at most one part of each kind:

    kind           nodes      where
    ARC            h m
    SIBLING        h m s      s is the modifier of h next inside m on its side, ABSENT if there is none
    GRANDPARENT    h m g      g is the head of h; there is none if h is node 0
    GRANDSIBLING   h m s g    likewise
    TRISIBLING     h m s t    t is the modifier of h next inside s, ABSENT if there is none; only if there is an s

A part is a row (kind, nodes in this order, which is that of the roles of its templates, then ABSENT). The same table,
with names and with the order of users' arrays, is ``certus.dependency.part_kinds``. Models of trees have templates of
each kind, in this order; a kind without templates is not part of the model. names (n + 1, n + 1) are numbers for the
likely labels of arcs, 0 for none; see kernels.arcs.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import uint32

from certus.kernels.compiling import njit
from certus.kernels.features import ABSENT, role_codes, summed_features
from certus.kernels.projective_forest import ATTACH, Factors, build, forest_room, index_arcs

ARC, SIBLING, GRANDPARENT, GRANDSIBLING, TRISIBLING = range(5)
KINDS = 5
ROLES = (2, 3, 3, 4, 4)  # nodes of each kind
NO_PART = -1
_EDGES = np.iinfo(np.int32).max
_BESIDE, _BEYOND, _ABOVE = uint32(0x85EBCA77), uint32(0x27D4EB2F), uint32(0xC2B2AE3D)


# -- the parts of a tree ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def word_parts(h, m, s, t, g, rows):
    """rows (KINDS, 5) <- the parts of a word, NO_PART where there is none; s, t, g are ABSENT if there is no such."""
    for kind in range(KINDS):
        rows[kind, 0], rows[kind, 1], rows[kind, 2], rows[kind, 3], rows[kind, 4] = kind, h, m, s, ABSENT
    rows[ARC, 3] = ABSENT
    rows[GRANDPARENT, 3] = rows[GRANDSIBLING, 4] = g
    rows[TRISIBLING, 4] = t
    if g == ABSENT:
        rows[GRANDPARENT, 0] = rows[GRANDSIBLING, 0] = NO_PART
    if s == ABSENT:
        rows[TRISIBLING, 0] = NO_PART


@njit(cache=True, nogil=True)
def inner_modifier(heads, h, v):
    """The modifier of h next inside word v, on the side of v; ABSENT if there is none."""
    step = 1 if h > v else -1
    v += step
    while v != h and heads[v] != h:
        v += step
    return ABSENT if v == h else v


@njit(cache=True, nogil=True)
def tree_parts(heads):
    """The parts of a tree, (n + 1, KINDS, 5), by word and kind; NO_PART where there is none."""
    rows = np.full((heads.shape[0], KINDS, 5), NO_PART, dtype=np.int32)
    for m in range(1, heads.shape[0]):
        h = heads[m]
        s = inner_modifier(heads, h, m)
        t = ABSENT if s == ABSENT else inner_modifier(heads, h, s)
        word_parts(h, m, s, t, heads[h] if h > 0 else ABSENT, rows[m])
    return rows


@njit(cache=True, nogil=True)
def put_part(rows, p, row):
    """rows[p] <- a part; to assign it as a slice would take seconds to compile."""
    for c in range(5):
        rows[p, c] = row[c]


@njit(cache=True, nogil=True)
def same_part(a, b):
    """Whether two rows are the same part."""
    return a[0] == b[0] and a[1] == b[1] and a[2] == b[2] and a[3] == b[3] and a[4] == b[4]


@njit(cache=True, nogil=True)
def mark_tree(rows, heads, out):
    """out[p] <- 1 for the parts of a tree, 0 for the others."""
    own = tree_parts(heads)
    for p in range(rows.shape[0]):
        out[p] = 1.0 if same_part(rows[p], own[rows[p, 2], rows[p, 0]]) else 0.0


# -- the parts over some arcs ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def side_of(out_ptr, out, h, right):
    """The modifiers of h on one side: where the nearest stands in out, the step to the next one, how many they are."""
    split = out_ptr[h]
    while split < out_ptr[h + 1] and out[split] < h:
        split += 1
    return (split, 1, out_ptr[h + 1] - split) if right else (split - 1, -1, split - out_ptr[h])


@njit(cache=True, nogil=True)
def list_parts(allowed, kinds):
    """(rows, at, arcs): the parts of the kinds (KINDS,) wanted over the allowed arcs (n + 1, n + 1).

    Arcs first, arc a by (h, m) in row a, wanted or not; arcs are index_arcs of them. Then for each arc, from row
    at[a, kind] on, its parts of each kind. Modifiers inside m go outwards from h; there are j of them. Siblings and
    grand-siblings have s absent first, then each modifier; tri-siblings have for each s first t absent, then each
    modifier inside s. Heads of h go upwards, without m. A grand-sibling may have g == s, which no tree has, so that
    there are j + 1 of them for each head.
    """
    n = allowed.shape[0] - 1
    arcs = index_arcs(allowed)
    _, out_ptr, out, into_ptr, into = arcs
    n_arcs = out.shape[0]
    at = np.zeros((n_arcs, KINDS), dtype=np.int64)
    rows = np.empty((n_arcs, 5), dtype=np.int32)
    found = np.empty((KINDS, 5), dtype=np.int32)
    for filling in range(2):
        count = n_arcs
        for h in range(n + 1):
            for a in range(out_ptr[h], out_ptr[h + 1]):
                m = out[a]
                at[a, ARC] = a
                first, step, _ = side_of(out_ptr, out, h, m > h)
                inside = (a - first) * step
                word_parts(h, m, ABSENT, ABSENT, ABSENT, found)
                if filling:
                    put_part(rows, a, found[ARC])
                for kind in range(SIBLING, KINDS):
                    at[a, kind] = count
                    above = kind in (GRANDPARENT, GRANDSIBLING)
                    if not kinds[kind] or (above and h == 0):
                        continue
                    for w in range(into_ptr[h + 1] - into_ptr[h] if above else 1):
                        g = into[into_ptr[h] + w] if above else ABSENT
                        if g == m:
                            continue
                        for i in range(0 if kind != TRISIBLING else 1, 1 if kind == GRANDPARENT else inside + 1):
                            s = ABSENT if i == 0 else out[first + (i - 1) * step]
                            for k in range(i if kind == TRISIBLING else 1):
                                if filling:
                                    t = ABSENT if k == 0 else out[first + (k - 1) * step]
                                    word_parts(h, m, s, t, g, found)
                                    put_part(rows, count, found[kind])
                                count += 1
        if not filling:
            rows = np.empty((count, 5), dtype=np.int32)
    return rows, at, arcs


@njit(cache=True, nogil=True)
def forest_parts(allowed, single, kinds):
    """The forest of all projective trees over the allowed arcs, and its parts of the kinds (KINDS,) that are wanted.

    Returns (in_ptr, tail_ptr, tail, rows, part_of). The first three are as kernels.projective_forest builds them, with
    the goal as the last vertex; the first rows are the arcs in order of (h, m), and no part is there twice; part_of
    (E, KINDS) names the part of each kind that an edge scores, -1 for none.
    """
    n = allowed.shape[0] - 1
    track_g = kinds[GRANDPARENT] or kinds[GRANDSIBLING]
    track_s = kinds[TRISIBLING]
    arcs = index_arcs(allowed)
    arc_id, out_ptr, out, _, _ = arcs
    factors = Factors(single, 1 if track_g else 0, track_g, False, track_s)
    n_vertices, n_edges = build(arcs, factors, _EDGES, forest_room(0, 0))
    forest = forest_room(n_vertices, n_edges)
    build(arcs, factors, _EDGES, forest)
    in_ptr, tail_ptr, tail, coord = forest
    n_arcs = out.shape[0]
    known = np.full((2, n_arcs, n + 1), -1, dtype=np.int32)  # the rows of siblings and grandparents
    both = track_g and track_s  # only then do edges share a tri-sibling
    known_ts = np.full((n_arcs, n + 1, n + 1) if both else (1, 1, 1), -1, dtype=np.int32)
    part_of = np.full((n_edges, KINDS), -1, dtype=np.int32)
    rows = np.empty((n_arcs + 4 * n_edges, 5), dtype=np.int32)
    own = np.empty((KINDS, 5), dtype=np.int32)
    for h in range(n + 1):
        for a in range(out_ptr[h], out_ptr[h + 1]):
            word_parts(h, out[a], ABSENT, ABSENT, ABSENT, own)
            put_part(rows, a, own[ARC])
    count = n_arcs
    last = 0  # the grand-sibling listed last; edges that share one are neighbours
    for e in range(n_edges):
        if not coord[e, 0] & ATTACH:
            continue
        g, h, t, s, m = coord[e, 1], coord[e, 2], coord[e, 3], coord[e, 4], coord[e, 5]
        a = arc_id[h, m]
        part_of[e, ARC] = a
        word_parts(h, m, ABSENT if s == h else s, ABSENT if t == h else t, ABSENT if g < 0 else g, own)
        for kind in range(SIBLING, KINDS):
            if not kinds[kind] or own[kind, 0] == NO_PART:
                continue
            p = -1
            if kind == GRANDSIBLING:
                p = last if same_part(rows[last], own[kind]) else -1
            elif kind == TRISIBLING:
                p = known_ts[a, s, t] if both else -1
            else:
                p = known[kind - 1, a, s if kind == SIBLING else g]
            if p < 0:
                p = count
                put_part(rows, p, own[kind])
                count += 1
            part_of[e, kind] = p
            if kind == GRANDSIBLING:
                last = p
            elif kind != TRISIBLING:
                known[kind - 1, a, s if kind == SIBLING else g] = p
            elif both:
                known_ts[a, s, t] = p
    return in_ptr, tail_ptr, tail, rows[:count].copy(), part_of


# -- features and scores ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def names_of(names, h, m, s, t, g):
    """The names of the arcs of a part as one number; ABSENT for a node that it does not have."""
    code = names[h, m]
    if s != ABSENT:
        code += uint32(names[h, s] * _BESIDE)
    if t != ABSENT:
        code += uint32(names[h, t] * _BEYOND)
    if g != ABSENT:
        code += uint32(names[g, h] * _ABOVE)
    return uint32(code)


class Scorer(NamedTuple):
    """A model of trees at work on one sentence."""

    sentence: Any
    names: Any
    codes: Any  # role_codes of each kind
    model: Any


@njit(cache=True, nogil=True)
def scorer_of(sentence, names, model):
    """A model, a LinearModel with templates of each kind, at work on a sentence."""
    arc, sibling, grandparent, grandsibling, trisibling = model.templates
    codes = (role_codes(sentence, arc), role_codes(sentence, sibling), role_codes(sentence, grandparent),
             role_codes(sentence, grandsibling), role_codes(sentence, trisibling))  # fmt: skip
    return Scorer(sentence, names, codes, model)


@njit(cache=True, nogil=True)
def most_features(model):
    """More features than a part of any kind has."""
    most = 0
    for kind in range(KINDS):
        most = max(most, model.templates[kind].max_features)
    return most


@njit(cache=True, nogil=True)
def scored_kinds(model):
    """Which kinds of parts have templates, (KINDS,)."""
    scored = np.empty(KINDS, dtype=np.bool_)
    for kind in range(KINDS):
        scored[kind] = model.templates[kind].seed.shape[0] > 0
    return scored


@njit(cache=True, nogil=True)
def part_features(scorer, row, index):
    """Write the feature indices of a part into index; returns how many there are."""
    kind = row[0]
    s = row[3] if kind != ARC and kind != GRANDPARENT else ABSENT
    t = row[4] if kind == TRISIBLING else ABSENT
    g = row[3] if kind == GRANDPARENT else row[4] if kind == GRANDSIBLING else ABSENT
    names = names_of(scorer.names, row[1], row[2], s, t, g)
    return np.int64(
        summed_features(scorer.codes[kind], scorer.sentence, row[1 : 1 + ROLES[kind]], names,
                        scorer.model.templates[kind], scorer.model.bits, index)
    )  # fmt: skip


@njit(cache=True, nogil=True)
def score_parts(sentence, names, model, rows, out):
    """out[p] <- sum of the weights of the features of each part."""
    scorer = scorer_of(sentence, names, model)
    index = np.empty(most_features(model), dtype=np.uint64)
    for p in range(rows.shape[0]):
        total = 0.0
        for k in range(part_features(scorer, rows[p], index)):
            total += model.weight[index[k]]
        out[p] = total


@njit(cache=True, nogil=True)
def append_features(scorer, row, index, out, count):
    """Append the features of a part to out, if it is one; returns the new count."""
    if row[0] == NO_PART:
        return count
    found = part_features(scorer, row, index)
    for k in range(found):
        out[count + k] = index[k]
    return count + found


@njit(cache=True, nogil=True)
def differences(sentence, names, model, gold, guess, out):
    """Features of the parts of one tree that the other lacks: of gold into out[0], of guess into out[1].

    Returns how many there are of each.
    """
    scorer = scorer_of(sentence, names, model)
    index = np.empty(most_features(model), dtype=np.uint64)
    right, wrong, scored = tree_parts(gold), tree_parts(guess), scored_kinds(model)
    plus = minus = 0
    for m in range(1, gold.shape[0]):
        for kind in range(KINDS):
            if scored[kind] and not same_part(right[m, kind], wrong[m, kind]):
                plus = append_features(scorer, right[m, kind], index, out[0], plus)
                minus = append_features(scorer, wrong[m, kind], index, out[1], minus)
    return plus, minus
