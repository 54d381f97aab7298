"""The best translation in plain Python, sharing nothing with the kernels, to check certificates by."""

from collections.abc import Callable
from math import inf

from certus.checks import Floats
from certus.errors import NotSupported
from certus.translation.forest import TranslationForest
from certus.translation.language_model import LanguageModel

MOST_ITEMS = 500_000

Words = tuple[int, ...]
Item = tuple[Words, Words]  # first and last words, order - 1 of each; all words twice if there are fewer


class _Joiner:
    """How items are joined and ended under a language model."""

    def __init__(self, lm: LanguageModel, lm_weight: float) -> None:
        self.lm, self.lm_weight, self.full = lm, lm_weight, max(lm.order - 1, 1)
        self._known: dict[tuple[Words, int], float] = {}

    def log_probability(self, context: Words, word: int) -> float:
        """Weighted ln p of a word after a context."""
        if (context, word) not in self._known:
            self._known[context, word] = self.lm_weight * self.lm.advance(self._state(0, context), word)[0]
        return self._known[context, word]

    def _state(self, state: int, words: Words) -> int:
        for w in words:
            state = self.lm.advance(state, w)[1]
        return state

    def joined(self, a: Item, b: Item) -> tuple[float, Item]:
        """Score of the words of b that come to have order - 1 words before them, and the item of both."""
        total, context = 0.0, a[1]
        for k, w in enumerate(b[0]):
            if len(a[0]) + k >= self.full:
                total += self.log_probability(context, w)
            context = (*context, w)[-self.full :]
        whole_b = len(b[0]) < self.full
        return total, ((*a[0], *b[0])[: self.full], context if whole_b else b[1])

    def ended(self, item: Item) -> float:
        """Score of the first words of an item after <s>, and of </s> after its last."""
        total, state = 0.0, self.lm.begin_state
        for w in item[0]:
            value, state = self.lm.advance(state, w)
            total += self.lm_weight * value
        if len(item[0]) == self.full:
            state = self._state(0, item[1])
        return total + self.lm_weight * self.lm.advance(state, self.lm.end)[0]


def best_value(
    forest: TranslationForest,
    lm: LanguageModel,
    lm_weight: float,
    weights: Floats,
    keep: Callable[[int, Item, float], bool] | None = None,
    fits: Callable[[int, int], bool] | None = None,
) -> float:
    """Score of the best derivation, -inf if there is none: dynamic program over the words at the ends of yields.

    Exhaustive, but for items of vertices that ``keep`` refuses and pairs of words that do not fit side by side. Raises
    NotSupported beyond ``MOST_ITEMS`` items.
    """
    graph, joiner = forest.graph, _Joiner(lm, lm_weight)
    token = forest.lm_tokens(lm).tolist()
    chart: list[dict[Item, float]] = []
    n_items = 0
    for v in range(graph.root + 1):
        items: dict[Item, float] = {}
        for e in graph.edges_into(v):
            if weights[e] == -inf:
                continue
            tail = graph.tail_of(e).tolist()
            partial: dict[Item, float] = {((), ()): float(weights[e])}
            for t in token[forest.token_ptr[e] : forest.token_ptr[e + 1]]:
                right: dict[Item, float] = {((t,), (t,)): 0.0} if t >= 0 else chart[tail[~t]]
                longer: dict[Item, float] = {}
                for a, x in partial.items():
                    for b, y in right.items():
                        if fits is not None and a[1] and b[0] and not fits(a[1][-1], b[0][0]):
                            continue
                        gain, item = joiner.joined(a, b)
                        if x + y + gain > longer.get(item, -inf):
                            longer[item] = x + y + gain
                partial = longer
            for item, x in partial.items():
                if x > items.get(item, -inf) and (keep is None or keep(v, item, x)):
                    items[item] = x
        n_items += len(items)
        if n_items > MOST_ITEMS:
            raise NotSupported(f"the forest is too large to be decoded again in plain Python ({MOST_ITEMS} items).")
        chart.append(items)
    return max((x + joiner.ended(item) for item, x in chart[graph.root].items()), default=-inf)
