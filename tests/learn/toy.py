"""Small sentences and models to learn, and their trees one by one."""

import numpy as np

from certus.features import templates as T
from certus.features.encode import Encoder
from certus.kernels.features import ABSENT
from certus.learn.examples import Examples
from certus.learn.trees import TreeModel, TreeTask
from certus.text import Sentence, Token
from tests.oracles.trees import all_trees, projective_trees

BITS = 12
NONE = T.Templates("hmg", ()), T.Templates("hmsg", ())
KINDS = {
    1: (T.FIRST_FILTER,),
    2: (T.FIRST_FILTER, T.SIBLING, T.GRANDPARENT),
    3: (T.FIRST_FILTER, T.SIBLING, T.GRANDPARENT, T.GRANDSIBLING),
    "trisiblings": (T.FIRST_FILTER, T.SIBLING, *NONE, T.TRISIBLING),
    "all": (T.FIRST_FILTER, T.SIBLING, T.GRANDPARENT, T.GRANDSIBLING, T.TRISIBLING),
}
MODELS = [(order, True, single) for order in KINDS for single in (True, False)] + [(1, False, True), (1, False, False)]


def model_of(order, projective, single):
    return TreeModel(KINDS[order], projective, single)


def treebank(lengths, seed):
    """Encoded random sentences, and chains of words as their trees."""
    rng = np.random.default_rng(seed)
    tags = ["NOUN", "VERB", "DET"]
    sentences = [
        Sentence([Token(i, f"w{rng.integers(5)}", f"l{i}", tags[rng.integers(3)]) for i in range(1, n + 1)])
        for n in lengths
    ]
    return Encoder(tags).encode(sentences), [np.array([-1, *range(n)]) for n in lengths]


def all_arcs(n):
    allowed = ~np.eye(n + 1, dtype=np.bool_)
    allowed[:, 0] = False
    return allowed


def trees_over(model, allowed):
    """Every tree of a model over the allowed arcs."""
    n = len(allowed) - 1
    every = (projective_trees if model.projective else all_trees)(n, "single" if model.single else "multi")
    return [np.array(heads) for heads in every if all(allowed[heads[m], m] for m in range(1, n + 1))]


def parts_of(model, heads):
    """The parts of a tree as rows (kind, h, m, x, y) of the kinds the model has."""
    has = [len(t.seed) > 0 for t in model.arrays]
    for m in range(1, len(heads)):
        h = int(heads[m])
        side = [v for v in (range(m + 1, h) if m < h else range(m - 1, h, -1)) if heads[v] == h]
        s, t = [*side, ABSENT, ABSENT][:2]
        g = int(heads[h])
        own = [(0, h, m, ABSENT, ABSENT), (1, h, m, s, ABSENT)]
        if h > 0:
            own += [(2, h, m, g, ABSENT), (3, h, m, s, g)]
        if s != ABSENT:
            own += [(4, h, m, s, t)]
        yield from (row for row in own if has[row[0]])


def examples_of(order, projective, lengths, seed):
    """Random sentences with random trees of a model."""
    rng = np.random.default_rng(seed)
    batch, _ = treebank(lengths, seed)
    model = model_of(order, projective, True)
    trees = []
    for n in lengths:
        every = trees_over(model, all_arcs(n))
        trees.append(every[rng.integers(len(every))])
    return Examples(TreeTask(model, batch, trees, lambda s: all_arcs(lengths[s])), BITS)
