"""Translation forests as cdec writes them (``--show_target_graph``), as flat arrays.

A text has a line ``#nodes #edges``; then, for each node in topological order, a line with the number of edges
that enter it and a line for each of them: target tokens, with ``[k]`` for node k, counted from 0, then ``|||`` and
features ``name=value``. The last node is the goal. Source spans are not part of it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from certus.checks import of_kind
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
    feature_ptr: list[int] = field(default_factory=lambda: [0])
    feature: list[int] = field(default_factory=list)
    feature_value: list[float] = field(default_factory=list)
    words: dict[str, int] = field(default_factory=dict)  # as they came, with their numbers
    feature_names: dict[str, int] = field(default_factory=dict)


def format_forest(table: ForestTable, words: Sequence[str], names: Sequence[str]) -> str:
    """cdec's text form of a forest whose goal is the last vertex, with its words and the names of its features."""
    lines = [f"{len(table.in_ptr) - 1} {len(table.tail_ptr) - 1}"]
    for first, last in pairwise(table.in_ptr):
        lines.append(str(last - first))
        for e in range(first, last):
            tail = table.tail[table.tail_ptr[e] : table.tail_ptr[e + 1]]
            side = table.token[table.token_ptr[e] : table.token_ptr[e + 1]]
            tokens = " ".join(words[t] if t >= 0 else f"[{tail[~t]}]" for t in side)
            at = range(table.feature_ptr[e], table.feature_ptr[e + 1])
            values = (f"{names[table.feature[k]]}={table.feature_value[k]!r}" for k in at)
            lines.append(f"{tokens} ||| {' '.join(values)}")
    return "\n".join(lines) + "\n"


def parse_forest(text: str, path: object = "text") -> ForestTable:
    """The forest of cdec's text form; ``path`` is what errors call it. FormatError names the line."""
    of_kind("text", text, str, "a forest as text; for a file call TranslationForest.read(path)")
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    sizes = lines[0].split() if lines else []
    if len(sizes) != 2 or not all(size.isdecimal() and size.isascii() for size in sizes):
        raise FormatError(path, 1, "expected '#nodes #edges' on the first line.")
    n_vertices, n_edges = (whole_number(size, path, 1) for size in sizes)
    table, at = ForestTable(), 1
    for v in range(n_vertices):
        if at >= len(lines) or not lines[at].strip().isdecimal():
            found = repr(lines[at][:40]) if at < len(lines) else "the end of the file"
            raise FormatError(
                path, min(at, len(lines) - 1) + 1, f"expected the number of edges into node {v}, found {found}."
            )
        count, at = whole_number(lines[at], path, at + 1), at + 1
        if at + count > len(lines):
            raise FormatError(path, len(lines), f"node {v} has {count} edges, but the file ends before the last.")
        for number, line in enumerate(lines[at : at + count], start=at + 1):
            _add_edge(table, v, line, path, number)
        at += count
        table.in_ptr.append(len(table.tail_ptr) - 1)
    if at < len(lines):
        raise FormatError(path, at + 1, f"the file goes on after node {n_vertices - 1}, the last announced.")
    if table.in_ptr[-1] != n_edges:
        raise FormatError(path, 1, f"{n_edges} edges announced, {table.in_ptr[-1]} found; is the file cut short?")
    if n_vertices == 0:
        raise FormatError(path, 1, "the forest has no nodes; it needs at least a goal.")
    return table


def _add_edge(table: ForestTable, v: int, line: str, path: object, number: int) -> None:
    """Take an edge into vertex v."""
    side, bars, features = line.partition("|||")
    if not bars:
        raise FormatError(path, number, "an edge is 'target tokens ||| features'; there is no '|||'.")
    for word in side.split():
        if reference := _REFERENCE.fullmatch(word):
            u = whole_number(reference[1], path, number)
            if u >= v:
                raise FormatError(path, number, f"[{u}] is not a node before node {v}, which this edge enters.")
            table.token.append(~(len(table.tail) - table.tail_ptr[-1]))
            table.tail.append(u)
        else:
            table.token.append(table.words.setdefault(word, len(table.words)))
    for pair in features.split():
        name, equals, value = pair.rpartition("=")
        if not equals:
            raise FormatError(path, number, f"feature {pair!r} is not 'name=value'.")
        table.feature.append(table.feature_names.setdefault(name, len(table.feature_names)))
        table.feature_value.append(feature_number(path, number, name, value))
    table.tail_ptr.append(len(table.tail))
    table.token_ptr.append(len(table.token))
    table.feature_ptr.append(len(table.feature))
