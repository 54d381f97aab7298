"""Random small grammars over spines with integer scores, and every tree of a sentence, found without a chart."""

from functools import cached_property
from itertools import product

import numpy as np

from certus.constituency.lexicalize import Spines, from_spines
from certus.constituency.lexicalized_tables import SHAPE, STOP, SpineScores
from tests.oracles.trees import projective_trees

SPINES = {
    "n": [("n",), ("n", "X"), ("n", "X", "S"), ("n", "X", "X")],
    "v": [("v", "Y"), ("v", "Y", "S"), ("v", "S"), ("v", "Y", "Y", "S")],
    ",": [(",",)],
}


class RandomSpines(SpineScores):
    """Integer scores drawn from a seed; few spines, contexts and modifiers, so that all trees can be listed."""

    root = "S"
    tags = (",", "n", "v")
    separators = frozenset({","})

    def __init__(self, seed, forbidden=0.1):
        self.rng = np.random.default_rng(seed)
        self.forbidden = forbidden
        self.rows = {}

    def draw(self, *shape):
        scores = self.rng.integers(-8, 9, shape).astype(float)
        scores[self.rng.random(shape) < self.forbidden / 2] = -np.inf
        return scores

    @cached_property
    def spines_of(self):
        return {tag: [s for s in spines if self.rng.random() > 0.3] or spines[-1:] for tag, spines in SPINES.items()}

    @cached_property
    def contexts(self):
        found = set()
        for tag, spines in self.spines_of.items():
            for spine in spines:
                for k in range(1, len(spine)):
                    for above in ("", "S", "X", "Y"):
                        if self.rng.random() > self.forbidden or spine[k + 1 : k + 2] == (above,):
                            found.add((spine[k], spine[k - 1], above, tag))
        return found

    @cached_property
    def outcomes(self):
        tops = sorted({(spine[-1], tag) for tag, spines in self.spines_of.items() for spine in spines})
        out = {"": {pair: o for o, pair in enumerate([p for p in tops if p[0] == "S"] + [STOP])}}
        for label in ("S", "X", "Y"):
            kept = [pair for pair in tops if self.rng.random() > 0.3]
            out[label] = {pair: o for o, pair in enumerate([*kept, STOP])}
        return out

    def tags_of(self, words):
        return [dict.fromkeys({"a": "n", "b": "v", "c": "nv", ",": ","}.get(word, ""), 0.0) for word in words]

    def distances(self, words):
        h, e = np.indices((len(words), len(words)))
        return np.where(h == e, 0, np.where(np.abs(h - e) > 1, 2, 1))

    def head_score(self, P, above, t, w, H):
        return self.known(("head", P, above, t, w, H))[()]

    def modifier_rows(self, P, H, above, t, w):
        return self.known(("rows", P, H, above, t, w), *SHAPE, len(self.outcomes[P]))

    def word_rows(self, keys, words, plain):
        sizes = [len(self.outcomes[P]) - 1 for P, _, _ in keys]
        of_words = [
            [self.known(("word", *key, word), 2, size) for word in words] for key, size in zip(keys, sizes, strict=True)
        ]
        return [np.stack(rows, axis=2) for rows in of_words]

    def known(self, key, *shape):
        """The same scores for the same question."""
        if key not in self.rows:
            self.rows[key] = np.asarray(self.draw(*shape))
        return self.rows[key]


def trees(grammar, words):
    """Every lexicalised tree with its score."""
    for tree, parts in tree_parts(grammar, words):
        yield tree, sum(parts)


def tree_parts(grammar, words):
    """Every lexicalised tree that is allowed, with the scores of its parts: all projective heads, spines and levels."""
    n = len(words)
    choices = [[s for tag in sorted(tags) for s in grammar.spines_of[tag]] for tags in grammar.tags_of(words)]
    for heads in projective_trees(n):
        for spines in product(*choices):
            spine = ((), *spines)
            levels = [range(1, len(spine[heads[m]])) if heads[m] else (0,) for m in range(1, n + 1)]
            for level in product(*levels):
                parts = Spines(tuple(words), spine, tuple(heads), (0, *level))
                if nested(parts):
                    scores = scores_of(grammar, parts)
                    if -np.inf not in scores:
                        yield from_spines(parts), scores


def nested(parts):
    """Whether modifiers further out hang on levels at least as high."""
    n = len(parts.words)
    for h in range(1, n + 1):
        for side in (
            [m for m in range(h - 1, 0, -1) if parts.head[m] == h],
            [m for m in range(h + 1, n + 1) if parts.head[m] == h],
        ):
            levels = [parts.level[m] for m in side]
            if levels != sorted(levels):
                return False
    return True


def scores_of(grammar, parts):
    """Scores of the parts of one tree, by the definition of the grammar; -inf among them if it is not allowed."""
    n, words = len(parts.words), parts.words
    distance = grammar.distances(words)
    scores = []
    for m in range(1, n + 1):
        h, spine, t = parts.head[m], parts.spine[m], parts.spine[m][0]
        above = parts.spine[h][parts.level[m]] if h else ""
        pair = (spine[-1], t)
        if pair not in grammar.outcomes[above] or (not h and spine[-1] != grammar.root):
            return [-np.inf]
        w, ht = (words[h - 1], parts.spine[h][0]) if h else ("", "")
        o = grammar.outcomes[above][pair]
        (of_words,) = grammar.word_rows([(above, ht, w)], words, None)
        scores.append(float(of_words[int(m > h), o, m - 1]))
        if not h:
            scores.append(float(grammar.modifier_rows("", "", "", "", "")[1, 0, 0, o]))
        edge = [m, m]
        for k in range(1, len(spine)):
            A = spine[k + 1] if k + 1 < len(spine) else above
            if (spine[k], spine[k - 1], A, t) not in grammar.contexts:
                return [-np.inf]
            scores.append(float(grammar.head_score(spine[k], A, t, words[m - 1], spine[k - 1])))
            rows = grammar.modifier_rows(spine[k], spine[k - 1], A, t, words[m - 1])
            for side in (0, 1):
                state = 0
                order = range(m + 1, n + 1) if side else range(m - 1, 0, -1)
                for x in [x for x in order if parts.head[x] == m and parts.level[x] == k]:
                    L = parts.spine[x][-1]
                    o = grammar.outcomes[spine[k]].get((L, parts.spine[x][0]))
                    if o is None:
                        return [-np.inf]
                    scores.append(float(rows[side, distance[m - 1, edge[side] - 1], state, o]))
                    state = 1 if L in grammar.separators else 2
                    below = [y for y in range(1, n + 1) if under(parts.head, x, y)]
                    edge[side] = max(below) if side else min(below)
                scores.append(float(rows[side, distance[m - 1, edge[side] - 1], state, -1]))
    return scores


def under(head, m, w):
    while w > 0 and w != m:
        w = head[w]
    return w == m
