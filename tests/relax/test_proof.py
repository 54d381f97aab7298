import json

import numpy as np
import pytest

from certus import InvalidInput
from certus.relax import proof
from certus.relax.proof import Fix, Leaf, Removed, Split


def tree():
    u = {"tags": np.array([[0.5, -1.0]]), "empty": np.zeros((0, 3))}
    return Fix(u, (Removed("tags", (0, 2)),), Split("tags", 1, Leaf(u), Split("tags", 0, Leaf(u), Leaf(u))))


def leaves(tree):
    """How many leaves a proof has, however deep."""
    found, stack = 0, [tree]
    while stack:
        node = stack.pop()
        found += isinstance(node, Leaf)
        stack += [] if isinstance(node, Leaf) else [node.rest] if isinstance(node, Fix) else [node.zero, node.one]
    return found


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, Split):
        return (a.view, a.index) == (b.view, b.index) and same(a.zero, b.zero) and same(a.one, b.one)
    equal = a.multipliers.keys() == b.multipliers.keys() and all(
        np.array_equal(a.multipliers[k], b.multipliers[k]) for k in a.multipliers
    )
    return equal and (isinstance(a, Leaf) or (a.removed == b.removed and same(a.rest, b.rest)))


def test_proofs_travel():
    assert same(proof.from_json(json.loads(json.dumps(proof.to_json(tree())))), tree())
    assert leaves(tree()) == 3


def test_a_deep_tree_travels():
    deep = Leaf({})
    for k in range(5000):
        deep = Split("tags", k, Leaf({}), deep)
    back = proof.from_json(proof.to_json(deep))
    assert leaves(back) == 5001


@pytest.mark.parametrize(
    "change",
    [
        lambda d: [],
        lambda d: {},
        lambda d: [3],
        lambda d: d[:-1],
        lambda d: [*d, d[-1]],
        lambda d: [{**d[0], "rest": 0}, *d[1:]],
        lambda d: [{**d[0], "rest": True}, *d[1:]],
        lambda d: [{**d[0], "node": "root"}, *d[1:]],
        lambda d: [{**d[0], "removed": None}, *d[1:]],
        lambda d: [{**d[0], "removed": [{"view": "tags", "indices": [0.5]}]}, *d[1:]],
        lambda d: [{**d[0], "multipliers": {"tags": {"shape": [7], "values": [1.0]}}}, *d[1:]],
        lambda d: [{**d[0], "multipliers": {"tags": [1.0]}}, *d[1:]],
        lambda d: [{**d[0], "multipliers": 3}, *d[1:]],
        lambda d: [d[0], {**d[1], "index": "x"}, *d[2:]],
        lambda d: [d[0], {**d[1], "view": None}, *d[2:]],
        lambda d: [d[0], {**d[1], "zero": d[1]["one"]}, *d[2:]],
    ],
)
def test_what_is_no_proof_tree_is_refused(change):
    with pytest.raises(InvalidInput):
        proof.from_json(change(proof.to_json(tree())))
