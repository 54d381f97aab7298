"""Brown word clusters: a hard, hierarchical clustering of words by their neighbours in text (DEP 3.2)."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from certus import kernels
from certus.checks import Ints, as_positive_int
from certus.errors import FormatError, InvalidInput
from certus.io.files import text_lines, whole_number
from certus.serialize import write_text_atomically
from certus.threads import long_call

Counts = tuple[Ints, Ints, Ints]  # pointer, word and count of each word's neighbours
_TABLE = 1 << 16  # x log x is looked up below this; larger counts are rare
_ROUND = 256  # words introduced between two reports of progress


@dataclass(frozen=True)
class Clusters:
    """A bit string for each word: the path from the root of the hierarchy to the word's cluster.

    ``paths`` maps words to bit strings, ``counts`` to how often they were seen. Words that share a bit string share a
    cluster; a prefix of it is a coarser cluster.
    """

    paths: Mapping[str, str]
    counts: Mapping[str, int]

    def prefix(self, word: str, bits: int | None = None) -> str | None:
        """The word's bit string cut to ``bits``; None for a word that was not clustered."""
        path = self.paths.get(word)
        return path if path is None or bits is None else path[:bits]

    def __len__(self) -> int:
        return len(set(self.paths.values()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a ``paths`` file: bit string, word and count between tabs, one word a line, by bit string."""
        rows = sorted(self.paths, key=lambda w: (self.paths[w], -self.counts[w], w))
        write_text_atomically(path, "".join(f"{self.paths[w]}\t{w}\t{self.counts[w]}\n" for w in rows))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Clusters":
        """Read a ``paths`` file, as written here and by the usual tool; plain or gzip."""
        paths: dict[str, str] = {}
        counts: dict[str, int] = {}
        for number, line in enumerate(text_lines(path), 1):
            fields = line.rstrip("\r\n").split("\t")
            if len(fields) != 3:
                raise FormatError(path, number, f"{len(fields)} columns; expected bit string, word and count.")
            bits, word, count = fields
            if set(bits) - {"0", "1"}:
                raise FormatError(path, number, f"{bits!r} is not a string of 0s and 1s.")
            if not (count.isdecimal() and count.isascii()):
                raise FormatError(path, number, f"count is {count!r}; expected a whole number.")
            if word in paths:
                raise FormatError(path, number, f"the word {word!r} comes a second time.")
            paths[word], counts[word] = bits, whole_number(count, path, number, 2**63 - 1)
        return cls(MappingProxyType(paths), MappingProxyType(counts))


def read_sentences(path: str | os.PathLike[str]) -> Iterator[list[str]]:
    """Tokens of each line of a tokenised text, plain or gzip; empty lines are left out."""
    for line in text_lines(path):
        if tokens := line.split():
            yield tokens


def cluster(
    sentences: Iterable[Iterable[str]],
    size: int = 1000,
    *,
    min_count: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Clusters:
    """Cluster words so that adjacent classes tell as much about each other as possible; a greedy heuristic.

    Words enter by decreasing frequency, each as a class of its own; whenever there are more than ``size`` classes the
    two whose merge loses least mutual information become one. At the end the classes are merged into a binary
    hierarchy, which gives each a bit string. Pairs of words are counted within sentences.

    Time is about V C d + V C^2 / 2 for V words, C classes and d neighbours a class; memory 4 C^2 numbers and the pairs.

    Parameters
    ----------
    sentences : iterable of iterables of str
        Tokenised text.
    size : int
        C, the number of clusters.
    min_count : int
        Words seen less often are left out (they still separate their neighbours).
    progress : callable, optional
        Called with (words done, words in all).

    References
    ----------
    [Brown92]_ for the algorithm with a window of C classes; the sparse update of the gains is ours.
    """
    size = as_positive_int("size", size)
    ids: dict[str, int] = {}
    bigrams: Counter[tuple[int, int]] = Counter()
    unigrams: Counter[int] = Counter()
    for sentence in sentences:
        tokens = [ids.setdefault(word, len(ids)) for word in sentence]
        unigrams.update(tokens)
        bigrams.update(pairwise(tokens))
    frequent = sorted((w for w in unigrams if unigrams[w] >= min_count), key=lambda w: (-unigrams[w], w))
    if not frequent:
        raise InvalidInput(f"there is no word to cluster: the text has {len(ids)} words, none seen {min_count} times.")
    names = list(ids)
    order = np.full(len(ids), -1, dtype=np.int64)
    order[frequent] = np.arange(len(frequent))

    pairs = np.array([(order[a], order[b], c) for (a, b), c in bigrams.items()], dtype=np.int64).reshape(-1, 3)
    del bigrams
    pairs = pairs[(pairs[:, 0] >= 0) & (pairs[:, 1] >= 0)]
    leaf, path_of = _run(len(frequent), size, _neighbours(pairs, 0), _neighbours(pairs, 1), progress)
    paths = {names[w]: path_of[leaf[k]] for k, w in enumerate(frequent)}
    return Clusters(MappingProxyType(paths), MappingProxyType({names[w]: unigrams[w] for w in frequent}))


def _neighbours(pairs: Ints, side: int) -> Counts:
    """The pairs by the word on one side: pointer (V + 1,), the other word, the count."""
    ordered = pairs[np.lexsort((pairs[:, 1 - side], pairs[:, side]))]
    words = int(pairs[:, :2].max(initial=-1)) + 1
    pointer = np.zeros(words + 1, dtype=np.int64)
    np.cumsum(np.bincount(ordered[:, side], minlength=words), out=pointer[1:])
    return pointer, ordered[:, 1 - side].copy(), ordered[:, 2].copy()


def _run(
    n_words: int, size: int, following: Counts, preceding: Counts, progress: Callable[[int, int], None] | None
) -> tuple[Ints, dict[int, str]]:
    """The slot of each word and the bit string of each slot."""
    sides = [kernels.brown.Neighbours(*_padded(counts, n_words)) for counts in (following, preceding)]
    slots = min(size, n_words) + 1
    count, transposed = np.zeros((2, slots, slots), dtype=np.int64)
    left, right = np.zeros((2, slots), dtype=np.int64)
    alive = np.zeros(slots, dtype=np.bool_)
    gain = np.zeros((slots, slots))
    x = np.arange(1.0, _TABLE)
    table = np.concatenate([[0.0], x * np.log(x)])
    support = np.empty(slots, dtype=np.int64)
    classes = kernels.brown.Classes(count, transposed, left, right, alive, gain, table, support)
    cluster_of = np.full(n_words, -1, dtype=np.int64)
    free = 0
    for first in range(0, n_words, _ROUND):
        stop = min(first + _ROUND, n_words)
        words = (first, stop, *sides, cluster_of, classes, free)
        free = long_call((stop - first) * slots**2, kernels.brown.cluster_words, *words)
        if progress is not None:
            progress(stop, n_words)

    merges = np.empty((slots, 2), dtype=np.int64)
    path = {int(c): "" for c in np.flatnonzero(alive)}
    done = long_call(slots**3, kernels.brown.build_hierarchy, classes, merges)
    members = {c: [c] for c in path}
    for kept, joined in merges[:done].tolist():
        for c in members[kept]:
            path[c] = "0" + path[c]
        for c in members[joined]:
            path[c] = "1" + path[c]
        members[kept] += members.pop(joined)
    return cluster_of, path


def _padded(counts: Counts, n_words: int) -> Counts:
    """Pointers for all words, also those after the last that has a neighbour."""
    pointer, words, numbers = counts
    missing = n_words + 1 - len(pointer)
    return np.concatenate([pointer, np.full(missing, pointer[-1])]), words, numbers
