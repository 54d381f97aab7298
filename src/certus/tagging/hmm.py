"""A second-order hidden Markov model: estimated from tagged sentences, it gives tagging problems their scores.

LR ex. 2.1.2. Transitions are smoothed by deleted interpolation and unknown words are judged by their endings, both as
in TnT [Brants00]; how rare known words and the looks of words enter is ours.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats, as_members, as_numbers, as_words, of_kind, shown
from certus.errors import InvalidInput
from certus.schema import Field
from certus.serialize import load_json, write_json
from certus.tagging.problem import Tagging
from certus.tagging.tables import Table, as_names, as_table

FORMAT, VERSION = "certus-hmm", 1
MOST_TAGS = 256  # tables over their triples are dense
MOST_COUNT = 2**31 - 1
Tagged = Sequence[tuple[str, str]]

# Chosen by accuracy on the development parts of English-EWT and of a Penn Treebank sample; none of them is sharp.
RARE = 10  # words seen up to so often teach the model of looks
SURE = 3  # words seen so often take no tag but those seen
TRUST = 0.6  # occurrences of a word that its looks are worth
BACKOFF = 0.8  # weight of a wider class of looks against the counts of a narrower one
LONGEST = 8  # characters of an ending


class HMM:
    r"""Trigram hidden Markov model of words and tags.

    log P(words, tags) = sum_i log P(t_i | t_{i-2}, t_{i-1}) + log P(w_i | t_i), with a boundary tag before and after
    the sentence. P(w | t) comes from a smoothed P(t | w) by Bayes' rule. A word that was never seen is emitted as "an
    unknown word", whatever it is, with the tags that its looks suggest. Words seen less than three times, and unknown
    ones, can take every tag of the corpus, so any words have tags. The model holds counts only; everything else follows
    from them.

    Make one with ``HMM.estimate`` or ``HMM.load``.

    Examples
    --------
    >>> model = HMM.estimate([[("the", "D"), ("dog", "N"), ("barks", "V")], [("the", "D"), ("cat", "N")]])
    >>> model.tag(["the", "dog"])
    ['D', 'N']
    """

    def __init__(
        self, tags: Sequence[str], trigrams: NDArray[np.int64], lexicon: Mapping[str, Mapping[int, int]]
    ) -> None:
        own = as_members("tags", tags, "a list of names; HMM.estimate(sentences) makes a model of a tagged corpus")
        of_kind("lexicon", lexicon, Mapping, "counts of tags by word; HMM.estimate(sentences) makes a model")
        names = as_names(own, len(own))
        assert names is not None
        self.tags: tuple[str, ...] = names
        self.trigrams = as_numbers("trigrams", trigrams)
        self.lexicon = lexicon
        self._rows: dict[tuple[str, bool], Floats] = {}

    @classmethod
    def estimate(cls, sentences: Iterable[Tagged], *, tags: Sequence[str] | None = None) -> "HMM":
        """Estimate a model from sentences of pairs (word, tag).

        ``tags`` fixes the tags and their order; by default they are those of the corpus, sorted.
        """
        how = "a list of pairs (word, tag)"
        given = [as_members(f"sentence {k}", s, how) for k, s in enumerate(_listed(sentences))]
        corpus = [[_pair(k, entry) for entry in sentence] for k, sentence in enumerate(given)]
        if not any(corpus):
            raise InvalidInput("the corpus has no words; an HMM is estimated from at least one tagged sentence.")
        found = sorted({tag for sentence in corpus for _, tag in sentence})
        names = tuple(found) if tags is None else as_words("tags", tags)
        if len(names) > MOST_TAGS:
            raise InvalidInput(f"the corpus has {len(names)} tags; a hidden Markov model has at most {MOST_TAGS}.")
        number = {tag: t for t, tag in enumerate(names)}
        if unknown := [tag for tag in found if tag not in number]:
            raise InvalidInput(f"the corpus has tag {unknown[0]!r}, which is not among the {len(names)} tags given.")
        end = len(names)
        trigrams = np.zeros((end + 1,) * 3, dtype=np.int64)
        lexicon: dict[str, dict[int, int]] = {}
        for sentence in corpus:
            if not sentence:
                continue
            a, b = end, end
            for word, tag in sentence:
                c = number[tag]
                trigrams[a, b, c] += 1
                counts = lexicon.setdefault(word, {})
                counts[c] = counts.get(c, 0) + 1
                a, b = b, c
            trigrams[a, b, end] += 1
        return cls(names, trigrams, lexicon)

    def __repr__(self) -> str:
        return f"HMM({len(self.tags)} tags, {len(self.lexicon)} words)"

    # -- use -------------------------------------------------------------------------------------------------------

    def tagging(self, words: Sequence[str]) -> Tagging:
        """The problem of tagging these words; its tags are ``self.tags``, its trigrams have a boundary tag."""
        if isinstance(words, str):
            raise InvalidInput(f"words is the string {words!r}; expected a list of words: split it first.")
        unary = np.empty((len(words), len(self.tags)))
        for i, word in enumerate(words):
            unary[i] = self.emission(word, first=i == 0)
        return Tagging(unary, trigram=self._transitions, tags=self.tags)

    def tag(self, words: Sequence[str]) -> list[str]:
        """The most probable tags of these words."""
        problem = self.tagging(words)
        return problem.names(problem.decode().structure)

    @property
    def transitions(self) -> Floats:
        """log P(c | a, b), shape (T + 1, T + 1, T + 1); number T is the boundary tag."""
        return self._transitions.scores

    def emission(self, word: str, *, first: bool = False) -> Floats:
        """log P(word | tag) for each tag, -inf where the word does not take it; ``first`` in its sentence or not."""
        row = self._rows.get((word, first))
        if row is None:
            row = self._emission(word, first)
            row.flags.writeable = False
            if word in self.lexicon:  # unknown words are without number
                self._rows[word, first] = row
        return row

    # -- transitions -----------------------------------------------------------------------------------------------

    @cached_property
    def _transitions(self) -> Table:
        """P(c | a, b) as a mixture of trigram, bigram and unigram frequencies, the same everywhere.

        Where a history was never seen, its weight goes to the shorter one. Every tag of the corpus can follow any.
        """
        three = self.trigrams.astype(np.float64)
        two = three.sum(axis=0)
        one = two.sum(axis=0)
        weight = _deleted_interpolation(self.trigrams)
        single = one / one.sum()
        pair = _conditional(two, single)
        triple = _conditional(three, pair)
        with np.errstate(divide="ignore"):
            scores = np.log(weight[0] * single + weight[1] * pair + weight[2] * triple)
        return as_table("trigram", 3, scores, 0, len(self.tags), np.zeros(1, dtype=np.int64), batch=False)

    # -- emissions -------------------------------------------------------------------------------------------------

    @cached_property
    def _tag_counts(self) -> Floats:
        counts: Floats = self.trigrams.sum(axis=(0, 1))[:-1].astype(np.float64)
        return counts

    @cached_property
    def _log_priors(self) -> Floats:
        """log P(tag), -inf for tags the corpus lacks."""
        with np.errstate(divide="ignore"):
            priors: Floats = np.log(self._tag_counts / self._tag_counts.sum())
        return priors

    @cached_property
    def _unseen(self) -> float:
        """Probability that a word is an unknown one (Good-Turing: the share of words seen once)."""
        once = sum(sum(counts.values()) == 1 for counts in self.lexicon.values())
        return (once + 0.5) / (float(self._tag_counts.sum()) + 1.0)

    @cached_property
    def _looks(self) -> "_Looks":
        return _Looks(self.lexicon, self._tag_counts)

    def _emission(self, word: str, first: bool) -> Floats:
        """By Bayes' rule from P(tag | word), which mixes the word's counts with those of words that look like it."""
        seen = self._counts(word)
        if first and word != word.lower():
            seen = seen + self._counts(word.lower())  # the first word may owe its capital to its place
        times = float(seen.sum())
        if times >= SURE:
            given_word = seen / times
        else:
            given_word = (seen + TRUST * self._looks.distribution(word)) / (times + TRUST)
        word_probability = (1.0 - self._unseen) * times / self._tag_counts.sum() if times else self._unseen
        allowed = given_word > 0
        scores = np.full(len(self.tags), -np.inf)
        scores[allowed] = np.log(given_word[allowed]) - self._log_priors[allowed] + np.log(word_probability)
        return scores

    def _counts(self, word: str) -> Floats:
        counts = np.zeros(len(self.tags))
        for t, count in self.lexicon.get(word, {}).items():
            counts[t] = count
        return counts

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as JSON, the whole file or nothing."""
        cells = np.argwhere(self.trigrams)
        write_json(
            path,
            {
                "format": FORMAT,
                "version": VERSION,
                "tags": list(self.tags),
                "trigrams": [[*cell, int(self.trigrams[tuple(cell)])] for cell in cells.tolist()],
                "lexicon": {word: sorted(self.lexicon[word].items()) for word in sorted(self.lexicon)},
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "HMM":
        """Read a model that ``save`` wrote; FormatError if it is damaged or something else."""
        return load_json(path, cls._of_json)

    @classmethod
    def _of_json(cls, data: Any) -> "HMM":
        given = Field(data).format(FORMAT, VERSION)
        tags = given["tags"].names(least=1)
        if len(tags) > MOST_TAGS:
            given["tags"].fail(f"at most {MOST_TAGS} tags")
        end = len(tags)
        trigrams = np.zeros((end + 1,) * 3, dtype=np.int64)
        table = given["trigrams"].wholes(0, MOST_COUNT, (None, 4))
        cells = np.ravel_multi_index(tuple(np.minimum(table[:, :3], end).T), trigrams.shape)
        if (table[:, :3] > end).any() or (table[:, 3] < 1).any() or len(np.unique(cells)) < len(cells):
            given["trigrams"].fail(f"rows of three tags 0..{end} and a positive count, each triple once")
        trigrams.flat[cells] = table[:, 3]
        lexicon: dict[str, dict[int, int]] = {}
        seen = np.zeros(end, dtype=np.int64)
        for word, rows in given["lexicon"].entries():
            listed = rows.wholes(0, MOST_COUNT, (None, 2)).tolist()
            lexicon[word] = counts = dict(listed)
            if len(counts) < len(listed) or not all(t < end and count for t, count in listed):
                rows.fail(f"rows of a tag 0..{end - 1} and a positive count, each tag once")
            for t, count in listed:
                seen[t] += count
        if not np.array_equal(seen, trigrams.sum(axis=(0, 1))[:-1]) or not seen.any():
            given["lexicon"].fail("as many words of each tag as the trigrams have; the file is damaged")
        return cls(tags, trigrams, lexicon)


def _pair(k: int, entry: object) -> tuple[str, str]:
    if isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], str):
        return entry[0], entry[1]
    raise InvalidInput(f"sentence {k} has {entry!r}; expected a pair (word, tag) of strings.")


class _Looks:
    """P(tag | looks of a word), from the rare words of a lexicon: the longer a shared ending, the more it says."""

    def __init__(self, lexicon: Mapping[str, Mapping[int, int]], tag_counts: Floats) -> None:
        found: dict[tuple[str, str], Floats] = {}
        for word, counts in lexicon.items():
            if sum(counts.values()) <= RARE:
                row = np.zeros(len(tag_counts))
                for t, count in counts.items():
                    row[t] = count
                for key in _keys(word):
                    if key in found:
                        found[key] += row
                    else:
                        found[key] = row.copy()
        self.counts = {key: (counts, counts.sum()) for key, counts in found.items()}  # with their sums
        self.base: Floats = tag_counts / tag_counts.sum()

    def distribution(self, word: str) -> Floats:
        """Smoothed from all words over the words of its shape to its longest known ending; no tag is ruled out."""
        found: Floats = self.base
        for key in _keys(word):
            if key in self.counts:
                counts, total = self.counts[key]
                backoff = 1.0 + BACKOFF * total
                found = (counts + backoff * found) / (total + backoff)
        return found


def _keys(word: str) -> list[tuple[str, str]]:
    """Classes of a word from wide to narrow: all, its shape, its shape with each ending."""
    shape = _shape(word)
    lower = word.lower()
    return [("", ""), (shape, ""), *((shape, lower[-k:]) for k in range(1, min(LONGEST, len(lower)) + 1))]


def _shape(word: str) -> str:
    """Capital letters, digits, a hyphen: what an English-like script shows besides the ending."""
    if not any(c.isalpha() for c in word):
        return "number" if any(c.isdigit() for c in word) else "symbol"
    shape = "digit" if any(c.isdigit() for c in word) else ""
    if word.isupper() and len(word) > 1:
        shape += "CAPITALS"
    elif word[0].isupper():
        shape += "Capital"
    return shape + ("-" if "-" in word else "")


def _conditional(counts: Floats, shorter: Floats) -> Floats:
    """Frequencies along the last axis; those of the shorter history where there are no counts."""
    totals = counts.sum(axis=-1, keepdims=True)
    unseen = np.broadcast_to(shorter, counts.shape).copy()
    np.divide(counts, totals, out=unseen, where=totals > 0)
    return unseen


def _deleted_interpolation(trigrams: NDArray[np.int64]) -> Floats:
    """Weights of unigrams, bigrams and trigrams: each triple votes for the best predictor once left out itself."""
    two = trigrams.sum(axis=0)
    one = two.sum(axis=0)
    before_two, before_three = two.sum(axis=1), trigrams.sum(axis=2)
    total = int(one.sum())
    votes: Floats = np.full(3, 1e-3 * total)  # no predictor is dropped altogether
    for a, b, c in np.argwhere(trigrams).tolist():
        count = int(trigrams[a, b, c])
        left = (
            (one[c] - 1) / max(total - 1, 1),
            (two[b, c] - 1) / max(before_two[b] - 1, 1),
            (count - 1) / max(before_three[a, b] - 1, 1),
        )
        votes[int(np.argmax(left))] += count
    votes /= votes.sum()
    return votes


def _listed(sentences: Any) -> Iterable[Any]:
    if isinstance(sentences, str | Mapping) or not isinstance(sentences, Iterable):
        raise InvalidInput(f"sentences is {shown(sentences)}; expected lists of pairs (word, tag).")
    return sentences
