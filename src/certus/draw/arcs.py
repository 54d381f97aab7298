"""Dependency arcs above the words, in bands where a sentence is long; a second analysis below them.

Arcs are brackets whose heights keep those apart that overlap, so that crossing arcs stay readable. An arc that leaves
its band ends at the margin, with the number of the word it goes to.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, NamedTuple

from certus.draw.plain import plain_arcs
from certus.draw.svg import Canvas, Picture, legend, shortened, sureness, width_of

GAP, RISE, PORT, MARGIN = 16.0, 21.0, 7.0, 14.0
BESIDE = 46.0  # room at the sides of a band, for arcs that go on


class Arc(NamedTuple):
    """One arc as it is drawn; ``below`` the words, if it belongs to the other analysis alone."""

    head: int
    word: int
    label: str
    classes: str
    title: str
    below: bool = False


class _Piece(NamedTuple):
    """What a band shows of an arc: from column a to column b, which are margins where the arc goes on."""

    arc: Arc
    a: int
    b: int
    level: int


def arcs(
    words: Sequence[str],
    heads: Sequence[int] | Iterable[tuple[int, int]],
    *,
    labels: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    confidence: Sequence[float] | None = None,
    other: Sequence[int] | Iterable[tuple[int, int]] | None = None,
    other_labels: Sequence[str] | None = None,
    alternatives: Iterable[tuple[int, int, float]] = (),
    width: float = 1060.0,
    title: str = "Dependency tree",
) -> Picture:
    """A dependency tree, or any set of arcs, over the words of a sentence.

    Parameters
    ----------
    words : sequence of str
        The n words.
    heads : sequence of int of size n + 1, or pairs (head, word)
        ``heads[m]`` is the head of word m, 0 for the root; ``heads[0]`` is not read. Pairs need not be a tree.
    labels, tags, confidence : sequences of size n, optional
        Of the arc into each word, and of the word. What is less sure than 0.5, 0.75, 0.9, 0.99 looks so.
    other, other_labels : optional
        A second analysis: its arcs that are not in the first are drawn below the words.
    alternatives : iterable of (head, word, share)
        Other arcs, in grey.
    width : float
        Of a band, in pixels: a sentence that is wider goes on in the next.
    """
    drawn = _drawn(words, _pairs(heads), labels, confidence, alternatives)
    if other is not None:
        drawn = _compared(drawn, _drawn(words, _pairs(other), other_labels, None, ()))
    columns = _columns(words, tags, drawn)
    canvas, y, wide = Canvas(), 10.0, 0.0
    bands = _bands(columns, width)
    for low, high in bands:
        y, right = _band(canvas, y, (low, high), columns, words, tags, drawn, len(bands) > 1)
        wide = max(wide, right)
    if confidence is not None or other is not None:
        meaning = {"sure4": "at least 99% sure", "sure2": "75% to 90%", "sure0": "below 50%"}
        meaning = meaning if other is None else {"first": "only in the first", "second dash": "only in the second"}
        wide = max(wide, legend(canvas, MARGIN, y + 8, meaning))
        y += 22
    text = plain_arcs(words, drawn, tags)
    return canvas.picture(wide, y + 4, f"{title}: {' '.join(words)}", _said(words, drawn), text)


def _pairs(heads: Sequence[int] | Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    given: list[Any] = list(heads)
    if given and isinstance(given[0], tuple):
        return [(int(h), int(m)) for h, m in given]
    return [(int(h), m) for m, h in enumerate(given) if m and h >= 0]


def _drawn(
    words: Sequence[str],
    pairs: list[tuple[int, int]],
    labels: Sequence[str] | None,
    confidence: Sequence[float] | None,
    alternatives: Iterable[tuple[int, int, float]],
) -> list[Arc]:
    named = ["root", *words]
    out = []
    for h, m in pairs:
        label = shortened(labels[m - 1], 16) if labels is not None else ""
        said = f"{named[h]} → {named[m]}{f' ({label})' if label else ''}"
        if confidence is None:
            out.append(Arc(h, m, label, "line", said))
        else:
            share = float(confidence[m - 1])
            out.append(Arc(h, m, label, sureness(share), f"{said}: {share:.1%}"))
    taken = set(pairs)
    grey = [(int(h), int(m), share) for h, m, share in alternatives if (h, m) not in taken]
    out += [Arc(h, m, "", "faint thin", f"instead: {named[h]} → {named[m]}: {share:.1%}") for h, m, share in grey]
    return out


def _compared(first: list[Arc], second: list[Arc]) -> list[Arc]:
    """Arcs of two analyses: common ones once, those of the first alone in one colour, of the second alone below."""
    a, b = ({(x.head, x.word, x.label) for x in side} for side in (first, second))
    shared = [x._replace(classes="third") for x in first if (x.head, x.word, x.label) in b]
    mine = [x._replace(classes="first bold") for x in first if (x.head, x.word, x.label) not in b]
    theirs = [x._replace(classes="second dash bold", below=True) for x in second if (x.head, x.word, x.label) not in a]
    return [*shared, *mine, *theirs]


def _columns(words: Sequence[str], tags: Sequence[str] | None, drawn: list[Arc]) -> list[float]:
    """How wide each word is with the gap after it: as wide as its ports, and as the labels of arcs between need."""
    ports: dict[int, int] = defaultdict(int)
    for arc in drawn:
        ports[arc.head] += 1
        ports[arc.word] += 1
    wide = []
    for i, word in enumerate(words, start=1):
        texts = [width_of(shortened(word)), width_of(tags[i - 1], 11) if tags is not None else 0.0]
        wide.append(max(*texts, PORT * ports[i]) + GAP)
    for arc in sorted(drawn, key=lambda x: abs(x.head - x.word)):
        if arc.head and arc.label:
            low, high = sorted((arc.head, arc.word))
            between = sum(wide[low:high]) + (wide[low - 1] - wide[high - 1]) / 2
            crowd = PORT * (ports[low] + ports[high] - 2) / 2  # short arcs end at the outer ports of their words
            lacking = width_of(arc.label, 11) + 20 + crowd - between
            for k in range(low - 1, high):
                wide[k] += max(lacking, 0.0) / (high - low + 1)
    return wide


def _bands(columns: Sequence[float], width: float) -> list[tuple[int, int]]:
    """Ranges of words that fit the width, at least one word each, and about equally wide."""
    if sum(columns) <= 1.06 * width - 2 * MARGIN:
        return [(0, len(columns))]
    room = max(width - 2 * BESIDE, 1.0)
    count = ceil(sum(columns) / room)
    share = sum(columns) / count
    out: list[tuple[int, int]] = []
    low, used = 0, 0.0
    for i, wide in enumerate(columns):
        full = len(out) < count - 1 and used + wide / 2 > share
        if i > low and (full or used + wide > 1.06 * room):
            out.append((low, i))
            low, used = i, 0.0
        used += wide
    return [*out, (low, len(columns))]


def _levels(arcs_here: list[Arc], low: int, high: int, below: bool) -> list[_Piece]:
    """The pieces of arcs in a band, each higher than those shorter ones that it overlaps."""
    spans = []
    for arc in arcs_here:
        a, b = sorted((arc.head, arc.word))
        inside = low < arc.head <= high or low < arc.word <= high
        if arc.head and inside and arc.below == below:
            spans.append((max(a, low), min(b, high + 1), arc))
    placed: list[_Piece] = []
    for a, b, arc in sorted(spans, key=lambda s: (abs(s[2].head - s[2].word), s[0])):
        under = [p.level for p in placed if max(p.a, a) < min(p.b, b)]
        placed.append(_Piece(arc, a, b, 1 + max(under, default=0)))
    return placed


def _band(
    canvas: Canvas,
    top: float,
    band: tuple[int, int],
    columns: Sequence[float],
    words: Sequence[str],
    tags: Sequence[str] | None,
    drawn: list[Arc],
    numbered: bool,
) -> tuple[float, float]:
    """Draw one band from ``top`` on; returns where it ends, below and to the right."""
    low, high = band
    side = BESIDE if numbered else MARGIN
    edges = [side]
    for wide in columns[low:high]:
        edges.append(edges[-1] + wide)
    centre = {low + 1 + k: (edges[k] + edges[k + 1]) / 2 for k in range(high - low)}
    centre[low], centre[high + 1] = 2.0, edges[-1] + side - 2
    above, under = _levels(drawn, low, high, False), _levels(drawn, low, high, True)
    roots = [arc for arc in drawn if arc.head == 0 and low < arc.word <= high]
    tallest = max([p.level for p in above], default=0) + (1 if any(not arc.below for arc in roots) else 0)
    base = top + tallest * RISE + 14
    foot = base + 20 + (14 if tags is not None else 0) + (11 if numbered else 0)
    deepest = max([p.level for p in under], default=0) + (1 if any(arc.below for arc in roots) else 0)
    for pieces, below in ((above, False), (under, True)):
        y = foot + 4 if below else base
        of_band = [arc for arc in roots if arc.below == below]
        _draw_arcs(canvas, pieces, of_band, centre, (low, high), y, -RISE if not below else RISE)
    for i in range(low + 1, high + 1):
        _word(canvas, i, centre[i], base + 15, shortened(words[i - 1]), tags, numbered)
    return foot + (deepest * RISE + 14 if deepest else 0) + 12, edges[-1] + side


def _word(canvas: Canvas, i: int, x: float, y: float, word: str, tags: Sequence[str] | None, numbered: bool) -> None:
    canvas.open("word", data_word=i)
    canvas.text(x, y, word, "ink w")
    if tags is not None:
        canvas.text(x, y + 15, tags[i - 1], "soft l")
    if numbered:
        canvas.text(x, y + 14 + (13 if tags is not None else 0), str(i), "soft s")
    canvas.close()


def _draw_arcs(
    canvas: Canvas,
    pieces: list[_Piece],
    roots: list[Arc],
    centre: dict[int, float],
    band: tuple[int, int],
    base: float,
    rise: float,
) -> None:
    """Brackets over their words, grey ones first; arrows where they end, labels on top."""
    ports = _ports(pieces, roots, centre, band)
    up = -1 if rise < 0 else 1
    last = max([p.level for p in pieces], default=0) + 1
    for arc in roots:
        x, y = ports[arc, arc.word], base + last * rise + 4 * up
        attributes = {"data_part": f"0-{arc.word}", "title": arc.title}
        canvas.path(f"M{x:.1f} {y:.1f}V{base:.1f}", arc.classes, **attributes)
        _arrow(canvas, x, base, up, arc.classes)
        canvas.text(x, y + 3 * up + (8 if up > 0 else 0), arc.label or "root", "soft l halo")
    for piece in sorted(pieces, key=lambda p: "faint" not in p.arc.classes):
        _bracket(canvas, piece, ports, centre, band, base, rise)


def _bracket(
    canvas: Canvas,
    piece: _Piece,
    ports: dict[tuple[Arc, int], float],
    centre: dict[int, float],
    band: tuple[int, int],
    base: float,
    rise: float,
) -> None:
    arc, up = piece.arc, -1 if rise < 0 else 1
    y = base + piece.level * rise
    left, right = sorted((arc.head, arc.word))
    x1 = ports.get((arc, left), centre[band[0]])
    x2 = ports.get((arc, right), centre[band[1] + 1])
    r = min(7.0, max((x2 - x1) / 2, 0.0))
    start = f"M{x1:.1f} {base:.1f}V{y - up * r:.1f}Q{x1:.1f} {y:.1f} {x1 + r:.1f} {y:.1f}"
    end = f"H{x2 - r:.1f}Q{x2:.1f} {y:.1f} {x2:.1f} {y - up * r:.1f}V{base:.1f}"
    here_left, here_right = left > band[0], right <= band[1]
    d = (start if here_left else f"M{x1:.1f} {y:.1f}") + (end if here_right else f"H{x2:.1f}")
    canvas.path(d, arc.classes, data_part=f"{arc.head}-{arc.word}", title=arc.title)
    if band[0] < arc.word <= band[1]:
        _arrow(canvas, ports[arc, arc.word], base, up, arc.classes)
    if arc.label:
        canvas.text((x1 + x2) / 2, y + 4, arc.label, "ink l halo")
    if not here_left:
        canvas.text(x1 + 2, y - 4, f"← {left}", "soft s halo", "start")
    if not here_right:
        canvas.text(x2 - 2, y - 4, f"{right} →", "soft s halo", "end")


def _ports(
    pieces: list[_Piece], roots: list[Arc], centre: dict[int, float], band: tuple[int, int]
) -> dict[tuple[Arc, int], float]:
    """Where on its word each arc ends, so that arcs of one word do not cross: the longest of a side innermost."""
    ends: dict[int, list[tuple[float, Arc]]] = defaultdict(list)
    for arc in roots:
        ends[arc.word].append((0.0, arc))
    for piece in pieces:
        arc = piece.arc
        for i, to in ((arc.head, arc.word), (arc.word, arc.head)):
            if band[0] < i <= band[1]:
                ends[i].append((1.0 / (to - i), arc))  # left and short, left and long, right and long, right and short
    out = {}
    for i, found in ends.items():
        found.sort(key=lambda item: item[0])
        for k, (_, arc) in enumerate(found):
            out[arc, i] = centre[i] + PORT * (k - (len(found) - 1) / 2)
    return out


def _arrow(canvas: Canvas, x: float, y: float, up: int, classes: str) -> None:
    solid = " ".join(c for c in classes.split() if c not in ("dash", "bold", "thin"))
    canvas.path(f"M{x - 3:.1f} {y + 5 * up:.1f}L{x:.1f} {y:.1f}L{x + 3:.1f} {y + 5 * up:.1f}", f"{solid} solid")


def _said(words: Sequence[str], drawn: list[Arc]) -> str:
    """The arcs as sentences, for who cannot see them."""
    return "; ".join(arc.title for arc in drawn if "faint" not in arc.classes)
