"""A canvas for SVG: escaped text, one style sheet for light and dark, and the picture that it makes.

Colours are blue against orange, which the colour-blind tell apart, and never stand alone: what is less sure is dashed
too, what differs is dashed and lies on the other side.
"""

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from certus.writing import write_atomically

SURE = (0.5, 0.75, 0.9, 0.99)  # confidences from which on a line is drawn as more certain
_NO_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

# What each class looks like: property, light, dark. Classes sure0 .. sure4 are confidences, the last the highest.
_COLOURS = {
    "paper": ("fill", "#ffffff", "#15191f"),
    "ink": ("fill", "#1b2430", "#e6eaf0"),
    "soft": ("fill", "#5c6673", "#9aa5b3"),
    "blue": ("fill", "#0b5cad", "#7db8f0"),
    "orange": ("fill", "#b5410a", "#f2a057"),
    "panel": ("fill", "#f1f4f8", "#222933"),
    "mark": ("fill", "#fde3cf", "#5a3413"),
    "tint": ("fill", "#dbe9f7", "#1d3a57"),
    "line": ("stroke", "#1b2430", "#d5dbe4"),
    "faint": ("stroke", "#c3cad3", "#454f5c"),
    "first": ("stroke", "#0b5cad", "#7db8f0"),
    "second": ("stroke", "#b5410a", "#f2a057"),
    "third": ("stroke", "#5c6673", "#9aa5b3"),
    "sure0": ("stroke", "#b5410a", "#f2a057"),
    "sure1": ("stroke", "#b07d2b", "#d9b36c"),
    "sure2": ("stroke", "#7d8794", "#8f9aa8"),
    "sure3": ("stroke", "#3f7fb8", "#5d95c9"),
    "sure4": ("stroke", "#0b5cad", "#7db8f0"),
}
_FORMS = """
.certus{font-family:ui-sans-serif,system-ui,"Segoe UI","Helvetica Neue",Arial,sans-serif}
.certus .stroke{fill:none;stroke-width:1.4;stroke-linecap:round;stroke-linejoin:round}
.certus .bold{stroke-width:2.4}.certus .thin{stroke-width:1}
.certus .dash,.certus .sure0{stroke-dasharray:4 3}.certus .sure1{stroke-dasharray:9 3}
.certus .w{font-size:15px}.certus .l{font-size:11px}.certus .s{font-size:10px}.certus .b{font-weight:600}
.certus .halo{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}
"""


def _sheet() -> str:
    halo = ("#ffffff", "#15191f")
    light, dark = (
        "".join(f".certus .{name}{{{what[0]}:{what[side]}}}" for name, what in _COLOURS.items())
        + f".certus .halo{{stroke:{halo[side - 1]}}}"
        for side in (1, 2)
    )
    return f"{_FORMS}{light}\n@media (prefers-color-scheme:dark){{{dark}}}\n"


SHEET = _sheet()


def clean(text: object) -> str:
    """Any text as XML may hold it: escaped, and without characters that are none."""
    return escape(_NO_CHARACTERS.sub("\ufffd", str(text)), quote=True)


def width_of(text: str, size: float = 15.0) -> float:
    """About how wide a text is in a sans-serif font of this size; rather too wide than too narrow."""
    units = 0.0
    for c in text:
        if unicodedata.combining(c):
            continue
        if unicodedata.east_asian_width(c) in "WF":
            units += 1.05
        elif c in "iljtfrI.,:;'|!()[] ":
            units += 0.36
        elif c in "mwMW@%":
            units += 0.95
        else:
            units += 0.68 if c.isupper() else 0.58
    return units * size


def shortened(text: str, most: int = 28) -> str:
    """A text of at most so many characters, the last of which then stands for the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"


def sureness(confidence: float) -> str:
    """The class of a line with this confidence."""
    return f"sure{sum(confidence >= least for least in SURE)}"


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing: SVG that notebooks show and files keep, and the same as plain text, or in words."""

    svg: str
    width: float
    height: float
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Picture({self.width:.0f} x {self.height:.0f})"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg}</div>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG to a file, whole or not at all."""
        write_atomically(path, self.svg.encode())


class Canvas:
    """Collects elements. Coordinates are pixels; classes are those of the sheet at the head of the file."""

    def __init__(self) -> None:
        self._items: list[str] = []

    def __len__(self) -> int:
        return len(self._items)

    def add(self, tag: str, classes: str, *, title: str = "", inner: str = "", **attributes: object) -> None:
        """One element; ``title`` is what is shown when it is pointed at, ``inner`` text that is escaped already."""
        given = "".join(f' {k.replace("_", "-")}="{clean(v)}"' for k, v in attributes.items() if v is not None)
        inner += f"<title>{clean(title)}</title>" if title else ""
        closed = f">{inner}</{tag}>" if inner else "/>"
        self._items.append(f'<{tag} class="{classes}"{given}{closed}')

    def path(self, d: str, classes: str, **attributes: object) -> None:
        """A line that is not filled."""
        self.add("path", f"stroke {classes}", d=d, **attributes)  # type: ignore[arg-type]

    def text(self, x: float, y: float, text: str, classes: str, anchor: str = "middle", **attributes: object) -> None:
        """A text, by default around x."""
        anchored = anchor if anchor != "start" else None
        self.add("text", classes, inner=clean(text), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchored, **attributes)  # type: ignore[arg-type]

    def box(self, x: float, y: float, width: float, height: float, classes: str, **attributes: object) -> None:
        """A rectangle, a little rounded."""
        size = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}"}
        self.add("rect", classes, rx=3, **size, **attributes)  # type: ignore[arg-type]

    def dot(self, x: float, y: float, r: float, classes: str, **attributes: object) -> None:
        """A circle."""
        self.add("circle", classes, cx=f"{x:.1f}", cy=f"{y:.1f}", r=f"{r:.1f}", **attributes)  # type: ignore[arg-type]

    def open(self, classes: str = "", **attributes: object) -> None:
        """Begin a group, which ``close`` ends."""
        given = "".join(f' {k.replace("_", "-")}="{clean(v)}"' for k, v in attributes.items())
        self._items.append(f'<g class="{classes}"{given}>')

    def close(self) -> None:
        """End a group."""
        self._items.append("</g>")

    def picture(self, width: float, height: float, title: str, description: str, text: str = "") -> Picture:
        """All that was drawn, on paper of its own, with what screen readers say of it."""
        w, h = max(width, 40.0), max(height, 20.0)
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="certus" role="img" viewBox="0 0 {w:.0f} {h:.0f}" '
            f'width="{w:.0f}" height="{h:.0f}"><title>{clean(title)}</title><desc>{clean(description)}</desc>'
            f'<style>{SHEET}</style><rect class="paper" width="100%" height="100%"/>{"".join(self._items)}</svg>'
        )
        return Picture(svg, w, h, text or f"{title}. {description}\n")


def legend(canvas: Canvas, x: float, y: float, entries: Mapping[str, str]) -> float:
    """Short lines by class with what they mean, in a row from x on; returns where it ends."""
    for classes, meaning in entries.items():
        canvas.path(f"M{x:.1f} {y - 4:.1f}h22", classes)
        canvas.text(x + 28, y, meaning, "soft s", "start")
        x += 28 + width_of(meaning, 10) + 18
    return x
