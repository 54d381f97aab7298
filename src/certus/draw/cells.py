"""Heat maps of marginals, and rows of cells: sequences of anything."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from certus.draw.svg import Canvas, Picture, shortened, width_of

LEAST = 0.005  # of the largest value: what is smaller leaves its cell empty


def heat(
    values: ArrayLike,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    marked: Sequence[tuple[int, int]] = (),
    title: str = "Marginals",
) -> Picture:
    """A matrix of values from 0 on as shades, with numbers where there is room; ``marked`` cells have a frame."""
    array = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, neginf=0.0)
    most = float(array.max(initial=0.0)) or 1.0
    small = max(array.shape, default=0) > 16
    size = 13.0 if small else 34.0
    left = 14 + max((width_of(shortened(r, 16), 11) for r in rows), default=0.0)
    above = 14 + max((width_of(shortened(c, 16), 11) for c in columns), default=0.0)
    canvas = Canvas()
    for j, name in enumerate(columns):
        x = left + (j + 0.5) * size
        canvas.text(
            x + 4,
            above - 4,
            shortened(name, 16),
            "ink l",
            "start",
            transform=f"rotate(-90 {x + 4:.1f} {above - 4:.1f})",
        )
    frame = {(int(i), int(j)) for i, j in marked}
    for i, name in enumerate(rows):
        y = above + i * size
        canvas.text(left - 6, y + size / 2 + 4, shortened(name, 16), "ink l", "end")
        for j in range(len(columns)):
            share, x = array[i, j] / most, left + j * size
            if share < LEAST and (i, j) not in frame:
                continue
            said = f"{rows[i]}, {columns[j]}: {array[i, j]:.4g}"
            cell = {"data_part": f"{i}-{j}", "title": said, "fill_opacity": f"{max(share, 0.04):.2f}"}
            canvas.box(x + 0.5, y + 0.5, size - 1, size - 1, "blue", **cell)
            if (i, j) in frame:
                canvas.add("rect", "stroke second bold", x=x + 1, y=y + 1, width=size - 2, height=size - 2, rx=3)
            if not small and share >= 0.01:
                shade = "ink s halo" if share < 0.6 else "paper s b"
                canvas.text(x + size / 2, y + size / 2 + 4, f"{array[i, j]:.2f}", shade)
    if not small:
        canvas.path(f"M{left} {above}H{left + size * len(columns)}V{above + size * len(rows)}H{left}Z", "faint thin")
    top = sorted(((float(array[i, j]), i, j) for i, j in np.argwhere(array > LEAST * most)), reverse=True)[:30]
    said = "; ".join(f"{rows[i]}, {columns[j]}: {v:.3g}" for v, i, j in top)
    return canvas.picture(left + size * len(columns) + 14, above + size * len(rows) + 12, title, said)


def row(items: Sequence[str], *, notes: Sequence[str] | None = None, width: float = 1080.0, title: str = "") -> Picture:
    """Items side by side in boxes, each with a note below it; they go on below where there are many."""
    canvas, x, y = Canvas(), 12.0, 10.0
    right, tall = 0.0, 26 + (15 if notes is not None else 0)
    for i, item in enumerate(items):
        note = notes[i] if notes is not None else ""
        wide = max(width_of(shortened(item), 14), width_of(note, 11)) + 16
        if x > 12 and x + wide > width:
            x, y = 12.0, y + tall + 10
        canvas.box(x, y, wide, 26, "panel", data_part=i)
        canvas.text(x + wide / 2, y + 18, shortened(item), "ink w")
        if note:
            canvas.text(x + wide / 2, y + 39, note, "soft l")
        x += wide + 6
        right = max(right, x)
    said = " ".join(f"{item} ({notes[i]})" if notes is not None else item for i, item in enumerate(items))
    return canvas.picture(right + 6, y + tall + 10, title or "Sequence", said, " ".join(items) + "\n")
