"""Scores to try: small and large, whole and not, masked, cancelling, and in cells that nobody should read."""

import numpy as np

Rng = np.random.Generator
FLOAT32, FLOAT64 = float(np.finfo(np.float32).min), float(np.finfo(np.float64).min)
MASKS = (-1e4, -1e6, -1e9, -1e15, -1e30, FLOAT32, FLOAT64, -np.inf)
UNREAD = (1e20, -1e30, 1e38, 1e300, -FLOAT64)
PLAIN = 100.0  # no score of an ordinary regime is larger, and every mask is

# What is ordinary must be proved; elsewhere float64 may not suffice.
ORDINARY = ("whole", "real", "masked")
REGIMES = (*ORDINARY, "mixed", "cancelling", "wild")


class Scores:
    """Arrays of scores of one regime."""

    def __init__(self, rng: Rng, regime: str) -> None:
        self.rng, self.regime = rng, regime
        self.base = str(rng.choice(["whole", "real"])) if regime == "masked" else regime
        self.share = float(rng.choice([0.0, 0.0, 0.03, 0.1, 0.3]))  # of forbidden parts
        self.masks = (float(rng.choice(MASKS)),) if rng.random() < 0.7 else MASKS

    def __call__(self, *shape: int) -> np.ndarray:
        """An array of this shape; some cells are -inf."""
        values = np.asarray(self.plain(*shape))
        if self.regime in ("masked", "wild"):
            masked = self.rng.random(shape) < 0.25
            values[masked] = self.rng.choice(self.masks, int(masked.sum()))
        values[self.rng.random(shape) < self.share] = -np.inf
        return values

    def plain(self, *shape: int) -> np.ndarray:
        """An array with every cell finite, and no masks."""
        rng = self.rng
        if self.base == "whole":
            return rng.integers(-8, 9, shape).astype(float)
        if self.base == "real":
            return rng.normal(scale=4.0, size=shape)
        if self.base == "cancelling":
            large = rng.choice([0.0, 1e8, -1e8, 2.0**53, -(2.0**53), 1e30, -1e30], shape)
            return np.where(rng.random(shape) < 0.5, large, rng.integers(-8, 9, shape) / 4)
        return rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-6, 38, shape)

    def unread(self, values: np.ndarray, read: np.ndarray) -> None:
        """Put large numbers into cells that are not read, at times."""
        if self.rng.random() < 0.3:
            cells = ~read
            values[cells] = self.rng.choice(UNREAD, int(cells.sum()))
