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
    graph = forest.graph
    full = max(lm.order - 1, 1)
    token = forest.lm_tokens(lm).tolist()
    known: dict[tuple[Words, int], float] = {}

    def log_probability(context: Words, word: int) -> float:
        if (context, word) not in known:
            state = 0
            for w in context:
                state = lm.advance(state, w)[1]
            known[context, word] = lm_weight * lm.advance(state, word)[0]
        return known[context, word]

    def joined(a: Item, b: Item) -> tuple[float, Item]:
        """Score of the words of b that come to have order - 1 words before them, and the item of both."""
        total, context = 0.0, a[1]
        for k, w in enumerate(b[0]):
            if len(a[0]) + k >= full:
                total += log_probability(context, w)
            context = (*context, w)[-full:]
        whole_b = len(b[0]) < full
        return total, ((*a[0], *b[0])[:full], context if whole_b else b[1])

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
                        gain, item = joined(a, b)
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
    best = -inf
    for (first, last), x in chart[graph.root].items():
        total, state = x, lm.begin_state
        for w in first:
            value, state = lm.advance(state, w)
            total += lm_weight * value
        if len(first) == full:
            state = 0
            for w in last:
                state = lm.advance(state, w)[1]
        best = max(best, total + lm_weight * lm.advance(state, lm.end)[0])
    return best
