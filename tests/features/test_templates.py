"""Hashed features against the tuples of values they stand for."""

import numpy as np
import pytest

from certus.errors import InvalidInput
from certus.features import templates as T
from certus.features.encode import PAD, Encoder
from certus.features.templates import Templates
from certus.io.conllu import Sentence, Token
from certus.kernels import features as kernel
from certus.kernels.features import ABSENT

BITS = 40  # so many that two features never share an index here

WORDS = [
    ("The", "the", "DET", "DT"),
    ("dog", "dog", "NOUN", "NN"),
    ("saw", "see", "VERB", "VBD"),
    ("the", "the", "DET", "DT"),
    ("old", "old", "ADJ", "JJ"),
    ("cat", "cat", "NOUN", "NN"),
    (".", ".", "PUNCT", "."),
]


def sentence():
    return Sentence([Token(i, w, lemma, u, x) for i, (w, lemma, u, x) in enumerate(WORDS, 1)])


def column(v, attribute):
    """What the attribute of node v is, in words."""
    if v == 0:
        return "<root>"
    if v < 0:
        return "<before>" if v == -1 else "<none>"
    if v > len(WORDS):
        return "<after>"
    form, lemma, upos, xpos = WORDS[v - 1]
    path = {"dog": "0010110", "cat": "0010111"}.get(form, "none")
    named = {"w": form, "l": lemma, "p": upos, "t": xpos, "f": "_", "a": path[:4], "b": path[:6], "c": path}
    return named[attribute] if attribute != "v" else form if form in ("the", "dog") else f"<{upos}>"


def spelt_out(templates, part):
    """Each feature as a tuple, in the order the kernel writes them."""
    h, m = part[:2]
    low, high = min(h, m), max(h, m)
    distance = next(k for k, most in enumerate((1, 2, 3, 4, 6, 10, 15, 20, 30, 10**9)) if high - low <= most)
    sides = [None if v == ABSENT else 0 if v < low else 1 if v < high else 2 for v in part[2:]]
    shape = (distance, h < m, *sides)
    order = ["<root>", "DET", "NOUN", "VERB", "ADJ", "PUNCT"]
    inside = sorted({column(v, "p") for v in range(low + 1, high)}, key=order.index)
    out = []
    for line in templates.lines:
        values = []
        for word in (w for w in line.split() if w != "b"):
            place, attribute = word.split(".")
            values.append((word, column(part[templates.roles.index(place[0])] + int(place[1:] or 0), attribute)))
        for tag in inside if "b" in line.split() else [None]:
            out += [(line, *values, tag), (line, *values, tag, shape)]
    return out


SETS = {
    "arc": T.ARC_WITH_CLUSTERS,
    "sibling": T.SIBLING_WITH_CLUSTERS,
    "grandparent": T.GRANDPARENT_WITH_CLUSTERS,
    "grandsibling": T.GRANDSIBLING_WITH_CLUSTERS,
    "trisibling": T.TRISIBLING,
    "label": T.LABEL,
    "first filter": T.FIRST_FILTER,
    "second filter": T.SECOND_FILTER,
}


@pytest.mark.parametrize("name", SETS)
def test_features_are_equal_exactly_when_what_they_see_is(name):
    templates = SETS[name]
    tags = ("DET", "NOUN", "VERB", "ADJ", "PUNCT")
    batch = Encoder(tags, ("the", "dog"), {"dog": "0010110", "cat": "0010111"}).encode([Sentence([]), sentence()])
    rng = np.random.default_rng(3)
    n = len(WORDS)
    index = np.empty(templates.most, dtype=np.uint64)
    meaning = {}
    for _ in range(300):
        h, m = rng.choice(n + 1, 2, replace=False)
        rest = [ABSENT if rng.random() < 0.2 else rng.integers(0, n + 1) for _ in templates.roles[2:]]
        part = np.array([[h, m, *rest]], dtype=np.int64)
        count = kernel.part_features(
            batch.attribute, batch.coarse, int(batch.base[1]), part, 0, *templates.arrays, BITS, index
        )
        expected = spelt_out(templates, part[0].tolist())
        assert count == len(expected)
        for i, feature in zip(index[:count].tolist(), expected, strict=True):
            assert 0 <= i < 1 << BITS
            assert meaning.setdefault(i, feature) == feature
    assert len(set(meaning.values())) == len(meaning)


def test_a_pad_row_stands_before_and_after_every_sentence():
    batch = Encoder(("DET",)).encode([sentence(), sentence()])
    assert batch.base.tolist() == [PAD, PAD + len(WORDS) + 1 + 2 * PAD]
    assert (batch.coarse[batch.base] == 0).all()


@pytest.mark.parametrize("line", ["h.w x.t", "h.w m.q", "h+3.w", "h"])
def test_a_component_that_is_none_is_named(line):
    with pytest.raises(InvalidInput, match="is no component"):
        _ = Templates("hm", (line,)).arrays


def test_an_encoder_needs_words():
    with pytest.raises(InvalidInput, match="no word to learn from"):
        Encoder.of([Sentence([])])


def test_unknown_coarse_tags_share_one_number():
    odd = Sentence([Token(1, "a", upos="X"), Token(2, "b", upos="Y")])
    batch = Encoder(("DET",)).encode([odd])
    assert batch.coarse[batch.base[0] + 1] == batch.coarse[batch.base[0] + 2] == 63
