"""Every question of Constituency against enumeration by an oracle that knows no binarisation and no charts."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Constituency, Grammar, Infeasible, InvalidInput, NotSupported, Tree
from certus.io.brackets import parse_tree
from tests.constituency.strategies import grammars, sentences
from tests.oracles import cfg

TOY = """
1 S -> NP VP
2 NP -> N
0 NP -> D N
3 VP -> V
1 VP -> V NP
0 N -> "dogs"
1 N -> "bark"
1 V -> "bark"
0 V -> "dogs"
0 D -> "the"
"""


@st.composite
def problems(draw, max_size=4):
    rules = draw(grammars())
    words = draw(sentences(max_size))
    grammar = Grammar.from_text("\n".join(map(str, rules)))
    return Constituency(grammar, words), dict(cfg.trees(rules, "S", words))


@st.composite
def penalised(draw):
    problem, found = draw(problems())
    cell = st.one_of(st.integers(-8, 8), st.integers(-1, 1), st.sampled_from([0, -np.inf]))
    size = problem.n * len(problem.tags)
    penalty = np.array(draw(st.lists(cell, min_size=size, max_size=size)), dtype=float).reshape(problem.views["tags"])
    adjusted = {}
    for tree, score in found.items():
        cells = [penalty[i, problem.tags.index(tag)] for i, tag in enumerate(tree.tags)]
        adjusted[tree] = score + sum(cells)
    return problem, {"tags": penalty}, adjusted


@given(problems())
def test_scores_and_structures(case):
    problem, found = case
    if not found:
        with pytest.raises(Infeasible):
            problem.decode()
        assert problem.reference_maximum() == -np.inf
        return
    assert {tree: problem.score(tree) for tree in found} == found
    result = problem.decode()
    assert result.score == max(found.values()) == result.certificate.bound
    assert found[result.structure] == result.score
    assert result.certificate.exact
    structures = list(problem.all_structures())
    assert len(structures) == len(found)
    assert set(structures) == set(found)
    assert [r.score for r in problem.kbest(len(found) + 1)] == sorted(found.values(), reverse=True)


@given(problems())
def test_sums(case):
    problem, found = case
    if not found:
        with pytest.raises(Infeasible):
            problem.log_partition()
        with pytest.raises(Infeasible):
            problem.marginals()
        return
    top = max(found.values())
    total = top + math.log(sum(math.exp(score - top) for score in found.values()))
    assert problem.log_partition() == pytest.approx(total, abs=1e-9)
    chance = {tree: math.exp(score - total) for tree, score in found.items()}
    expected = np.zeros(problem.views["tags"])
    for tree, p in chance.items():
        expected += p * problem.indicator(tree, "tags")
    np.testing.assert_allclose(problem.marginals()["tags"], expected, atol=1e-9)
    entropy = -sum(p * math.log(p) for p in chance.values() if p > 0)
    assert problem.entropy() == pytest.approx(entropy, abs=1e-7)
    assert set(problem.sample(3, seed=1)) <= set(found)


@given(penalised())
def test_penalties(case):
    problem, penalties, found = case
    best = max(found.values(), default=-np.inf)
    assert problem.reference_maximum(penalties) == best
    if best == -np.inf:
        with pytest.raises(Infeasible):
            problem.solve(penalties)
        with pytest.raises(Infeasible):
            problem.max_marginals(penalties)
        return
    solution = problem.solve(penalties)
    assert solution.value == best == found[solution.structure]
    expected = np.full(problem.views["tags"], -np.inf)
    for tree, score in found.items():
        used = problem.indicator(tree, "tags") > 0
        expected[used] = np.maximum(expected[used], score)
    np.testing.assert_array_equal(problem.max_marginals(penalties)["tags"], expected)


@given(problems(max_size=3), st.data())
def test_fixed_tags(case, data):
    problem, found = case
    cell = data.draw(st.integers(0, problem.n - 1)), data.draw(st.integers(0, len(problem.tags) - 1))
    value = data.draw(st.integers(0, 1))
    fixed = problem.with_fixed("tags", cell, value)
    kept = [score for tree, score in found.items() if problem.indicator(tree, "tags")[cell] == value]
    assert fixed.reference_maximum() == max(kept, default=-np.inf)
    if kept:
        assert fixed.decode().score == max(kept)
    else:
        with pytest.raises(Infeasible):
            fixed.decode()


@given(problems())
def test_travels_as_json(case):
    problem, found = case
    copy = Constituency.from_json(problem.to_json())
    assert copy.tags == problem.tags
    assert copy.reference_maximum() == problem.reference_maximum()
    for tree, score in found.items():
        assert copy.score(copy.structure_from_json(problem.structure_to_json(tree))) == score


@given(grammars(), st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3), st.data())
def test_given_lexical_scores(rules, words, data):
    grammar = Grammar.from_text("\n".join(map(str, rules)))
    n, size = len(words), len(grammar.tags)
    cells = st.lists(st.one_of(st.integers(-8, 8), st.just(-np.inf)), min_size=n * size, max_size=n * size)
    lexical = np.array(data.draw(cells), dtype=float).reshape(n, size)
    problem = Constituency(grammar, words, lexical=lexical)
    # The oracle sees a sentence of n different words, each with the given scores.
    expected = [rule for rule in rules if rule.word is None]
    for i in range(n):
        expected += [cfg.Rule(lexical[i, t], tag, word=f"w{i}") for t, tag in enumerate(grammar.tags)]
    best = max((score for _, score in cfg.trees(expected, "S", [f"w{i}" for i in range(n)])), default=-np.inf)
    assert problem.reference_maximum() == best
    if best > -np.inf:
        assert problem.decode().score == best


# -- single cases ----------------------------------------------------------------------------------------------------


def toy(*words: str) -> Constituency:
    return Constituency(Grammar.from_text(TOY), words)


def test_ties_are_broken_the_same_way_each_time():
    grammar = Grammar.from_text('0 S -> S S\n0 S -> "a"')
    first = Constituency(grammar, ["a"] * 6).solve().structure
    assert all(Constituency(grammar, ["a"] * 6).solve().structure == first for _ in range(3))


def test_counting_gives_catalan_numbers():
    grammar = Grammar.from_text('0 S -> S S\n0 S -> "a"')
    for n, catalan in ((1, 1), (2, 1), (3, 2), (8, 429), (12, 58786)):
        assert math.exp(Constituency(grammar, ["a"] * n).log_partition()) == pytest.approx(catalan)


def test_counting_gives_little_schroeder_numbers():
    grammar = Grammar.from_text('0 S -> S S\n0 S -> S S S\n0 S -> S S S S\n0 S -> S S S S S\n0 S -> "a"')
    for n, trees in ((1, 1), (2, 1), (3, 3), (4, 11), (5, 45)):
        assert math.exp(Constituency(grammar, ["a"] * n).log_partition()) == pytest.approx(trees)


def test_no_words():
    with pytest.raises(Infeasible, match="no words"):
        toy().decode()
    assert toy().reference_maximum() == -np.inf
    with pytest.raises(Infeasible, match="no words"):
        toy().log_partition()


def test_unknown_word_is_named():
    with pytest.raises(Infeasible, match=r'word 2 \("meow"\) has no tag: it is not in the lexicon'):
        toy("dogs", "meow").decode()


def test_failing_span_is_named():
    with pytest.raises(Infeasible, match=r'Words 1-2 \("the dogs"\) can be NP; .* word 3 \("the"\)'):
        toy("the", "dogs", "the").decode()
    with pytest.raises(Infeasible, match="they can be NP, but that does not make a S"):
        toy("the", "dogs").decode()


def test_forbidden_word_is_named():
    penalty = np.zeros((2, 3))
    penalty[1] = -np.inf
    with pytest.raises(Infeasible, match=r'word 2 \("bark"\) has no tag that any rule uses under the given penalties'):
        toy("dogs", "bark").solve({"tags": penalty})


def test_unknown_words_by_rule():
    grammar = Grammar.from_text(TOY + "-3 N -> <unknown>")
    assert str(Constituency(grammar, ["cats", "bark"]).decode().structure) == "(S (NP (N cats)) (VP (V bark)))"


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        ({"tags": np.zeros((1, 3))}, "shape"),
        ({"tags": np.full((2, 3), np.nan)}, "nan"),
        ({"arcs": np.zeros((2, 3))}, "no view 'arcs'"),
    ],
)
def test_wrong_penalties(penalty, message):
    with pytest.raises(InvalidInput, match=message):
        toy("dogs", "bark").solve(penalty)


def test_wrong_arguments():
    grammar = Grammar.from_text(TOY)
    with pytest.raises(InvalidInput, match="is the string"):
        Constituency(grammar, "dogs bark")
    with pytest.raises(InvalidInput, match=r"words\[0\] is 3"):
        Constituency(grammar, [3])
    with pytest.raises(InvalidInput, match=r"lexical has shape \(1, 2\)"):
        Constituency(grammar, ["dogs"], lexical=[[0, 0]])
    problem = toy("dogs", "bark")
    with pytest.raises(InvalidInput, match="words are"):
        problem.score(parse_tree("(S (N cats))"))
    with pytest.raises(InvalidInput, match='root is "NP"'):
        problem.score(parse_tree("(NP (N dogs) (N bark))"))
    with pytest.raises(InvalidInput, match=r"expected a certus\.Tree"):
        problem.score("(S)")
    with pytest.raises(InvalidInput, match='tag "X"'):
        problem.indicator(parse_tree("(S (X dogs) (N bark))"), "tags")
    with pytest.raises(InvalidInput, match="cannot fix"):
        problem.with_fixed("tags", (2, 0), 1)
    assert problem.score(parse_tree("(S (N dogs) (N bark))")) == -np.inf


def test_damaged_json():
    data = toy("dogs", "bark").to_json()
    for key in data:
        broken = {k: v for k, v in data.items() if k != key}
        with pytest.raises(InvalidInput, match=f"{key} is missing"):
            Constituency.from_json(broken)
    with pytest.raises(InvalidInput, match="entries is a list of 1; expected 2 items"):
        Constituency.from_json(data | {"entries": data["entries"][:1]})
    with pytest.raises(InvalidInput, match=r"entries\[0\]\[0\]\[0\] is 'Q'; expected one of 'D', 'N', 'V'"):
        Constituency.from_json(data | {"entries": [[["Q", [], 0.0]], []]})


def test_memory_is_estimated_first(monkeypatch):
    monkeypatch.setattr(Constituency, "memory_limit", 10)
    with pytest.raises(NotSupported, match=r"limit is 0\.0 GiB"):
        toy("dogs", "bark").decode()


def test_long_sentences():
    n = 200
    grammar = Grammar.from_text('1 S -> "a" \n 0 S -> S S\n0 S -> S X S\n2 X -> "a"')
    result = Constituency(grammar, ["a"] * n).decode()
    assert len(result.structure.words) == n
    # Every X needs an S on either side: at most 99 of 200 words are X, 2 points instead of 1.
    assert result.score == 99 * 2 + 101
    problem = Constituency(grammar, ["a"] * n)
    assert problem.structure_from_json(problem.structure_to_json(result.structure)) == result.structure


def test_certificate_is_verified():
    problem = toy("dogs", "bark")
    result = problem.decode()
    certus.verify(problem, result)
    with pytest.raises(certus.VerificationError):
        certus.verify(problem, dataclasses.replace(result, score=result.score + 1))


@settings(max_examples=10)
@given(grammars(), st.integers(8, 14), st.integers(0, 2**32 - 1))
def test_chart_forest_and_reference_agree_on_longer_sentences(rules, n, seed):
    rng = np.random.default_rng(seed)
    words = rng.choice(["a", "b"], n).tolist()
    problem = Constituency(Grammar.from_text("\n".join(map(str, rules))), words)
    penalties = {"tags": rng.integers(-8, 9, problem.views["tags"]).astype(float)}
    best = problem.reference_maximum(penalties)
    if best == -np.inf:
        with pytest.raises(Infeasible):
            problem.solve(penalties)
        return
    general = super(Constituency, problem)
    assert problem.solve(penalties).value == general.solve(penalties).value == best
    np.testing.assert_array_equal(problem.max_marginals(penalties)["tags"], general.max_marginals(penalties)["tags"])
    assert problem.log_partition() == pytest.approx(general.log_partition(), abs=1e-8)
    np.testing.assert_allclose(problem.marginals()["tags"], general.marginals()["tags"], atol=1e-8)


def test_trees_are_plain():
    grammar = Grammar.from_text('0 S -> A A A A\n0 A -> B\n0 B -> C\n0 C -> "a"')
    tree = Constituency(grammar, ["a"] * 4).decode().structure
    assert tree == Tree("S", [Tree("A", [Tree("B", [Tree("C", "a")])])] * 4)


def test_words_with_brackets_and_spaces_travel():
    grammar = Grammar.from_text('0 S -> A B\n0 A -> "("\n0 B -> "two words"')
    problem = Constituency(grammar, ["(", "two words"])
    tree = problem.decode().structure
    assert str(tree) == "(S (A -LRB-) (B two words))"
    assert problem.structure_from_json(problem.structure_to_json(tree)) == tree


@pytest.mark.parametrize(
    "data",
    [None, "(S (N dogs) (V bark))", 3, [["S", None, 2]], [["S", "a", 0], ["S", "a", 0]], [[1, 2]], [[1, "a", 0]]],
)
def test_damaged_structures(data):
    with pytest.raises(InvalidInput):
        toy("dogs", "bark").structure_from_json(data)
