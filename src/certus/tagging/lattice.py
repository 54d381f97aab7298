"""The lattice of tag sequences as a hypergraph (LR 2.2.1): vertices are the last one or two tags at each position."""

import numpy as np

from certus.checks import Floats
from certus.hypergraph import Forest, Hypergraph
from certus.tagging.tables import Table


def spell_out(unary: Floats, bigram: Table | None, trigram: Table | None) -> Forest:
    """Vertices are a source, then per position the allowed tags (pairs of tags with trigrams), then a sink.

    The edge from (a, b) to (b, c) at position i carries all scores of c being there, and the part (i, c). Tags whose
    unary score is -inf are left out.
    """
    n, T = unary.shape
    end = np.array([T])
    allowed = [end, end, *(np.flatnonzero(row > -np.inf) for row in unary), end]
    degree, weights, tails, parts = [np.array([1])], [np.zeros(1)], [np.empty(0, dtype=np.int64)], [np.array([-1])]
    first, states = 0, 1  # number of the first state at position i - 1, and how many there are
    for i in range(n + 1):
        before, b, c = allowed[i : i + 3]
        pair = np.zeros((len(b), len(c)))
        if i < n:
            pair += unary[i, c]
        if bigram is not None and bigram.scored(i, n):
            pair += bigram.at(i)[np.ix_(b, c)]
        if trigram is None:
            # Edges into c, one from each b.
            score = pair.T
            source = first + np.arange(len(b))
            heads = len(c)
        else:
            # Edges into (b, c), one from each (a, b).
            score = np.repeat(pair[:, :, None], len(before), axis=2)
            if trigram.scored(i, n):
                score += trigram.at(i)[np.ix_(before, b, c)].transpose(1, 2, 0)
            source = first + np.arange(len(b))[:, None, None] + np.arange(len(before)) * len(b)
            heads = len(b) * len(c)
        cell = i * T + c if i < n else np.array([-1])
        degree.append(np.full(heads, score.shape[-1]))
        weights.append(score.reshape(-1))
        tails.append(np.broadcast_to(source, score.shape).reshape(-1))
        parts.append(np.broadcast_to(cell[:, None], score.shape).reshape(-1))
        first, states = first + states, heads
    degree.append(np.array([states]))
    weights.append(np.zeros(states))
    tails.append(first + np.arange(states))
    parts.append(np.full(states, -1))
    weight = np.concatenate(weights)
    graph = Hypergraph(
        in_ptr=np.concatenate([[0], np.cumsum(np.concatenate(degree))]),
        tail_ptr=np.arange(len(weight) + 1) - (np.arange(len(weight) + 1) > 0),  # the source has no tail
        tail=np.concatenate(tails),
    )
    return Forest(graph, weight, {"tags": np.concatenate(parts).astype(np.int64)})
