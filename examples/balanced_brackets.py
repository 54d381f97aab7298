"""Trees under equations on their labels: as many spans of one kind as of another (LR 7.1, not translation).

Every binary bracketing of a sentence, each span labelled A or B, is a derivation of one hypergraph, and the best is
found by one sweep. That a tree has as many A as B spans but for one, and exactly two A among its words, are two
equations on its edges, which no sweep can see. Optimal beam search relaxes them for its bounds, keeps the two sums of
every partial tree, and proves what it finds.
"""

import numpy as np

import certus

WORDS = 7


def brackets(score: np.ndarray) -> tuple[certus.Hypergraph, np.ndarray, list[str]]:
    """All labelled bracketings, their weights and the labels of their edges; score[i, j, x] is of x on words i .. j."""
    builder = certus.HypergraphBuilder()
    n = len(score)
    vertex = {(i, j, x): builder.vertex() for i in range(n) for j in range(i, n) for x in "AB"}
    for length in range(1, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            for k, x in enumerate("AB"):
                weight = float(score[i, j, k])
                if length == 1:
                    builder.edge(vertex[i, i, x], label=f"word {x}", weight=weight)
                for split in range(i, j):
                    for left, right in ("AA", "AB", "BA", "BB"):
                        tails = [vertex[i, split, left], vertex[split + 1, j, right]]
                        builder.edge(vertex[i, j, x], tails, label=f"span {x}", weight=weight)
    root = builder.vertex()
    for x in "AB":
        builder.edge(root, [vertex[0, n - 1, x]], label="root")
    graph, weights, _, _ = builder.build(root=root)
    assert graph.edge_labels is not None
    return graph, weights, list(graph.edge_labels)


def main() -> None:
    score = np.random.default_rng(1).integers(-8, 9, size=(WORDS, WORDS, 2)).astype(float)
    graph, weights, labels = brackets(score)
    free = certus.Hyperpath(graph, weights).decode()
    sign = {"word A": 1.0, "span A": 1.0, "word B": -1.0, "span B": -1.0}
    balance = [sign.get(label, 0.0) for label in labels]  # 13 spans in all, so the difference is odd
    words = [float(label == "word A") for label in labels]
    problem = certus.ConstrainedHyperpath(graph, weights, A=[balance, words], b=[1.0, 2.0])
    for name, result in (("any tree", free), ("as the equations say", problem.decode())):
        used = [labels[e] for e in result.structure]
        counts = {label: used.count(label) for label in sign}
        print(f"{name}: score {result.score:g}, {'proved' if result.certificate.exact else 'not proved'}, {counts}")
    certus.verify(problem, problem.decode())


if __name__ == "__main__":
    main()
