"""How far confidences can be trusted, and a map that makes them so.

A confidence of 0.8 is calibrated if eight in ten of the arcs that have it are right. The expected calibration error is
the mean distance between confidence and accuracy, over bins of equal width weighted by their size. ``Calibration`` maps
confidences to what was right of those like them in held-out trees: by the non-decreasing function of least squares,
found by pooling adjacent violators.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Bools, Floats
from certus.errors import InvalidInput
from certus.schema import Field
from certus.serialize import floats_to_json, load_json, write_json
from certus.text import Sentence

FORMAT, VERSION = "certus calibration", 1
BINS = 15


class Bin(NamedTuple):
    """Confidences from ``low`` to ``high``: how many, their mean, and the share of them that is right."""

    low: float
    high: float
    size: int
    confidence: float
    accuracy: float


def reliability(confidence: ArrayLike, right: ArrayLike, bins: int = BINS) -> list[Bin]:
    """Confidences in bins of equal width, without the empty ones."""
    share, hit = _checked(confidence, right)
    at = np.minimum((share * bins).astype(np.int64), bins - 1)
    out = []
    for k in range(bins):
        inside = at == k
        if inside.any():
            mean, accuracy = float(share[inside].mean()), float(hit[inside].mean())
            out.append(Bin(k / bins, (k + 1) / bins, int(inside.sum()), mean, accuracy))
    return out


def calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = BINS) -> float:
    """The expected calibration error: 0 is perfect, and 1 the worst there is."""
    found = reliability(confidence, right, bins)
    total = sum(b.size for b in found)
    return sum(b.size * abs(b.confidence - b.accuracy) for b in found) / total if total else 0.0


@dataclass(frozen=True)
class Calibration:
    """A non-decreasing map of confidences, linear between its knots."""

    given: Floats
    right: Floats

    @classmethod
    def fit(cls, confidence: ArrayLike, right: ArrayLike) -> "Calibration":
        """The map of least squares from confidences to what is right; InvalidInput if there are none."""
        share, hit = _checked(confidence, right)
        if not len(share):
            raise InvalidInput("there are no confidences to calibrate; give trees with words.")
        values, place, count = np.unique(share, return_inverse=True, return_counts=True)
        hits = np.bincount(place, hit)
        blocks: list[tuple[float, float, float]] = []  # sums of confidences and of hits, and how many
        for x, y, n in zip((values * count).tolist(), hits.tolist(), count.tolist(), strict=True):
            while blocks and blocks[-1][1] * n >= y * blocks[-1][2]:
                before = blocks.pop()
                x, y, n = x + before[0], y + before[1], n + before[2]
            blocks.append((x, y, n))
        means = np.array([(x / n, y / n) for x, y, n in blocks])
        return cls(means[:, 0], means[:, 1])

    def __call__(self, confidence: ArrayLike) -> Floats:
        """Calibrated confidences."""
        return np.interp(np.asarray(confidence, dtype=np.float64), self.given, self.right)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map as JSON, whole or not at all."""
        data = {"given": floats_to_json(self.given), "right": floats_to_json(self.right)}
        write_json(path, {"format": FORMAT, "version": VERSION, **data})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Calibration":
        """Read what ``save`` wrote; FormatError for anything else."""
        return load_json(path, cls._read)

    @classmethod
    def _read(cls, data: Any) -> "Calibration":
        given = Field(data).format(FORMAT, VERSION)
        x = given["given"].scores((None,))
        y = given["right"].scores((len(x),))
        for field, values in (("given", x), ("right", y)):
            if not len(x) or not (np.isfinite(values).all() and (np.diff(values) >= 0).all()):
                given[field].fail("numbers that do not decrease, at least one")
            if values[0] < 0 or values[-1] > 1:
                given[field].fail("numbers from 0 to 1")
        return cls(x, y)


def arcs_right(gold: Iterable[Sentence], parsed: Iterable[Sentence]) -> tuple[list[float], list[bool]]:
    """The confidence in the head of every word (Confidence in MISC), and whether it is the gold one."""
    shares: list[float] = []
    right: list[bool] = []
    for number, (a, b) in enumerate(zip(gold, parsed, strict=True), start=1):
        found = b.confidences()
        if found is None or a.words != b.words:
            what = "has no confidences" if found is None else "has other words than the gold one"
            raise InvalidInput(f"sentence {number} {what}; parse the gold file with certus parse --confidences.")
        shares += found
        right += [x.head == y.head for x, y in zip(a, b, strict=True)]
    return shares, right


def _checked(confidence: ArrayLike, right: ArrayLike | Sequence[bool]) -> tuple[Floats, Bools]:
    share, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.bool_)
    if share.ndim != 1 or share.shape != hit.shape:
        raise InvalidInput(f"confidences have shape {share.shape} and what is right {hit.shape}; expected one length.")
    if len(share) and not (share.min() >= 0 and share.max() <= 1):
        raise InvalidInput(f"confidences lie between {share.min()} and {share.max()}; expected 0 to 1.")
    return share, hit
