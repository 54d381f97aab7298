"""The programs of phrase lattices, against all translations."""

import numpy as np
import pytest
from hypothesis import given, settings

from certus import Infeasible, InvalidInput, NotSupported
from certus.translation import phrase_program
from tests.translation.phrase_cases import every_score, phrase_problems
from tests.translation.test_phrase_problem import words


@settings(deadline=None, max_examples=40)
@given(phrase_problems(max_words=3))
def test_the_linear_program_bounds_and_the_integer_program_is_best(problem):
    scores = every_score(problem)
    try:
        report = phrase_program.solve_lp(problem)
    except Infeasible:
        assert not scores
        return
    if scores:
        assert report.value >= scores[0] - 1e-6
    covered = np.zeros(problem.n)
    for k, o in enumerate(problem.options):
        covered[o.start : o.end + 1] += report.views["options"][k]
    assert np.allclose(covered, 1.0, atol=1e-6)
    assert sum(share for share, _ in report.mixtures[0]) == pytest.approx(1.0, abs=1e-6)
    try:
        best = problem.score(phrase_program.solve_ilp(problem))
    except (Infeasible, InvalidInput):  # no path covers each word once; or one that leaves a word out of reach is best
        assert not scores or problem.window
        return
    assert best == pytest.approx(scores[0], abs=1e-6)


def test_a_path_that_repeats_a_word_is_a_fraction():
    report = phrase_program.solve_lp(words(3, distortion=0.0))
    assert report.value >= words(3, distortion=0.0).decode().score - 1e-6
    assert report.fractional == bool(report.parts())


def test_long_sentences_are_refused(monkeypatch):
    monkeypatch.setattr(phrase_program, "MOST_EDGES", 10)
    with pytest.raises(NotSupported, match="short sentences"):
        phrase_program.solve_lp(words(5))
