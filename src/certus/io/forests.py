"""Translation forests as cdec writes them (``--show_target_graph``), and as hypergraph JSON.

The text form has a line ``#nodes #edges``; then, for each node in topological order, a line with the number of edges
that enter it and a line for each of them: target tokens, with ``[k]`` for node k, counted from 0, then ``|||`` and
features ``name=value``. The last node is the goal. Source spans are not part of it.
"""

import os
import re

import numpy as np

from certus.errors import FormatError, InvalidInput
from certus.hypergraph import Hypergraph
from certus.io.files import feature_number, read_text, whole_number, write_maybe_gzip
from certus.serialize import load_json, write_json
from certus.translation.forest import TranslationForest

_REFERENCE = re.compile(r"\[([0-9]+)\]")


def read_forest(path: str | os.PathLike[str]) -> TranslationForest:
    """Read a forest: JSON if its name ends in .json, else cdec's text form, plain or .gz.

    The features of a text forest are kept and its weights are zeros: ``forest.weighted(weights)`` scores it.

    Raises
    ------
    FormatError : names the line.
    """
    if str(path).endswith(".json"):
        return load_json(path, TranslationForest.from_json)
    return forest_from_text(read_text(path), path)


def write_forest(path: str | os.PathLike[str], forest: TranslationForest) -> None:
    """Write a forest, whole or not at all: JSON if its name ends in .json, else cdec's text form, .gz by its name.

    The text form keeps target sides and features only, and its root is the last vertex.
    """
    if str(path).endswith(".json"):
        write_json(path, forest.to_json())
        return
    write_maybe_gzip(path, forest_to_text(forest))


def forest_to_text(forest: TranslationForest) -> str:
    """cdec's text form of a forest."""
    graph = forest.graph
    if graph.root != graph.n_vertices - 1:
        raise InvalidInput(f"the root is vertex {graph.root}; in cdec's text form the goal is the last vertex.")
    lines = [f"{graph.n_vertices} {graph.n_edges}"]
    for v in range(graph.n_vertices):
        edges = graph.edges_into(v)
        lines.append(str(len(edges)))
        for e in edges:
            tail = graph.tail_of(e).tolist()
            side = forest.token[forest.token_ptr[e] : forest.token_ptr[e + 1]].tolist()
            tokens = " ".join(forest.words[t] if t >= 0 else f"[{tail[~t]}]" for t in side)
            at = range(forest.feature_ptr[e], forest.feature_ptr[e + 1])
            values = (f"{forest.feature_names[forest.feature[k]]}={float(forest.feature_value[k])!r}" for k in at)
            lines.append(f"{tokens} ||| {' '.join(values)}")
    return "\n".join(lines) + "\n"


def forest_from_text(text: str, path: object = "text") -> TranslationForest:
    """The forest of cdec's text form; ``path`` is what errors call it."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    sizes = lines[0].split() if lines else []
    if len(sizes) != 2 or not all(size.isdecimal() and size.isascii() for size in sizes):
        raise FormatError(path, 1, "expected '#nodes #edges' on the first line.")
    n_vertices, n_edges = (whole_number(size, path, 1) for size in sizes)
    in_ptr, tail_ptr, tail, token_ptr = [0], [0], [], [0]
    token: list[int] = []
    words: dict[str, int] = {}
    names: dict[str, int] = {}
    feature_ptr, feature = [0], []
    feature_value: list[float] = []
    at = 1
    for v in range(n_vertices):
        if at >= len(lines) or not lines[at].strip().isdecimal():
            found = repr(lines[at][:40]) if at < len(lines) else "the end of the file"
            raise FormatError(
                path, min(at, len(lines) - 1) + 1, f"expected the number of edges into node {v}, found {found}."
            )
        count, at = whole_number(lines[at], path, at + 1), at + 1
        for number in range(at, at + count):
            if number >= len(lines):
                raise FormatError(path, len(lines), f"node {v} has {count} edges, but the file ends before the last.")
            side, bars, described = lines[number].partition("|||")
            if not bars:
                raise FormatError(path, number + 1, "an edge is 'target tokens ||| features'; there is no '|||'.")
            n_tails = 0
            for word in side.split():
                if reference := _REFERENCE.fullmatch(word):
                    u = whole_number(reference[1], path, number + 1)
                    if u >= v:
                        raise FormatError(
                            path, number + 1, f"[{u}] is not a node before node {v}, which this edge enters."
                        )
                    tail.append(u)
                    token.append(~n_tails)
                    n_tails += 1
                else:
                    token.append(words.setdefault(word, len(words)))
            for pair in described.split():
                name, equals, value = pair.rpartition("=")
                if not equals:
                    raise FormatError(path, number + 1, f"feature {pair!r} is not 'name=value'.")
                feature.append(names.setdefault(name, len(names)))
                feature_value.append(feature_number(path, number + 1, name, value))
            tail_ptr.append(len(tail))
            token_ptr.append(len(token))
            feature_ptr.append(len(feature))
        at += count
        in_ptr.append(len(tail_ptr) - 1)
    if at < len(lines):
        raise FormatError(path, at + 1, f"the file goes on after node {n_vertices - 1}, the last announced.")
    if len(tail_ptr) - 1 != n_edges:
        raise FormatError(path, 1, f"{n_edges} edges announced, {len(tail_ptr) - 1} found; is the file cut short?")
    if n_vertices == 0:
        raise FormatError(path, 1, "the forest has no nodes; it needs at least a goal.")
    return TranslationForest(
        Hypergraph(in_ptr, tail_ptr, np.array(tail, dtype=np.int32)),
        token_ptr,
        np.array(token, dtype=np.int32),
        list(words),
        feature_names=list(names),
        feature_ptr=feature_ptr,
        feature=np.array(feature, dtype=np.int32),
        feature_value=np.array(feature_value),
    )
