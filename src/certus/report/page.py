"""Pages of HTML that need nothing beside themselves: no network, and nothing in them that words could break.

What Python knows goes into a page as JSON in which no tag can end, or as escaped text; scripts only ever set text.
"""

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from certus.draw import Picture
from certus.draw.svg import SHEET, clean

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page(title: str, body: str, *, data: Any = None, script: str = "") -> str:
    """A whole page: ``body`` is HTML, ``data`` what the packaged ``script`` finds as JSON."""
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{clean(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"<style>{_packaged('page.css')}{SHEET}</style></head><body>{body}",
    ]
    if script:
        parts.append(f'<script type="application/json" id="data">{embedded(data)}</script>')
        parts.append(f"<script>{_packaged('common.js')}{_packaged(script)}</script>")
    return "".join(parts) + "</body></html>"


def embedded(data: Any) -> str:
    """JSON that may stand in a script element, whatever words there are in it."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return (
        text.replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def bare(picture: Picture) -> str:
    """The SVG of a picture without its style sheet, which a page has once."""
    return picture.svg.replace(f"<style>{SHEET}</style>", "", 1)


def figures(title: str, pictures: Iterable[tuple[Picture, str]]) -> str:
    """A page of pictures, each with a line below it."""
    shown = (f"<figure>{bare(p)}<figcaption>{clean(said)}</figcaption></figure>" for p, said in pictures)
    return page(title, f"<main><h1>{clean(title)}</h1>{''.join(shown)}</main>")


def _packaged(name: str) -> str:
    return files("certus.report").joinpath(name).read_text(encoding="utf-8")
