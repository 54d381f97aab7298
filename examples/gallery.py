"""The drawings of the documentation: writes them into a folder, by default the present one.

Trees with confidences, crossing arcs, two analyses in one picture, phrases, tags, marginals, a forest, phrases of a
translation, and the proof of a joint parse in pictures.

    python examples/gallery.py docs/images/gallery
"""

import sys
from pathlib import Path

import numpy as np

import certus
from certus import draw
from certus.data import demo_grammar, demo_tagger
from certus.io.brackets import parse_tree
from certus.report.film import film
from certus.text import Sentence

ATTACHMENTS = [
    "(S (NP (PRP I)) (VP (VBD saw) (NP (DT a) (NN man)) (PP (IN with) (NP (DT a) (NN telescope)))))",
    "(S (NP (PRP I)) (VP (VBD saw) (NP (NP (DT a) (NN man)) (PP (IN with) (NP (DT a) (NN telescope))))))",
]
LONG = (
    "The committee said on Monday that the bridge over the river , which was built by a company from the north "
    "when the old road had become too narrow for the trucks that carried stones to the harbour every day , "
    "will be closed for two years because the engineers who looked at it in the spring found that the steel "
    "below the road is much weaker than the plans of the city had promised , and that nobody can say how long "
    "it would hold the trains ."
)
WORDS = ["Red", "flies", "some", "large", "jet"]


def dependencies() -> dict[str, draw.Picture]:
    """A parse of the bundled model, coloured by confidence; arcs that cross; two analyses."""
    text = Sentence.from_words(
        ["I", "saw", "a", "man", "with", "a", "telescope", "in", "the", "park", "yesterday", "."]
    )
    (parsed,) = certus.load().parse([text], confidences=True)
    crossing = ["Een", "hoorzitting", "is", "vandaag", "gepland", "hierover"]
    heads = [-1, 2, 3, 0, 5, 3, 2]
    labels = ["det", "su", "root", "mod", "vc", "mod"]
    long = Sentence.from_words(LONG.split())
    (banded,) = certus.load().parse([long], confidences=True)
    one = ["I", "saw", "a", "man", "with", "a", "telescope"]
    return {
        "parse": parsed.picture(),
        "crossing": draw.arcs(crossing, heads, labels=labels),
        "long": banded.picture(),
        "rivals": draw.arcs(one, [-1, 2, 0, 4, 2, 7, 7, 2], alternatives=[(4, 7, 0.45), (4, 5, 0.04), (2, 5, 0.06)]),
        "two": draw.arcs(one, [-1, 2, 0, 4, 2, 7, 7, 2], other=[-1, 2, 0, 4, 2, 7, 7, 4]),
    }


def structures() -> dict[str, draw.Picture]:
    """Phrases, tags, marginals, a forest, phrases of a translation."""
    problem = certus.Constituency(demo_grammar(), WORDS)
    tagger = demo_tagger().tagging(WORDS)
    arcs = certus.Dependency(2 * np.random.default_rng(1).normal(size=(6, 6)))
    forest = [(0, []), (1, []), (2, []), (3, [0, 1]), (4, [1, 2]), (5, [3, 2]), (5, [0, 4])]
    tagged = tagger.decode().structure
    phrases = problem.decode().structure
    telescope = [parse_tree(text) for text in ATTACHMENTS]
    assert tagger.tags is not None
    return {
        "phrases": phrases.picture(),
        "heads": draw.phrase_tree(telescope[0].preorder(), heads=[-1, 2, 0, 4, 2, 2, 7, 5]),
        "two-trees": draw.phrase_tree(telescope[0].preorder(), other=telescope[1].preorder()),
        "alignment": draw.alignment(
            ["das", "ist", "ja", "ein", "kleines", "Haus"],
            ["this", "is", "indeed", "a", "small", "house"],
            [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)],
            other=[(0, 0), (1, 1), (2, 1), (3, 3), (4, 4), (5, 5)],
        ),
        "tags": draw.lattice(WORDS, tagged, tagger.tags, marginals=tagger.marginals()["tags"]),
        "marginals": draw.heat(arcs.marginals()["arcs"][:, 1:], ["root", *WORDS], WORDS),
        "forest": draw.hypergraph(6, forest, names=["old", "men", "women", "NP", "NP", "S"], used=[0, 1, 2, 4, 6]),
        "translation": draw.phrases(
            ["das", "ist", "ja", "ein", "kleines", "Haus"],
            [(0, 2, ["this", "is"]), (2, 3, ["indeed"]), (3, 6, ["a", "small", "house"])],
        ),
    }


def proof() -> dict[str, draw.Picture]:
    """Grammar and tagger at the first and the last round of their proof, and the values on the way."""
    grammar, tagger = certus.Constituency(demo_grammar(), WORDS), demo_tagger().tagging(WORDS)
    joint = certus.Joint(grammar, tagger, on="tags")
    reel = film(joint, WORDS)
    assert reel is not None
    values = {"dual value": [f.dual for f in reel.frames], "best score so far": [f.primal for f in reel.frames]}
    alone, together = (grammar.decode().structure, tagger.decode().structure), joint.decode().structure
    return {
        "round-1": draw.stacked(agreement(tagger, *alone), f"Round 1: {reel.frames[0].said}"),
        "round-last": draw.stacked(agreement(tagger, *together), f"The last round: {reel.frames[-1].said}"),
        "values": draw.curves(values, width=520, height=200),
    }


def agreement(tagger: certus.Tagging, tree: certus.Tree, tags: np.ndarray) -> list[draw.Picture]:
    """A tree, and below it the tags of the tagger beside those of the tree."""
    assert tagger.tags is not None
    own = [tagger.tags.index(tag) for tag in tree.tags]
    return [tree.picture(), draw.lattice(WORDS, tags, tagger.tags, other=own)]


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in (dependencies() | structures() | proof()).items():
        picture.save(folder / f"{name}.svg")
        print(f"{name}.svg: {picture.width:.0f} x {picture.height:.0f}")
