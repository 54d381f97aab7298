"""Phrase-structure trees: labels above their words, or beside them where a sentence is long.

Two trees share the words between them, the second upside down, with the phrases marked that only one of them has. With
heads of words every phrase names its head, and the way down to it is bold.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from certus.draw.plain import plain_tree
from certus.draw.svg import Canvas, Picture, legend, shortened, width_of

Node = tuple[str, str | None, int]  # label, word or None, number of children; parents before children
STEP, GAP, ROW = 38.0, 14.0, 21.0
WIDEST = 1300.0


class Place(NamedTuple):
    """Where a node of a tree is: ``at`` along the words, ``height`` above them in steps."""

    label: str
    word: str | None
    parent: int
    start: int
    end: int
    at: float
    height: int


@dataclass(frozen=True)
class _Way:
    """How places become pixels: up from the words, or to the left of them; mirrored for a second tree."""

    across: bool
    words: float  # where the words begin, and where they end
    after: float
    mirrored: bool

    def of(self, at: float, height: float) -> tuple[float, float]:
        step = STEP + 14 if self.across else STEP
        away = (self.after + height * step) if self.mirrored else (self.words - height * step)
        return (away, at) if self.across else (at, away)

    def bent(self, parent: tuple[float, float], child: tuple[float, float]) -> str:
        """A line from a phrase to a part of it: first along the words, then to them, so that no two ever cross."""
        (px, py), (cx, cy) = parent, child
        side = (cy - py, cx - px) if self.across else (cx - px, cy - py)
        r = min(8.0, abs(side[0]), abs(side[1]))
        along, down = (r if side[0] > 0 else -r), (r if side[1] > 0 else -r)
        if self.across:
            return f"M{px:.1f} {py:.1f}V{cy - along:.1f}Q{px:.1f} {cy:.1f} {px + down:.1f} {cy:.1f}H{cx:.1f}"
        return f"M{px:.1f} {py:.1f}H{cx - along:.1f}Q{cx:.1f} {py:.1f} {cx:.1f} {py + down:.1f}V{cy:.1f}"


def phrase_tree(
    nodes: Sequence[Node],
    *,
    heads: Sequence[int] | None = None,
    other: Sequence[Node] | None = None,
    across: bool | None = None,
    title: str = "Phrase-structure tree",
) -> Picture:
    """A phrase-structure tree.

    Parameters
    ----------
    nodes : sequence of (label, word or None, number of children)
        Parents before children, as ``Tree.preorder`` has them.
    heads : sequence of int of size n + 1, optional
        Heads of the words: every phrase is then drawn with its head word.
    other : sequence of nodes, optional
        A second tree of the same words, drawn on their other side.
    across : bool, optional
        Words below each other and the tree beside them; by default where it is wide.
    """
    words = [word for _, word, _ in nodes if word is not None]
    wide = [max(width_of(shortened(w)), width_of(t, 12)) + GAP for t, w, _ in nodes if w is not None]
    beside = sum(wide) > WIDEST if across is None else across
    centre, edge = [], 16.0
    for w in wide:
        step = ROW if beside else w
        centre.append(edge + step / 2)
        edge += step
    first = _places(nodes, centre)
    second = [] if other is None else _places(other, centre)
    tall, deep = (max((p.height for p in side), default=0) for side in (first, second))
    unit = STEP + 14 if beside else STEP
    begin = 24.0 + tall * unit
    after = begin + (max(map(width_of, map(shortened, words)), default=0.0) + 24 if beside else 30.0)
    canvas = Canvas()
    for side, mirrored in ((first, False), (second, True)):
        apart = None if other is None else {(*p[3:5], p.label) for p in (first if mirrored else second)}
        _tree(canvas, side, _Way(beside, begin, after, mirrored), heads, apart)
    for x, word in zip(centre, words, strict=True):
        at = (begin + 8, x + 5) if beside else (x, begin + 20)
        canvas.text(*at, shortened(word), "ink w", "start" if beside else "middle")
    far = after + deep * unit + (60 if beside and deep else 16)
    width, height = (far, edge + 12) if beside else (edge + 16, far)
    if other is not None:
        meaning = {"first": "only in the first tree", "second dash": "only in the second tree"}
        width = max(width, legend(canvas, 16, height + 8, meaning))
        height += 20
    return canvas.picture(width, height, f"{title}: {' '.join(words)}", _said(first, words), plain_tree(nodes))


def _places(nodes: Sequence[Node], centre: Sequence[float]) -> list[Place]:
    """Every node over the middle of its children, one step above the highest of them."""
    parent, stack, word = [], [(-1, 1)], 0
    first = []
    for i, (_, form, arity) in enumerate(nodes):
        above, left = stack.pop()
        if left > 1:
            stack.append((above, left - 1))
        parent.append(above)
        first.append(word)
        if form is not None:
            word += 1
        elif arity:
            stack.append((i, arity))
    end, height = list(first), [1] * len(nodes)
    low, high = [0.0] * len(nodes), [0.0] * len(nodes)
    seen = [False] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        if nodes[i][1] is not None:
            end[i], low[i], high[i] = first[i] + 1, centre[first[i]], centre[first[i]]
        above = parent[i]
        if above >= 0:
            middle = (low[i] + high[i]) / 2
            end[above] = max(end[above], end[i])
            height[above] = max(height[above], height[i] + 1)
            low[above], high[above] = middle, high[above] if seen[above] else middle
            seen[above] = True
    return [
        Place(nodes[i][0], nodes[i][1], parent[i], first[i], end[i], (low[i] + high[i]) / 2, height[i])
        for i in range(len(nodes))
    ]


def _head_word(place: Place, heads: Sequence[int]) -> int:
    """The word of a phrase whose head lies outside of it, counted from 1; the first if there are several."""
    inside = range(place.start + 1, place.end + 1)
    return next((m for m in inside if heads[m] not in inside), place.start + 1)


def _tree(
    canvas: Canvas,
    places: list[Place],
    way: _Way,
    heads: Sequence[int] | None,
    other: set[tuple[int, int, str]] | None,
) -> None:
    names: list[str] = []
    head = [_head_word(p, heads) if heads is not None else 0 for p in places]
    forms = [p.word for p in places if p.word is not None]
    for i, p in enumerate(places):
        x, y = way.of(p.at, p.height - 0.35)
        if p.parent >= 0:
            above = places[p.parent]
            top = way.of(above.at, above.height - 0.35)
            along = heads is not None and head[i] == head[p.parent]
            canvas.path(way.bent(top, (x, y)), "first bold" if along else "faint")
        if p.word is not None and not way.across:
            foot = way.of(p.at, 0.0)[1] + (2 if way.mirrored else 6) * (-1 if way.mirrored else 1)
            canvas.path(f"M{x:.1f} {y:.1f}V{foot:.1f}", "faint")
        elif p.word is not None:
            foot = way.of(p.at, 0.0)[0] + (-4 if way.mirrored else 4)
            canvas.path(f"M{x:.1f} {y:.1f}H{foot:.1f}", "faint dash")
        names.append(p.label)
    for i, p in enumerate(places):
        x, y = way.of(p.at, p.height - 0.35)
        alone = other is not None and (p.start, p.end, p.label) not in other
        colour = ("orange" if way.mirrored else "blue") if alone else "ink"
        title = f"{p.label}: {' '.join(forms[p.start : p.end])}"
        if alone:
            wide = width_of(p.label, 13) + 10
            canvas.box(x - wide / 2, y - 9, wide, 18, "mark" if way.mirrored else "tint")
        part: dict[str, Any] = {"data_part": f"{p.start}-{p.end}-{p.label}"} | (
            {"data_tag": p.start} if p.word is not None else {}
        )
        if p.label:
            canvas.text(x, y + 4, shortened(p.label, 14), f"{colour} l b halo", title=title, **part)
        if heads is not None and p.word is None:
            canvas.text(x, y + 16, shortened(forms[head[i] - 1], 14), "soft s halo")


def _said(places: list[Place], words: Sequence[str]) -> str:
    return "; ".join(f"{p.label}: {' '.join(words[p.start : p.end])}" for p in places if p.word is None)
