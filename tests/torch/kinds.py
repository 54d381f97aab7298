"""A small batch of every kind, with lengths 0, 1 and 2, padding and a forbidden cell; and its structures, listed."""

from typing import NamedTuple

import numpy as np
import torch

import certus.torch as ct

LENGTHS = [2, 0, 1]
FLOAT = torch.float64


class Made(NamedTuple):
    """How to make it of tensors of these shapes; ``forbidden`` is a cell of the first; whether it has sums."""

    make: object
    shapes: list[tuple[int, ...]]
    forbidden: tuple[int, ...]
    sums: bool = True


def symmetric(edge):
    above = torch.triu(edge, 1)
    return above + above.transpose(1, 2)


def tree(name, **options):
    def make(arc, *above):
        return ct.Dependency(arc, lengths=LENGTHS, **dict(zip(name, above, strict=True)), **options)

    return make


def trees(*shapes):
    return [(3, 3, 3), *shapes]


PROJECTIVE = {"projective": True}
PAIR, TRIPLE = (3, 3, 3, 3), (3, 3, 3, 3, 3)
KINDS = {
    "tags alone": Made(lambda u: ct.Tagging(u, lengths=LENGTHS), [(3, 2, 3)], (0, 0, 1)),
    "bigrams": Made(lambda u, b: ct.Tagging(u, b, lengths=LENGTHS), [(3, 2, 2), (2, 2)], (0, 0, 1)),
    "bigrams by position": Made(lambda u, b: ct.Tagging(u, b, lengths=LENGTHS), [(3, 2, 2), (3, 2, 2, 2)], (0, 0, 1)),
    "trigrams": Made(lambda u, b, t: ct.Tagging(u, b, t, lengths=LENGTHS), [(3, 2, 2), (3, 3), (3, 3, 3)], (0, 0, 1)),
    "projective": Made(tree((), **PROJECTIVE), trees(), (0, 0, 1)),
    "projective, roots": Made(tree((), **PROJECTIVE, root="multi"), trees(), (0, 1, 2)),
    "sibling": Made(tree(["sibling"], **PROJECTIVE), trees(PAIR), (0, 0, 1)),
    "grandparent": Made(tree(["grandparent"], **PROJECTIVE), trees(PAIR), (0, 0, 1)),
    "third order": Made(
        tree(["sibling", "grandparent", "grandsibling", "trisibling"], **PROJECTIVE, root="multi"),
        trees(PAIR, PAIR, TRIPLE, TRIPLE),
        (0, 1, 2),
    ),
    "crossing": Made(tree(()), trees(), (0, 0, 1)),
    "crossing, roots": Made(tree((), root="multi"), trees(), (0, 1, 2)),
    "crossing, sibling": Made(tree(["sibling"]), trees(PAIR), (0, 0, 1), sums=False),
    "labelled": Made(tree(["label"]), trees((3, 3, 3, 2)), (0, 0, 1)),
    "labelled, projective": Made(tree(["label", "sibling"], **PROJECTIVE), trees((3, 3, 3, 2), PAIR), (0, 0, 1)),
    "binary trees": Made(lambda s: ct.SpanTrees(s, lengths=LENGTHS), [(3, 3, 3, 2)], (0, 0, 1, 0)),
    "trees of any shape": Made(lambda s: ct.SpanTrees(s, 0, lengths=[3, 1]), [(2, 4, 4, 2)], (0, 0, 2, 1)),
    "segments": Made(lambda s, t: ct.Segmentation(s, t, lengths=LENGTHS), [(3, 2, 2, 2), (2, 2)], (0, 0, 1, 1)),
    "alignment": Made(
        lambda s: ct.Alignment(s, lengths=LENGTHS, second_lengths=[1, 2, 0]), [(3, 3, 3, 3)], (0, 0, 0, 0)
    ),
    "ctc": Made(
        lambda f: ct.CTC(f, torch.tensor([[1, 2], [-1, -1], [1, -1]]), lengths=[3, 0, 1]), [(3, 3, 3)], (0, 1, 0)
    ),
    "grammar": Made(
        lambda e, o, r: ct.AnchoredGrammar(o, r, e, lengths=[3, 2]), [(2, 3, 2), (1,), (1, 3, 3)], (0, 0, 1)
    ),
    "grammars": Made(
        lambda s, o, r, e: ct.AnchoredGrammar(o, r, e, s, lengths=[2, 3]),
        [(2, 4, 4, 3), (2, 2), (2, 2, 3, 3), (2, 3, 1)],
        (1, 0, 2, 0),
    ),
    "edges": Made(lambda e: ct.SpanningTree(symmetric(e), lengths=[3, 0, 2]), [(3, 3, 3)], (0, 0, 1)),
    "arcs of graphs": Made(lambda a: ct.DependencyGraph(a, lengths=LENGTHS), trees(), (0, 0, 1)),
    "coparents": Made(lambda a, c: ct.DependencyGraph(a, coparent=c, lengths=LENGTHS), trees(PAIR), (0, 0, 1)),
    "both": Made(lambda a, s, c: ct.DependencyGraph(a, s, c, lengths=LENGTHS), trees(PAIR, PAIR), (0, 0, 1), False),
    "assignment": Made(
        lambda s: ct.Assignment(s, lengths=LENGTHS, second_lengths=[3, 1, 2]), [(3, 2, 3)], (0, 0, 1), sums=False
    ),
}
WITH_SUMS = [name for name, made in KINDS.items() if made.sums]


def tensors(name, seed=0, *, forbid=True):
    """Scores that want gradients."""
    generator = torch.Generator().manual_seed(seed)
    found = [torch.randn(shape, dtype=FLOAT, generator=generator) for shape in KINDS[name].shapes]
    if forbid:
        found[0][KINDS[name].forbidden] = -np.inf
    return [tensor.requires_grad_() for tensor in found]


def listed(structure, item):
    """The problem of an item, its structures, and their scores."""
    problem = structure.batch[item]
    found = list(problem.all_structures())
    return problem, found, np.array([problem.score(y) for y in found])


def drawn(structure, seed=0):
    """A structure of each item that is not forbidden, any of them."""
    rng, rows = np.random.default_rng(seed), []
    for b in range(len(structure)):
        _, found, score = listed(structure, b)
        rows.append(structure.batch._row(found[rng.choice(np.flatnonzero(score > -np.inf))]))
    return torch.from_numpy(structure.batch._padded(rows))


def unpadded(values, shape):
    """The corner of an array that is not padding; the rest is 0."""
    own = values[tuple(map(slice, shape))]
    assert np.isclose(values.sum(), own.sum(), rtol=1e-12)
    return own
