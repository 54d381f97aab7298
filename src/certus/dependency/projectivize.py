"""The projective tree nearest to a given one: what learners of projective parsers make of crossing arcs."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Ints
from certus.dependency.parts import checked_heads, first_crossing
from certus.dependency.problem import Dependency
from certus.text import Sentence, Token

CROSSING_HEAD = "CrossingHead"  # in MISC of a word whose arc was moved: the head that it had


def nearest_projective(heads: ArrayLike) -> Ints:
    """The projective tree that keeps as many heads as any does. Exact; O(n^3), by Eisner's algorithm.

    Where several keep as many, one that lifts arcs least: a word that cannot keep its head gets one of its ancestors
    if that is possible, and as low a one as possible, summed over all words. A tree with one root word keeps one.

    Parameters
    ----------
    heads : array_like of shape (n + 1,)
        Any tree: ``heads[m]`` is the head of word m, 0 for the root; ``heads[0]`` is -1.

    Examples
    --------
    >>> nearest_projective([-1, 3, 4, 0, 3]).tolist()  # the arc 4 -> 2 crosses the root's; 3 is the head of 4
    [-1, 3, 3, 0, 3]
    """
    size = np.size(heads)
    given = checked_heads(heads, size - 1, projective=False, single=False)
    if first_crossing(given.tolist()) is None:
        return given
    lifted = np.zeros((size, size))  # how low an ancestor is
    for m in range(1, size):
        ancestor, low = int(given[m]), size
        while ancestor >= 0:
            lifted[ancestor, m] = low
            ancestor, low = int(given[ancestor]), low - 1
    kept = np.zeros((size, size))
    kept[given[1:], np.arange(1, size)] = float(size) ** 2  # more than all words can gain by lifting arcs less
    root = "single" if (given == 0).sum() == 1 else "multi"
    return Dependency(kept + lifted, projective=True, root=root).decode().structure


def projectivized(sentence: Sentence) -> Sentence:
    """The sentence with the nearest projective tree; labels stay, and MISC says which head a moved word had."""
    heads = nearest_projective(sentence.heads)
    tokens = [
        token if head == token.head else _moved(token, head)
        for token, head in zip(sentence.tokens, heads[1:].tolist(), strict=True)
    ]
    return replace(sentence, tokens=tokens)


def _moved(token: Token, head: int) -> Token:
    kept = [] if token.misc == "_" else token.misc.split("|")
    return replace(token, head=head, misc="|".join([*kept, f"{CROSSING_HEAD}={token.head}"]))
