"""A language model as an automaton over the words of a forest, and the exhaustive intersection of both (LR 2.2.5)."""

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.certificates.rounding import Extent
from certus.checks import Floats, Ints
from certus.hypergraph import Automaton, Hypergraph
from certus.hypergraph.automata import intersect
from certus.translation.forest import TranslationForest
from certus.translation.language_model import LanguageModel

_RANGE: WeakKeyDictionary[LanguageModel, tuple[float, float]] = WeakKeyDictionary()


def extent_of_lm(lm: LanguageModel, weight: float) -> Extent:
    """The least and greatest weighted log probability of a word, however often the model backs off."""
    if lm not in _RANGE:
        a = lm.arrays
        values = np.concatenate((a.values[1::3][a.slots[::3] >= 0], a.unigram))
        values, back = values[np.isfinite(values)], a.back_off[np.isfinite(a.back_off)]
        times = lm.order - 1
        lowest = float(values.min(initial=0.0)) + times * float(back.min(initial=0.0))
        _RANGE[lm] = lowest, float(values.max(initial=0.0)) + times * float(back.max(initial=0.0))
    lowest, highest = sorted(weight * x for x in _RANGE[lm])
    return Extent(1, lowest, highest)


def lm_automaton(lm: LanguageModel, lm_word: NDArray[np.int32], lm_weight: float) -> Automaton:
    """The states that words ``lm_word`` reach from the begin of a sentence; symbol i is lm_word[i], the last one </s>.

    After </s> comes the one final state, which no arc leaves.
    """
    words = np.append(lm_word, lm.end).astype(np.int32)
    number = {lm.begin_state: 0}
    frontier = [lm.begin_state]
    rows: list[tuple[Ints, Floats]] = []
    while frontier:
        state = np.repeat(np.array(frontier, dtype=np.int32), len(words))
        value = np.empty(len(state))
        kernels.language_model.advance_all(
            lm.arrays, state, np.tile(words, len(frontier)), np.arange(len(state) + 1), value
        )
        reached = state.reshape(len(frontier), -1)[:, :-1]
        frontier = [q for q in np.unique(reached).tolist() if q not in number]
        number |= {q: len(number) + k for k, q in enumerate(frontier)}
        rows.extend(zip(reached.astype(np.int64), value.reshape(len(reached), -1), strict=True))
    final = len(number)
    transitions = np.full((final + 1, len(words)), -1, dtype=np.int32)
    weights = np.zeros(transitions.shape)
    lookup = np.zeros(lm.n_states, dtype=np.int32)
    lookup[list(number)] = list(number.values())
    for q, (reached_row, values) in enumerate(rows):
        transitions[q, :-1] = lookup[reached_row]
        transitions[q, -1] = final
        weights[q] = lm_weight * values
    return Automaton(transitions, weights, finals=[final])


def spell_out(
    forest: TranslationForest, lm: LanguageModel, lm_weight: float, max_edges: int
) -> tuple[Hypergraph, Floats, Ints]:
    """The hypergraph of all derivations with their full scores, and the forest's edge of each of its edges, or -1.

    Exhaustive: for small forests, and bigram models on short sentences. Raises NotSupported beyond ``max_edges`` edges.
    """
    leaves = forest.leaf_graph()
    ids, symbol = np.unique(lm.word_ids(forest.words), return_inverse=True)
    first = int((leaves.word != -3).sum())  # leaves come first, each entered by the edge of its number
    symbols = np.full(leaves.graph.n_edges, -1, dtype=np.int64)
    symbols[2:first] = symbol[leaves.word[2:first]]
    symbols[1] = len(ids)  # </s>; <s> is where the automaton starts
    weights = np.where(leaves.edge >= 0, np.append(forest.weights, 0.0)[leaves.edge], 0.0)
    automaton = lm_automaton(lm, ids.astype(np.int32), lm_weight)
    graph, new_weights, edge_map = intersect(leaves.graph, weights, automaton, symbols, max_edges=max_edges)
    origin = np.where(edge_map >= 0, leaves.edge[edge_map], -1)
    return graph, new_weights, origin.astype(np.int64)
