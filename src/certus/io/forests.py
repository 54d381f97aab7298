"""Translation forests as cdec writes them (``--show_target_graph``), as flat arrays.

A text has a line ``#nodes #edges``; then, for each node in topological order, a line with the number of edges
that enter it and a line for each of them: target tokens, with ``[k]`` for node k, counted from 0, then ``|||`` and
features ``name=value``. The last node is the goal. Source spans are not part of it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from certus.errors import FormatError
from certus.io.files import feature_number, whole_number

_REFERENCE = re.compile(r"\[([0-9]+)\]")


@dataclass(slots=True)
class ForestTable:
    """A forest as flat lists; the head of ``certus/translation/forest.py`` describes them."""

    in_ptr: list[int] = field(default_factory=lambda: [0])
    tail_ptr: list[int] = field(default_factory=lambda: [0])
    tail: list[int] = field(default_factory=list)
    token_ptr: list[int] = field(default_factory=lambda: [0])
    token: list[int] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    feature_names: list[str] = field(default_factory=list)
    feature_ptr: list[int] = field(default_factory=lambda: [0])
    feature: list[int] = field(default_factory=list)
    feature_value: list[float] = field(default_factory=list)


def format_forest(table: ForestTable) -> str:
    """cdec's text form of a forest whose goal is the last vertex."""
    lines = [f"{len(table.in_ptr) - 1} {len(table.tail_ptr) - 1}"]
    for v in range(len(table.in_ptr) - 1):
        edges = range(table.in_ptr[v], table.in_ptr[v + 1])
        lines.append(str(len(edges)))
        for e in edges:
            tail = table.tail[table.tail_ptr[e] : table.tail_ptr[e + 1]]
            side = table.token[table.token_ptr[e] : table.token_ptr[e + 1]]
            tokens = " ".join(table.words[t] if t >= 0 else f"[{tail[~t]}]" for t in side)
            at = range(table.feature_ptr[e], table.feature_ptr[e + 1])
            values = (f"{table.feature_names[table.feature[k]]}={table.feature_value[k]!r}" for k in at)
            lines.append(f"{tokens} ||| {' '.join(values)}")
    return "\n".join(lines) + "\n"


def parse_forest(text: str, path: object = "text") -> ForestTable:
    """The forest of cdec's text form; ``path`` is what errors call it.

    Raises
    ------
    FormatError : names the line.
    """
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    sizes = lines[0].split() if lines else []
    if len(sizes) != 2 or not all(size.isdecimal() and size.isascii() for size in sizes):
        raise FormatError(path, 1, "expected '#nodes #edges' on the first line.")
    n_vertices, n_edges = (whole_number(size, path, 1) for size in sizes)
    reader = _Reader(path)
    at = 1
    for v in range(n_vertices):
        if at >= len(lines) or not lines[at].strip().isdecimal():
            found = repr(lines[at][:40]) if at < len(lines) else "the end of the file"
            raise FormatError(
                path, min(at, len(lines) - 1) + 1, f"expected the number of edges into node {v}, found {found}."
            )
        count, at = whole_number(lines[at], path, at + 1), at + 1
        if at + count > len(lines):
            raise FormatError(path, len(lines), f"node {v} has {count} edges, but the file ends before the last.")
        reader.add_vertex(v, enumerate(lines[at : at + count], start=at + 1))
        at += count
    found_edges = len(reader.table.tail_ptr) - 1
    if at < len(lines):
        raise FormatError(path, at + 1, f"the file goes on after node {n_vertices - 1}, the last announced.")
    if found_edges != n_edges:
        raise FormatError(path, 1, f"{n_edges} edges announced, {found_edges} found; is the file cut short?")
    if n_vertices == 0:
        raise FormatError(path, 1, "the forest has no nodes; it needs at least a goal.")
    reader.table.words, reader.table.feature_names = list(reader.word), list(reader.name)
    return reader.table


class _Reader:
    """Collects vertices in topological order."""

    def __init__(self, path: object) -> None:
        self.path, self.table = path, ForestTable()
        self.word: dict[str, int] = {}
        self.name: dict[str, int] = {}

    def add_vertex(self, v: int, lines: Iterable[tuple[int, str]]) -> None:
        """Take the edges into vertex v, a numbered line each."""
        table = self.table
        for number, line in lines:
            side, bars, features = line.partition("|||")
            if not bars:
                raise FormatError(self.path, number, "an edge is 'target tokens ||| features'; there is no '|||'.")
            self.add_side(v, number, side)
            self.add_features(number, features)
            table.tail_ptr.append(len(table.tail))
            table.token_ptr.append(len(table.token))
            table.feature_ptr.append(len(table.feature))
        table.in_ptr.append(len(table.tail_ptr) - 1)

    def add_side(self, v: int, number: int, side: str) -> None:
        table = self.table
        n_tails = 0
        for word in side.split():
            if reference := _REFERENCE.fullmatch(word):
                u = whole_number(reference[1], self.path, number)
                if u >= v:
                    raise FormatError(
                        self.path, number, f"[{u}] is not a node before node {v}, which this edge enters."
                    )
                table.tail.append(u)
                table.token.append(~n_tails)
                n_tails += 1
            else:
                table.token.append(self.word.setdefault(word, len(self.word)))

    def add_features(self, number: int, features: str) -> None:
        for pair in features.split():
            name, equals, value = pair.rpartition("=")
            if not equals:
                raise FormatError(self.path, number, f"feature {pair!r} is not 'name=value'.")
            self.table.feature.append(self.name.setdefault(name, len(self.name)))
            self.table.feature_value.append(feature_number(self.path, number, name, value))
