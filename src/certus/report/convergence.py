"""Plots of relaxations at work: dual and primal values, and what a limit on the rounds costs (LR 4.6, app. A).

Needs matplotlib (``pip install 'certus[plot]'``). Every function draws into one figure, saves it and returns nothing.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from certus.errors import InvalidInput, NotSupported
from certus.result import Trace

COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7d5ba6", "#b8860b", "#5f6c7b")


def plot_values(path: str | os.PathLike[str], trace: Trace, *, title: str = "") -> None:
    """The dual value and the best primal value at each round (LR figures A-1 and A-4)."""
    figure, (axes,) = figure_of(1, title)
    rounds = _rounds(trace)
    axes.plot(rounds, trace.dual, color=COLORS[0], label="dual value")
    axes.plot(rounds, _finite(trace.primal), color=COLORS[1], label="best primal value")
    finish(figure, [axes], path, "score")


def plot_best(path: str | os.PathLike[str], trace: Trace, *, title: str = "") -> None:
    """The least dual and the best primal value so far, and beside them the gap between the two (LR figure A-2)."""
    figure, (values, gap) = figure_of(2, title)
    rounds, least, best = _rounds(trace), np.minimum.accumulate(trace.dual), _finite(trace.primal)
    values.plot(rounds, least, color=COLORS[0], label="least dual value")
    values.plot(rounds, best, color=COLORS[1], label="best primal value")
    gap.plot(rounds, least - best, color=COLORS[2], label="gap")
    finish(figure, [values, gap], path, "score")


def plot_steps(path: str | os.PathLike[str], traces: Mapping[str, Trace], *, title: str = "") -> None:
    """The dual value at each round under different step rules (LR figure A-3)."""
    figure, (axes,) = figure_of(1, title)
    for color, (name, trace) in zip(COLORS * len(traces), traces.items(), strict=False):
        axes.plot(_rounds(trace), trace.dual, color=color, label=name)
    finish(figure, [axes], path, "dual value")


def plot_limits(
    path: str | os.PathLike[str], limits: Sequence[int], curves: Mapping[str, ArrayLike], *, title: str = ""
) -> None:
    """Percentages against a limit on the rounds: accuracy, share proved, share as at the end (LR 4-4, 4-5, A-5)."""
    figure, (axes,) = figure_of(1, title)
    for color, (name, values) in zip(COLORS * len(curves), curves.items(), strict=False):
        shares = np.asarray(values, dtype=np.float64)
        if shares.shape != (len(limits),):
            raise InvalidInput(f"curve {name!r} has shape {shares.shape}; expected ({len(limits)},), one per limit.")
        axes.plot(limits, shares, color=color, label=name)
    finish(figure, [axes], path, "%")


def _rounds(trace: Trace) -> Any:
    if not len(trace):
        raise InvalidInput("the trace is empty; only results of a relaxation have one.")
    return np.arange(1, len(trace) + 1)


def _finite(values: ArrayLike) -> Any:
    array = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(array), array, np.nan)


def figure_of(panels: int, title: str) -> tuple[Any, Any]:
    """A figure of so many panels, and these; NotSupported without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise NotSupported("plots need matplotlib; install it with: pip install 'certus[plot]'.") from None
    figure = Figure(figsize=(5.5 * panels, 3.6), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    if title:
        figure.suptitle(title, fontsize=10)
    return figure, axes


def finish(figure: Any, panels: Sequence[Any], path: str | os.PathLike[str], unit: str, across: str = "round") -> None:
    """Name the axes and save the figure."""
    for axes in panels:
        axes.set_xlabel(across)
        axes.set_ylabel(unit)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8)
    figure.savefig(os.fspath(path))
