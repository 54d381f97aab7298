"""The scores of one sentence as JSON data, so that a saved result can be verified elsewhere."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus.constituency.lexicalized_tables import Tables
from certus.errors import InvalidInput
from certus.schema import MOST, Field
from certus.serialize import floats_to_json

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


def from_json(data: Any) -> tuple[Tables, float]:
    """What ``to_json`` wrote; InvalidInput if it is something else, or does not fit together."""
    given = Field.of(data, "")
    width = given["width"].number(0.0) if "width" in given else np.inf
    found: dict[str, Any] = {}
    for f in fields(Tables):
        entry = given[f.name]
        if f.name in NAMES:
            found[f.name] = tuple(entry.texts())
        elif f.name == "node_spine":
            found[f.name] = tuple(tuple(spine.texts()) for spine in entry.items())
        else:
            shape, values = entry.shaped()
            if "score" in f.name or f.name in ("stop", "attach"):
                array = values.scores((None,))
            elif f.name == "allowed":
                array = np.array([cell.flag() for cell in values.items()], dtype=np.bool_)
            else:
                array = values.wholes(-1, MOST).astype(np.int64 if f.name == "attach_ptr" else np.int32)
            found[f.name] = array.reshape(shape)
    tables = Tables(**found)
    given.made(lambda: _check(tables))
    return tables, width


def _check_shapes(t: Tables) -> None:
    """No index may lead outside its array."""
    n, nodes, labels = len(t.words), len(t.node_spine), len(t.labels)
    groups, contexts = t.group_word.size, t.context_word.size
    shapes = {
        "node_ptr": (n + 1,),
        "node_below": (nodes,),
        "node_context": (nodes,),
        "node_group": (nodes,),
        "node_score": (nodes,),
        "group_word": (groups,),
        "group_tag": (groups,),
        "group_ptr": (2 * labels, n + 1),
        "context_ptr": (labels, n + 1),
        "context_word": (contexts,),
        "stop": (contexts, 3, 2, 3),
        "attach_ptr": (groups,),
        "attach": (t.attach.size,),
        "root_score": (groups,),
        "distance": (n, n),
        "allowed": (n + 1, n + 1),
    }
    for name, shape in shapes.items():
        if getattr(t, name).shape != shape:
            raise InvalidInput(f"{name} has shape {getattr(t, name).shape}; expected {shape}.")
    ranges = {
        "node_context": (-1, contexts - 1),
        "node_group": (-1, groups - 1),
        "group_word": (0, n - 1),
        "group_tag": (0, len(t.tags) - 1),
        "context_word": (0, n - 1),
        "distance": (0, 2),
    }
    for name, (low, high) in ranges.items():
        values = getattr(t, name)
        if values.size and not (values.min() >= low and values.max() <= high):
            raise InvalidInput(f"{name} holds numbers from {values.min()} to {values.max()}; expected {low}..{high}.")
    for name, size in (("node_ptr", nodes), ("group_ptr", groups), ("context_ptr", contexts)):
        _check_offsets(name, np.atleast_2d(getattr(t, name)), size)


def _check(t: Tables) -> None:
    """No index may lead outside its array, and words, groups and contexts belong together: the kernels do not look."""
    _check_shapes(t)
    n, nodes, groups = len(t.words), len(t.node_spine), t.group_word.size
    word = np.repeat(np.arange(n), np.diff(t.node_ptr))
    bare = t.node_below < 0
    below, context, group = t.node_below[~bare], t.node_context[~bare], t.node_group >= 0
    for name in ("tags", "labels"):
        if len(set(getattr(t, name))) < len(getattr(t, name)):
            raise InvalidInput(f"{name} has a name twice; expected each once.")
    for v, (spine, lower) in enumerate(zip(t.node_spine, t.node_below.tolist(), strict=True)):
        expected = t.node_spine[lower][: len(spine)] if 0 <= lower < v else ()
        if spine[:-1] != expected or not spine or spine[0] not in t.tags:
            raise InvalidInput(f"node_spine[{v}] is not a tag, or a label on top of the spine of the node below.")
    if (t.node_below >= np.arange(nodes)).any() or (word[below] != word[~bare]).any():
        raise InvalidInput("node_below names a node that is not before its node, or is of another word.")
    if ((t.node_context < 0) != bare).any() or (t.context_word[context] != word[~bare]).any():
        raise InvalidInput("node_context names the context of another word, or one for a bare tag.")
    if (t.group_word[t.node_group[group]] != word[group]).any():
        raise InvalidInput("node_group names the group of another word.")
    for name, ptr, words in (("group_ptr", t.group_ptr, t.group_word), ("context_ptr", t.context_ptr, t.context_word)):
        if (np.repeat(np.tile(np.arange(n), len(ptr)), np.diff(ptr).ravel()) != words).any():
            raise InvalidInput(f"{name} does not lead to the words that the entries say.")
    of_label = np.diff(t.context_ptr[:, [0, n]]).ravel()
    rows = np.repeat(np.repeat(of_label, 2), np.diff(t.group_ptr[:, [0, n]]).ravel())
    if groups and (t.attach_ptr.min() < 0 or (t.attach_ptr + 9 * rows > len(t.attach)).any()):
        raise InvalidInput(f"attach_ptr leads beyond the {len(t.attach)} scores of attach.")


def _check_offsets(name: str, ptr: NDArray[np.int32], size: int) -> None:
    """Offsets go from 0 to the size and never fall; a row goes on where the one before it ends."""
    if not len(ptr):
        fits = size == 0
    else:
        flat = ptr.ravel()
        fits = flat[0] == 0 and flat[-1] == size and not (np.diff(flat) < 0).any()
        fits = fits and bool((ptr[1:, 0] == ptr[:-1, -1]).all())
    if not fits:
        raise InvalidInput(f"{name} is not offsets that rise from 0 to {size}, row after row.")
