"""Calibration: errors by hand, maps that do not decrease and fit best, files that are refused."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus.errors import FormatError, InvalidInput
from certus.evaluate import Calibration, calibration_error, reliability
from certus.evaluate.calibration import arcs_right
from certus.text import Sentence, Token

pairs = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), st.booleans()), min_size=1, max_size=40)


def test_the_error_of_a_few_arcs():
    shares, right = [0.9, 0.9, 0.9, 0.9, 0.1], [True, True, True, False, False]
    assert calibration_error(shares, right, bins=10) == pytest.approx((4 * 0.15 + 1 * 0.1) / 5)
    assert [(b.size, b.accuracy) for b in reliability(shares, right, bins=10)] == [(1, 0.0), (4, 0.75)]
    assert calibration_error([], []) == 0.0
    assert calibration_error([1.0, 1.0], [True, True]) == 0.0


@given(pairs)
def test_a_fitted_map_does_not_decrease_and_keeps_the_share_that_is_right(found):
    shares, right = map(np.array, zip(*found, strict=True))
    fitted = Calibration.fit(shares, right)
    assert (np.diff(fitted.given) > 0).all()
    assert (np.diff(fitted.right) > 0).all()
    grid = fitted(np.linspace(0, 1, 21))
    assert (np.diff(grid) >= 0).all()
    assert grid.min() >= 0
    assert grid.max() <= 1


def test_the_map_is_that_of_least_squares():
    levels = np.array([0.1, 0.4, 0.7])
    shares = np.repeat(levels, 4)
    right = np.array([1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0], dtype=bool)
    fitted = Calibration.fit(shares, right)
    blocks = np.array([fitted.right[np.abs(fitted.given - x).argmin()] for x in levels])
    best = min(
        (sum((np.repeat(y, 4) - right) ** 2), y)
        for y in product(np.linspace(0, 1, 41), repeat=3)
        if list(y) == sorted(y)
    )
    assert blocks == pytest.approx(best[1], abs=0.03)


def test_maps_travel(tmp_path):
    fitted = Calibration.fit([0.2, 0.8, 0.9], [False, True, True])
    fitted.save(tmp_path / "c.json")
    again = Calibration.load(tmp_path / "c.json")
    assert again([0.2, 0.5, 0.95]).tolist() == fitted([0.2, 0.5, 0.95]).tolist()


@pytest.mark.parametrize(
    ("given", "right", "message"),
    [
        ([0.5, 0.2], [0.1, 0.2], "do not decrease"),
        ([], [], "at least one"),
        ([0.1, 2.0], [0.1, 0.2], "from 0 to 1"),
        ([0.1], [0.1, 0.2], "right"),
    ],
)
def test_files_that_are_no_maps(tmp_path, given, right, message):
    path = tmp_path / "c.json"
    path.write_text(f'{{"format": "certus calibration", "version": 1, "given": {given}, "right": {right}}}')
    with pytest.raises(FormatError, match=message):
        Calibration.load(path)


def test_what_cannot_be_measured():
    with pytest.raises(InvalidInput, match="no confidences"):
        Calibration.fit([], [])
    with pytest.raises(InvalidInput, match="0 to 1"):
        calibration_error([1.5], [True])
    with pytest.raises(InvalidInput, match="one length"):
        calibration_error([0.5], [True, False])


def test_arcs_of_parses_against_gold():
    gold = Sentence([Token(1, "a", head=2), Token(2, "b", head=0)])
    parsed = Sentence([Token(1, "a", head=0, misc="Confidence=0.5"), Token(2, "b", head=0, misc="Confidence=1.0")])
    assert arcs_right([gold], [parsed]) == ([0.5, 1.0], [False, True])
    with pytest.raises(InvalidInput, match="has no confidences"):
        arcs_right([gold], [gold])
    with pytest.raises(InvalidInput, match="other words"):
        arcs_right([Sentence.from_words(["x", "y"])], [parsed])
