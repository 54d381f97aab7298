"""Tags of words as a lattice: a column of tags for each word, larger where they are likelier, and the best path."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from certus.checks import Floats
from certus.draw.svg import Canvas, Picture, legend, shortened, width_of

ROW, MARGIN, MOST = 38.0, 14.0, 5


def lattice(
    words: Sequence[str],
    path: Sequence[int],
    tags: Sequence[str],
    *,
    marginals: ArrayLike | None = None,
    other: Sequence[int] | None = None,
    width: float = 1080.0,
    title: str = "Tags",
) -> Picture:
    """The tags of a sentence, and with marginals the likeliest others beside them.

    Parameters
    ----------
    words : sequence of str
    path : sequence of int
        The tag of each word, by its place in ``tags``.
    tags : sequence of str
    marginals : array_like of shape (n, T), optional
        Probability of each tag of each word: dots are as large. Without them only tags that are used are shown.
    other : sequence of int, optional
        A second path, dashed.
    """
    share = None if marginals is None else np.asarray(marginals, dtype=np.float64)
    columns = [_column(i, path, other, share) for i in range(len(words))]
    texts = [[tags[t] for t in column] for column in columns]
    wide = [
        max([width_of(shortened(w)), *(width_of(t, 12) for t in shown)]) + 26
        for w, shown in zip(words, texts, strict=True)
    ]
    canvas, y, right, low = Canvas(), 12.0, 0.0, 0
    while low < len(words):
        high, edge = low, MARGIN
        places: list[float] = []
        while high < len(words) and (high == low or edge + wide[high] <= width - MARGIN):
            places.append(edge + wide[high] / 2)
            edge += wide[high]
            high += 1
        spots = dict(zip(range(low, high), places, strict=True))
        y = _band(canvas, y, spots, words, columns, tags, share, (path, other))
        right, low = max(right, edge), high
    if other is not None:
        right = max(right, legend(canvas, MARGIN, y + 4, {"first": "the first", "second dash": "the second"}))
        y += 18
    said = "; ".join(f"{w}: {tags[t]}" for w, t in zip(words, path, strict=True))
    wordwise = max(map(len, words), default=0)
    text = "".join(f"{w.ljust(wordwise)}  {tags[t]}\n" for w, t in zip(words, path, strict=True))
    return canvas.picture(right + MARGIN, y + 4, f"{title}: {' '.join(words)}", said, text)


def _column(i: int, path: Sequence[int], other: Sequence[int] | None, share: Floats | None) -> list[int]:
    """The tags that a word is drawn with: the likeliest, those on the paths among them."""
    used = {int(path[i])} | ({int(other[i])} if other is not None else set())
    if share is not None:
        likely = np.argsort(-share[i], kind="stable")[:MOST]
        used |= {int(t) for t in likely if share[i, t] >= 0.001}
        return sorted(used, key=lambda t: (-float(share[i, t]), t))
    return sorted(used, key=lambda t: t != path[i])


def _band(
    canvas: Canvas,
    top: float,
    places: dict[int, float],
    words: Sequence[str],
    columns: list[list[int]],
    tags: Sequence[str],
    share: Floats | None,
    paths: tuple[Sequence[int], Sequence[int] | None],
) -> float:
    """Draw the words that have a place from left to right; returns where the next band begins."""
    tall, y = max(len(columns[i]) for i in places), top + 36
    for path, classes in zip(paths, ("first bold", "second dash"), strict=True):
        if path is not None:
            spots = [(x, y + ROW * columns[i].index(int(path[i]))) for i, x in places.items()]
            canvas.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in spots), classes)
    for i, x in places.items():
        canvas.open("word", data_word=i + 1)
        canvas.text(x, top + 12, shortened(words[i]), "ink w")
        for k, t in enumerate(columns[i]):
            part = 1.0 if share is None else float(share[i, t])
            best = t == int(paths[0][i])
            title = f"{words[i]}: {tags[t]}" + ("" if share is None else f", {part:.1%}")
            radius = 2.5 + 5.5 * np.sqrt(max(part, 0.0))
            part_of = {"data_part": f"{i}-{t}", "title": title}
            canvas.dot(x, y + ROW * k, radius, "blue" if best else "soft", **part_of)
            canvas.text(x, y + ROW * k + 20, tags[t], "ink l b halo" if best else "soft l halo", **part_of)
        canvas.close()
    return top + 30 + ROW * tall + 4
