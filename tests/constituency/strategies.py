"""Random small grammars with integer weights, unary rules and ties, and random trees."""

from hypothesis import strategies as st

from certus import Tree
from tests.oracles.cfg import Rule

SYMBOLS = ("S", "A", "B", "C")
WORDS = ("a", "b")
scores = st.one_of(st.integers(-8, 8), st.integers(0, 1))


@st.composite
def grammars(draw):
    """A list of rules over few symbols; any symbol may stand over words, unary rules only lead to later symbols."""
    rules = {}
    for parent in SYMBOLS:
        for word in WORDS:
            if draw(st.integers(0, 9)) < 5 + (parent != "S") * 2:
                rules[parent, word] = Rule(draw(scores), parent, word=word)
        for child in SYMBOLS[SYMBOLS.index(parent) + 1 :]:
            if draw(st.integers(0, 3)) == 0:
                rules[parent, (child,)] = Rule(draw(scores), parent, (child,))
    right = st.lists(st.sampled_from(SYMBOLS), min_size=2, max_size=4).map(tuple)
    for parent, children in draw(st.lists(st.tuples(st.sampled_from("SSAB"), right), min_size=1, max_size=5)):
        rules[parent, children] = Rule(draw(scores), parent, children)
    return [Rule(0, "S", ("S", "C")), *(rule for key, rule in rules.items() if key != ("S", ("S", "C")))]


def sentences(max_size: int = 4):
    """A list of words, one of them in no lexicon at times."""
    return st.lists(st.sampled_from((*WORDS, *WORDS, *WORDS, "unseen")), min_size=1, max_size=max_size)


def trees(labels=("S", "NP", "VP"), tags=("N", "V")):
    """Random trees, with unary runs and wide nodes."""
    leaf = st.builds(Tree, st.sampled_from(tags), st.sampled_from(WORDS))
    node = st.recursive(
        leaf,
        lambda below: st.builds(Tree, st.sampled_from(labels), st.lists(below, min_size=1, max_size=5)),
        max_leaves=14,
    )
    return node.map(lambda tree: Tree("TOP", [tree]))
