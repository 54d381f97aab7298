"""What draws itself: the contract of objects that notebooks show, and lists and stacks of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TypeVar

from certus.draw.svg import SHEET, Picture, clean

T = TypeVar("T")
MOST = 12  # pictures of a list that a notebook shows


class Drawn(ABC):
    """An object with a picture, which notebooks show in its place."""

    __slots__ = ()

    @abstractmethod
    def picture(self) -> Picture:
        """The object as a drawing."""

    def caption(self) -> str:
        """A line about it, below the picture in a notebook; none by default."""
        return ""

    def _repr_svg_(self) -> str:
        return self.picture().svg

    def _repr_html_(self) -> str:
        said = self.caption()
        below = f'<figcaption style="font-size:90%">{clean(said)}</figcaption>' if said else ""
        return f'<figure style="margin:0.5em 0;overflow-x:auto">{self.picture().svg}{below}</figure>'


class Gallery(list[T]):
    """A list that notebooks show as pictures of what is in it; else a list like any other."""

    def _repr_html_(self) -> str:
        shown = [item._repr_html_() if isinstance(item, Drawn) else f"<pre>{clean(item)}</pre>" for item in self[:MOST]]
        more = [f"<p>and {len(self) - MOST} more</p>"] if len(self) > MOST else []
        return "".join([*(f'<div title="{k}">{text}</div>' for k, text in enumerate(shown, start=1)), *more])


def stacked(pictures: Iterable[Picture], title: str = "Drawings") -> Picture:
    """Several pictures as one, below each other."""
    inner, y, wide, texts = [], 0.0, 0.0, []
    for p in pictures:
        inner.append(f'<svg y="{y:.0f}"' + p.svg.removeprefix("<svg").replace(f"<style>{SHEET}</style>", "", 1))
        y, wide = y + p.height, max(wide, p.width)
        texts.append(p.text)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="certus" role="img" viewBox="0 0 {wide:.0f} {y:.0f}" '
        f'width="{wide:.0f}" height="{y:.0f}"><title>{clean(title)}</title><style>{SHEET}</style>'
        f'<rect class="paper" width="100%" height="100%"/>{"".join(inner)}</svg>'
    )
    return Picture(svg, wide, y, "\n".join(texts))
