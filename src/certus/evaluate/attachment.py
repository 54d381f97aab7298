"""Attachment scores of dependency trees on given words, as the shared task of CoNLL 2018 defines them.

All words count, punctuation too. A label is right up to its first colon (``nsubj:pass`` is ``nsubj``). CLAS counts
content words only: those whose gold label is not a function word's or punctuation's, against those of the system.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from certus.errors import InvalidInput
from certus.evaluate.percent import Scores, percent
from certus.text import Sentence, Token

FUNCTIONAL = frozenset({"aux", "case", "cc", "clf", "cop", "det", "mark", "punct"})
LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40), (41, None))  # words, punctuation included


class AttachmentScores:
    """Counts over pairs of sentences, gold and system, with the same words; scores in percent."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.by_length = [Counter[str]() for _ in LENGTHS]

    @classmethod
    def of(cls, pairs: Iterable[tuple[Sentence, Sentence]]) -> "AttachmentScores":
        """Scores of pairs (gold, system)."""
        scores = cls()
        for gold, system in pairs:
            scores.add(gold, system)
        return scores

    def add(self, gold: Sentence, system: Sentence) -> None:
        """Count one pair."""
        if gold.words != system.words:
            raise InvalidInput("the two sentences have different words; attachment scores compare the same words.")
        found: Counter[str] = Counter(sentences=1)
        for g, s in zip(gold.tokens, system.tokens, strict=True):
            _count_word(g, s, found)
        found["UEM"] = found["UAS"] == found["words"]
        found["LEM"] = found["LAS"] == found["words"]
        self.count += found
        for own, (_, longest) in zip(self.by_length, LENGTHS, strict=True):
            if longest is None or found["words"] <= longest:
                own += found
                break

    def scores(self) -> Scores:
        """The scores of the whole: tags, UAS, LAS, CLAS, the same without punctuation, whole sentences right."""
        return _percentages(self.count)

    def scores_by_length(self) -> dict[str, Scores]:
        """UAS, LAS and whole sentences right for short and long sentences; lengths that do not occur are left out."""
        names = [f"{shortest}-{longest}" if longest else f"{shortest}+" for shortest, longest in LENGTHS]
        kept = ("sentences", "words", "UAS", "LAS", "UEM", "LEM")
        tables = {name: _percentages(own) for name, own in zip(names, self.by_length, strict=True) if own["sentences"]}
        return {name: {key: table[key] for key in kept} for name, table in tables.items()}


def _count_word(g: Token, s: Token, found: Counter[str]) -> None:
    label, guess = g.deprel.split(":")[0], s.deprel.split(":")[0]
    attached = g.head is not None and g.head == s.head
    right = attached and label == guess
    found["words"] += 1
    found["UPOS"] += g.upos == s.upos
    found["XPOS"] += g.xpos == s.xpos
    found["feats"] += g.feats == s.feats
    found["UAS"] += attached
    found["LAS"] += right
    if g.upos != "PUNCT":
        found["other words"] += 1
        found["UAS without punctuation"] += attached
        found["LAS without punctuation"] += right
    found["content"] += label not in FUNCTIONAL
    found["content found"] += guess not in FUNCTIONAL
    found["content right"] += right and label not in FUNCTIONAL


def _percentages(count: Mapping[str, int]) -> Scores:
    words, others, sentences = count["words"], count["other words"], count["sentences"]
    return {
        "sentences": sentences,
        "words": words,
        "UPOS": percent(count["UPOS"], words),
        "XPOS": percent(count["XPOS"], words),
        "feats": percent(count["feats"], words),
        "UAS": percent(count["UAS"], words),
        "LAS": percent(count["LAS"], words),
        "CLAS": percent(2 * count["content right"], count["content"] + count["content found"]),
        "UAS without punctuation": percent(count["UAS without punctuation"], others),
        "LAS without punctuation": percent(count["LAS without punctuation"], others),
        "UEM": percent(count["UEM"], sentences),
        "LEM": percent(count["LEM"], sentences),
    }
