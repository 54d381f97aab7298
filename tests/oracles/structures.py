"""Every structure of small problems over arrays, with the scores of its parts: by definition, in plain Python."""

from itertools import combinations, groupby, product

import numpy as np


def segmentations(segment, transition=None, start=0):
    """Cuts of the words from ``start`` on."""
    n, longest, classes = segment.shape
    if start == n:
        yield (), []
        return
    for j in range(start + 1, min(n, start + longest) + 1):
        for rest, parts in segmentations(segment, transition, j):
            for c in range(classes):
                own = [segment[start, j - start - 1, c]]
                if transition is not None and rest:
                    own.append(transition[c, rest[0][2]])
                yield ((start, j, c), *rest), [*own, *parts]


def bracketings(i, j):
    """Binary trees over words i .. j - 1 as their spans."""
    if j - i == 1:
        yield [(i, j)]
    for k in range(i + 1, j):
        for left, right in product(bracketings(i, k), bracketings(k, j)):
            yield [(i, j), *left, *right]


def laminar(n):
    """Sets of spans of which none crosses another, the whole sentence among them."""
    others = [(i, j) for i in range(n) for j in range(i + 1, n + 1) if (i, j) != (0, n)]
    for chosen in product((0, 1), repeat=len(others)):
        spans = [(0, n), *(s for s, c in zip(others, chosen, strict=True) if c)]
        if not any(a < c < b < d for a, b in spans for c, d in spans):
            yield spans


def span_trees(span, empty=None):
    n = len(span) - 1
    shapes = [[]] if n == 0 else bracketings(0, n) if empty is None else laminar(n)
    labels = [k for k in range(span.shape[2]) if k != empty] if span.ndim == 3 else [None]
    for spans in shapes:
        spans = sorted(spans, key=lambda s: (s[0], -s[1]))
        for chosen in product(labels, repeat=len(spans)):
            cells = [(*s, k) if k is not None else s for s, k in zip(spans, chosen, strict=True)]
            yield tuple(cells), [span[cell] for cell in cells]


def alignments(score, i=0, j=0):
    """Paths from (i, j) on."""
    n, m = score.shape[0] - 1, score.shape[1] - 1
    if (i, j) == (n, m):
        yield (), []
    for op, (down, right) in enumerate(((1, 1), (1, 0), (0, 1))):
        if i + down <= n and j + right <= m:
            for rest, parts in alignments(score, i + down, j + right):
                yield ((i, j, op), *rest), [score[i, j, op], *parts]


def labellings(frame, target, blank=0):
    length, size = frame.shape
    for labels in product(range(size), repeat=length):
        if [label for label, _ in groupby(labels) if label != blank] == list(target):
            yield np.array(labels, dtype=np.int64), [frame[t, label] for t, label in enumerate(labels)]


def spanning_trees(edge):
    n = len(edge)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    for chosen in combinations(pairs, max(n - 1, 0)):
        part = list(range(n))
        for i, j in chosen:
            old, new = part[i], part[j]
            part = [new if p == old else p for p in part]
        if len(set(part)) <= 1:
            yield chosen, [edge[pair] for pair in chosen]


def dependency_graphs(arc, sibling=None, coparent=None, grandparent=None):
    size = len(arc)
    cells = [(h, m) for h in range(size) for m in range(1, size) if h != m]
    for chosen in product((0, 1), repeat=len(cells)):
        used = {cell for cell, c in zip(cells, chosen, strict=True) if c}
        graph = np.zeros((size, size), dtype=np.int64)
        parts = []
        for h, m in sorted(used):
            graph[h, m] = 1
            parts.append(arc[h, m])
            between = range(h + 1, m) if h < m else range(h - 1, m, -1)
            if sibling is not None:
                parts.append(sibling[h, ([h] + [s for s in between if (h, s) in used])[-1], m])
            if coparent is not None:
                parts.append(coparent[h, ([g for g in between if (g, m) in used] + [m])[0], m])
            if grandparent is not None:
                parts += [grandparent[h, m, k] for k in range(size) if (m, k) in used]
        yield graph, parts


def grammar_trees(root, rule, emission, span=None):
    """Trees of a grammar in normal form, with the scores of their parts."""
    n, phrases = len(emission), len(root)

    def over(i, j):
        if j - i == 1:
            for t, score in enumerate(emission[i]):
                yield [(i, j, phrases + t)], [score]
        for k in range(i + 1, j):
            for (left, ours), (right, theirs) in product(list(over(i, k)), list(over(k, j))):
                for a in range(phrases):
                    yield [(i, j, a), *left, *right], [rule[a, left[0][2], right[0][2]], *ours, *theirs]

    for cells, parts in over(0, n) if n > 1 else ():
        own = [] if span is None else [span[cell] for cell in cells]
        yield tuple(cells), [root[cells[0][2]], *parts, *own]
