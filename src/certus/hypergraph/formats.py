"""Hypergraphs as text, one edge a line, and as JSON; both keep weights and labels and round-trip exactly.

The text form::

    certus hypergraph 1
    vertices 3 edges 3 root 2
    vertex 0 "the"
    vertex 1 "dog"
    vertex 2 "NP"
    0 <- weight=0.0
    1 <- weight=-inf
    2 <- 0 1 weight=1.5 label="NP -> the dog"

Vertices are numbered bottom-up and edges stand in the order of their heads. Labels are JSON strings. Weights and labels
may be left out of all edges, and ``vertex`` lines altogether. Empty lines and lines that start with # are skipped.
"""

import json
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from certus.checks import Floats, as_scores
from certus.errors import FormatError, InvalidInput
from certus.hypergraph.graph import Hypergraph
from certus.io.files import read_text, whole_number
from certus.schema import MOST, Field, in_file, parse_json
from certus.serialize import floats_to_json, load_json, write_json, write_text_atomically

HEADER = "certus hypergraph 1"
MOST_UNNAMED = 1 << 16  # vertices that a file may have however short it is
_SIZES = re.compile(r"vertices ([0-9]+) edges ([0-9]+) root ([0-9]+)")
_VERTEX = re.compile(r'vertex ([0-9]+) (".*")')
_EDGE = re.compile(r'([0-9]+) <-((?: [0-9]+)*)(?: weight=(\S+))?(?: label=(".*"))?')

Weighted = tuple[Hypergraph, Floats | None]


def to_text(graph: Hypergraph, weights: Floats | None = None) -> str:
    """The text form of a graph."""
    lines = [HEADER, f"vertices {graph.n_vertices} edges {graph.n_edges} root {graph.root}"]
    for v, label in enumerate(graph.vertex_labels or ()):
        lines.append(f"vertex {v} {json.dumps(label)}")
    values = None if weights is None else as_scores("weights", weights, (graph.n_edges,)).tolist()
    for e, head in enumerate(graph.heads.tolist()):
        words = [f"{head} <-", *map(str, graph.tail_of(e).tolist())]
        if values is not None:
            words.append(f"weight={values[e]!r}")
        if graph.edge_labels is not None:
            words.append(f"label={json.dumps(graph.edge_labels[e])}")
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def from_text(text: str, source: object = "text") -> Weighted:
    """Graph and weights (None if it has none) of the text form; a FormatError names ``source`` and the line."""
    lines = [(n, line.strip()) for n, line in enumerate(text.split("\n"), 1)]
    lines = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if not lines or lines[0][1] != HEADER:
        raise FormatError(source, 1, f"a hypergraph starts with the line {HEADER!r}.")
    if len(lines) < 2 or not (sizes := _SIZES.fullmatch(lines[1][1])):
        raise FormatError(source, lines[min(1, len(lines) - 1)][0], "expected 'vertices V edges E root R'.")
    n_vertices, n_edges, root = (whole_number(word, source, lines[1][0]) for word in sizes.groups())
    if n_vertices > max(len(text), MOST_UNNAMED):
        raise FormatError(source, lines[1][0], f"{n_vertices} vertices announced; the file is too short for so many.")
    vertex_labels: dict[int, str] = {}
    found: list[tuple[int, int, list[int], float | None, str | None]] = []  # line, head, tail, weight, label
    for n, line in lines[2:]:
        if named := _VERTEX.fullmatch(line):
            v = _vertex(named[1], n_vertices, source, n)
            vertex_labels[v] = _label(named[2], source, n)
        elif edge := _EDGE.fullmatch(line):
            tail = [_vertex(u, n_vertices, source, n) for u in edge[2].split()]
            label = None if edge[4] is None else _label(edge[4], source, n)
            weight = None if edge[3] is None else _weight(edge[3], source, n)
            found.append((n, _vertex(edge[1], n_vertices, source, n), tail, weight, label))
        else:
            raise FormatError(source, n, f"{line!r} is neither 'HEAD <- TAIL ... weight=W label=L' nor 'vertex V L'.")
    if len(found) != n_edges:
        raise FormatError(
            source, lines[-1][0], f"{len(found)} edges found, {n_edges} announced; is the file cut short?"
        )
    _check_order(found, source)
    in_ptr = np.concatenate(([0], np.cumsum(np.bincount([f[1] for f in found], minlength=n_vertices))))
    with in_file(source):
        graph = Hypergraph(
            in_ptr,
            np.concatenate(([0], np.cumsum([len(f[2]) for f in found], dtype=np.int64))),
            np.array([u for f in found for u in f[2]], dtype=np.int64),
            root,
            [vertex_labels.get(v, "") for v in range(n_vertices)] if vertex_labels else None,
            _all_or_none([f[4] for f in found], "label", found, source),
        )
    weights = _all_or_none([f[3] for f in found], "weight", found, source)
    return graph, None if weights is None else np.array(weights, dtype=np.float64)


def to_json(graph: Hypergraph, weights: Floats | None = None) -> dict[str, Any]:
    """The JSON form of a graph: its arrays."""
    data: dict[str, Any] = {
        "format": HEADER,
        "in_ptr": graph.in_ptr.tolist(),
        "tail_ptr": graph.tail_ptr.tolist(),
        "tail": graph.tail.tolist(),
        "root": graph.root,
    }
    if graph.vertex_labels is not None:
        data["vertex_labels"] = list(graph.vertex_labels)
    if graph.edge_labels is not None:
        data["edge_labels"] = list(graph.edge_labels)
    if weights is not None:
        data["weights"] = floats_to_json(as_scores("weights", weights, (graph.n_edges,)))
    return data


def from_json(data: Any) -> Weighted:
    """Graph and weights (None if it has none) of the JSON form; InvalidInput if it is not one."""
    given = Field.of(data, "").format(HEADER)
    in_ptr, tail_ptr, tail = (given[name].wholes(0, MOST) for name in ("in_ptr", "tail_ptr", "tail"))
    root = given["root"].whole()
    vertices, edges = (given[name].texts() if name in given else None for name in ("vertex_labels", "edge_labels"))
    graph = given.made(lambda: Hypergraph(in_ptr, tail_ptr, tail, root, vertices, edges))
    return graph, given["weights"].scores((graph.n_edges,)) if "weights" in given else None


def weighted_from_json(data: Field) -> tuple[Hypergraph, Floats]:
    """Graph and weights of the JSON form; InvalidInput if it has no weights."""
    graph, weights = from_json(data)
    if weights is None:
        data.fail("a graph with weights")
    return graph, weights


def save(path: str | os.PathLike[str], graph: Hypergraph, weights: Floats | None = None) -> None:
    """Write a graph to a file, whole or not at all: as JSON if its name ends in .json, else as text."""
    if str(path).endswith(".json"):
        write_json(path, to_json(graph, weights))
    else:
        write_text_atomically(path, to_text(graph, weights))


def load(path: str | os.PathLike[str]) -> Weighted:
    """Read what ``save`` wrote; a FormatError names the file, and the line where it can."""
    if str(path).endswith(".json"):
        return load_json(path, from_json)
    return from_text(read_text(path), path)


def _vertex(word: str, n_vertices: int, source: object, line: int) -> int:
    v = whole_number(word, source, line)
    if v >= n_vertices:
        raise FormatError(source, line, f"vertex {v} does not exist; vertices are 0..{n_vertices - 1}.")
    return v


def _weight(word: str, source: object, line: int) -> float:
    try:
        value = float(word)
    except ValueError:
        value = np.nan
    if not value < np.inf:
        raise FormatError(source, line, f"weight {word!r} is not a finite number or -inf.")
    return value


def _label(word: str, source: object, line: int) -> str:
    try:
        return Field(parse_json(word)).text()
    except InvalidInput:
        raise FormatError(source, line, f"label {word[:60]} is not a JSON string.") from None


def _check_order(found: Sequence[tuple[int, int, list[int], Any, Any]], source: object) -> None:
    last = 0
    for n, head, tail, _, _ in found:
        if head < last:
            raise FormatError(source, n, f"this edge enters vertex {head}, but one into {last} stands before it.")
        for u in tail:
            if u >= head:
                raise FormatError(source, n, f"tail vertex {u} is not numbered below its head {head}.")
        last = head


def _all_or_none(values: list[Any], what: str, found: Sequence[tuple[Any, ...]], source: object) -> list[Any] | None:
    missing = [f[0] for f, value in zip(found, values, strict=True) if value is None]
    if missing and len(missing) < len(values):
        raise FormatError(source, missing[0], f"this edge has no {what} but others do.")
    return values if values and not missing else None
