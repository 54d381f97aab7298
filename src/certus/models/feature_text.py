"""Features as text: as templates have them, in plain words, and by the group of evidence they belong to."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from certus.features.templates import Templates

_ROLE = {"h": "head", "m": "word", "s": "sister", "g": "head's head", "t": "sister's sister"}
_WHAT = {
    "p": "tag ",
    "t": "tag ",
    "f": "morphology ",
    "l": "lemma ",
    "a": "cluster ",
    "b": "cluster ",
    "c": "cluster ",
    "w": "",
    "v": "",
}
_COMPONENT = re.compile(r"([a-z])([+-][12])?\.([a-z])")

BETWEEN, AROUND, LABELS = "What stands between", "The words around", "Likely labels"
OF_ROLES = {
    "hms": "Sister modifiers",
    "hmg": "The head's own head",
    "hmsg": "Sister and head's head",
    "hmst": "Three modifiers in a row",
}


class Text(NamedTuple):
    """A feature: as its template writes it, the kind of evidence it is, and what it says in words."""

    text: str
    group: str
    plain: str


@lru_cache
def group_of(roles: str, line: str) -> str:
    """What kind of evidence a template looks at."""
    words = line.split()
    if "y" in words:
        return LABELS
    if roles in OF_ROLES:
        return OF_ROLES[roles]
    if "b" in words or "q" in words:
        return BETWEEN
    found = [m.groups() for m in map(_COMPONENT.fullmatch, words) if m is not None]
    if any(offset for _, offset, _ in found):
        return AROUND
    looked_at = {attribute for _, _, attribute in found}
    if {role for role, _, _ in found} in ({"h"}, {"m"}):
        return "The head alone" if found[0][0] == "h" else "The word alone"
    if looked_at & set("abc"):
        return "Similar words (clusters)"
    if looked_at & set("wlv"):
        return "The two words"
    return "Tags and morphology"


@lru_cache
def _lines(templates: Templates) -> tuple[tuple[tuple[str, ...], ...], int]:
    """The components of the templates in the order of the kernels, and how many come before those with b."""
    lines = tuple(tuple(line.split()) for line in templates.ordered[0])
    return lines, sum("b" not in line for line in lines)


class PartText:
    """The features of a part, whose arcs have these names: text by place, in the order of the kernels.

    ``rows`` are the attributes of the words of a sentence by the letters of templates.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, str]],
        part: Sequence[int],
        templates: Templates,
        number: Callable[[str], int],
        names: str = "",
    ) -> None:
        self.rows, self.part, self.templates, self.names = rows, part, templates, names
        h, m = part[:2]
        self.low, self.high = min(h, m), max(h, m)
        between = [rows[v - 1]["p"] for v in range(self.low + 1, self.high)]
        self.between = sorted(set(between), key=number)
        self.alike = [min(between.count(self._seen(v, "p")), 3) for v in (h, m)]
        self.lines, self.plain = _lines(templates)

    def __len__(self) -> int:
        spread = len(self.lines) - self.plain
        return 2 * (self.plain + spread * len(self.between)) if self.templates.of_arcs else self.plain

    def _seen(self, v: int, attribute: str) -> str:
        if v < -1:
            return "<none>"
        if v == 0:
            return "<root>"
        if 1 <= v <= len(self.rows):
            return self.rows[v - 1][attribute]
        return "<after>" if v > len(self.rows) else "<before>"

    def group(self, place: int) -> str:
        """The kind of evidence that the feature at a place is."""
        return group_of(self.templates.roles, " ".join(self.lines[self._template(place)]))

    def _template(self, place: int) -> int:
        if not self.templates.of_arcs or place < 2 * self.plain:
            return place % self.plain
        return self.plain + (place - 2 * self.plain) // 2 % (len(self.lines) - self.plain)

    def at(self, place: int) -> Text:
        """The feature at a place."""
        direction = "right" if self.part[0] < self.part[1] else "left"
        if not self.templates.of_arcs:
            roles = zip(self.templates.roles[2:], self.part[2:], strict=True)
            sides = [_side(role, v, self.low, self.high) for role, v in roles]
            found = self._line(self._template(place))
            return found._replace(text=f"{found.text} [{', '.join([direction, *sides])}]")
        found, shaped = self._line(self._template(place)), place >= self.plain  # as it stands, and with its length
        if place >= 2 * self.plain:
            pair, shaped = (place - 2 * self.plain) // 2, place % 2 == 1
            tag_name = self.between[pair // (len(self.lines) - self.plain)]
            said = f"{found.plain}, {tag_name} between them"
            found = found._replace(text=f"{found.text} between={tag_name}", plain=said)
        if not shaped:
            return found
        away = self.high - self.low
        shape, way = f"[{direction}, about {away} away]", f" ({direction} of it, about {away} away)"
        return found._replace(text=f"{found.text} {shape}", plain=found.plain + way)

    def _line(self, k: int) -> Text:
        texts, said = [], []
        for word in self.lines[k]:
            component = _COMPONENT.fullmatch(word)
            if component is not None:
                role, offset, attribute = component.groups()
                value = self._seen(self.part[self.templates.roles.index(role)] + int(offset or 0), attribute)
                texts.append(f"{word}={value}")
                said.append(_said(role, offset, attribute, value))
        if "y" in self.lines[k]:
            texts.append(f"names={self.names}")
            said.append(f"labels {self.names.replace(',', ', ')}")
        if "q" in self.lines[k]:
            texts.append(f"alike={self.alike[0]},{self.alike[1]}")
            said.append(f"{self.alike[0]} like the head and {self.alike[1]} like the word between")
        return Text(" ".join(texts), group_of(self.templates.roles, " ".join(self.lines[k])), ", ".join(said))


def _said(role: str, offset: str | None, attribute: str, value: str) -> str:
    """A component in words: the head “flies”, the tag NOUN of the word after the head."""
    steps = {"+1": "after the ", "+2": "second after the ", "-1": "before the ", "-2": "second before the "}
    who = f"{steps[offset] if offset else ''}{_ROLE[role]}"
    if value == "_":
        return f"{who} without {_WHAT[attribute].strip() or 'a form'}"
    shown = f"“{value}”" if attribute in "wlv" and not value.startswith("<") else value.strip("<>")
    return f"{who} {_WHAT[attribute]}{shown}"


def _side(role: str, v: int, low: int, high: int) -> str:
    """Where the node of a role lies; see kernels.features.side."""
    if v < 0:
        return f"no {role}"
    return f"{role} {'before' if v < low else 'inside' if v < high else 'behind'}"
