"""Plots of measurements: what they read, what they refuse, and that they are drawn where matplotlib is installed."""

import pytest

from certus.errors import InvalidInput
from certus.report import measures

LOG = [
    "first filter 1/3: 9.1% wrong, objective 3",
    "trees 1/2: 9.10% wrong, dev UAS 80.50",
    "trees 2/2: 8% wrong, dev UAS 81",
]


def test_learning_curves_are_read_from_messages():
    assert measures.learning_curves(LOG) == {"trees": [80.5, 81.0]}
    assert measures.learning_curves(["labels 3/6: 4.00% wrong, dev 93.2"]) == {"labels": [93.2]}


def test_there_must_be_something_to_plot(tmp_path):
    with pytest.raises(InvalidInput, match="no epoch"):
        measures.plot_learning(tmp_path / "a.svg", {})
    with pytest.raises(InvalidInput, match="0 lengths"):
        measures.plot_lengths(tmp_path / "a.svg", [], [])


def test_figures(tmp_path):
    pytest.importorskip("matplotlib")
    measures.plot_learning(tmp_path / "1.svg", measures.learning_curves(LOG), title="dev")
    measures.plot_lengths(tmp_path / "2.svg", [1, 2, 2], [0.1, 0.2, 0.3])
    measures.plot_calibration(tmp_path / "3.svg", [True, False], {"raw": [0.9, 0.4], "fitted": [1.0, 0.0]})
    assert all((tmp_path / f"{k}.svg").read_text().startswith("<?xml") for k in range(1, 4))
