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
from certus.report.film import film
from certus.text import Sentence

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
    one = ["I", "saw", "a", "man", "with", "a", "telescope"]
    return {
        "parse": parsed.picture(),
        "crossing": draw.arcs(crossing, heads, labels=labels),
        "two": draw.arcs(one, [-1, 2, 0, 4, 2, 7, 7, 2], other=[-1, 2, 0, 4, 2, 7, 7, 4]),
    }


def structures() -> dict[str, draw.Picture]:
    """Phrases, tags, marginals, a forest, phrases of a translation."""
    problem = certus.Constituency(demo_grammar(), WORDS)
    tagger = demo_tagger().tagging(WORDS)
    arcs = certus.Dependency(2 * np.random.default_rng(1).normal(size=(6, 6)))
    forest = [(0, []), (1, []), (2, []), (3, [0, 1]), (4, [1, 2]), (5, [3, 2]), (5, [0, 4])]
    tagged = tagger.decode().structure
    assert tagger.tags is not None
    return {
        "phrases": problem.decode().structure.picture(),
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
    joint = certus.Joint(certus.Constituency(demo_grammar(), WORDS), demo_tagger().tagging(WORDS), on="tags")
    reel = film(joint, WORDS)
    assert reel is not None
    first, last = reel.frames[0], reel.frames[-1]
    values = {"dual value": [f.dual for f in reel.frames], "best score so far": [f.primal for f in reel.frames]}
    return {
        "round-1": draw.stacked([reel.pictures[k] for k in first.shown], f"Round 1: {first.said}"),
        "round-last": draw.stacked([reel.pictures[k] for k in last.shown], f"The last round: {last.said}"),
        "values": draw.curves(values, width=520, height=200),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in (dependencies() | structures() | proof()).items():
        picture.save(folder / f"{name}.svg")
        print(f"{name}.svg: {picture.width:.0f} x {picture.height:.0f}")
