"""Taggers as safetensors files: weights of one byte, the lexicon as arrays, the rest as JSON in the header.

Tensors: ``words``, the forms of the lexicon in UTF-8 with line ends between; for each of them ``known`` (0 or 1),
``cluster`` and, for model k, ``set.k``: a number in the header's lists of bit strings and of sets of tags, 0 for none;
and ``weight.k``.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus.errors import FormatError
from certus.features.tagging import Lexicon
from certus.models.files import load_model, save_model
from certus.models.tagger import COLUMNS, KIND, VERSION, ColumnModel, weights_of

Arrays = dict[str, NDArray[Any]]


def write_tagger(path: str | os.PathLike[str], models: Sequence[ColumnModel], pair: str | None = None) -> None:
    """Write a tagger's models."""
    lexicon = models[0].lexicon  # what is known and the clusters are the same for all columns
    listed = lexicon.known.union(lexicon.clusters, *(model.lexicon.sets for model in models))
    words = sorted(word for word in listed if "\n" not in word)
    paths = sorted(set(lexicon.clusters.values()))
    path_number = {bits: k for k, bits in enumerate(paths, start=1)}
    arrays: Arrays = {
        "words": np.frombuffer("\n".join(words).encode(), dtype=np.uint8),
        "known": np.array([word in lexicon.known for word in words], dtype=np.uint8),
        "cluster": np.array([path_number.get(lexicon.clusters.get(word, "-"), 0) for word in words], dtype=np.uint16),
    }
    entries = []
    for k, model in enumerate(models):
        distinct = sorted(set(model.lexicon.sets.values()))
        set_number = {tags: s for s, tags in enumerate(distinct, start=1)}
        sets = [set_number.get(model.lexicon.sets.get(word, ()), 0) for word in words]
        arrays[f"set.{k}"] = np.array(sets, dtype=np.uint16)
        arrays[f"weight.{k}"] = model.weight
        entries.append({"column": model.column, "tags": model.tags, "sets": distinct, "bits": model.bits})
    save_model(path, KIND, VERSION, {"paths": paths, "models": entries}, arrays, pair=pair)


def read_tagger(path: str | os.PathLike[str]) -> list[ColumnModel]:
    """Read a tagger's models, checked."""
    header, arrays = load_model(path, KIND, VERSION)
    try:
        listed = bytes(_array(path, arrays, "words", np.uint8, None)).decode()
        words = listed.split("\n") if listed else []
        paths = ["", *header["paths"]]
        entries = [(e["column"], tuple(e["tags"]), [(), *map(tuple, e["sets"])], e["bits"]) for e in header["models"]]
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(path, None, f"the header or the words are damaged: {error!r}.") from None
    known = _array(path, arrays, "known", np.uint8, len(words))
    cluster = _array(path, arrays, "cluster", np.uint16, len(words))
    forms = frozenset(word for word, flag in zip(words, known.tolist(), strict=True) if flag)
    clusters = _looked_up(path, "cluster", words, cluster, paths)
    models = []
    for k, (column, tags, sets, bits) in enumerate(entries):
        _check_entry(path, column, tags, sets, bits)
        numbers = _array(path, arrays, f"set.{k}", np.uint16, len(words))
        weight = _array(path, arrays, f"weight.{k}", np.int8, weights_of(bits, len(tags)))
        lexicon = Lexicon(forms, _looked_up(path, f"set.{k}", words, numbers, sets), clusters)
        models.append(ColumnModel(column, tags, lexicon, bits, weight))
    if not models:
        raise FormatError(path, None, "the tagger has no model.")
    return models


def _array(path: object, arrays: Mapping[str, NDArray[Any]], name: str, kind: Any, size: int | None) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None:
        raise FormatError(path, None, f"the array {name} is missing; the file is damaged.")
    if array.dtype != kind or array.ndim != 1 or (size is not None and len(array) != size):
        raise FormatError(
            path, None, f"{name} is {array.dtype}{list(array.shape)}; expected {np.dtype(kind)}[{size or 'any'}]."
        )
    return np.ascontiguousarray(array)


def _looked_up(
    path: object, name: str, words: Sequence[str], numbers: NDArray[Any], values: Sequence[Any]
) -> dict[str, Any]:
    """The value of each word that has a number."""
    if int(numbers.max(initial=0)) >= len(values):
        raise FormatError(path, None, f"{name} has number {int(numbers.max())}; the header lists {len(values) - 1}.")
    return {word: values[k] for word, k in zip(words, numbers.tolist(), strict=True) if k}


def _check_entry(path: object, column: Any, tags: Any, sets: Any, bits: Any) -> None:
    if not isinstance(column, str) or set(column.split("+")) - set(COLUMNS):
        raise FormatError(path, None, f"a model is for column {column!r}; expected some of {', '.join(COLUMNS)}.")
    if not tags or not all(isinstance(tag, str) for tag in tags) or len(set(tags)) < len(tags):
        raise FormatError(path, None, f"the tags of column {column} are not distinct names.")
    if type(bits) is not int or not 8 <= bits <= 28:
        raise FormatError(path, None, f"bits is {bits!r}; expected 8 to 28.")
    widths = len(column.split("+"))
    if any(len(tag.split("\t")) != widths for tag in tags):
        raise FormatError(path, None, f"the tags of column {column} do not have {widths} parts.")
    if any(not tag_set for tag_set in sets[1:]) or any(
        type(t) is not int or not 0 <= t < len(tags) for tag_set in sets for t in tag_set
    ):
        raise FormatError(path, None, f"a set of tags of column {column} names none, or one out of range.")
