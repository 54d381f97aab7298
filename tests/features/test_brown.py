"""Brown clusters against merging done the long way, and their files."""

from itertools import combinations, pairwise
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus.errors import FormatError, InvalidInput
from certus.features.brown import Clusters, cluster, read_sentences

TEXT = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=8), min_size=1, max_size=12)


def information(sentences, class_of):
    """N times the mutual information of adjacent classes, with marginals over all occurrences, straight from counts."""
    pairs, left, right = {}, {}, {}
    for sentence in sentences:
        for a, b in pairwise(sentence):
            if a in class_of:
                left[class_of[a]] = left.get(class_of[a], 0) + 1
            if b in class_of:
                right[class_of[b]] = right.get(class_of[b], 0) + 1
            if a in class_of and b in class_of:
                pair = class_of[a], class_of[b]
                pairs[pair] = pairs.get(pair, 0) + 1
    total = sum(c * log(c) for c in pairs.values())
    return total - sum(c * log(c) for side in (left, right) for c in side.values())


def partition(class_of):
    classes = {}
    for word, c in class_of.items():
        classes.setdefault(c, set()).add(word)
    return frozenset(frozenset(words) for words in classes.values())


def reachable_partitions(sentences, size):
    """Every partition that merging the best pair each time can end in: several when pairs tie."""
    counts = {}
    for sentence in sentences:
        for word in sentence:
            counts[word] = counts.get(word, 0) + 1
    first_seen = {word: k for k, word in enumerate(counts)}
    states = [{}]
    for word in sorted(counts, key=lambda w: (-counts[w], first_seen[w])):
        following = {}
        for state in states:
            class_of = {**state, word: word}
            choices = [class_of]
            if len(set(class_of.values())) > size:
                merged = []
                for c, d in combinations(sorted(set(class_of.values())), 2):
                    candidate = {w: c if k == d else k for w, k in class_of.items()}
                    merged.append((information(sentences, candidate), candidate))
                best = max(value for value, _ in merged)
                choices = [candidate for value, candidate in merged if value > best - 1e-7]
            for candidate in choices:
                following[partition(candidate)] = candidate
        states = list(following.values())
    return {partition(state) for state in states}


@given(TEXT, st.integers(1, 5))
def test_clusters_are_those_of_exhaustive_merging(sentences, size):
    found = cluster(sentences, size)
    assert partition(dict(found.paths)) in reachable_partitions(sentences, size)


@given(TEXT, st.integers(1, 5))
def test_bit_strings_are_the_leaves_of_a_binary_tree(sentences, size):
    found = cluster(sentences, size)
    strings = set(found.paths.values())
    words = {w for s in sentences for w in s}
    assert len(strings) == min(size, len(words)) == len(found)
    assert sum(2.0 ** -len(s) for s in strings) == 1.0  # Kraft: prefix-free and complete
    assert not any(a != b and b.startswith(a) for a in strings for b in strings)
    assert dict(found.counts) == {w: sum(s.count(w) for s in sentences) for w in words}


def test_words_used_alike_share_a_cluster():
    nouns, verbs = ["dog", "cat", "horse"], ["ran", "slept", "sang"]
    sentences = [["and", "the", noun, verb, "and", "the"] for noun in nouns for verb in verbs]
    found = cluster(sentences, 4)
    assert len({found.paths[w] for w in nouns}) == 1
    assert len({found.paths[w] for w in verbs}) == 1
    assert found.paths["dog"] != found.paths["ran"]
    assert found.prefix("dog", 1) == found.paths["dog"][:1]
    assert found.prefix("emu") is None


def test_rare_words_are_left_out():
    found = cluster([["a", "b", "a", "c", "a", "b"]], 10, min_count=2)
    assert set(found.paths) == {"a", "b"}
    with pytest.raises(InvalidInput, match="no word to cluster"):
        cluster([["a", "b"]], 10, min_count=2)


def test_paths_file_round_trips(tmp_path):
    found = cluster([["a", "b", "a", "c"], ["b", "a"]], 2)
    found.save(tmp_path / "paths")
    again = Clusters.load(tmp_path / "paths")
    assert again.paths == found.paths
    assert again.counts == found.counts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("01\tword\n", "paths:1: 2 columns"),
        ("01\ta\t3\n0x\tb\t1\n", "paths:2: '0x' is not a string of 0s and 1s"),
        ("01\ta\tmany\n", "paths:1: count is 'many'"),
        ("01\ta\t1\n00\ta\t2\n", "paths:2: the word 'a' comes a second time"),
    ],
)
def test_damaged_paths_file_names_the_line(tmp_path, text, message):
    (tmp_path / "paths").write_text(text)
    with pytest.raises(FormatError, match=message):
        Clusters.load(tmp_path / "paths")


def test_missing_and_cut_files_say_so(tmp_path):
    with pytest.raises(FormatError, match="cannot be read"):
        list(read_sentences(tmp_path / "none.txt"))
    (tmp_path / "cut.gz").write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(FormatError, match="gzip data is damaged or cut short"):
        list(read_sentences(tmp_path / "cut.gz"))
