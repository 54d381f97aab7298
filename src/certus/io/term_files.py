"""Files that say what translations must be like: terminology lists, and constraints sentence by sentence.

A terminology list has a line for each term, the source words and the target words with a tab between them. A file of
constraints has a line for each sentence: empty, or a JSON object such as

    {"contains": ["fire brigade"], "avoids": ["a", "an"], "in_order": ["dog barks"], "length": [4, 12],
     "starts_with": "the fire"}

with phrases as strings of words. All of them are about the target words.
"""

import json
import os
from typing import Any

from certus.errors import FormatError
from certus.io.files import text_lines

Words = tuple[str, ...]
LISTS = ("contains", "avoids", "in_order")


def read_terminology(path: str | os.PathLike[str]) -> list[tuple[Words, Words]]:
    """Source and target words of each term; lines that are empty, or begin with #, are skipped."""
    terms = []
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [tuple(field.split()) for field in line.rstrip("\r\n").split("\t")]
        if len(fields) != 2 or not all(fields):
            raise FormatError(path, number, "expected the source words of a term, a tab, and its target words.")
        terms.append((fields[0], fields[1]))
    return terms


def read_constraints(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """What each line asks for, checked: lists of words by name, and "length", a pair of numbers or None."""
    return [_asked(path, number, line) if line.strip() else {} for number, line in enumerate(text_lines(path), start=1)]


def _asked(path: object, number: int, line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as wrong:
        raise FormatError(path, number, f"no JSON: {wrong}.") from None
    known = (*LISTS, "length", "starts_with")
    if not isinstance(data, dict) or not set(data) <= set(known):
        raise FormatError(path, number, f"expected a JSON object with some of {', '.join(known)}.")
    out: dict[str, Any] = {}
    for name in LISTS:
        given = data.get(name, [])
        if not isinstance(given, list) or not all(isinstance(p, str) and p.split() for p in given):
            raise FormatError(path, number, f"{name} is {given!r}; expected a list of strings of words.")
        out[name] = [p.split() for p in given]
    prefix = data.get("starts_with", "")
    if not isinstance(prefix, str):
        raise FormatError(path, number, f"starts_with is {prefix!r}; expected a string of words.")
    out["starts_with"], out["length"] = prefix.split(), data.get("length")
    if out["length"] is not None and not _is_window(out["length"]):
        raise FormatError(path, number, f"length is {out['length']!r}; expected the least and the most words, or null.")
    return out


def _is_window(given: Any) -> bool:
    if not isinstance(given, list) or len(given) != 2:
        return False
    return all(x is None or (isinstance(x, int) and not isinstance(x, bool) and x >= 0) for x in given)
