"""From a source sentence to its translation forest: the source side is parsed, then each match takes all its rules."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.errors import Infeasible
from certus.hypergraph import Hypergraph
from certus.hypergraph.graph import gathered
from certus.io.lattices import WordLattice
from certus.translation.forest import TranslationForest
from certus.translation.lattice_parsing import LatticeParser, Matches

if TYPE_CHECKING:
    from certus.translation.grammar import SynchronousGrammar

Int64 = NDArray[np.int64]
PASS_THROUGH = "PassThrough"


def parse_forest(grammar: "SynchronousGrammar", words: list[str], *, copy: bool) -> TranslationForest:
    """The forest of a sentence; see ``SynchronousGrammar.forest``."""
    if not words:
        raise Infeasible("the sentence is empty; a rule covers at least one word.")
    trie, n = grammar.trie, len(words)
    sentence = grammar.source_ids(words)
    copied = _without_own_rule(grammar, sentence) if copy else np.zeros(n, dtype=bool)
    n_labels = len(grammar.rules.nonterminals)
    vertex_at = np.empty((n + 1) * (n + 1) * n_labels, dtype=np.int32)
    max_span = n if grammar.max_span is None else grammar.max_span
    matches, match_ptr, match_tail, vertices = kernels.scfg.parse_source(
        trie, sentence, copied, grammar.copy_label, grammar.unary_order, max_span, vertex_at
    )
    start, score = np.where(matches[:, 0] < 0, matches[:, 1], -1), np.zeros(len(matches))
    found = Matches(matches, match_ptr, match_tail, vertices, vertex_at, score, start.astype(np.int32))
    return _forest_of(grammar, words, words, found)


def parse_lattice(
    grammar: "SynchronousGrammar", lattice: WordLattice, *, copy: bool, weight: float
) -> TranslationForest:
    """The forest of all sentences of a lattice; the scores of the arcs, weighted, go to the rules that take them."""
    plain = lattice.without_epsilons()
    words = [arc.word for arc in plain.arcs]
    if not words:
        raise Infeasible("the lattice has no word; a rule covers at least one.")
    copied = _without_own_rule(grammar, grammar.source_ids(words)) if copy else np.zeros(len(words), dtype=bool)
    found = LatticeParser(grammar, plain, copied).matches()
    with np.errstate(invalid="ignore"):
        score = np.where(found.score == -np.inf, -np.inf, weight * found.score)
    return _forest_of(grammar, words, list(plain.positions()), found._replace(score=score))


def _forest_of(
    grammar: "SynchronousGrammar", words: list[str], positions: list[str], found: Matches
) -> TranslationForest:
    """The forest of what was matched; ``words`` are what copies are taken from."""
    rules, trie, n, n_labels = grammar.rules, grammar.trie, len(positions), len(grammar.rules.nonterminals)
    matches, match_ptr, match_tail, vertices, vertex_at = found[:5]
    root = vertex_at[n * n_labels + rules.nonterminals.index(grammar.goal)]
    if root < 0:
        raise Infeasible(_why(grammar, positions, vertices))

    copies = np.flatnonzero(matches[:, 0] < 0)
    node = np.maximum(matches[:, 0], 0)
    counts = np.where(matches[:, 0] < 0, 1, (trie.rule_ptr[node + 1] - trie.rule_ptr[node]).astype(np.int64))
    first = np.cumsum(counts) - counts
    match = np.repeat(np.arange(len(matches)), counts)  # of each edge
    rule = trie.rule[np.minimum(trie.rule_ptr[node[match]] + np.arange(len(match)) - first[match], len(trie.rule) - 1)]
    left = rules.left[rule]
    rule, left = rule.astype(np.int64), left.astype(np.int64)
    copied_edges = first[copies]
    rule[copied_edges], left[copied_edges] = -1, grammar.copy_label
    i, j = matches[match, 1].astype(np.int64), matches[match, 2].astype(np.int64)
    head = vertex_at[(i * (n + 1) + j) * n_labels + left].astype(np.int64)

    used = _reachable(head, match, match_ptr, match_tail, int(root), len(vertices))
    edges = np.flatnonzero(used[head])
    edges = edges[np.argsort(head[edges], kind="stable")]
    number = np.cumsum(used) - 1
    start, score = found.arc[match[edges]].astype(np.int64), found.score[match[edges]]
    kept = _Edges(number[head[edges]], rule[edges], start, match_ptr[match[edges]], number[match_tail])
    made = _assemble(grammar, words, kept, vertices[used])
    return made.with_weights(made.weights + score) if score.any() else made


class _Edges(NamedTuple):
    """Edges sorted by head. The rule of a copy is -1, and ``start`` the word it copies.

    The tail of an edge, in the order of the source side, is tails[tail_at], tails[tail_at + 1], ...
    """

    head: Int64
    rule: Int64
    start: Int64
    tail_at: NDArray[np.int32]
    tails: Int64

    def rows(self, ptr: NDArray[np.int32]) -> tuple[Int64, Int64]:
        """Offsets and positions of the rows of the rules, nothing for copies."""
        some = np.maximum(self.rule, 0)
        sizes = np.where(self.rule < 0, 0, np.diff(ptr)[some])
        offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        return offsets, np.repeat(ptr[some].astype(np.int64) - offsets[:-1], sizes) + np.arange(offsets[-1])


def _assemble(
    grammar: "SynchronousGrammar", words: list[str], edges: _Edges, vertices: NDArray[np.int32]
) -> TranslationForest:
    rules, copies = grammar.rules, np.flatnonzero(edges.rule < 0)
    target, link_ptr, link = grammar.target_order
    tail_ptr, at = edges.rows(link_ptr)
    tail = edges.tails[np.repeat(edges.tail_at, np.diff(tail_ptr)) + link[at]]
    token_ptr, at = edges.rows(rules.target_ptr)
    token = target[at].astype(np.int64)
    used, inverse = np.unique(token[token >= 0], return_inverse=True)
    token[token >= 0] = inverse
    ids = {rules.target_words[w]: k for k, w in enumerate(used.tolist())}
    copied = [ids.setdefault(words[k], len(ids)) for k in edges.start[copies].tolist()]
    token = np.insert(token, token_ptr[copies], copied)
    token_ptr = token_ptr + np.concatenate(([0], np.cumsum(edges.rule < 0)))
    weights = grammar.weights[np.maximum(edges.rule, 0)]
    weights[copies] = grammar.feature_weights.get(PASS_THROUGH, 0.0)
    in_ptr = np.concatenate(([0], np.cumsum(np.bincount(edges.head, minlength=len(vertices)))))
    return TranslationForest(
        Hypergraph(in_ptr, tail_ptr, tail),
        token_ptr,
        token,
        list(ids),
        weights,
        **_features(grammar, edges, copies),
        spans=vertices[:, 1:],
        symbols=[rules.nonterminals[a] for a in vertices[:, 0].tolist()],
        rules=edges.rule,
    )


def _features(grammar: "SynchronousGrammar", edges: _Edges, copies: Int64) -> dict[str, Any]:
    """Features of the edges; those of a copy are PassThrough=1, if that has a weight."""
    rules = grammar.rules
    ptr, at = edges.rows(rules.feature_ptr)
    names, feature, value = list(rules.feature_names), rules.feature[at].astype(np.int64), rules.feature_value[at]
    if len(copies) and PASS_THROUGH in grammar.feature_weights:
        if PASS_THROUGH not in names:
            names.append(PASS_THROUGH)
        feature = np.insert(feature, ptr[copies], names.index(PASS_THROUGH))
        value = np.insert(value, ptr[copies], 1.0)
        ptr = ptr + np.concatenate(([0], np.cumsum(edges.rule < 0)))
    return {"feature_names": names, "feature_ptr": ptr, "feature": feature, "feature_value": value}


def _without_own_rule(grammar: "SynchronousGrammar", sentence: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which words no one-word rule covers."""
    trie, n_labels = grammar.trie, len(grammar.rules.nonterminals)
    children = slice(int(trie.child_ptr[0]), int(trie.child_ptr[1]))
    at = trie.child[children]
    ends = trie.child_symbol[children][trie.rule_ptr[at + 1] > trie.rule_ptr[at]]
    return (sentence < 0) | ~np.isin(sentence + n_labels, ends)


def _reachable(
    head: Int64,
    match: Int64,
    match_ptr: NDArray[np.int32],
    match_tail: NDArray[np.int32],
    root: int,
    n_vertices: int,
) -> NDArray[np.bool_]:
    """Which vertices some derivation of the root uses; vertices are numbered bottom-up."""
    pairs = np.unique(head * len(match_ptr) + match)  # each match once for each of its heads
    heads, found = pairs // len(match_ptr), pairs % len(match_ptr)
    ptr, at = gathered(match_ptr, found)
    tails = match_tail[at]
    bounds = np.searchsorted(heads, np.arange(n_vertices + 1))
    used = np.zeros(n_vertices, dtype=bool)
    used[root] = True
    for v in range(root, -1, -1):
        if used[v]:
            used[tails[ptr[bounds[v]] : ptr[bounds[v + 1]]]] = True
    return used


def _why(grammar: "SynchronousGrammar", words: list[str], vertices: NDArray[np.int32]) -> str:
    covered = {k for _, i, j in vertices.tolist() for k in range(i, j)}
    for k, word in enumerate(words):
        if k not in covered:
            return (
                f"no rule covers word {k + 1} ({word!r}) of the sentence. Add a rule, or let unknown words be copied "
                'with unknown="copy".'
            )
    limit = (
        "" if grammar.max_span is None else f" Rules cover at most {grammar.max_span} words; are glue rules missing?"
    )
    return f"no derivation of [{grammar.goal}] covers all {len(words)} words of the sentence.{limit}"
