"""Parsers of every kind, trained on a few words: small enough to run as plain Python, where every index is checked."""

from dataclasses import replace

import pytest

from certus.models.parser import Settings
from certus.models.pipeline import Pipeline
from certus.models.training import train_parser
from tests.models.test_parser import bare, treebank

SMALL = Settings(
    order=1, epochs=6, label_epochs=3, bits=12, label_bits=12, first_width=50.0, second_width=50.0, max_heads=4
)
KINDS = {
    "arcs": SMALL,
    "crossing arcs": replace(SMALL, projective=False),
    "siblings and grandparents": replace(SMALL, order=2),
    "tri-siblings": replace(SMALL, order=3, trisiblings=True),
    "crossing siblings": replace(SMALL, order=2, projective=False),
}


def two_trees():
    """Two short sentences whose subjects differ, and have labels that differ with them."""
    found = {}
    for tree in treebank(20, 1):
        for token in tree:
            if token.deprel == "nsubj" and len(tree) < 6:
                token.deprel = f"nsubj:{token.form}"
                found.setdefault(token.form, tree)
    return [found["dog"], found["cat"]]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_learnt_is_parsed_and_proved(kind):
    trees = two_trees()
    parser = train_parser(trees, settings=KINDS[kind])
    parsed = list(Pipeline(parser).parse(bare(trees), workers=1, confidences=True, certificates=True))
    for tree, found in zip(trees, parsed, strict=True):
        assert [(t.head, t.deprel) for t in found] == [(t.head, t.deprel) for t in tree]
        assert found.comment("certificate").endswith("exact")
        assert parser.problem(tree).score(tree.heads) == float(found.comment("score")) == float(found.comment("bound"))
