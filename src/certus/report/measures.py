"""Plots of what was measured: time by length, learning curves, calibration of confidences. Needs matplotlib."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from certus.errors import InvalidInput
from certus.evaluate.calibration import BINS, calibration_error, reliability
from certus.report.convergence import COLORS, figure_of, finish

_EPOCH = re.compile(r"(?P<stage>[^:]+) (?P<epoch>\d+)/\d+: .*\bdev (?:UAS )?(?P<score>[\d.]+)")


def plot_lengths(
    path: str | os.PathLike[str], lengths: Sequence[int], seconds: Sequence[float], *, title: str = ""
) -> None:
    """Seconds of each sentence by its number of words, and the median of each length."""
    n, t = np.asarray(lengths, dtype=np.int64), np.asarray(seconds, dtype=np.float64)
    if not len(n) or n.shape != t.shape:
        raise InvalidInput(f"there are {len(n)} lengths and {len(t)} times; expected as many, and at least one.")
    figure, (axes,) = figure_of(1, title)
    axes.scatter(n, 1000 * t, s=8, color=COLORS[0], alpha=0.35, label="sentences", linewidths=0)
    known = np.unique(n)
    axes.plot(known, [1000 * float(np.median(t[n == k])) for k in known], color=COLORS[1], label="median")
    axes.set_yscale("log")
    finish(figure, [axes], path, "milliseconds", "words")


def learning_curves(lines: Iterable[str]) -> dict[str, list[float]]:
    """Accuracy on dev after each epoch, by what was trained, from the messages of certus train."""
    curves: dict[str, list[float]] = {}
    for line in lines:
        found = _EPOCH.match(line.strip())
        if found is not None:
            curves.setdefault(found["stage"], []).append(float(found["score"]))
    return curves


def plot_learning(path: str | os.PathLike[str], curves: Mapping[str, Sequence[float]], *, title: str = "") -> None:
    """Accuracy on dev by epoch, a line for each training."""
    if not any(curves.values()):
        raise InvalidInput("there is no epoch with an accuracy on dev; keep what certus train --dev says on stderr.")
    figure, (axes,) = figure_of(1, title)
    for color, (name, values) in zip(COLORS * len(curves), curves.items(), strict=False):
        axes.plot(range(1, len(values) + 1), values, color=color, marker="o", markersize=3, label=name)
    finish(figure, [axes], path, "% right on dev", "epoch")


def plot_calibration(
    path: str | os.PathLike[str], right: ArrayLike, confidences: Mapping[str, ArrayLike], *, title: str = ""
) -> None:
    """Accuracy by confidence, for one or several sets of confidences in the same arcs."""
    figure, (axes,) = figure_of(1, title)
    axes.plot([0, 1], [0, 1], color=COLORS[5], linewidth=1, linestyle=":", label="calibrated")
    for color, (name, shares) in zip(COLORS * len(confidences), confidences.items(), strict=False):
        bins = reliability(shares, right, BINS)
        label = f"{name}: error {calibration_error(shares, right):.4f}"
        axes.plot([b.confidence for b in bins], [b.accuracy for b in bins], color=color, marker="o", label=label)
    finish(figure, [axes], path, "share right", "confidence")
