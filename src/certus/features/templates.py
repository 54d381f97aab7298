"""Feature templates as data: what a model looks at around the nodes of a part (DEP 3.3, 5.7.1; LR 8.5.2).

A template is a line of components. A component names a role, an optional offset, and an attribute: ``m-1.t`` is the
fine tag of the word before the modifier. Where a model looks at one word at a time, as a tagger does, there are no
roles, and components begin with the offset: ``-1.s3`` is the ending of the word before.

In templates of parts ``b`` alone stands for every coarse tag between head and modifier, ``q`` for how many words there
have the coarse tag of either (0 to 3), ``y`` for the names of the part's arcs: the labels they would likely have. Each
template of an arc gives two features: as it stands, and together with the direction and the binned length of the arc;
one of a part of several arcs gives one, together with the sides on which its nodes lie.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b

import numpy as np

from certus.errors import InvalidInput
from certus.kernels.tuples import TemplateArrays

ATTRIBUTES = {
    "w": "form",
    "l": "lemma",
    "p": "coarse tag",
    "t": "fine tag",
    "f": "morphology",
    "a": "cluster, 4 bits",
    "b": "cluster, 6 bits",
    "c": "cluster, all bits",
    "v": "form, if frequent",
}
# By the roles of templates with two features, what the shapes of arcs, 1 to 20, are multiplied by to tell these apart:
# bits all over for arcs, so that two templates share few weights; for arcs to be labelled, rows that do not overlap.
_SHAPED = {"hm": 0x9E3779B1, "hmglr": 64}
_IN_PART = re.compile(r"([a-z])([+-][12])?\.([a-z])")
_IN_WORDS = re.compile(r"()([+-][12]|0)\.([a-z]\d?)")


def stable_hash(text: str) -> int:
    """The same 64 bits for the same text on every machine and in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Templates:
    """Templates over the roles of one kind of part, ready for the kernels.

    ``roles`` are the letters of the part's columns: the first is the head and the second the modifier. There are none
    where single words are looked at. ``attributes`` are the names of what is known of each word.
    """

    roles: str
    lines: tuple[str, ...]
    attributes: tuple[str, ...] = tuple(ATTRIBUTES)

    @cached_property
    def ordered(self) -> tuple[tuple[str, ...], list[int]]:
        """The lines in the order of the kernels: plain, with y, q, b; and where the first three groups end."""
        groups: list[list[str]] = [[], [], [], []]
        for line in self.lines:
            marks = [mark for mark in ("y", "q", "b") if mark in line.split()]
            if len(marks) > 1:
                raise InvalidInput(f"template {line!r} has more than one of y, q, b; write several templates.")
            groups[1 + ("y", "q", "b").index(marks[0]) if marks else 0].append(line)
        ends = np.cumsum([len(group) for group in groups[:3]])
        return tuple(line for group in groups for line in group), ends.tolist()

    @cached_property
    def arrays(self) -> TemplateArrays:
        """As the kernels take them."""
        ptr, components = [0], list[tuple[int, int, int]]()
        lines, ends = self.ordered
        for line in lines:
            components += [self._component(line, word) for word in line.split() if word not in ("y", "q", "b")]
            ptr.append(len(components))
        seed = np.array([stable_hash(f"{self.roles or 'tagger'}:{line}") for line in lines], dtype=np.uint64)
        component = np.array(components, dtype=np.int64).reshape(-1, 3)
        look, which = np.unique(component, axis=0, return_inverse=True)
        template = np.repeat(np.arange(len(lines)), np.diff(ptr))
        term = np.stack((component[:, 0], template, which.reshape(-1)), axis=1)
        plan = np.concatenate((look, term[np.argsort(component[:, 0], kind="stable")]))
        sizes = (len(look), *ends, len(self.roles), _SHAPED.get(self.roles, 0), self.max_features)
        return TemplateArrays._make((np.array(ptr), component, plan, seed, *sizes))

    def _component(self, line: str, word: str) -> tuple[int, int, int]:
        """Role, offset and column of a component."""
        found = (_IN_PART if self.roles else _IN_WORDS).fullmatch(word)
        if not found or found[1] not in self.roles or found[3] not in self.attributes:
            form, where = "offset.attribute", "an offset -2, -1, 0, +1 or +2"
            if self.roles:
                form, where = "role[+-1 or 2].attribute", f"a role out of {', '.join(self.roles)}"
            raise InvalidInput(
                f"template {line!r}: {word!r} is no component; write {form} with {where} and an attribute out of "
                f"{', '.join(self.attributes)}."
            )
        return self.roles.index(found[1]), int(found[2] or 0), self.attributes.index(found[3])

    @property
    def described(self) -> list[str]:
        """The lines in the order of the kernels, each with its roles: what weights were trained for."""
        return [f"{self.roles}: {line}" if self.roles else line for line in self.ordered[0]]

    @property
    def of_arcs(self) -> bool:
        """Whether they look at arcs, or at arcs to be labelled, rather than at parts of several arcs."""
        return self.roles in _SHAPED

    @property
    def max_features(self) -> int:
        """More features than any part can have."""
        return sum(2 * 64 if "b" in line.split() else 2 for line in self.lines)


def template_lines(text: str) -> tuple[str, ...]:
    """The templates of a text: each on a line, or between slashes; what follows a # is a remark."""
    written = (part for line in text.splitlines() for part in line.split("#")[0].split("/"))
    return tuple(" ".join(words) for part in written if (words := part.split()))


def _coarse(lines: Sequence[str]) -> list[str]:
    """The lines with coarse tags in place of fine ones."""
    return [re.sub(r"\.t\b", ".p", line) for line in lines]


def _doubled(lines: Sequence[str]) -> tuple[str, ...]:
    """The lines, and a copy of each with coarse tags where that changes it."""
    return tuple(dict.fromkeys([*lines, *_coarse(lines)]))


@lru_cache
def with_coarse_tags(templates: Templates) -> Templates:
    """The templates with coarse tags only, each once, for where there are no fine ones."""
    return Templates(templates.roles, tuple(dict.fromkeys(_coarse(templates.lines))))


@lru_cache
def without_morphology(templates: Templates) -> Templates:
    """The templates with nothing of morphology, each once, for where there is none."""
    seen = (" ".join(word for word in line.split() if not word.endswith(".f")) for line in templates.lines)
    return Templates(templates.roles, tuple(dict.fromkeys(line for line in seen if line)))


_ARC = template_lines("""
    h.w h.t / h.w / h.t / m.w m.t / m.w / m.t / h.t m.w m.t / h.w h.t m.t / h.w m.w / h.t m.t / h.l m.l
    h.l m.t / h.t m.l / h.p m.f / h.f m.p / h.f m.f / h.p m.p m.f / h.p h.f m.p m.f
    h.t h+1.t m-1.t m.t / h-1.t h.t m-1.t m.t / h.t h+1.t m.t m+1.t / h-1.t h.t m.t m+1.t
    h.t h+1.t m.t / h-1.t h.t m.t / h.t m-1.t m.t / h.t m.t m+1.t / h-1.t h.t h+1.t m.t
    h.t m-1.t m.t m+1.t / h.t m.t b / h.p m.p b / h.w m.t m-1.w / h.t m.w m+1.w / h.t m.w m-1.w
    h.w h+1.t m.t / h.w h-1.t m.t / h.t m.w m-1.t / h.t m.w m+1.t / h.t m.t q / h.w m.t q / h.t m.w q
""")
_ARC_CLUSTERS = template_lines("""
    h.a m.a / h.b m.b / h.c m.c / h.c m.t / h.t m.c / h.b m.t / h.t m.b / h.v m.c / h.c m.v
    h.t m.t m+1.b / h.t m.t m-1.b / h.t h+1.b m.t
""")

ARC = Templates("hm", _doubled(_ARC))
ARC_WITH_CLUSTERS = Templates("hm", (*ARC.lines, *_ARC_CLUSTERS))

# The filters of a cascade look at little, since they look at every arc: the first at tags, the second at words too.
FIRST_FILTER = Templates(
    "hm",
    template_lines("""
    h.t m.t / h.p m.p / h.t / m.t / h.p m.t b / h.t h+1.t m-1.t m.t / h-1.t h.t m-1.t m.t
    h.t h+1.t m.t m+1.t / h-1.t h.t m.t m+1.t / h.w m.t / h.t m.w
"""),
)
SECOND_FILTER = Templates("hm", (*_ARC, "h.p m.p", "h.p m.p q", "h.p m.p h.f m.f"))

_SIBLING = template_lines("""
    h.t s.t m.t / s.t m.t / s.w m.w / s.w m.t / s.t m.w / s.l m.l / h.w s.t m.t / h.t s.w m.t
    h.t s.t m.w / h.l s.l m.t / h.l s.t m.l / h.t s.t m.t s+1.t / h.t s.t m.t m-1.t / h.t s.t m.t m+1.t
    h.t s.t m.t s-1.t / h.t h+1.t s.t m.t / h.t h-1.t s.t m.t / s.t s+1.t m.t m-1.t
    s.t s-1.t m.t m+1.t / h.p s.p s.f m.p m.f / s.f m.f
""")
_SIBLING_CLUSTERS = template_lines("s.c m.c / h.t s.t m.c / h.t s.c m.t / h.c s.t m.t")
_GRANDPARENT = template_lines("""
    g.t h.t m.t / g.t m.t / g.w m.w / g.w m.t / g.t m.w / g.l m.l / g.w h.t m.t / g.t h.w m.t
    g.t h.t m.w / g.l h.l m.t / g.t h.l m.l / g.l h.t m.l / g.t h.t m.t g+1.t / g.t h.t m.t g-1.t
    g.t h.t m.t h+1.t / g.t h.t m.t h-1.t / g.t h.t m.t m+1.t / g.t h.t m.t m-1.t / g.t g+1.t m.t m-1.t
    g.p h.p h.f m.p m.f / g.f m.f
""")
_GRANDPARENT_CLUSTERS = template_lines("g.c m.c / g.t h.t m.c / g.t h.c m.t / g.c h.t m.t")
_GRANDSIBLING = template_lines("""
    g.t h.t s.t m.t / g.p h.p s.p m.p
    g.p s.p m.p  # coordination: g and m joined by the conjunction s (DEP 5.7.1)
    g.p h.p s.p m.p m+1.p / g.p h.p s.p m.p m-1.p
""")
_TRISIBLING = template_lines("""
    h.t t.t s.t m.t / t.t s.t m.t / t.t m.t / h.w t.t s.t m.t / h.t t.w s.t m.t / h.t t.t s.w m.t
    h.t t.t s.t m.w / t.w m.w / t.t s.t m.w / t.w s.t m.t / h.t t.t s.t m.t m+1.t
    h.t t.t s.t m.t m-1.t
""")


def _set(roles: str, plain: Sequence[str], clusters: Sequence[str]) -> tuple[Templates, Templates]:
    """Without and with clusters; fine tags are doubled by coarse ones."""
    doubled = _doubled(plain)
    return Templates(roles, doubled), Templates(roles, (*doubled, *clusters))


# What the names of arcs add to the parts of each kind, by its roles.
_NAMED = {
    "hm": (),
    "hms": template_lines("y / y h.t / y h.p s.p m.p / y h.w / y h.t m.w / y h.t s.w / y s.w m.w"),
    "hmg": template_lines("y / y h.t / y g.p h.p m.p / y g.t / y h.w / y m.w / y g.w"),
    "hmsg": template_lines("y / y h.t / y g.p h.p s.p m.p"),
    "hmst": template_lines("y / y h.t / y h.p t.p s.p m.p"),
}


@lru_cache
def with_names(templates: Templates) -> Templates:
    """The templates, and those that look at the names of arcs."""
    return Templates(templates.roles, (*templates.lines, *_NAMED[templates.roles]))


SIBLING, SIBLING_WITH_CLUSTERS = _set("hms", _SIBLING, _SIBLING_CLUSTERS)
GRANDPARENT, GRANDPARENT_WITH_CLUSTERS = _set("hmg", _GRANDPARENT, _GRANDPARENT_CLUSTERS)
GRANDSIBLING = Templates("hmsg", _doubled(_GRANDSIBLING))
TRISIBLING = Templates("hmst", _doubled(_TRISIBLING))

# Of each kind of part, in the order of kernels.parts: the order of models that have it, without and with clusters.
TREE = (
    (1, ARC, ARC_WITH_CLUSTERS),
    (2, SIBLING, SIBLING_WITH_CLUSTERS),
    (2, GRANDPARENT, GRANDPARENT_WITH_CLUSTERS),
    (3, GRANDSIBLING, GRANDSIBLING),
    (3, TRISIBLING, TRISIBLING),
)

LABEL = Templates(
    "hmglr",
    template_lines("""
    h.w m.w / h.t m.t / h.p m.p / h.w m.t / h.t m.w / h.w / m.w / m.t / h.t / m.l / h.l / h.l m.l / m.f
    h.f m.f / h.p m.p m.f / m-1.t m.t / m.t m+1.t / m-1.t m.t m+1.t / h.t m-1.t m.t / h.t m.t m+1.t
    h-1.t h.t m.t / h.t h+1.t m.t / m.t m-1.w / m.t m+1.w / g.t h.t m.t / g.p h.p m.p / l.w m.t
    l.t m.t / l.l h.p m.p / l.w h.l / l.w m.l / r.t m.t / r.w m.t / l.t m.t r.t / h.p l.t m.t
    h.t m.t b
"""),
)

# The labels of two modifiers of h next to each other, m and s before it.
LABEL_PAIR = Templates(
    "hms",
    template_lines("h.p / h.t / h.p s.p m.p / h.l / h.f"),
)

# Names of arcs are found from their two words alone, before there is a tree; the other roles stay empty.
NAME = Templates(
    "hmglr",
    template_lines("""
    h.t m.t / h.p m.p / h.w m.t / h.t m.w / h.w m.p m.f / m.w / m.t / m.f h.f / h.l m.p / h.p m.l
    h.p m.p m.f / h.t m-1.t m.t / h.t m.t m+1.t / h-1.t h.t m.t / h.t h+1.t m.t / m.t m-1.w h.p
    m.t m+1.w h.p / h.t m.t b
"""),
)
