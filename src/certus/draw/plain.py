"""Trees as plain text, of box-drawing characters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from certus.draw.svg import shortened

if TYPE_CHECKING:
    from certus.draw.arcs import Arc

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
_BOX = " ╵╷│╴╯╮┤╶╰╭├─┴┬┼"  # by the directions in which lines leave a cell


def plain_arcs(words: Sequence[str], drawn: "Sequence[Arc]", tags: Sequence[str] | None = None) -> str:
    """A word a line, arcs to the left of them; of two analyses, the first."""
    arcs = [arc for arc in drawn if not arc.below and "faint" not in arc.classes]
    placed: list[tuple[int, int, int]] = []
    inner = sorted((a for a in arcs if a.head), key=lambda a: abs(a.head - a.word))
    for arc in inner:
        low, high = sorted((arc.head, arc.word))
        placed.append((low, high, 1 + max((k for a, b, k in placed if max(a, low) < min(b, high)), default=0)))
    size = max((level for _, _, level in placed), default=0)
    cells = [[0] * (size + 1) for _ in range(len(words) + 1)]
    for low, high, level in placed:
        at = size - level
        for i in range(low, high + 1):
            cells[i][at] |= (UP if i > low else 0) | (DOWN if i < high else 0)
        for i in (low, high):
            cells[i][at] |= RIGHT
            for k in range(at + 1, size + 1):
                cells[i][k] |= LEFT | RIGHT
    into = {arc.word: arc for arc in arcs}
    columns = [[shortened(w) for w in words], list(tags) if tags is not None else [""] * len(words)]
    wide = [max(map(len, column), default=0) for column in columns]
    lines = []
    for i in range(1, len(words) + 1):
        arrow = "▶" if i in into and into[i].head else "●" if i in into else " "
        label = into[i].label if i in into else ""
        parts = [column[i - 1].ljust(w) for column, w in zip(columns, wide, strict=True) if w]
        lines.append("".join(_BOX[c] for c in cells[i]) + arrow + " " + "  ".join([*parts, label]).rstrip())
    return "\n".join(lines) + "\n"


def plain_tree(nodes: Sequence[tuple[str, str | None, int]]) -> str:
    """A node a line, children below their parent; ``nodes`` as of ``Tree.preorder``."""
    lines, stack = [], [("", "")]  # what stands before a node, and before what is below it
    for label, word, arity in nodes:
        own, below = stack.pop()
        lines.append(f"{own}{label}{'' if word is None else f'  {word}'}")
        for k in range(arity):  # the last child lies deepest in the stack
            stack.append((below + ("└─ " if k == 0 else "├─ "), below + ("   " if k == 0 else "│  ")))
    return "\n".join(lines) + "\n"
