"""What the hypergraph tests share: the oracle, which scores every derivation one by one."""

import math

from certus import Hypergraph


def derivations(graph: Hypergraph, weights) -> list[tuple[float, tuple[int, ...]]]:
    """(score, edges) of every derivation that uses no -inf edge."""
    values = [float(w) for w in weights]
    scored = [(sum(values[e] for e in edges), tuple(edges)) for edges in graph.hyperpaths()]
    return [(score, edges) for score, edges in scored if score > -math.inf]


def log_sum(scores) -> float:
    """Log of the sum of exponentials; -inf for none."""
    scores = list(scores)
    top = max(scores, default=-math.inf)
    return top if top == -math.inf else top + math.log(math.fsum(math.exp(s - top) for s in scores))


def is_preorder(graph: Hypergraph, edges) -> bool:
    """Whether edges spell out a derivation of the root, head before tails."""
    pending = [graph.root]
    for e in edges:
        if not pending or e not in graph.edges_into(pending.pop()):
            return False
        pending.extend(reversed([int(u) for u in graph.tail_of(e)]))
    return not pending
