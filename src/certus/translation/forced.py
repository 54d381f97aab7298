"""The best derivation of a forest that yields given words: what score a translation has under the model."""

from collections.abc import Sequence

from certus.translation.forest import TranslationForest

Span = tuple[int, int]
Best = tuple[float, int, tuple[int, ...]]  # score, edge, where the vertices of its tail end


def forced_derivation(forest: TranslationForest, words: Sequence[str]) -> list[int] | None:
    """Edges of the best derivation that yields ``words``; None if no derivation does.

    The language-model score of the words is the same for all of these, so the rule scores decide. Exact; plain Python,
    O(E n^2) for n words in the worst case, and near E in practice, since few edges match anywhere. Ties go to the
    smallest edge.
    """
    number = {word: k for k, word in enumerate(forest.words)}
    text = [number.get(word, -1) for word in words]
    if -1 in text:
        return None
    best = _chart(forest, text)
    graph, token, token_ptr = forest.graph, forest.token, forest.token_ptr
    if (0, len(text)) not in best[graph.root]:
        return None
    edges: list[int] = []
    agenda: list[tuple[int, int, int]] = [(graph.root, 0, len(text))]
    while agenda:
        v, i, j = agenda.pop()
        _, e, ends = best[v][i, j]
        edges.append(e)
        below = []
        for t in token[token_ptr[e] : token_ptr[e + 1]].tolist():
            if t >= 0:
                i += 1
            else:
                below.append((int(graph.tail[graph.tail_ptr[e] + ~t]), i, ends[~t]))
                i = ends[~t]
        agenda.extend(reversed(below))
    return edges


def _chart(forest: TranslationForest, text: list[int]) -> list[dict[Span, Best]]:
    """Per vertex and span (i, j): the best derivation that yields words i..j - 1 of the text."""
    graph, n = forest.graph, len(text)
    starts: dict[int, list[int]] = {}
    for i, word in enumerate(text):
        starts.setdefault(word, []).append(i)
    weights, tail, tail_ptr = forest.weights.tolist(), graph.tail.tolist(), graph.tail_ptr.tolist()
    token, token_ptr = forest.token.tolist(), forest.token_ptr.tolist()
    best: list[dict[Span, Best]] = []
    by_start: list[dict[int, list[int]]] = []  # by_start[v][i] = the ends j
    for v in range(graph.root + 1):
        found: dict[Span, Best] = {}
        for e in graph.edges_into(v):
            side = token[token_ptr[e] : token_ptr[e + 1]]
            first = side[0] if side else None
            if first is None:
                places: Sequence[int] = range(n + 1)
            elif first >= 0:
                places = starts.get(first, ())
            else:
                places = list(by_start[tail[tail_ptr[e] + ~first]])
            for i in places:
                # (position, score, ends of the tail so far) reached from i
                reached: list[tuple[int, float, tuple[int, ...]]] = [(i, weights[e], ())]
                for t in side:
                    if t >= 0:
                        reached = [(j + 1, s, ends) for j, s, ends in reached if j < n and text[j] == t]
                    else:
                        u = tail[tail_ptr[e] + ~t]
                        reached = [
                            (k, s + best[u][j, k][0], (*ends, k))
                            for j, s, ends in reached
                            for k in by_start[u].get(j, ())
                        ]
                for j, s, ends in reached:
                    if s > found.get((i, j), (-float("inf"),))[0]:
                        found[i, j] = (s, e, ends)
        best.append(found)
        by_start.append({})
        for i, j in found:
            by_start[v].setdefault(i, []).append(j)
    return best
