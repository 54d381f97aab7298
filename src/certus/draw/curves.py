"""Curves over rounds: what a relaxation's trace draws itself with."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Floats
from certus.draw.svg import Canvas, Picture, legend

STYLES = ("first", "second", "third", "sure1 dash", "sure3 dash")
LEFT, TOP, BOTTOM = 78.0, 14.0, 46.0


def curves(
    series: Mapping[str, ArrayLike],
    *,
    width: float = 640.0,
    height: float = 260.0,
    title: str = "Convergence",
) -> Picture:
    """Several series of values over 1, 2, 3, ...; what is not finite is left out.

    Axes end where the values do, without the first rounds where these are far off: the last nine tenths decide.
    """
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in series.items()}
    size = max((len(a) for a in arrays.values()), default=0)
    low, high = _range(list(arrays.values()))
    wide, tall = width - LEFT - 16, height - TOP - BOTTOM
    canvas = Canvas()
    for value in _ticks(low, high):
        y = TOP + tall * (high - value) / (high - low)
        canvas.path(f"M{LEFT} {y:.1f}H{LEFT + wide:.1f}", "faint thin")
        canvas.text(LEFT - 8, y + 4, f"{value:.6g}", "soft l", "end")
    for k in sorted({1, max(1, (size + 1) // 2), max(size, 1)}):
        canvas.text(_x(k, size, wide), TOP + tall + 16, "round 1" if k == 1 else str(k), "soft l")
    for style, (_, values) in zip(STYLES * (1 + len(arrays) // len(STYLES)), arrays.items(), strict=False):
        shown = np.clip(values, low, high)
        steps: list[str] = []
        for k, (given, value) in enumerate(zip(values, shown, strict=True), start=1):
            if np.isfinite(given):
                y = TOP + tall * (high - value) / (high - low)
                steps.append(f"{'L' if steps else 'M'}{_x(k, size, wide):.1f} {y:.1f}")
        if len(steps) == 1:
            steps.append("h0.01")
        if steps:
            canvas.path("".join(steps), style + " bold")
    meaning = {style + " bold": name for style, name in zip(STYLES, arrays, strict=False)}
    legend(canvas, LEFT, height - 10, meaning)
    last = "; ".join(f"{name}: {_last(values)}" for name, values in arrays.items())
    return canvas.picture(width, height, title, f"After {size} rounds: {last}.")


def _x(k: int, size: int, wide: float) -> float:
    return LEFT + wide * (k - 1) / max(size - 1, 1) if size > 1 else LEFT + wide / 2


def _last(values: Floats) -> str:
    known = values[np.isfinite(values)]
    return f"{known[-1]:.6g}" if len(known) else "none"


def _range(arrays: Sequence[Floats]) -> tuple[float, float]:
    """The least and the greatest value, a little more on both sides."""
    known = np.concatenate([a[len(a) // 10 :] for a in arrays] or [np.empty(0)])
    known = known[np.isfinite(known)]
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    more = 0.06 * (high - low) or max(abs(high), 1.0) * 0.05
    return low - more, high + more


def _ticks(low: float, high: float) -> list[float]:
    """Four or so round numbers between the two."""
    raw = (high - low) / 4
    unit = 10.0 ** np.floor(np.log10(raw))
    step = next((m * unit for m in (1, 2, 5, 10) if m * unit >= raw), 10 * unit)
    first = np.ceil(low / step)
    return [float(step * (first + k)) for k in range(8) if step * (first + k) <= high]
