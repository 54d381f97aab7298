"""Scores by name: counts, and percentages of them."""

Scores = dict[str, float | int]


def percent(part: int, whole: int) -> float:
    """100 part / whole; 0 of nothing."""
    return 100 * part / whole if whole else 0.0
