"""Labelled bracket scores in the manner of evalb with the settings of COLLINS.prm.

Counted are the phrases of the two trees, preterminals left out: not the root ``TOP``, not punctuation (tags ``,``
``:`` `` ` ` `` ``''`` ``.`` of the gold tree, whose words are taken out of both trees first), and nothing that is empty
after that. PRT counts as ADVP. A phrase is right if the other tree has one with the same label and span, each of which
may serve once.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from certus.errors import InvalidInput
from certus.evaluate.percent import Scores, percent
from certus.text import Span, Tree

ROOTS = frozenset({"TOP", "ROOT", "", "S1"})
PUNCTUATION = frozenset({",", ":", "``", "''", "."})
EQUAL = {"PRT": "ADVP"}


@dataclass(frozen=True, slots=True)
class BracketScores:
    """Counts over a corpus, and the scores made of them (in percent).

    Examples
    --------
    >>> from certus.io.brackets import parse_tree
    >>> gold = parse_tree("(S (NP (N dogs)) (VP (V see) (NP (N cats))))")
    >>> found = parse_tree("(S (NP (N dogs)) (VP (V see) (ADJP (N cats))))")
    >>> BracketScores.of([(gold, found)]).f1
    75.0
    """

    sentences: int
    matched: int
    gold: int
    predicted: int
    exact_sentences: int
    crossing: int
    words: int
    tags_right: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[Tree, Tree]]) -> "BracketScores":
        """Scores of pairs (gold, predicted)."""
        sentences = matched = gold_total = found_total = exact = crossing = words = right = 0
        for gold, found in pairs:
            if gold.words != found.words:
                raise InvalidInput(f"sentence {sentences + 1}: the two trees are not over the same words.")
            kept = [tag not in PUNCTUATION for tag in gold.tags]
            place = [0]  # place[i]: how many words before i are kept
            for keep in kept:
                place.append(place[-1] + keep)
            a, b = _brackets(gold, place), _brackets(found, place)
            common = (a & b).total()
            sentences += 1
            matched += common
            gold_total += a.total()
            found_total += b.total()
            exact += common == a.total() == b.total()
            crossing += sum(count for span, count in b.items() if any(_cross(span, other) for other in a))
            words += place[-1]
            right += sum(s == t for s, t, keep in zip(gold.tags, found.tags, kept, strict=True) if keep)
        return cls(sentences, matched, gold_total, found_total, exact, crossing, words, right)

    @property
    def precision(self) -> float:
        """Share of the predicted phrases that are right."""
        return percent(self.matched, self.predicted)

    @property
    def recall(self) -> float:
        """Share of the gold phrases that were found."""
        return percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return percent(2 * self.matched, self.gold + self.predicted)

    @property
    def exact(self) -> float:
        """Share of sentences with all phrases right."""
        return percent(self.exact_sentences, self.sentences)

    @property
    def crossing_per_sentence(self) -> float:
        """Predicted phrases that cross a gold phrase, per sentence."""
        return self.crossing / self.sentences if self.sentences else 0.0

    @property
    def tag_accuracy(self) -> float:
        """Share of words, punctuation left out, with the right tag."""
        return percent(self.tags_right, self.words)

    def scores(self) -> Scores:
        """By name, as they are printed."""
        return {
            "sentences": self.sentences,
            "words": self.words,
            "precision": self.precision,
            "recall": self.recall,
            "F1": self.f1,
            "exact": self.exact,
            "tags": self.tag_accuracy,
        }


def _brackets(tree: Tree, place: list[int]) -> Counter[Span]:
    out: Counter[Span] = Counter()
    for k, span in enumerate(tree.spans()):
        start, end = place[span.start], place[span.end]
        if start < end and not (k == 0 and span.label in ROOTS):
            out[Span(EQUAL.get(span.label, span.label), start, end)] += 1
    return out


def _cross(a: Span, b: Span) -> bool:
    return a.start < b.start < a.end < b.end or b.start < a.start < b.end < a.end
