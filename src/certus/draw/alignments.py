"""Alignments of two sentences, and the phrases by which one was translated into the other."""

from collections.abc import Iterable, Sequence

from certus.draw.svg import Canvas, Picture, legend, shortened, width_of

MARGIN, GAP, DROP = 14.0, 14.0, 84.0


def alignment(
    source: Sequence[str],
    target: Sequence[str],
    links: Iterable[tuple[int, int]],
    *,
    other: Iterable[tuple[int, int]] | None = None,
    title: str = "Alignment",
) -> Picture:
    """Two sentences one above the other, with links (i, j) of their words, counted from 0; a second set dashed."""
    canvas = Canvas()
    tops, right = _line(canvas, source, 24.0)
    feet, far = _line(canvas, target, 24.0 + DROP)
    mine = {(int(i), int(j)) for i, j in links}
    theirs = None if other is None else {(int(i), int(j)) for i, j in other}
    for i, j in sorted(mine | (theirs or set())):
        both = theirs is None or ((i, j) in mine and (i, j) in theirs)
        classes = "third" if both else "first bold" if (i, j) in mine else "second dash bold"
        named = {"data_part": f"{i}-{j}", "title": f"{source[i]} – {target[j]}"}
        canvas.path(f"M{tops[i]:.1f} 32L{feet[j]:.1f} {10 + DROP:.1f}", classes, **named)
    height = DROP + 40
    if theirs is not None:
        meaning = {"first": "only in the first", "second dash": "only in the second"}
        far = max(far, legend(canvas, MARGIN, height + 8, meaning))
        height += 20
    said = "; ".join(f"{source[i]} – {target[j]}" for i, j in sorted(mine))
    return canvas.picture(max(right, far) + MARGIN, height, f"{title}: {' '.join(source)}", said)


def _line(canvas: Canvas, words: Sequence[str], y: float) -> tuple[list[float], float]:
    """Words in a row; their middles, and where they end."""
    x, out = MARGIN, []
    for i, word in enumerate(words):
        wide = width_of(shortened(word))
        canvas.text(x + wide / 2, y, shortened(word), "ink w", data_word=i)
        out.append(x + wide / 2)
        x += wide + GAP
    return out, x


def phrases(
    source: Sequence[str],
    segments: Sequence[tuple[int, int, Sequence[str]]],
    *,
    covered: Sequence[int] | None = None,
    title: str = "Phrases",
) -> Picture:
    """A translation by phrases: source words above, the phrases below in the order in which they were translated.

    Parameters
    ----------
    source : sequence of str
    segments : sequence of (start, end, words)
        Source words start .. end - 1, counted from 0, became these words; first to last in the translation.
    covered : sequence of int, optional
        How often each source word is translated; those that are not translated once are marked.
    """
    canvas = Canvas()
    x, tops = MARGIN, []
    for i, word in enumerate(source):
        wide = width_of(shortened(word)) + 8
        if covered is not None and covered[i] != 1:
            canvas.box(x, 10, wide, 24, "mark")
            canvas.text(x + wide / 2, 58, f"{covered[i]}×", "orange l b halo")
        canvas.text(x + wide / 2, 28, shortened(word), "ink w", data_part=i)
        tops.append((x, x + wide))
        x += wide + 8
    right, x, y = x, MARGIN, 28.0 + DROP
    for k, (start, end, words) in enumerate(segments):
        text = shortened(" ".join(words), 40) or "∅"
        wide = width_of(text) + 16
        left_top, right_top = tops[start][0], tops[end - 1][1]
        classes = "sure3" if k % 2 else "sure4"
        title_of = f"{' '.join(source[start:end])} – {' '.join(words)}"
        canvas.path(f"M{left_top:.1f} 38H{right_top:.1f}", f"{classes} bold")
        canvas.path(
            f"M{(left_top + right_top) / 2:.1f} 38C{(left_top + right_top) / 2:.1f} 74 {x + wide / 2:.1f} 50 "
            f"{x + wide / 2:.1f} {y - 20:.1f}",
            classes,
            title=title_of,
        )
        canvas.box(x, y - 20, wide, 28, "tint" if k % 2 else "panel", title=title_of)
        canvas.text(x + wide / 2, y, text, "ink w")
        x += wide + 6
    said = "; ".join(f"{' '.join(source[a:b])} – {' '.join(words)}" for a, b, words in segments)
    text = " ".join(word for _, _, words in segments for word in words) + "\n"
    return canvas.picture(max(right, x) + MARGIN, y + 20, f"{title}: {' '.join(source)}", said, text)
