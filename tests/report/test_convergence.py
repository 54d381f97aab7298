"""Plots of relaxations: what they refuse, and that they are drawn where matplotlib is installed."""

import sys

import numpy as np
import pytest

from certus import InvalidInput, Joint, NotSupported, Tagging, Trace
from certus.report import convergence


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(NotSupported, match=r"certus\[plot\]"):
        convergence.plot_limits(tmp_path / "plot.svg", [1], {"share": [50.0]})


def test_figures(tmp_path):
    pytest.importorskip("matplotlib")
    joint = Joint(Tagging([[0, 1], [0, 0]], bigram=[[2, 0], [0, 0]]), Tagging([[0, 0], [0, 3]]), on="tags")
    trace = joint.decode().trace
    convergence.plot_values(tmp_path / "1.svg", trace, title="values")
    convergence.plot_best(tmp_path / "2.svg", trace)
    convergence.plot_steps(tmp_path / "3.svg", {"polyak": trace, "again": trace})
    convergence.plot_limits(tmp_path / "4.svg", [1, 2], {"share": [50.0, 100.0]})
    assert all((tmp_path / f"{k}.svg").read_text().startswith("<?xml") for k in range(1, 5))
    with pytest.raises(InvalidInput, match="expected \\(1,\\)"):
        convergence.plot_limits(tmp_path / "5.svg", [1], {"share": np.zeros(2)})
    with pytest.raises(InvalidInput, match="trace is empty"):
        convergence.plot_values(tmp_path / "5.svg", Trace())
