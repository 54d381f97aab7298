"""From terminology lists and files of constraints to the constraints of a sentence."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from certus.hypergraph.readings import Reading, avoids, contains, in_order, length, starts_with


def terms_of(source: Sequence[str], terms: Iterable[tuple[Sequence[str], Sequence[str]]]) -> list[Reading]:
    """Of terms (source words, target words) those that stand in a sentence: its translation contains their target."""
    words, found = list(source), dict[tuple[str, ...], Reading]()
    for term, target in terms:
        size = len(term)
        if any(words[i : i + size] == list(term) for i in range(len(words) - size + 1)):
            found[tuple(target)] = contains(list(target))
    return list(found.values())


def constraints_of(asked: Mapping[str, Any]) -> list[Reading]:
    """The constraints of one line of a file, as ``certus.io.term_files.read_constraints`` gives it."""
    out = [contains(phrase) for phrase in asked.get("contains", ())]
    out += [avoids(phrase) for phrase in asked.get("avoids", ())]
    out += [in_order(*words) for words in asked.get("in_order", ())]
    if asked.get("length") is not None:
        least, most = asked["length"]
        out.append(length(least or 0, most))
    if asked.get("starts_with"):
        out.append(starts_with(asked["starts_with"]))
    return out
