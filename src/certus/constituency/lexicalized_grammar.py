r"""A generative lexicalised grammar in the manner of Collins' Model 1 [Collins03], estimated from a treebank.

A tree is generated from the top down. The root word comes first. A node with label P, head word w and tag t picks the
label H of its head child, then its modifiers, from the head outwards on each side until it stops. With A the label
above P (of the next node of the spine, or of the node that the phrase hangs in):

    P(H | P, A, t, w)                                      the head child
    P(L, lt | P, H, A, t, w, side, distance, state)        label and tag of a modifier, or STOP
    P(lw | L, lt, P, t, w, side)                           its word

Differs from Model 1: the label above is part of the context; distance is adjacency and whether a verb lies between
(judged by the words, so that it is a function of positions); the state tells the first modifier, one after a separator
(punctuation or conjunction) and others apart; base noun phrases and punctuation have no treatment of their own; and a
word's spine is one that was seen with its tag. Each probability is a chain of relative frequencies in wider and wider
contexts, interpolated with the weight n / (n + 5 u) of a context seen n times with u different outcomes [Collins03].
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import log
from typing import Any, NamedTuple, Self

import numpy as np

from certus.checks import Floats, Ints, as_positive_int, of_kind
from certus.constituency.binarise import Symbol
from certus.constituency.head_rules import HeadRules
from certus.constituency.lexicalize import Spine, Spines, lexicalized, spines
from certus.constituency.lexicalized_tables import ABOVE_ROOT, LEFT, RIGHT, SHAPE, STOP, Context, Pair, SpineScores
from certus.constituency.lexicon import Counted
from certus.constituency.saved_grammar import SavedGrammar
from certus.errors import InvalidInput
from certus.schema import MOST, Field
from certus.text import Tree
from certus.text.tree import as_trees

FORMAT, VERSION = "certus lexicalised grammar", 1
DIVERSITY = 5.0  # what a different outcome of a context counts against its frequencies

ADJACENT, NEAR, FAR = 0, 1, 2  # nothing between head and modifier; words, but no verb; a verb
FIRST, AFTER_SEPARATOR, LATER = 0, 1, 2
LEAST = 0.005  # tags of a word are left out below this share of its likeliest one


class Head(NamedTuple):
    """The event of a head child: its context and outcome H."""

    P: str
    above: str
    t: str
    w: str
    H: str


class Modifier(NamedTuple):
    """The event of a modifier, or of STOP: its context and outcome (L, lt)."""

    P: str
    H: str
    above: str
    t: str
    w: str
    side: int
    distance: int
    state: int
    L: str
    lt: str


class ModifierWord(NamedTuple):
    """The event of a modifier's word: its context and outcome lw."""

    P: str
    t: str
    w: str
    side: int
    L: str
    lt: str
    lw: str


class LexicalizedGrammar(SpineScores, SavedGrammar):
    """A generative model of lexicalised trees; build one with :meth:`from_treebank` or :meth:`load`.

    Attributes
    ----------
    root : str
        Label of the root of every tree.
    tags : tuple of str
        The part-of-speech tags, sorted: the second index of the view "tags".

    Examples
    --------
    >>> from certus.io.brackets import parse_tree
    >>> tree = parse_tree("(TOP (S (NP (DT the) (NN dog)) (VP (VBZ barks))))")
    >>> LexicalizedGrammar.from_treebank([tree])
    LexicalizedGrammar(root='TOP', 3 words, 3 tags, 3 spines)
    """

    _format, _version = FORMAT, VERSION

    def __init__(
        self,
        root: str,
        seen: Mapping[Spine, int],
        words: Mapping[str, Mapping[str, int]],
        heads: Mapping[Head, int],
        modifiers: Mapping[Modifier, int],
        modifier_words: Mapping[ModifierWord, int],
        *,
        separators: Iterable[str] = (),
        verbs: Iterable[str] = (),
        least: int = 1,
    ) -> None:
        of_kind("root", root, str, "a label; LexicalizedGrammar.from_treebank(trees) and load(path) make grammars")
        counts = {
            "seen": seen,
            "words": words,
            "heads": heads,
            "modifiers": modifiers,
            "modifier_words": modifier_words,
        }
        for name, counted in counts.items():
            of_kind(name, counted, Mapping, "counts by what was seen; LexicalizedGrammar.from_treebank makes them")
        for word, tags in words.items():
            of_kind(f"words[{word!r}]", tags, Mapping, "counts by tag")
        self.root, self.least = root, least
        self.seen = dict(seen)
        self.words = {word: dict(tags) for word, tags in words.items()}
        self.heads, self.modifiers, self.modifier_words = dict(heads), dict(modifiers), dict(modifier_words)
        self.separators, self.verbs = frozenset(separators), frozenset(verbs)
        self.lexicon = Counted({w: {Symbol(t): c for t, c in tags.items()} for w, tags in self.words.items()})
        self.tags: tuple[str, ...] = tuple(sorted({t for tags in self.words.values() for t in tags}))
        self._rows: dict[tuple[str, str, str, str, str], Floats] = {}

    def __repr__(self) -> str:
        return (
            f"LexicalizedGrammar(root={self.root!r}, {len(self.words)} words, {len(self.tags)} tags, "
            f"{len(self.seen)} spines)"
        )

    # -- estimation ------------------------------------------------------------------------------------------------

    @classmethod
    def from_treebank(
        cls, trees: Iterable[Tree], *, rules: HeadRules | None = None, root: str = "TOP", least: int = 1
    ) -> Self:
        """Estimate a grammar.

        Parameters
        ----------
        trees : iterable of Tree
            Cleaned trees (:func:`certus.io.brackets.clean_tree`). Trees with another root label get ``root`` on top.
        rules : HeadRules, optional
            What names the heads; the bundled Penn rules by default.
        root : str
            Root label.
        least : int
            Contexts (P, H, above, t), and kinds of modifiers of a phrase, that were seen less often are no part of the
            grammar: 2 makes parsing about twice as fast, and loses few trees of a large treebank.
        """
        least = as_positive_int("least", least)
        rules = rules or HeadRules.penn()
        parts = [spines(lexicalized(t if t.label == root else Tree(root, [t]), rules)) for t in as_trees(trees)]
        if not parts:
            raise InvalidInput("the treebank holds no trees; a grammar needs at least one.")
        words: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for sentence in parts:
            for word, spine in zip(sentence.words, sentence.spine[1:], strict=True):
                words[word][spine[0]] += 1
        made = cls(root, {}, words, {}, {}, {}, separators=rules.punctuation | rules.conjunctions, verbs=rules.verbs)
        seen: Counter[Spine] = Counter()
        counts: tuple[Counter[Any], ...] = (Counter(), Counter(), Counter())
        for sentence in parts:
            seen.update(sentence.spine[1:])
            for event in made.events(sentence):
                counts[(Head, Modifier, ModifierWord).index(type(event))][event] += 1
        return cls(root, seen, words, *counts, separators=made.separators, verbs=made.verbs, least=least)

    def events(self, sentence: Spines) -> Iterator[Head | Modifier | ModifierWord]:
        """Everything that is drawn when a tree is generated, but for the words' tags."""
        words, n = sentence.words, len(sentence.words)
        distance = self.distances(words)
        first, last = _extents(sentence)
        above = [ABOVE_ROOT] * (n + 1)
        modifiers: list[list[int]] = [[] for _ in range(n + 1)]
        for m in range(1, n + 1):
            h = sentence.head[m]
            modifiers[h].append(m)
            above[m] = sentence.spine[h][sentence.level[m]] if h else ABOVE_ROOT
            L, lt = sentence.spine[m][-1], sentence.spine[m][0]
            w, t = (words[h - 1], sentence.spine[h][0]) if h else ("", "")
            side = LEFT if m < h else RIGHT
            if not h:
                yield Modifier(ABOVE_ROOT, "", "", "", "", RIGHT, ADJACENT, FIRST, L, lt)
            yield ModifierWord(above[m], t, w, side, L, lt, words[m - 1])
        for h in range(1, n + 1):
            spine, w = sentence.spine[h], words[h - 1]
            edge = [h, h]
            for k in range(1, len(spine)):
                P, H, A = spine[k], spine[k - 1], spine[k + 1] if k + 1 < len(spine) else above[h]
                yield Head(P, A, spine[0], w, H)
                here = [m for m in modifiers[h] if sentence.level[m] == k]
                for side in (LEFT, RIGHT):
                    state = FIRST
                    for m in reversed(here) if side == LEFT else here:
                        if (m < h) != (side == LEFT):
                            continue
                        L, lt = sentence.spine[m][-1], sentence.spine[m][0]
                        far = int(distance[h - 1, edge[side] - 1])
                        yield Modifier(P, H, A, spine[0], w, side, far, state, L, lt)
                        edge[side] = first[m] if side == LEFT else last[m]
                        state = AFTER_SEPARATOR if L in self.separators else LATER
                    far = int(distance[h - 1, edge[side] - 1])
                    yield Modifier(P, H, A, spine[0], w, side, far, state, *STOP)

    def log_probability(self, sentence: Spines) -> float:
        """Log of the probability of a tree, event by event; -inf for what the grammar does not generate."""
        total = 0.0
        choices = self.tags_of(sentence.words)
        for m in range(1, len(sentence.words) + 1):
            if sentence.spine[m] not in self.seen or sentence.spine[m][0] not in choices[m - 1]:
                return -np.inf
        words = iter(range(len(sentence.words)))  # their events come in order
        for event in self.events(sentence):
            if isinstance(event, Head):
                if (event.P, event.H, event.above, event.t) not in self.contexts:
                    return -np.inf
                total += self.head_score(*event[:4], event.H)
            elif isinstance(event, Modifier):
                outcomes = self.outcomes.get(event.P, {})
                o = outcomes.get((event.L, event.lt))
                if o is None:
                    return -np.inf
                total += float(self.modifier_rows(*event[:5])[event.side, event.distance, event.state, o])
            else:
                o = self.outcomes.get(event.P, {}).get((event.L, event.lt))
                if o is None:
                    return -np.inf
                (table,) = self.word_rows([(event.P, event.t, event.w)], sentence.words, choices)
                total += float(table[event.side, o, next(words)])
        return total

    # -- sentences -------------------------------------------------------------------------------------------------

    def tags_of(self, words: Sequence[str]) -> list[dict[str, float]]:
        """For each word, log P(word | tag) of the tags it may have: those seen with it, likely ones if it is rare."""
        out = []
        for i, word in enumerate(words):
            entry = {symbol.label: weight for symbol, weight in self.lexicon.entry(word, first=i == 0)}
            share = {tag: weight + log(self._tag_counts[tag]) for tag, weight in entry.items()}
            least = max(share.values(), default=0.0) + log(LEAST)
            seen = self.words.get(word, {})
            out.append({tag: weight for tag, weight in entry.items() if tag in seen or share[tag] >= least})
        return out

    def distances(self, words: Sequence[str]) -> Ints:
        """distance[h, e] between head h and what lies beyond the words up to e; positions count from 0."""
        n = len(words)
        verb = np.array([self._is_verb(word) for word in words], dtype=np.int64)
        before = np.concatenate(([0], np.cumsum(verb)))  # verbs among the first k words
        out = np.empty((n, n), dtype=np.int64)
        for h in range(n):
            for e in range(n):
                between = before[e + 1] - before[h + 1] if e > h else before[h] - before[e]
                out[h, e] = ADJACENT if e == h else FAR if between else NEAR
        return out

    def _is_verb(self, word: str) -> bool:
        tags: Mapping[str, float] | None = self.words.get(word)
        if tags is None:
            tags = {s.label: weight + log(self._tag_counts[s.label]) for s, weight in self.lexicon.entry(word)}
        known = sorted(tags, key=lambda t: (tags[t], t))
        return bool(known) and known[-1] in self.verbs

    # -- probabilities ---------------------------------------------------------------------------------------------

    @cached_property
    def _tag_counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for tags in self.words.values():
            counts.update(tags)
        return counts

    @cached_property
    def spines_of(self) -> dict[str, list[Spine]]:
        """The spines seen with each tag, sorted."""
        out: dict[str, list[Spine]] = {}
        for spine in sorted(self.seen):
            out.setdefault(spine[0], []).append(spine)
        return out

    @cached_property
    def contexts(self) -> frozenset[Context]:
        """The contexts (P, H, above, t) that were seen often enough."""
        nodes: Counter[Context] = Counter()
        for event, count in self.modifiers.items():
            if (event.L, event.lt) == STOP and event.side == RIGHT:
                nodes[event[:4]] += count
        return frozenset(context for context, count in nodes.items() if count >= self.least)

    @cached_property
    def outcomes(self) -> dict[str, dict[Pair, int]]:
        """For each label, the modifiers (and STOP, numbered last) that its nodes may have."""
        pairs: defaultdict[str, Counter[Pair]] = defaultdict(Counter)
        for event, count in self.modifiers.items():
            pairs[event.P][event.L, event.lt] += count
        out = {}
        for P, found in pairs.items():
            least = 1 if P == ABOVE_ROOT else self.least
            order = [*sorted(pair for pair, count in found.items() if count >= least and pair != STOP), STOP]
            out[P] = {pair: o for o, pair in enumerate(order)}
        return out

    @cached_property
    def _modifier_counts(self) -> dict[tuple[str, ...], list[tuple[int, int, int, int, int]]]:
        """Context without side, distance and state -> (side, distance, state, outcome, count) of its events."""
        out: defaultdict[tuple[str, ...], list[tuple[int, int, int, int, int]]] = defaultdict(list)
        for e, count in self.modifiers.items():
            o = self.outcomes[e.P].get((e.L, e.lt))
            if o is None:
                continue
            entry = (e.side, e.distance, e.state, o, count)
            for context in ((e.P,), (e.P, e.H), (e.P, e.H, e.t), (e.P, e.H, e.above, e.t), (e.P, e.H, e.t, "", e.w)):
                out[context].append(entry)
        return out

    def modifier_rows(self, P: str, H: str, above: str, t: str, w: str) -> Floats:
        """Log-probabilities of the outcomes of P, indexed [side, distance, state, outcome]."""
        known = w != "" and (P, H, t, "", w) in self._modifier_counts
        key = (P, H, above, t, w if known else "")
        rows = self._rows.get(key)
        if rows is None:
            if len(self._rows) > 20_000:
                self._rows.clear()
            if known:
                wider = np.exp(self.modifier_rows(P, H, above, t, ""))
                rows = np.log(self._mixed((P, H, t, "", w), wider))
            else:
                wide = self._wide_rows(P, H, t)
                rows = np.log(self._mixed((P, H, above, t), wide))
            self._rows[key] = rows
        return rows

    def _wide_rows(self, P: str, H: str, t: str) -> Floats:
        size = len(self.outcomes[P])
        rows = np.full((*SHAPE, size), 1.0 / size)
        base = np.zeros((2, 3, size))  # over distances
        for side, _, state, o, count in self._modifier_counts[P,]:
            base[side, state, o] += count
        rows = _interpolated(base[:, None], rows)
        return self._mixed((P, H, t), self._mixed((P, H), rows))

    def _mixed(self, context: tuple[str, ...], wider: Floats) -> Floats:
        entries = self._modifier_counts.get(context)
        if entries is None:
            return wider
        counts = np.zeros_like(wider)
        for side, distance, state, o, count in entries:
            counts[side, distance, state, o] += count
        return _interpolated(counts, wider)

    @cached_property
    def _head_counts(self) -> dict[tuple[str, ...], Counter[str]]:
        out: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for e, count in self.heads.items():
            for context in ((e.P, e.t), (e.P, e.above, e.t, ""), (e.P, e.t, e.w)):
                out[context][e.H] += count
        return out

    def head_score(self, P: str, above: str, t: str, w: str, H: str) -> float:
        """log P(H | P, above, t, w)."""
        probability = 0.0
        for k, context in enumerate(((P, t), (P, above, t, ""), (P, t, w))):
            counts = self._head_counts.get(context)
            if counts is not None:
                total = counts.total()
                weight = total / (total + DIVERSITY * len(counts)) if k else 1.0
                probability = weight * counts[H] / total + (1.0 - weight) * probability
        return log(probability) if probability > 0 else -np.inf

    @cached_property
    def _word_counts(self) -> "_WordCounts":
        return _WordCounts(self)

    def word_rows(
        self, keys: Sequence[tuple[str, str, str]], words: Sequence[str], plain: Sequence[Mapping[str, float]]
    ) -> list[Floats]:
        """log P(lw | L, lt, P, t, w, side) for the words of a sentence and each (P, t, w).

        Indexed [side, outcome of P, word]. ``plain[i]`` is log P(word i | tag) of the tags it may have; -inf for
        outcomes with another tag.
        """
        counts = self._word_counts
        row = {tag: k for k, tag in enumerate(self.tags)}
        alone = np.zeros((len(self.tags), len(words)))
        for i, tags in enumerate(plain):
            for tag, weight in tags.items():
                alone[row[tag], i] = np.exp(weight)
        wider: dict[tuple[str, str], Floats] = {}
        out = []
        for P, t, w in keys:
            if (P, t) not in wider:
                of_outcome = alone[[row[lt] for _, lt in self.outcomes[P] if lt]]
                wider[P, t] = counts.mixed((P, t), words, np.stack((of_outcome, of_outcome)))
            with np.errstate(divide="ignore"):
                found = np.log(counts.mixed((P, t, w), words, wider[P, t]))
            out.append(np.where(wider[P, t] > 0, found, -np.inf))
        return out

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The grammar as JSON data: the counts it was made of, strings by number."""
        names: dict[str, int] = {}

        def number(value: str | int) -> int:
            return value if isinstance(value, int) else names.setdefault(value, len(names))

        def events(counts: Mapping[Any, int]) -> list[list[int]]:
            return [[*map(number, event), count] for event, count in counts.items()]

        data = {
            "seen": [[[number(x) for x in spine], count] for spine, count in self.seen.items()],
            "words": {word: [[number(t), count] for t, count in tags.items()] for word, tags in self.words.items()},
            "heads": events(self.heads),
            "modifiers": events(self.modifiers),
            "modifier_words": events(self.modifier_words),
        }
        settings = {
            "root": self.root,
            "least": self.least,
            "separators": sorted(self.separators),
            "verbs": sorted(self.verbs),
        }
        return {"format": FORMAT, "version": VERSION, **settings, **data, "names": list(names)}

    @classmethod
    def _of_json(cls, data: Field) -> Self:
        names = data["names"].texts()
        last = len(names) - 1

        def events(kind: Any, field: Field) -> dict[Any, int]:
            most = [{"side": 1, "distance": 2, "state": 2}.get(column, last) for column in kind._fields]
            table = field.wholes(0, MOST, (None, len(most) + 1))
            if (table[:, :-1] > most).any() or (table[:, -1] < 1).any():
                field.fail(f"rows of {', '.join(kind._fields)}, numbers up to {most}, and a positive count")
            is_name = [column not in ("side", "distance", "state") for column in kind._fields]
            found = {
                kind(*(names[x] if named else x for x, named in zip(row, is_name, strict=False))): row[-1]
                for row in table.tolist()
            }
            if len(found) < len(table):
                field.fail("events, each once")
            return found

        seen = {}
        for row in data["seen"].items():
            spine, count = row.items(size=2)
            steps = spine.wholes(0, last).tolist()
            if not steps:
                spine.fail("a tag and the labels above it")
            seen[tuple(names[x] for x in steps)] = count.whole(1)
        words = {}
        for word, tags in data["words"].entries():
            table = tags.wholes(0, MOST, (None, 2))
            if (table[:, 0] > last).any() or (table[:, 1] < 1).any():
                tags.fail(f"rows of a name 0..{last} and a positive count")
            words[word] = {names[t]: count for t, count in table.tolist()}
        if not any(words.values()):
            data["words"].fail("words with counts")
        counts = {
            "heads": events(Head, data["heads"]),
            "modifiers": events(Modifier, data["modifiers"]),
            "modifier_words": events(ModifierWord, data["modifier_words"]),
        }
        known = {tag for counted in words.values() for tag in counted}
        named = {"seen": {spine[0] for spine in seen}}
        named |= {name: {tag for e in found for tag in (e.t, getattr(e, "lt", ""))} for name, found in counts.items()}
        for name, used in named.items():
            if unknown := sorted(used - known - {""}):
                raise InvalidInput(f"{name} has the tag {unknown[0]!r}, which no word has.")
        parents = {e.P for e in counts["modifiers"]}
        if unknown := sorted({ABOVE_ROOT, *(e.P for e in counts["modifier_words"])} - parents):
            raise InvalidInput(f"modifiers has none of the label {unknown[0]!r}, though modifier_words or the root do.")
        return cls(
            data["root"].text(),
            seen,
            words,
            **counts,
            separators=data["separators"].texts(),
            verbs=data["verbs"].texts(),
            least=data["least"].whole(),
        )


class _WordCounts:
    """Counts of modifier words: by context (P, t) or (P, t, w), the totals and the occurrences of each word."""

    def __init__(self, grammar: LexicalizedGrammar) -> None:
        self.total: dict[tuple[str, ...], Floats] = {}
        self.distinct: dict[tuple[str, ...], Floats] = {}
        self.of_word: defaultdict[tuple[tuple[str, ...], str], Counter[tuple[int, int]]] = defaultdict(Counter)
        for e, count in grammar.modifier_words.items():
            o = grammar.outcomes[e.P].get((e.L, e.lt))
            if o is None:
                continue
            contexts: tuple[tuple[str, ...], ...] = ((e.P, e.t), (e.P, e.t, e.w))
            for context in contexts:
                self.of_word[context, e.lw][e.side, o] += count
        for (context, _), counts in self.of_word.items():
            if context not in self.total:
                size = len(grammar.outcomes[context[0]]) - 1
                self.total[context], self.distinct[context] = np.zeros((2, size)), np.zeros((2, size))
            for at, count in counts.items():
                self.total[context][at] += count
                self.distinct[context][at] += 1

    def mixed(self, context: tuple[str, ...], words: Sequence[str], wider: Floats) -> Floats:
        """Probabilities [side, outcome, word] in a context, interpolated with those of a wider one."""
        total = self.total.get(context)
        if total is None:
            return wider
        frequency = np.zeros_like(wider)
        for i, word in enumerate(words):
            found = self.of_word.get((context, word))
            if found:
                for at, count in found.items():
                    frequency[at][i] = count / total[at]
        weight = (total / np.maximum(total + DIVERSITY * self.distinct[context], 1.0))[..., None]
        mixed: Floats = weight * frequency + (1.0 - weight) * wider
        return mixed


def _interpolated(counts: Floats, wider: Floats) -> Floats:
    """Relative frequencies along the last axis, mixed with the probabilities of a wider context."""
    total = counts.sum(axis=-1, keepdims=True)
    distinct = (counts > 0).sum(axis=-1, keepdims=True)
    mixed: Floats = (counts + DIVERSITY * distinct * wider) / np.maximum(total + DIVERSITY * distinct, 1.0)
    return np.where(total > 0, mixed, wider)


def _extents(sentence: Spines) -> tuple[list[int], list[int]]:
    """First and last word below each word."""
    n = len(sentence.words)
    first, last = list(range(n + 1)), list(range(n + 1))
    for m in range(1, n + 1):
        v = m
        while v:
            first[v], last[v] = min(first[v], m), max(last[v], m)
            v = sentence.head[v]
    return first, last
