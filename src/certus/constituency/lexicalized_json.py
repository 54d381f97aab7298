"""The scores of one sentence as JSON data, so that a saved result can be verified elsewhere."""

from dataclasses import fields
from typing import Any

import numpy as np

from certus.constituency.lexicalized_tables import Tables
from certus.errors import InvalidInput
from certus.serialize import floats_from_json, floats_to_json

NAMES = ("words", "tags", "labels")


def to_json(tables: Tables, width: float) -> dict[str, Any]:
    """Every array with its shape."""
    data: dict[str, Any] = {"width": None if width == np.inf else width}
    for f in fields(tables):
        value = getattr(tables, f.name)
        if f.name in NAMES:
            data[f.name] = list(value)
        elif f.name == "node_spine":
            data[f.name] = [list(spine) for spine in value]
        else:
            values = floats_to_json(value.ravel()) if value.dtype.kind == "f" else value.ravel().tolist()
            data[f.name] = {"shape": list(value.shape), "values": values}
    return data


def from_json(data: dict[str, Any]) -> tuple[Tables, float]:
    """What ``to_json`` wrote; InvalidInput if it is something else, or does not fit together."""
    try:
        width = np.inf if data["width"] is None else float(data["width"])
        found: dict[str, Any] = {}
        for f in fields(Tables):
            entry = data[f.name]
            if f.name in NAMES:
                found[f.name] = tuple(map(str, entry))
            elif f.name == "node_spine":
                found[f.name] = tuple(tuple(map(str, spine)) for spine in entry)
            elif "score" in f.name or f.name in ("stop", "attach"):
                found[f.name] = floats_from_json(entry["values"], f.name).reshape(entry["shape"])
            else:
                kind = {"attach_ptr": np.int64, "allowed": np.bool_}.get(f.name, np.int32)
                found[f.name] = np.array(entry["values"], dtype=kind).reshape(entry["shape"])
        tables = Tables(**found)
        _check(tables)
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"damaged lexicalised problem: {type(error).__name__} at {error}.") from None
    return tables, width


def _check(t: Tables) -> None:
    """No index may lead outside its array: the kernels do not look."""
    n, nodes, groups, contexts = t.n, len(t.node_score), len(t.group_word), len(t.context_word)
    rows = 2 * len(t.labels)
    width = (t.context_ptr[:, n] - t.context_ptr[:, 0]) if t.context_ptr.shape == (len(t.labels), n + 1) else None
    fits = (
        t.group_ptr.shape == (rows, n + 1)
        and width is not None
        and t.node_ptr.shape == (n + 1,)
        and t.stop.shape == (contexts, 3, 2, 3)
        and t.distance.shape == (n, n)
        and t.allowed.shape == (n + 1, n + 1)
        and all(len(a) == nodes for a in (t.node_below, t.node_context, t.node_group, t.node_spine))
        and all(len(a) == groups for a in (t.group_tag, t.attach_ptr, t.root_score))
        and _within(t.node_ptr, 0, nodes) and bool((np.diff(t.node_ptr) >= 0).all()) and int(t.node_ptr[-1]) == nodes
        and bool((t.node_below < np.arange(nodes)).all()) and _within(t.node_below, -1, nodes - 1)
        and _within(t.node_context, -1, contexts - 1) and _within(t.node_group, -1, groups - 1)
        and bool(((t.node_context < 0) == (t.node_below < 0)).all())
        and _within(t.group_word, 0, n - 1) and _within(t.context_word, 0, n - 1) and _within(t.distance, 0, 2)
        and _within(t.group_tag, 0, len(t.tags) - 1)
        and bool((np.diff(t.group_ptr.ravel()) >= 0).all()) and int(t.group_ptr[-1, -1]) == groups
        and bool((np.diff(t.context_ptr.ravel()) >= 0).all()) and int(t.context_ptr[-1, -1]) == contexts
    )  # fmt: skip
    if fits and width is not None and groups:
        label = np.repeat(np.arange(rows) // 2, t.group_ptr[:, n] - t.group_ptr[:, 0])
        fits = len(label) == groups and _within(t.attach_ptr, 0, len(t.attach)) and (
            bool((t.attach_ptr + 9 * width[label] <= len(t.attach)).all())
        )  # fmt: skip
    scores = (t.node_score, t.stop, t.attach, t.root_score)
    if not fits or any(np.isnan(s).any() or (s == np.inf).any() for s in scores):
        raise InvalidInput("damaged lexicalised problem: its arrays do not fit together.")


def _within(values: Any, low: int, high: int) -> bool:
    return not values.size or bool(values.min() >= low and values.max() <= high)
