"""Taggers as safetensors files: weights of one byte, the lexicon as arrays, the rest as JSON in the header.

Tensors: ``words``, the forms of the lexicon in UTF-8 with line ends between; for each of them ``known`` (0 or 1),
``cluster`` and, for model k, ``set.k``: a number in the header's lists of bit strings and of sets of tags, 0 for none;
and ``weight.k``. The header also has a digest of the templates.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus.errors import FormatError
from certus.features.tagging import TEMPLATES, WIDEST, WITH_CLUSTERS, Lexicon
from certus.models.files import Stored, check_templates, load_model, save_model, template_digest
from certus.models.tagger import COLUMNS, KIND, LEAST_BITS, MOST_BITS, VERSION, ColumnModel, weights_of
from certus.schema import Field, in_file

MOST_NUMBERED = 2**16 - 1  # tags, sets of tags and bit strings: their numbers take two bytes


def write_tagger(path: str | os.PathLike[str], models: Sequence[ColumnModel], pair: str | None = None) -> None:
    """Write a tagger's models."""
    lexicon = models[0].lexicon  # what is known and the clusters are the same for all columns
    listed = lexicon.known.union(lexicon.clusters, *(model.lexicon.sets for model in models))
    words = sorted(word for word in listed if "\n" not in word)
    paths = sorted(set(lexicon.clusters.values()))
    path_number = {bits: k for k, bits in enumerate(paths, start=1)}
    arrays: dict[str, NDArray[Any]] = {
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
    header = {"templates": _digest(lexicon.clusters), "paths": paths, "models": entries}
    save_model(path, KIND, VERSION, header, arrays, pair=pair)


def read_tagger(path: str | os.PathLike[str]) -> list[ColumnModel]:
    """Read a tagger's models, checked."""
    config, stored = load_model(path, KIND, VERSION)
    with in_file(path):
        words = _words(stored)
        known = stored.wholes("known", np.uint8, (len(words),), 0, 1)
        forms = frozenset(word for word, flag in zip(words, known.tolist(), strict=True) if flag)
        paths = config["paths"].texts()
        clusters = _looked_up(stored, "cluster", words, paths)
        check_templates(config, _digest(clusters))
        models: list[ColumnModel] = []
        filled: list[str] = []
        for k, entry in enumerate(config["models"].items(least=1)):
            column = entry["column"].text()
            filled += column.split("+")
            if set(filled) - set(COLUMNS) or len(set(filled)) < len(filled):
                entry["column"].fail(f"some of {', '.join(COLUMNS)}, joined by +, each in one model only")
            tags = _tags(entry["tags"], len(column.split("+")))
            bits = entry["bits"].whole(LEAST_BITS, MOST_BITS)
            sets = _looked_up(stored, f"set.{k}", words, _sets(entry["sets"], len(tags)))
            weight = stored.array(f"weight.{k}", np.int8, (weights_of(bits, len(tags)),))
            models.append(ColumnModel(column, tags, Lexicon(forms, sets, clusters), bits, weight))
    return models


def _digest(clusters: Mapping[str, str]) -> str:
    return template_digest((WITH_CLUSTERS if clusters else TEMPLATES).lines)


def _words(stored: Stored) -> list[str]:
    """The forms of the lexicon, each once."""
    try:
        listed = stored.array("words", np.uint8, (None,)).tobytes().decode()
    except UnicodeDecodeError as error:
        raise FormatError(stored.path, None, f"words is not UTF-8 text (byte {error.start}).") from None
    words = listed.split("\n") if listed else []
    if len(set(words)) < len(words):
        raise FormatError(stored.path, None, "words has a word twice; expected each once.")
    return words


def _tags(field: Field, columns: int) -> tuple[str, ...]:
    """Distinct tags; those of several columns have as many parts, between tabs."""
    tags = field.texts()
    if not 1 <= len(tags) <= MOST_NUMBERED or len(set(tags)) < len(tags):
        field.fail(f"1 to {MOST_NUMBERED} tags, each once")
    for tag in field.items():
        parts = [Field(part, tag.where) for part in tag.value.split("\t")]
        if len(parts) != columns:
            tag.fail(f"{columns} names between tabs")
        for part in parts:
            part.name()
    return tuple(tags)


def _sets(field: Field, tags: int) -> list[tuple[int, ...]]:
    """Sets of numbers of tags, which rise, each set once: kernels have room for WIDEST tags of a word."""
    found = []
    for listed in field.items():
        numbers = listed.wholes(0, tags - 1).tolist()
        if not 1 <= len(numbers) <= WIDEST or sorted(set(numbers)) != numbers:
            listed.fail(f"1 to {WIDEST} numbers of tags that rise")
        found.append(tuple(numbers))
    if len(set(found)) < len(found):
        field.fail("sets of tags, each once")
    return found


def _looked_up(stored: Stored, name: str, words: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """The value of each word that has a number."""
    numbers = stored.wholes(name, np.uint16, (len(words),), 0, len(values))
    return {word: values[k - 1] for word, k in zip(words, numbers.tolist(), strict=True) if k}
