"""Grammars with rules of their own against enumeration, and against the graph that spells them out."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import AnchoredGrammar, Infeasible, InvalidInput, NotSupported, constraints
from certus.structures import anchored_grammar, anchored_sums
from tests.oracles import structures as oracle
from tests.structures.test_programs import grammars


def some(n, phrases=2, tags=2, seed=0, scale=1.0):
    rng, size = np.random.default_rng(seed), phrases + tags
    shapes = ((phrases,), (phrases, size, size), (n, tags))
    return [scale * rng.normal(size=shape) for shape in shapes]


@given(grammars())
@settings(max_examples=60)
def test_sums_are_those_of_enumeration(drawn):
    _, listed, arguments = drawn
    problem = AnchoredGrammar(**arguments)
    trees = [(y, sum(parts)) for y, parts in listed(**arguments) if sum(parts) > -np.inf]
    best = np.full(problem.shape, -np.inf)
    for y, score in trees:
        for cell in y:
            best[cell] = max(best[cell], score)
    np.testing.assert_array_equal(problem.max_marginals()["spans"], best)
    if not trees:
        for ask in (problem.marginals, problem.entropy, lambda: problem.sample(1)):
            with pytest.raises(Infeasible):
                ask()
        return
    total = np.logaddexp.reduce([score for _, score in trees])
    expected = {name: np.zeros(array.shape) for name, array in problem.arrays.items()}
    starts = np.cumsum([0, *(array.size for array in expected.values())])
    for y, score in trees:
        for part in problem.parts_of(y).tolist():
            k = int(np.searchsorted(starts, part, side="right")) - 1
            list(expected.values())[k].reshape(-1)[part - starts[k]] += np.exp(score - total)
    for least in (anchored_sums.LEAST, 2.0):  # by weights where they lie together, and by logs
        again = AnchoredGrammar(**arguments)
        with patch.object(anchored_sums, "LEAST", least):
            assert again.log_partition() == pytest.approx(total)
            for name, uses in expected.items():
                np.testing.assert_allclose(again.part_marginals(name), uses, atol=1e-12)
            np.testing.assert_array_equal(again.marginals()["spans"], again.part_marginals("span"))
            entropy = -sum(np.exp(s - total) * (s - total) for _, s in trees)
            assert again.entropy() == pytest.approx(entropy, abs=1e-9)
            allowed = {y for y, _ in trees}
            assert all(y in allowed for y in again.sample(5, seed=0))


def test_samples_come_as_often_as_they_should():
    problem = AnchoredGrammar(*some(3, 1, 2))
    total, count = problem.log_partition(), 4000
    drawn = problem.sample(count, seed=1)
    for y, parts in oracle.grammar_trees(*some(3, 1, 2)):
        chance = np.exp(sum(parts) - total)
        assert drawn.count(y) / count == pytest.approx(chance, abs=5 * np.sqrt(chance / count) + 1e-3)


def test_what_is_too_large_to_spell_out_is_proved_by_what_is_left_above_a_score(tmp_path):
    spelt, arguments = AnchoredGrammar(*some(6, 3, 2)), some(6, 3, 2)
    ranks = spelt.kbest(4)
    with patch.object(anchored_grammar, "MOST_EDGES", 0):
        problem = AnchoredGrammar(*arguments)
        assert problem.searched
        found = problem.kbest(4)
        assert [r.score for r in found] == [r.score for r in ranks]
        for result in (problem.decode(), *found):
            assert result.certificate.exact
            certus.verify(problem, result)
        certus.save_result(tmp_path / "tree.json", problem, found[1])
        certus.verify(*certus.load_result(tmp_path / "tree.json"))
        anchored_grammar._layout.cache_clear()
        with pytest.raises(NotSupported, match="too many rules"):
            AnchoredGrammar(*arguments).forest()
        anchored_grammar._layout.cache_clear()
    for result in ranks:
        certus.verify(spelt, result)


def test_a_grammar_under_constraints_and_joined_with_another():
    arguments = some(4)
    problem = AnchoredGrammar(*arguments)
    trees = [(y, sum(parts)) for y, parts in oracle.grammar_trees(*arguments)]
    limited = problem.subject_to(constraints.require("spans", (1, 3, 0)))
    result = limited.decode()
    assert result.score == pytest.approx(max(score for y, score in trees if (1, 3, 0) in y))
    certus.verify(limited, result)
    other = AnchoredGrammar(*some(4, seed=1))
    joint = certus.Joint(problem, other, on="spans")
    both = joint.decode()
    second = {y: sum(parts) for y, parts in oracle.grammar_trees(*some(4, seed=1))}
    assert both.score == pytest.approx(max(score + second[y] for y, score in trees))
    assert both.certificate.exact
    certus.verify(joint, both)


@given(st.floats(50.0, 2000.0))
@settings(max_examples=5)
def test_weights_that_lie_far_apart_lose_nothing(scale):
    arguments = some(4, scale=scale)
    total = np.logaddexp.reduce([sum(parts) for _, parts in oracle.grammar_trees(*arguments)])
    assert AnchoredGrammar(*arguments).log_partition() == pytest.approx(total)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: AnchoredGrammar([], np.zeros((0, 1, 1)), [[0.0]]), "expected some of both"),
        (lambda: AnchoredGrammar([0.0], np.zeros((1, 3, 3)), [[0.0]]), r"rule has shape \(1, 3, 3\)"),
        (lambda: AnchoredGrammar([0.0], np.zeros((1, 2, 2)), [[0.0]]).score(((0, 1, 1),)), "less than two words"),
        (lambda: AnchoredGrammar([0.0], np.zeros((1, 2, 2)), [[0.0]] * 2).score(((0, 2, 1),)), "a symbol from 0 to 0"),
    ],
)
def test_what_makes_no_grammar_or_tree_is_refused(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()
