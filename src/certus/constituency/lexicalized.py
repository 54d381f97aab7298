"""certus.LexicalizedConstituency: the best lexicalised tree of a sentence (LR 4.2.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus import kernels
from certus.certificates.normal import Closed, NormalForm
from certus.certificates.rounding import Extent, extent_of, rounded_up
from certus.certificates.sound import measured
from certus.checks import Floats, Ints, as_scores, as_words, of_kind
from certus.constituency import lexicalized_json
from certus.constituency.lexicalize import LexicalizedTree, Spines, from_spines, spines
from certus.constituency.lexicalized_chart import Chart, Scores, scores_in_steps
from certus.constituency.lexicalized_edges import edges_of
from certus.constituency.lexicalized_normal import LexicalizedGraph, spell_out
from certus.constituency.lexicalized_tables import SpineScores, Tables, tables
from certus.constituency.problem import tree_from_json
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.hypergraph import DynamicProgram, Forest, Hypergraph
from certus.lazy import once
from certus.problem import Index, Penalties
from certus.result import Solution
from certus.schema import Field
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.kernels.lexicalized import Sentence

REHEARSAL = 15.0  # how far below the best tree the trees may lie over which a relaxation is solved first
SHORT = 6  # words up to which the chart itself is quick


class LexicalizedConstituency(DynamicProgram[LexicalizedTree]):
    r"""The best phrase-structure tree with heads under a lexicalised grammar.

    Solves  max over lexicalised trees y with the given words  of  log P(y),  for a grammar in the manner of Collins'
    Model 1. Exact: every spine, every head and every span is searched, in O(n^4) time and O(n^3) memory times constants
    of the grammar. Certificate kind: "dynamic program".

    Parameters
    ----------
    grammar : LexicalizedGrammar
    words : sequence of str
        The sentence, one string a word; at least one to have a tree.

    Notes
    -----
    Structures are :class:`certus.LexicalizedTree`: a tree and the heads of its words. The views are "arcs", of shape
    (n + 1, n + 1), and "tags", of shape (n, T): a joint problem may tie either, or both.

    Notes
    -----
    ``decode``, ``solve`` and ``max_marginals`` work on the chart. The other questions spell out the hypergraph of the
    sentence, which is too large beyond some ten words: ask them of ``within(width)``, which keeps every tree that
    scores no more than ``width`` less than the best.

    Examples
    --------
    >>> from certus import LexicalizedGrammar
    >>> from certus.io.brackets import parse_tree
    >>> grammar = LexicalizedGrammar.from_treebank([parse_tree("(TOP (S (NP (NN dogs)) (VP (VBP bark))))")])
    >>> best = LexicalizedConstituency(grammar, ["dogs", "bark"]).decode().structure
    >>> str(best), best.heads
    ('(TOP (S (NP (NN dogs)) (VP (VBP bark))))', (-1, 2, 0))
    """

    name = "lexicalized constituency"
    tags: tuple[str, ...]
    exclusive: ClassVar[Mapping[str, int]] = {"arcs": 0, "tags": 1}
    memory_limit: ClassVar[int] = 6 << 30

    def __init__(self, grammar: SpineScores, words: Sequence[str]) -> None:
        how = "a certus.LexicalizedGrammar: LexicalizedGrammar.from_treebank(trees) or load(path)"
        of_kind("grammar", grammar, SpineScores, how)
        self._set(tables(grammar, as_words("words", words)), np.inf)

    @classmethod
    def from_tables(cls, scores: Tables, *, width: float = np.inf) -> Self:
        """The problem of a sentence whose scores are known already."""
        self = cls.__new__(cls)
        self._set(scores, width)
        return self

    def _set(self, scores: Tables, width: float) -> None:
        self.tables, self.words, self.tags, self.width = scores, scores.words, scores.tags, width
        self.n = len(self.words)

    def within(self, width: float) -> Self:
        """The same problem less trees, and parts of them, that score more than ``width`` below the best tree.

        Exact pruning by max-marginals: a part is left out only if no tree with it scores as much as the best one less
        ``width``; so every tree within ``width`` of the best is kept, and some others. Solving it, with any penalties,
        takes one sweep over a hypergraph of what is left.
        """
        if isinstance(width, bool) or not isinstance(width, int | float) or not width >= 0:
            raise InvalidInput(f"width is {width!r}; expected a number of at least 0.")
        return self.from_tables(self.tables, width=float(width))

    def allowing(self, arcs: ArrayLike) -> Self:
        """The same problem less trees with arcs that are not allowed; bool, shape (n + 1, n + 1).

        For a joint problem: what the other side forbids need not be searched here.
        """
        wanted = np.asarray(arcs)
        if wanted.shape != self.views["arcs"] or wanted.dtype != bool:
            raise InvalidInput(f"arcs is {wanted.dtype} of shape {wanted.shape}; expected bool, {self.views['arcs']}.")
        return self._masked("arcs", np.where(wanted, 0.0, -np.inf))

    def _masked(self, view: str, mask: Floats) -> Self:
        w = self._weighted({view: mask})
        kept = replace(
            self.tables, node_score=w.node_score, attach=w.attach, root_score=w.root_score, allowed=w.allowed
        )
        return self.from_tables(kept)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """A part is required by forbidding its rivals: the other heads, or the other tags, of its word."""
        shape = self.checked_view(view)
        if self.pruned:
            raise NotSupported("with_fixed() would change which trees are within the width; fix parts first.")
        if value and view == "arcs" and index[1] == 0:
            raise NotSupported("no tree has an arc into node 0, which is required.")
        mask = np.zeros(shape)
        if value:
            mask[(slice(None), index[1]) if view == "arcs" else index[0]] = -np.inf
        mask[index] = 0.0 if value else -np.inf
        return self._masked(view, mask)

    @property
    def pruned(self) -> bool:
        """True if some trees are left out: the problem was made by ``within``."""
        return self.width < np.inf

    def __repr__(self) -> str:
        within = f", within {self.width:g}" if self.pruned else ""
        return f"LexicalizedConstituency({self.n} words, {len(self.tags)} tags{within})"

    @cached_property
    def _easier(self) -> Self:
        return self.within(REHEARSAL)

    def easier(self) -> Self | None:
        return None if self.pruned or self.n < SHORT else self._easier

    # -- charts ----------------------------------------------------------------------------------------------------

    def _check_memory(self, charts: int) -> None:
        if self.n == 0:
            raise Infeasible("the sentence has no words; every tree has at least one.")
        t = self.tables
        nodes, groups, contexts = len(t.node_score), len(t.group_word), len(t.context_word)
        needed = 8 * charts * (8 * nodes * self.n + self.n * (self.n + 1) // 2 * (groups + 6 * contexts))
        if needed > self.memory_limit:
            raise NotSupported(
                f"parsing {self.n} words with {contexts} contexts takes {needed / 2**30:.1f} GiB; the limit is "
                f"{self.memory_limit / 2**30:.1f} GiB. Split the sentence, or raise memory_limit."
            )

    @cached_property
    def _sentence(self) -> "Sentence":
        """The sentence as certus.kernels.lexicalized takes it."""
        kernel, t = kernels.lexicalized, self.tables
        own = {name: getattr(t, name) for name in kernel.Sentence._fields if name != "n"}
        return kernel.Sentence(n=self.n, **own)

    def _weighted(self, penalties: Penalties | None) -> "Sentence":
        """The sentence with other scores, and without the arcs that penalties forbid."""
        kernel, s = kernels.lexicalized, self._sentence
        for view, penalty in (penalties or {}).items():
            checked = as_scores(f"penalty {view!r}", penalty, self.checked_view(view))
            if view == "tags":
                s = s._replace(node_score=s.node_score + checked[self._node_word, self._node_tag])
            elif np.any(checked != 0.0):
                layout = kernel.Layout(*(getattr(s, name) for name in kernel.Layout._fields))
                attach = np.empty_like(s.attach)
                kernel.penalise(layout, s.attach, checked, attach)
                root, allowed = s.root_score + checked[0, s.group_word + 1], s.allowed & (checked > -np.inf)
                s = s._replace(attach=attach, root_score=root, allowed=allowed)
        return s

    @cached_property
    def _node_word(self) -> Ints:
        return np.repeat(np.arange(self.n), np.diff(self.tables.node_ptr))

    @cached_property
    def _node_tag(self) -> Ints:
        number = {tag: t for t, tag in enumerate(self.tags)}
        return np.array([number[spine[0]] for spine in self.tables.node_spine], dtype=np.int64)

    def _inside(self, w: "Sentence", charts: int = 1) -> Any:
        self._check_memory(charts)
        chart = self._empty_chart()
        long_call(self._steps, kernels.lexicalized.inside, w, chart)
        if not (w.root_score + chart.whole[self._top] > -np.inf).any():
            raise self._no_tree(w)
        return chart

    @property
    def _steps(self) -> float:
        """About how many steps a chart takes: each attachment over the spans that may be there."""
        return float(self.n * len(self.tables.attach))

    @property
    def _top(self) -> int:
        return (self.n - 1) * self.n // 2

    def _no_tree(self, w: "Sentence") -> Infeasible:
        t = self.tables
        for i in range(self.n):
            nodes = slice(t.node_ptr[i], t.node_ptr[i + 1])
            if not (w.node_score[nodes] > -np.inf).any():
                why = "it has no tag" if nodes.start == nodes.stop else "all its tags are forbidden"
                return Infeasible(f'word {i + 1} ("{self.words[i]}") has no spine: {why}.')
        return Infeasible(f"no tree: the grammar derives none over the {self.n} words under the given penalties.")

    def _empty_chart(self) -> Any:
        t = self.tables
        nodes, spans = len(t.node_score), self.n * (self.n + 1) // 2
        return kernels.lexicalized.Chart(
            open=np.empty((2, nodes, 3, self.n)),
            done=np.empty((2, nodes, self.n)),
            whole=np.empty((spans, len(t.group_word))),
            next=np.empty((spans, 2, 3 * len(t.context_word))),
        )

    # -- questions on the chart ------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": (self.n + 1, self.n + 1), "tags": (self.n, len(self.tags))}

    def solve(self, penalties: Penalties | None = None) -> Solution[LexicalizedTree]:
        if self.pruned:
            return super().solve(penalties)

        w = self._weighted(penalties)
        chart = self._inside(w)
        chosen, head, level = (np.empty(self.n, dtype=np.int64) for _ in range(3))
        value = kernels.lexicalized.derivation(w, chart, chosen, head, level)
        return Solution(self._tree(chosen, head, level), float(value))

    def _tree(self, chosen: Ints, head: Ints, level: Ints) -> LexicalizedTree:
        spine = self.tables.node_spine
        return from_spines(
            Spines(
                self.words,
                ((), *(spine[v] for v in chosen.tolist())),
                (-1, *(h + 1 for h in head.tolist())),
                (0, *(len(spine[v]) - 1 if v >= 0 else 0 for v in level.tolist())),
            )
        )

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        if self.pruned:
            return super().max_marginals(penalties)
        w = self._weighted(penalties)
        _, _, arcs, group_best, _ = self._outside(w)
        tags = np.full((self.n, len(self.tags)), -np.inf)
        np.maximum.at(tags, (self.tables.group_word, self.tables.group_tag), group_best)
        return {"arcs": arcs, "tags": tags}

    def _outside(self, w: "Sentence", width: float = np.inf) -> tuple[Any, Any, Floats, Floats, float]:
        """Inside and outside charts, max-marginals of arcs and groups, and the least score that was looked for."""
        chart = self._inside(w, charts=2)
        around = self._empty_chart()
        arcs, group_best = np.empty((self.n + 1, self.n + 1)), np.empty(len(self.tables.group_word))
        best = float((w.root_score + chart.whole[self._top]).max())
        least = best - width - (1e-9 * (1.0 + abs(best)) if width < np.inf else 0.0)  # rounding leaves nothing out
        long_call(self._steps, kernels.lexicalized.outside, w, chart, least, around, arcs, group_best)
        return chart, around, arcs, group_best, least

    # -- proofs ----------------------------------------------------------------------------------------------------

    @property
    def searched(self) -> bool:
        return not self.pruned

    def make_witness(self, above: float, penalties: Penalties | None = None) -> dict[str, Any]:
        """Nothing: the chart is filled again."""
        return {}

    def closed_form(self, above: float, witness: Any, penalties: Penalties | None = None) -> Closed:
        return self._closed(self._spelt_out(above, penalties))

    def _closed(self, graph: LexicalizedGraph) -> Closed:
        return Closed(graph.form, lambda structure: self._edges_in(graph, structure))

    def _spelt_out(self, above: float, penalties: Penalties | None = None) -> LexicalizedGraph:
        """The trees that score more than a number under penalties, perhaps with others."""
        return spell_out(self.tables, self._in_steps(above, penalties))

    def _in_steps(self, above: float, penalties: Penalties | None = None) -> Scores:
        added = {view: np.zeros(shape) for view, shape in self.views.items()}
        for view, penalty in (penalties or {}).items():
            added[view] = as_scores(f"penalty {view!r}", penalty, self.checked_view(view))
        return scores_in_steps(self.tables, self.extent().length, above, **added)

    @cached_property
    def _normal(self) -> LexicalizedGraph:
        """All trees; less what max-marginals leave out, if the problem is pruned.

        Rounding may keep a part more, but no part less.
        """
        if not self.pruned:
            return self._spelt_out(-np.inf)
        extent = self.extent()
        scores = self._in_steps(-1.0 - extent.length * extent.size)
        best = Chart(self.tables, scores).best() * scores.step
        if best == -np.inf:
            return self._spelt_out(-np.inf)
        least = best - extent.length * scores.step - self.width  # the best was rounded up
        return self._spelt_out(least - 2e-9 * (1.0 + abs(best)))

    def normal_form(self) -> NormalForm:
        return self._normal.form

    def normal_structure(self, structure: LexicalizedTree) -> tuple[list[int]]:
        edges = self._edges_in(self._normal, structure)
        if edges is None:
            raise InvalidInput("the tree uses a forbidden part, or it is not within the width of the problem.")
        return (edges,)

    def _edges_in(self, graph: LexicalizedGraph, structure: LexicalizedTree) -> list[int] | None:
        parts = spines(self._checked(structure))
        node = self._nodes_of(parts)
        return None if -1 in node[1:] else edges_of(graph, parts, node)

    # -- the hypergraph --------------------------------------------------------------------------------------------

    @cached_property
    def _forest(self) -> tuple[Forest, Ints]:
        """The hypergraph of the trees, and for each edge (node, group, head): see kernels.lexicalized.forest."""
        w = self._weighted(None)
        chart, around, _, _, least = self._outside(w, self.width)
        number = np.empty(sum(item.size for item in chart), dtype=np.int32)
        nothing = self._edges(0, 0)
        n_vertices, n_edges = kernels.lexicalized.forest(w, chart, around, least, number, nothing)
        if 100 * n_edges > self.memory_limit:
            raise NotSupported(
                f"the hypergraph of {self.n} words has {n_edges} edges, too many to spell out. Ask within(width), "
                "which keeps the trees that score no more than width less than the best, or raise memory_limit."
            )
        edges = self._edges(n_vertices, n_edges)
        kernels.lexicalized.forest(w, chart, around, least, number, edges)
        first, tails, weights, what = edges
        # From the top down to bottom up: vertices and edges the other way round.
        tails, weights, what = tails[::-1], weights[::-1].copy(), what[::-1].copy()
        in_ptr = (n_edges - first[::-1]).astype(np.int32)
        present = tails >= 0
        vertex = np.where(present, n_vertices + 1 - number[np.maximum(tails, 0)], -1)
        tail_ptr = np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(np.int32)
        graph = Hypergraph(in_ptr, tail_ptr, vertex[present].astype(np.int32), n_vertices - 1)
        return Forest(graph, weights, self._parts(what)), what

    @staticmethod
    def _edges(n_vertices: int, n_edges: int) -> Any:
        """Room for the edges of a hypergraph."""
        return kernels.lexicalized.Edges(
            first=np.empty(n_vertices + 1, dtype=np.int64),
            tails=np.empty((n_edges, 2), dtype=np.int64),
            weight=np.empty(n_edges),
            what=np.empty((n_edges, 3), dtype=np.int32),
        )

    def _parts(self, what: Ints) -> dict[str, Ints]:
        """Cells of the views that edges use: an arc where a modifier meets its head, a tag where a spine ends."""
        t = self.tables
        modifier, spine = what[:, 1] >= 0, (what[:, 0] >= 0) & (what[:, 2] == -1)
        arcs, tags = np.full(len(what), -1, dtype=np.int64), np.full(len(what), -1, dtype=np.int64)
        arcs[modifier] = what[modifier, 2] * (self.n + 1) + t.group_word[what[modifier, 1]] + 1
        node = what[spine, 0]
        tags[spine] = self._node_word[node] * len(self.tags) + self._node_tag[node]
        return {"arcs": arcs, "tags": tags}

    def forest(self) -> Forest:
        return self._forest[0]

    def from_edges(self, edges: Sequence[int]) -> LexicalizedTree:
        forest, what = self._forest
        graph = forest.graph
        into = {int(graph.heads[e]): e for e in edges}  # no derivation uses a vertex twice
        chosen, head, level = (np.full(self.n, -1, dtype=np.int64) for _ in range(3))
        for e in edges:
            node, group, h = what[e].tolist()
            if group >= 0:
                head[self.tables.group_word[group]] = h - 1
            elif node >= 0 and forest.parts["tags"][e] >= 0:
                chosen[self._node_word[node]] = node
            elif node >= 0:
                modifier = into[int(graph.tail_of(e)[1])]
                level[self.tables.group_word[what[modifier, 1]]] = node
        return self._tree(chosen, head, level)

    # -- structures ------------------------------------------------------------------------------------------------

    def _checked(self, structure: LexicalizedTree) -> LexicalizedTree:
        if not isinstance(structure, LexicalizedTree):
            raise InvalidInput(f"the structure is {type(structure).__name__}; expected a certus.LexicalizedTree.")
        if tuple(structure.words) != self.words:
            raise InvalidInput(f"the tree's words are {structure.words}; expected {list(self.words)}.")
        return structure

    @cached_property
    def _whole_spines(self) -> dict[tuple[int, tuple[str, ...], str], int]:
        """(word, spine, label above) -> node."""
        t = self.tables
        above = np.searchsorted(t.group_ptr[:, self.n], np.arange(len(t.group_word)), side="right") // 2
        return {
            (int(self._node_word[v]), t.node_spine[v], t.labels[above[t.node_group[v]]]): v
            for v in np.flatnonzero(t.node_group >= 0).tolist()
        }

    def _nodes_of(self, parts: Spines) -> list[int]:
        """The node of each word, -1 for those that the grammar does not have; words count from 1."""
        above = [parts.spine[h][k] if h > 0 else "" for h, k in zip(parts.head, parts.level, strict=True)]
        words = range(1, self.n + 1)
        return [-1, *(self._whole_spines.get((m - 1, parts.spine[m], above[m]), -1) for m in words)]

    def terms(self, structure: LexicalizedTree) -> list[float]:
        parts = spines(self._checked(structure))
        t, n = self.tables, self.n
        node = self._nodes_of(parts)
        if -1 in node[1:]:
            return [-np.inf]
        root = parts.head.index(0, 1)
        found = [float(t.root_score[t.node_group[node[root]]])]
        for h in range(1, n + 1):
            found.append(float(t.node_score[node[h]]))
            path = [node[h]]
            while t.node_below[path[-1]] >= 0:
                path.append(int(t.node_below[path[-1]]))
            edge = [h, h]
            for level, v in enumerate(reversed(path[:-1]), start=1):
                here = [m for m in range(1, n + 1) if parts.head[m] == h and parts.level[m] == level]
                for side in (0, 1):
                    mine = [m for m in here if m > h] if side else [m for m in reversed(here) if m < h]
                    found += self._level_terms(parts, node, h, v, side, mine, edge)
        return found

    def _level_terms(
        self, parts: Spines, node: list[int], h: int, v: int, side: int, modifiers: list[int], edge: list[int]
    ) -> list[float]:
        """Scores of the modifiers of one level on one side, the end of the level included; moves the edge."""
        t, found, state = self.tables, list[float](), 0
        c = int(t.node_context[v])
        for m in modifiers:
            g = int(t.node_group[node[m]])
            row = int(np.searchsorted(t.group_ptr[:, self.n], g, side="right"))
            first, last = (int(t.context_ptr[row // 2, k]) for k in (0, self.n))
            at = int(t.attach_ptr[g]) + 3 * (last - first) * int(t.distance[h - 1, edge[side] - 1])
            found.append(float(t.attach[at + 3 * (c - first) + state]))
            state = 1 if row % 2 else 2
            below = [w for w in range(1, self.n + 1) if _dominates(parts.head, m, w)]
            edge[side] = max(below) if side else min(below)
        return [*found, float(t.stop[c, state, side, t.distance[h - 1, edge[side] - 1]])]

    def indicator(self, structure: LexicalizedTree, view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        tree = self._checked(structure)
        if view == "arcs":
            out[tree.dependencies[1:], np.arange(1, self.n + 1)] = 1.0
            return out
        for i, label in enumerate(tree.tags):
            if label not in self.tags:
                raise InvalidInput(f'word {i + 1} of the tree has the tag "{label}", which the grammar does not have.')
            out[i, self.tags.index(label)] = 1.0
        return out

    @once
    def extent(self) -> Extent:
        deepest = max((len(spine) for spine in self.tables.node_spine), default=1)
        return extent_of(max(self.n, 1) * (2 + 2 * deepest), *self.all_scores())

    def all_scores(self) -> tuple[Floats, ...]:
        t = self.tables
        return t.node_score, t.attach, t.stop, t.root_score

    def without_scores_below(self, least: float) -> Self:
        if least == -np.inf:
            return self  # all of them are read
        node, attach, stop, root = (np.where(a < least, -np.inf, a) for a in self.all_scores())
        kept = replace(self.tables, node_score=node, attach=attach, stop=stop, root_score=root)
        return self.from_tables(kept, width=self.width)

    def with_scores_rounded_up(self, step: float) -> Self:
        node, attach, stop, root = (rounded_up(scores, step) for scores in self.all_scores())
        kept = replace(self.tables, node_score=node, attach=attach, stop=stop, root_score=root)
        return self.from_tables(kept, width=self.width)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return lexicalized_json.to_json(self.tables, self.width)

    @classmethod
    def from_json(cls, data: Any) -> Self:
        scores, width = lexicalized_json.from_json(data)
        return cls.from_tables(scores, width=width)

    def structure_to_json(self, structure: LexicalizedTree) -> Any:
        tree = self._checked(structure)
        return {"tree": [list(node) for node in tree.tree.preorder()], "heads": list(tree.heads)}

    def structure_from_json(self, data: Any) -> LexicalizedTree:
        given = Field.of(data, "structure")
        tree = tree_from_json(given["tree"])
        heads = tuple(given["heads"].wholes(-1, self.n, (None,)).tolist())
        return given.made(lambda: self._checked(LexicalizedTree(tree, heads)))


def _dominates(head: Sequence[int], m: int, w: int) -> bool:
    while w > 0 and w != m:
        w = head[w]
    return w == m
