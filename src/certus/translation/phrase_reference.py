"""Phrase-based translation in plain Python, to check certificates by: no kernel is used, nothing found by one believed.

``best_value`` is A* over (coverage, last position, state of the language model). Its bounds are the best completions
over (coverage, last position, last word), in which every option scores what it would after the best state that ends in
that word and can be met there. ``dual_value`` is the relaxation of LR 7.3, with multipliers on the source words.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import inf

from certus.translation.language_model import LanguageModel

Packed = tuple[int, int, float, tuple[int, ...]]  # start, end, score, ids of the target words
Node = tuple[int, int]  # covered words as bits, last position


class Reference:
    """The options of a sentence of n words, by start; weights and limits as in PhraseTranslation."""

    def __init__(
        self,
        n: int,
        options: Sequence[Packed],
        lm: LanguageModel,
        lm_weight: float,
        distortion: float,
        limit: int,
        gap: bool,
    ) -> None:
        self.n, self.lm, self.lm_weight, self.distortion, self.limit, self.gap = (
            n, lm, lm_weight, distortion, limit, gap,
        )  # fmt: skip
        self.spans: dict[tuple[int, int], list[tuple[float, tuple[int, ...]]]] = defaultdict(list)
        for i, j, score, words in options:
            self.spans[i, j].append((score, words))
        self._scored: dict[tuple[int, tuple[int, ...]], tuple[float, int]] = {}

    def scored(self, state: int, words: tuple[int, ...]) -> tuple[float, int]:
        """(weighted ln p of words after a state, the state after them)."""
        known = self._scored.get((state, words))
        if known is None:
            total, after = 0.0, state
            for word in words:
                value, after = self.lm.advance(after, word)
                total += value
            known = self._scored[state, words] = self.lm_weight * total, after
        return known

    def end(self, state: int) -> float:
        """Weighted ln p of the end after a state."""
        return self.scored(state, (self.lm.end,))[0]

    def last_word(self, state: int) -> int:
        """The state of the last word of a state."""
        lengths, suffix = self.lm.arrays.state_length, self.lm.arrays.state_suffix
        while lengths[state] > 1:
            state = int(suffix[state])
        return state

    # -- the whole problem -----------------------------------------------------------------------------------------

    def _following(self, node: Node) -> Iterator[tuple[tuple[int, int], Node, float]]:
        """Spans that may follow a node: span, node after it, cost of the jump."""
        covered, last = node
        g = 0
        while covered >> g & 1:
            g += 1
        for (i, j), _ in self.spans.items():
            bits = ((1 << (j - i + 1)) - 1) << i
            jump = abs(i - last - 1)
            if covered & bits or jump > self.limit or (self.gap and i != g and j + 1 - g > self.limit):
                continue
            yield (i, j), (covered | bits, j), -self.distortion * jump

    def best_value(self) -> float:
        """Score of the best translation; -inf if there is none."""
        start, everything = (0, -1), (1 << self.n) - 1
        edges = {}
        agenda = [start]
        while agenda:
            node = agenda.pop()
            if node not in edges:
                edges[node] = list(self._following(node))
                agenda.extend(after for _, after, _ in edges[node])
        met = self._met()
        bound = self._bounds(edges, met, everything)
        first = self.lm.begin_state
        heap = [(-bound[start, self.last_word(first)], 0.0, start, first, False)]
        seen: set[tuple[Node, int, bool]] = set()
        while heap:
            hope, score, node, state, done = heapq.heappop(heap)
            if hope == inf:
                break
            if done:
                return score
            if (node, state, done) in seen:
                continue
            seen.add((node, state, done))
            if node[0] == everything:
                total = score + self.end(state)
                heapq.heappush(heap, (-total, total, node, state, True))
            for span, after, cost in edges[node]:
                for own, words in self.spans[span]:
                    value, following = self.scored(state, words)
                    total = score + own + value + cost
                    hope = total + bound.get((after, self.last_word(following)), -inf)
                    heapq.heappush(heap, (-hope, total, after, following, False))
        return -inf

    def _met(self) -> dict[int, set[int]]:
        """For each position, the states that may be met after a phrase that ends there; -1 is the start."""
        met: dict[int, set[int]] = defaultdict(set)
        agenda = [(-1, self.lm.begin_state)]
        while agenda:
            last, state = agenda.pop()
            if state in met[last]:
                continue
            met[last].add(state)
            for (i, j), options in self.spans.items():
                if abs(i - last - 1) <= self.limit and not i <= last <= j:
                    agenda.extend((j, self.scored(state, words)[1]) for _, words in options)
        return met

    def _bounds(
        self, edges: dict[Node, list[tuple[tuple[int, int], Node, float]]], met: dict[int, set[int]], everything: int
    ) -> dict[tuple[Node, int], float]:
        """For each node and last word, no completion scores more than this."""
        best: dict[tuple[int, tuple[int, int]], dict[int, dict[int, float]]] = {}
        members: dict[int, dict[int, list[int]]] = {}
        for last, those in met.items():
            members[last] = defaultdict(list)
            for state in those:
                members[last][self.last_word(state)].append(state)
        for last, words in members.items():
            for span, options in self.spans.items():
                if abs(span[0] - last - 1) > self.limit or span[0] <= last <= span[1]:
                    continue
                table: dict[int, dict[int, float]] = {}  # last word before -> last word after -> best score
                for word, states in words.items():
                    row = table[word] = {}
                    for own, target in options:
                        value = own + max(self.scored(state, target)[0] for state in states)
                        following = self.last_word(self.scored(states[0], target)[1])
                        row[following] = max(row.get(following, -inf), value)
                best[last, span] = table
        bound: dict[tuple[Node, int], float] = {}
        for node in sorted(edges, key=lambda node: -node[0].bit_count()):
            for word, states in members[node[1]].items():
                value = max(map(self.end, states)) if node[0] == everything else -inf
                for span, after, cost in edges[node]:
                    for following, own in best[node[1], span][word].items():
                        value = max(value, own + cost + bound[after, following])
                bound[node, word] = value
        return bound

    # -- the relaxation --------------------------------------------------------------------------------------------

    def dual_value(self, multipliers: Sequence[float]) -> float:
        """L(u): the best path that covers n words in all, each use of word i priced u_i, less the sum of u."""
        layers: list[dict[tuple[int, int], float]] = [{} for _ in range(self.n + 1)]
        layers[0][-1, self.lm.begin_state] = 0.0
        for count in range(self.n):
            low = max(0, count - max(self.limit - 1, 0)) if self.gap else 0
            for (last, state), score in layers[count].items():
                for (i, j), options in self.spans.items():
                    after, jump = count + j - i + 1, abs(i - last - 1)
                    if i < low or after > self.n or jump > self.limit or i <= last <= j:
                        continue
                    if self.gap and i > count and j + 1 - count > self.limit:
                        continue
                    price = sum(multipliers[i : j + 1]) - self.distortion * jump
                    for own, words in options:
                        value, following = self.scored(state, words)
                        key, total = (j, following), score + own + value + price
                        if total > layers[after].get(key, -inf):
                            layers[after][key] = total
        best = max((score + self.end(state) for (_, state), score in layers[self.n].items()), default=-inf)
        return best - sum(multipliers)
