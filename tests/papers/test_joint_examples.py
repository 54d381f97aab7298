"""Worked examples of LR chapter 4: the run of example 4.2.1 and the fractional vertex of example 4.4.1."""

import numpy as np
import pytest

import certus
from certus import Constituency, Grammar, Joint, Tagging
from certus.relax import steps
from certus.relax.linear import solve_ilp, solve_lp

UNITED = """
0 S -> NP VP
0 NP -> A N
0 NP -> N
0 NP -> D A N
0 VP -> D A V
-1 VP -> V NP
0 A -> "United"
0 N -> "United"
0 N -> "flies"
0 V -> "flies"
0 D -> "some"
0 A -> "large"
0 N -> "jet"
0 V -> "jet"
"""


def united():
    """The trees of the figures are lost; these scores give the tags that the text describes."""
    grammar = Grammar.from_text(UNITED)
    words = ["United", "flies", "some", "large", "jet"]
    number = {tag: t for t, tag in enumerate(grammar.tags)}
    unary = np.full((5, len(number)), -np.inf)
    allowed = [{"N": 0, "A": -1}, {"V": 0, "N": -1}, {"D": 0}, {"A": 0}, {"N": 0, "V": -5}]
    for i, row in enumerate(allowed):
        for tag, score in row.items():
            unary[i, number[tag]] = score
    size = len(number)
    tagger = Tagging(unary, trigram=np.zeros((size, size, size)), tags=grammar.tags)
    return Joint(Constituency(grammar, words), tagger, on="tags"), number


def tags_under(problem, multipliers):
    """The tags that parser and tagger choose at these multipliers (algorithm 6)."""
    y = problem.problems[0].solve({"tags": multipliers}).structure
    z = problem.problems[1].solve({"tags": -multipliers}).structure
    return " ".join(y.tags), " ".join(problem.problems[1].names(z))


def test_example_4_2_1_a_run_of_the_algorithm():
    problem, number = united()

    def multipliers(**values):
        out = np.zeros(problem.views["tags"])
        for name, value in values.items():
            out[int(name[1]) - 1, number[name[0]]] = value
        return out

    first = multipliers()
    second = multipliers(A1=-1, N2=-1, V5=-1, N1=1, V2=1, N5=1)
    # The text gives N5 = -1 and V5 = 1 here. Neither can follow: a step of 1 moves a multiplier by 1 at most. What the
    # update leaves at position 5, where the second round agrees, is the same with the signs exchanged.
    third = multipliers(N5=1, V5=-1)
    assert tags_under(problem, first) == ("A N D A V", "N V D A N")
    assert tags_under(problem, second) == ("N V D A N", "A N D A N")
    assert tags_under(problem, third) == ("N V D A N", "N V D A N")

    result = problem.decode(step=steps.constant(1.0), exact=False)
    assert result.iterations == 3
    assert result.certificate.kind == "dual"
    assert result.certificate.exact
    assert " ".join(result.structure[0].tags) == "N V D A N"
    assert result.score == -1.0
    np.testing.assert_array_equal(result.certificate.duals["tags"], third)
    assert result.trace.step.tolist() == [1.0, 1.0, 0.0]
    certus.verify(problem, result)


FRACTIONAL = """
0 X -> A X
0 X -> A B
0 X -> B A
-2 X -> A A
-2 X -> B B
0 A -> "w1"
0 A -> "w2"
0 B -> "w2"
0 A -> "w3"
0 B -> "w3"
"""


def fractional():
    """The parser likes A A B and A B A; the tagger likes A A A and A B B."""
    grammar = Grammar.from_text(FRACTIONAL)
    a, b = grammar.tags.index("A"), grammar.tags.index("B")
    unary = np.full((3, len(grammar.tags)), -np.inf)
    unary[:, [a, b]] = 0.0
    unary[0, b] = -np.inf
    bigram = np.zeros((3, len(grammar.tags), len(grammar.tags)))
    bigram[2, a, b] = bigram[2, b, a] = -2.0
    return (
        Joint(Constituency(grammar, ["w1", "w2", "w3"]), Tagging(unary, bigram=bigram, tags=grammar.tags), on="tags"),
        a,
        b,
    )


def test_example_4_4_1_a_fractional_vertex():
    problem, a, b = fractional()
    report = solve_lp(problem)
    assert report.value == pytest.approx(0.0, abs=1e-9)
    assert report.fractional
    expected = np.zeros(problem.views["tags"])
    expected[0, a] = 1.0
    expected[1:, [a, b]] = 0.5  # half of A A A and A B B, half of A A B and A B A: the single tags agree
    np.testing.assert_allclose(report.views["tags"], expected, atol=1e-6)
    assert {index for _, index, _ in report.parts()} == {(1, a), (1, b), (2, a), (2, b)}


def test_example_4_4_1_relaxation_leaves_a_gap_and_branching_closes_it():
    problem, _, _ = fractional()
    relaxed = problem.decode(exact=False, max_iterations=100)
    assert relaxed.certificate.bound == pytest.approx(0.0, abs=1e-6)
    assert relaxed.score == -2.0
    assert not relaxed.certificate.exact
    result = problem.decode()
    assert result.score == solve_ilp(problem).score == -2.0
    assert result.certificate.exact
    assert result.certificate.kind == "branch and bound"
    for r in (relaxed, result):
        certus.verify(problem, r)
