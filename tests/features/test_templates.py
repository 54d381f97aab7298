"""Hashed features against the tuples of values they stand for."""

import numpy as np
import pytest

from certus.errors import InvalidInput
from certus.features import templates as T
from certus.features.encode import PAD, Encoder
from certus.features.templates import Templates
from certus.kernels import features as kernel
from certus.kernels.features import ABSENT
from certus.text import Sentence, Token

BITS = 32  # so many that two features hardly ever share an index, and none do here

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


def spelt_out(templates, part, names):
    """Each feature as a tuple, in the order the kernel writes them."""
    h, m = part[:2]
    low, high = min(h, m), max(h, m)
    distance = next(k for k, most in enumerate((1, 2, 3, 4, 6, 10, 15, 20, 30, 10**9)) if high - low <= most)
    sides = [None if v == ABSENT else 0 if v < low else 1 if v < high else 2 for v in part[2:]]
    several = len(part) in (3, 4)
    shape = (h < m, *sides) if several else (distance, h < m)
    order = ["<root>", "DET", "NOUN", "VERB", "ADJ", "PUNCT"]
    tags = [column(v, "p") for v in range(low + 1, high)]
    counts = tuple(min(tags.count(column(v, "p")), 3) for v in (h, m))
    plain, between = [], []
    for line in templates.ordered[0]:
        values = [line]
        for word in (w for w in line.split() if "." in w):
            place, attribute = word.split(".")
            values.append((word, column(part[templates.roles.index(place[0])] + int(place[1:] or 0), attribute)))
        if "b" in line.split():
            between.append(tuple(values))
        else:
            extra = counts if "q" in line.split() else names if "y" in line.split() else None
            plain.append((*values, extra))
    out = [*([] if several else plain), *((*values, shape) for values in plain)]
    for tag in sorted(set(tags), key=order.index):
        for values in between:
            out += [(*values, tag), (*values, tag, shape)]
    return out


SETS = {
    "arc": T.ARC_WITH_CLUSTERS,
    "sibling": T.SIBLING_WITH_CLUSTERS,
    "grandparent": T.GRANDPARENT_WITH_CLUSTERS,
    "grandsibling": T.GRANDSIBLING,
    "trisibling": T.TRISIBLING,
    "label": T.LABEL,
    "name": T.NAME,
    "sibling with names": T.with_names(T.SIBLING),
    "first filter": T.FIRST_FILTER,
    "second filter": T.SECOND_FILTER,
}


@pytest.mark.parametrize("name", SETS)
def test_features_are_equal_exactly_when_what_they_see_is(name):
    templates = SETS[name]
    tags = ("DET", "NOUN", "VERB", "ADJ", "PUNCT")
    batch = Encoder(tags, ("the", "dog"), {"dog": "0010110", "cat": "0010111"}).encode([Sentence([]), sentence()])
    rng = np.random.default_rng(3)
    n, words = len(WORDS), batch.sentence(1)
    index, again = np.empty(templates.max_features, dtype=np.uint64), np.empty(templates.max_features, dtype=np.uint64)
    codes = kernel.role_codes(words, templates.arrays)
    meaning = {}
    for _ in range(60):
        h, m = rng.choice(n + 1, 2, replace=False)
        rest = [ABSENT if rng.random() < 0.2 else rng.integers(0, n + 1) for _ in templates.roles[2:]]
        part = np.array([h, m, *rest], dtype=np.int64)
        names = np.uint32(rng.integers(2) * 2654435769)
        arguments = (words, part, names, templates.arrays, BITS)
        count = kernel.named_features(*arguments, index)
        assert kernel.summed_features(codes, *arguments, again) == count
        assert index[:count].tolist() == again[:count].tolist()
        expected = spelt_out(templates, part.tolist(), int(names))
        assert count == len(expected)
        for i, feature in zip(index[:count].tolist(), expected, strict=True):
            assert 0 <= i < 1 << BITS
            assert meaning.setdefault(i, feature) == feature
    assert len(set(meaning.values())) == len(meaning)


def test_a_pad_row_stands_before_and_after_every_sentence():
    batch = Encoder(("DET",)).encode([sentence(), sentence()])
    assert batch.base.tolist() == [PAD, PAD + len(WORDS) + 1 + 2 * PAD]
    assert (batch.coarse[batch.base] == 0).all()


@pytest.mark.parametrize("kind", [np.int8, np.float32])
def test_sums_of_weights_are_wider_than_a_weight(kind):
    assert kernel.total_weight(np.full(4, 100, dtype=kind), np.zeros(11, dtype=np.uint64), np.uint64(11)) == 1100


def test_marks_do_not_mix():
    with pytest.raises(InvalidInput, match="more than one of y, q, b"):
        _ = Templates("hm", ("h.t b q",)).arrays


@pytest.mark.parametrize("line", ["h.w x.t", "h.w m.q", "h+3.w", "h", "0.w", "h0.w"])
def test_a_component_that_is_none_is_named(line):
    with pytest.raises(
        InvalidInput, match=r"is no component; write role\[\+-1 or 2\]\.attribute with a role out of h, m"
    ):
        _ = Templates("hm", (line,)).arrays


@pytest.mark.parametrize("line", ["0.zz", "3.w", "w", "h.w", "1.w"])
def test_a_component_of_single_words_has_an_offset_and_no_role(line):
    with pytest.raises(InvalidInput, match=r"is no component; write offset\.attribute .* out of w, s3\."):
        _ = Templates("", (line,), ("w", "s3")).arrays
    arrays = Templates("", ("0.w", "-1.w 0.s3"), ("w", "s3")).arrays
    (_, offset, column), ptr, seed = arrays.component.T, arrays.ptr, arrays.seed
    assert ptr.tolist() == [0, 1, 3]
    assert (offset.tolist(), column.tolist()) == ([0, -1, 0], [0, 0, 1])
    assert len(set(seed.tolist())) == 2


def test_templates_are_written_on_lines_or_between_slashes():
    assert T.template_lines("  h.w  m.w  # of words\n\n 0.w / -1.w 0.w\n") == ("h.w m.w", "0.w", "-1.w 0.w")


def test_an_encoder_needs_words():
    with pytest.raises(InvalidInput, match="no word to learn from"):
        Encoder.of([Sentence([])])


def test_unknown_coarse_tags_share_one_number():
    odd = Sentence([Token(1, "a", upos="X"), Token(2, "b", upos="Y")])
    batch = Encoder(("DET",)).encode([odd])
    assert batch.coarse[batch.base[0] + 1] == batch.coarse[batch.base[0] + 2] == 63


def tagged(*words):
    return [Sentence([Token(i, w, upos=u, xpos=x, feats=f) for i, (w, u, x, f) in enumerate(words, 1)])]


@pytest.mark.parametrize(
    ("words", "fine", "last"),
    [
        ([("a", "N", "NN", "Number=Sing"), ("b", "N", "NNS", "Number=Plur")], True, "NNS"),
        ([("a", "N", "NN", "Number=Sing"), ("b", "N", "NN", "Number=Plur")], True, "N|Number=Plur"),
        ([("a", "N", "_", "Number=Sing"), ("b", "V", "_", "_")], True, "V"),
        ([("a", "N", "NN", "_"), ("b", "V", "VB", "_")], False, "V"),
    ],
)
def test_morphology_makes_fine_tags_where_there_are_none(words, fine, last):
    sentences = tagged(*words)
    encoder = Encoder.of(sentences)
    assert encoder.fine is fine
    assert encoder.values(sentences[0].tokens[-1])["t"] == last


def test_without_fine_tags_each_template_is_there_once():
    coarse = T.with_coarse_tags(T.SIBLING)
    assert not any(".t" in line for line in coarse.lines)
    assert len(set(coarse.lines)) == len(coarse.lines)
    assert set(coarse.lines) < set(T.SIBLING.lines)
