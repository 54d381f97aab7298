"""Parsing with a weighted context-free grammar (LR 2.2.3, 4.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus import kernels
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_of, one_rounded_up
from certus.certificates.sound import measured, summed
from certus.checks import Floats, as_penalties, as_scores, as_words, of_kind
from certus.constituency.binarise import Binary, Chain, Symbol
from certus.constituency.grammar import Grammar
from certus.constituency.indexed import GrammarIndex, Indexed, Int32, Int64
from certus.constituency.lexicon import Entry, Listed
from certus.constituency.normal import Items, ParseGraph, parse_graph
from certus.constituency.tree_edges import edges_of
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.hypergraph import DynamicProgram, Forest, Hypergraph
from certus.lazy import once
from certus.problem import Index, Penalties
from certus.result import Solution
from certus.schema import Field
from certus.text import Tree
from certus.threads import long_call


class Constituency(DynamicProgram[Tree]):
    r"""The best phrase-structure tree of a sentence under a weighted context-free grammar.

    Solves  max over trees y of the grammar with the given words  of  sum_{rules r in y} weight(r).  Exact, by CKY
    over the binarised grammar: O(G n^3) time for G rules, 8 bytes a symbol and span of memory. Trees go in and come out
    plain: no binarisation, unary rules in place. Certificate kind: "dynamic program".

    Parameters
    ----------
    grammar : Grammar
    words : sequence of str
        The sentence, one string a word; at least one to have a tree.
    lexical : array_like of shape (n, T), optional
        ``lexical[i, t]`` is the score of word i under tag ``grammar.tags[t]``, in place of the grammar's own lexical
        weights; ``-inf`` forbids the tag.

    Notes
    -----
    Structures are :class:`certus.Tree`. The one view is "tags", of shape (n, T).

    Notes
    -----
    ``decode``, ``solve``, ``log_partition``, ``marginals`` and ``max_marginals`` work on the chart. The other
    questions spell out the hypergraph of the sentence, whose edges may number tens of millions beyond 20 words with
    a treebank grammar. Both refuse to start beyond ``memory_limit`` bytes, an attribute that may be set.

    Examples
    --------
    >>> g = Grammar.from_text('1 S -> N V\n 0.5 N -> "dogs"\n 2 V -> "bark"')
    >>> result = Constituency(g, ["dogs", "bark"]).decode()
    >>> str(result.structure), result.score
    ('(S (N dogs) (V bark))', 3.5)
    """

    name = "constituency"
    tags: tuple[str, ...]
    exclusive: ClassVar[Mapping[str, int]] = {"tags": 1}
    memory_limit: ClassVar[int] = 6 << 30

    def __init__(self, grammar: Grammar, words: Sequence[str], *, lexical: ArrayLike | None = None) -> None:
        self.grammar = of_kind(
            "grammar",
            grammar,
            Grammar,
            "a certus.Grammar: Grammar.from_text(rules), Grammar.from_treebank(trees) or Grammar.load(path)",
        )
        self.words: tuple[str, ...] = as_words("words", words)
        self.tags = grammar.tags
        self.n = len(self.words)
        if lexical is None:
            self._entries = tuple(grammar.entry(word, first=i == 0) for i, word in enumerate(self.words))
        else:
            self._entries = self._given(as_scores("lexical", lexical, (self.n, len(self.tags))))

    def _given(self, lexical: Floats) -> tuple[Entry, ...]:
        by_label = self._index.by_label
        return tuple(
            tuple(
                (s, float(row[t])) for t, tag in enumerate(self.tags) if row[t] > -np.inf for s in by_label.get(tag, ())
            )
            for row in lexical
        )

    def _with_entries(self, entries: tuple[Entry, ...]) -> Self:
        return type(self)(self.grammar, ())._about(self.words, entries)

    def _about(self, words: tuple[str, ...], entries: tuple[Entry, ...]) -> Self:
        self.words, self.n, self._entries = words, len(words), entries
        return self

    def __repr__(self) -> str:
        return f"Constituency({self.n} words, {len(self.tags)} tags, {self.grammar!r})"

    # -- the grammar, restricted to the sentence -------------------------------------------------------------------

    @property
    def _index(self) -> GrammarIndex:
        return self.grammar.index

    def _restricted(self, *, needed: bool) -> "_Sentence":
        """Rules and word items that can be built and, if ``needed``, can be part of a tree."""
        number = self._index.number
        items = [(i, s, w) for i, entry in enumerate(self._entries) for s, w in entry if s in number and w > -np.inf]
        symbols = np.array([number[s] for _, s, _ in items], dtype=np.int64)
        rules = self._index.indexed.restricted(self._index.indexed.base[symbols], needed=needed)
        bases = rules.base[symbols]
        used = np.flatnonzero(bases >= 0)
        kept = [items[k] for k in used.tolist()]
        position = np.array([i for i, _, _ in kept], dtype=np.int64)
        tag = {label: t for t, label in enumerate(self.tags)}
        return _Sentence(
            rules=rules,
            items=kept,
            lex_ptr=np.concatenate(([0], np.cumsum(np.bincount(position, minlength=self.n)))).astype(np.int64),
            lex_id=bases[used],
            lex_weight=np.array([w for _, _, w in kept], dtype=np.float64),
            view_cell=position * len(self.tags) + np.array([tag[s.label] for _, s, _ in kept], dtype=np.int64),
            chart_cell=rules.size * (position * (position + 1) // 2) + bases[used] * (position + 1) + position,
        )

    @cached_property
    def _sentence(self) -> "_Sentence":
        return self._restricted(needed=True)

    @cached_property
    def _words_of_items(self) -> list[tuple[str, str]]:
        return [(symbol.label, self.words[i]) for i, symbol, _ in self._sentence.items]

    def _weights(self, sentence: "_Sentence", penalties: Penalties | None) -> Floats:
        """Weights of the word items with the penalties added."""
        weights = sentence.lex_weight
        for view, penalty in as_penalties(penalties).items():
            checked = as_scores(f"penalty {view!r}", penalty, self.checked_view(view))
            weights = weights + checked.reshape(-1)[sentence.view_cell]
        return weights

    # -- charts ----------------------------------------------------------------------------------------------------

    def _check_memory(self, needed: int, what: str) -> None:
        if needed > self.memory_limit:
            raise NotSupported(
                f"parsing {what} takes {needed / 2**30:.1f} GiB; the limit is {self.memory_limit / 2**30:.1f} GiB. "
                "Split the sentence, use a grammar with fewer symbols (smaller horizontal, vertical), or raise "
                "Constituency.memory_limit."
            )

    def _new_chart(self, rules: Indexed, charts: int) -> Floats:
        if self.n == 0:
            raise Infeasible("the sentence has no words; every tree has at least one.")
        size = rules.size * self.n * (self.n + 1) // 2
        self._check_memory(8 * size * charts, f"{self.n} words with {rules.size} symbols")
        return np.empty(size)

    def _viterbi(self, penalties: Penalties | None, *, charts: int = 1) -> tuple[Floats, Floats, float]:
        """Weights of word items, Viterbi chart and best score. Raises Infeasible."""
        sentence = self._sentence
        weights = self._weights(sentence, penalties)
        chart = self._new_chart(sentence.rules, charts)
        rules, words = sentence.rules.kernel_rules, sentence.kernel_words(weights)
        long_call(self._steps, kernels.cky.viterbi, self.n, rules, words, chart)
        best = float(chart[self._root_cell])
        if best == -np.inf:
            raise self._no_tree(penalties)
        return weights, chart, best

    @property
    def _steps(self) -> float:
        """About how many steps a chart takes: rules times spans and the places to cut them."""
        return self.n**3 / 6 * len(self._sentence.rules.weight)

    @property
    def _root_cell(self) -> int:
        rules = self._sentence.rules
        return rules.size * (self.n * (self.n - 1) // 2) + rules.root * self.n

    def _no_tree(self, penalties: Penalties | None) -> Infeasible:
        """What stands in the way of a tree: a word without a tag, or how far the words from the first one combine."""
        for i, entry in enumerate(self._entries):
            if not entry:
                known = self.words[i] in self.grammar.lexicon
                why = (
                    "all its tags are forbidden"
                    if known
                    else "it is not in the lexicon; add a rule for <unknown> words"
                )
                return Infeasible(f'word {i + 1} ("{self.words[i]}") has no tag: {why}.')
        note = " under the given penalties" if penalties else ""
        sentence = self._restricted(needed=False)
        weights = self._weights(sentence, penalties)
        for i in range(self.n):
            if not (weights[sentence.lex_ptr[i] : sentence.lex_ptr[i + 1]] > -np.inf).any():
                return Infeasible(f'word {i + 1} ("{self.words[i]}") has no tag that any rule uses{note}.')
        rules = sentence.rules
        chart = self._new_chart(rules, 1)
        kernels.cky.viterbi(self.n, rules.kernel_rules, sentence.kernel_words(weights), chart)
        labels: list[str] = []
        end = self.n + 1
        while not labels:
            end -= 1
            cells = rules.size * (end * (end - 1) // 2) + np.arange(rules.size) * end
            symbols = [self._index.symbols[k] for k in rules.symbol[chart[cells] > -np.inf].tolist()]
            labels = sorted({symbol.label for symbol in symbols if symbol.is_node})
        shown = ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
        start = f"no tree: the grammar derives no {self.grammar.root} over the {self.n} words{note}"
        if end == self.n:
            return Infeasible(f"{start}; they can be {shown}, but that does not make a {self.grammar.root}.")
        said = " ".join(self.words[:end]) if end <= 8 else f"{' '.join(self.words[:4])} ... {self.words[end - 1]}"
        return Infeasible(
            f'{start}. Words 1-{end} ("{said}") can be {shown}; no longer span from the first word is a phrase: '
            f'nothing joins it to word {end + 1} ("{self.words[end]}").'
        )

    # -- questions on the chart ------------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, Index]:
        return {"tags": (self.n, len(self.tags))}

    def solve(self, penalties: Penalties | None = None) -> Solution[Tree]:
        weights, chart, best = self._viterbi(penalties)
        sentence = self._sentence
        steps = np.empty(4 * self.n, dtype=np.int64)
        rules, words = sentence.rules.kernel_rules, sentence.kernel_words(weights)
        count = kernels.cky.derivation(self.n, rules, words, chart, steps)
        return Solution(self._tree(steps[:count].tolist()), best)

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        sentence = self._sentence
        weights, _, outside = self._viterbi_outside(penalties)
        found = np.full(self.n * len(self.tags), -np.inf)
        np.maximum.at(found, sentence.view_cell, weights + outside[sentence.chart_cell])
        return {"tags": found.reshape(self.views["tags"])}

    def _viterbi_outside(self, penalties: Penalties | None) -> tuple[Floats, Floats, Floats]:
        weights, chart, _ = self._viterbi(penalties, charts=2)
        sentence = self._sentence
        outside = np.empty_like(chart)
        long_call(self._steps, kernels.cky.best_outside, self.n, sentence.rules.kernel_rules, chart, outside)
        return weights, chart, outside

    def _inside(self, charts: int) -> tuple[Floats, float]:
        sentence = self._sentence
        chart = self._new_chart(sentence.rules, charts)
        rules, words = sentence.rules.kernel_rules, sentence.kernel_words(sentence.lex_weight)
        long_call(self._steps, kernels.cky.inside, self.n, rules, words, chart)
        total = float(chart[self._root_cell])
        if total == -np.inf:
            raise self._no_tree(None)
        return chart, total

    @summed
    def log_partition(self) -> float:
        return self._inside(1)[1]

    @summed
    def marginals(self) -> dict[str, Floats]:
        chart, _ = self._inside(2)
        sentence = self._sentence
        posterior = np.empty_like(chart)
        long_call(self._steps, kernels.cky.posteriors, self.n, sentence.rules.kernel_rules, chart, posterior)
        found = np.zeros(self.n * len(self.tags))
        np.add.at(found, sentence.view_cell, posterior[sentence.chart_cell])
        return {"tags": found.reshape(self.views["tags"])}

    @cached_property
    def _normal(self) -> ParseGraph:
        s = self._sentence
        position = np.array([i for i, _, _ in s.items], dtype=np.int64)
        return parse_graph(self.n, s.rules, Items(position, s.lex_id, s.lex_weight, s.view_cell), len(self.tags))

    def normal_form(self) -> NormalForm:
        return self._normal.form

    def normal_structure(self, structure: Tree) -> tuple[list[int]]:
        steps = list(self.grammar.memory.derivation(self._checked(structure)))
        edges = edges_of(self._normal, self._index, self._sentence.rules, steps)
        if edges is None:
            raise InvalidInput("the tree uses a forbidden part, or one that the grammar does not have.")
        return (edges,)

    # -- the hypergraph --------------------------------------------------------------------------------------------

    @cached_property
    def _forest(self) -> tuple[Forest, Int64]:
        """The hypergraph of all trees, and for each edge its step as cky.derivation numbers them."""
        weights, chart, outside = self._viterbi_outside(None)
        sentence = self._sentence
        alive = chart + outside > -np.inf
        del chart, outside
        kernel: Any = kernels.cky
        rules, words = sentence.rules.kernel_rules, sentence.kernel_words(weights)
        n_vertices, n_edges = kernel.forest_size(self.n, rules, words, alive)
        self._check_memory(48 * n_edges + 4 * alive.size, f"{self.n} words into a hypergraph of {n_edges} edges")
        in_ptr = np.empty(n_vertices + 1, dtype=np.int32)
        tail_ptr = np.empty(n_edges + 1, dtype=np.int32)
        tail = np.empty(2 * n_edges, dtype=np.int32)
        edge_weight = np.empty(n_edges)
        edge_step = np.empty(n_edges, dtype=np.int64)
        number = np.empty(alive.size, dtype=np.int32)
        edges = kernel.Edges(in_ptr, tail_ptr, tail, edge_weight, edge_step)
        count = kernel.forest(self.n, rules, words, alive, number, edges)
        graph = Hypergraph(in_ptr, tail_ptr, tail[:count], int(number[self._root_cell]))
        first_word = len(rules.parent) + len(rules.chains.top)
        cells = np.full(n_edges, -1, dtype=np.int64)
        is_word = edge_step >= first_word
        cells[is_word] = sentence.view_cell[edge_step[is_word] - first_word]
        return Forest(graph, edge_weight, {"tags": cells}), edge_step

    def forest(self) -> Forest:
        return self._forest[0]

    def from_edges(self, edges: Sequence[int]) -> Tree:
        forest, step_of = self._forest
        graph = forest.graph
        edge_into = {int(graph.heads[e]): e for e in edges}  # no derivation uses a vertex twice
        steps = []
        stack = [graph.root]
        while stack:
            e = edge_into[stack.pop()]
            steps.append(int(step_of[e]))
            stack.extend(reversed(graph.tail_of(e).tolist()))
        return self._tree(steps)

    def _tree(self, steps: list[int]) -> Tree:
        return self._index.tree(self._sentence.rules, steps, self._words_of_items)

    # -- structures ------------------------------------------------------------------------------------------------

    def _checked(self, structure: Tree) -> Tree:
        if not isinstance(structure, Tree):
            raise InvalidInput(f"the structure is {type(structure).__name__}; expected a certus.Tree.")
        if tuple(structure.words) != self.words:
            raise InvalidInput(f"the tree's words are {structure.words}; expected {list(self.words)}.")
        if structure.label != self.grammar.root:
            raise InvalidInput(f'the tree\'s root is "{structure.label}"; expected "{self.grammar.root}".')
        return structure

    @cached_property
    def _lexical(self) -> list[dict[Symbol, float]]:
        return [dict(entry) for entry in self._entries]

    def terms(self, structure: Tree) -> list[float]:
        found = []
        for step in self.grammar.memory.derivation(self._checked(structure)):
            if isinstance(step, Chain):
                found.append(self.grammar.chains.get(step, -np.inf))
            elif isinstance(step, Binary):
                found.append(self.grammar.binary.get(step, -np.inf))
            else:
                found.append(self._lexical[step.position].get(step.symbol, -np.inf))
        return found

    def indicator(self, structure: Tree, view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        for i, label in enumerate(self._checked(structure).tags):
            if label not in self.tags:
                raise InvalidInput(f'word {i + 1} of the tree has the tag "{label}", which the grammar does not have.')
            out[i, self.tags.index(label)] = 1.0
        return out

    def sequence(self, structure: Tree, view: str) -> Sequence[int]:
        """The tags, word by word."""
        cells: list[int] = np.flatnonzero(self.indicator(structure, view)).tolist()
        return cells

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        n, size = self.checked_view(view)
        i, t = index
        if not (0 <= i < n and 0 <= t < size) or value not in (0, 1):
            raise InvalidInput(
                f"cannot fix {view}[{i}, {t}] to {value!r}; the view has shape {(n, size)}, values are 0 or 1."
            )
        kept = tuple((s, w) for s, w in self._entries[i] if (s.label == self.tags[t]) == bool(value))
        return self._with_entries((*self._entries[:i], kept, *self._entries[i + 1 :]))

    @once
    def extent(self) -> Extent:
        return extent_of(4 * max(self.n, 1), *self.all_scores())

    def all_scores(self) -> tuple[Floats, ...]:
        rules = self._sentence.rules
        return rules.weight, rules.chain_weight, self._sentence.lex_weight

    def without_scores_below(self, least: float) -> Self:
        if least == -np.inf:
            return self  # all of them are read
        g = self.grammar
        binary = {rule: w for rule, w in g.binary.items() if w >= least}
        chains = {chain: w for chain, w in g.chains.items() if w >= least}
        new = type(self)(Grammar(g.root, binary, chains, g.lexicon, memory=g.memory, tags=g.tags), ())
        return new._about(self.words, tuple(tuple((s, w) for s, w in entry if w >= least) for entry in self._entries))

    def with_scores_rounded_up(self, step: float) -> Self:
        g = self.grammar
        binary = {rule: one_rounded_up(w, step) for rule, w in g.binary.items()}
        chains = {chain: one_rounded_up(w, step) for chain, w in g.chains.items()}
        new = type(self)(Grammar(g.root, binary, chains, g.lexicon, memory=g.memory, tags=g.tags), ())
        entries = tuple(tuple((s, one_rounded_up(w, step)) for s, w in entry) for entry in self._entries)
        return new._about(self.words, entries)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        rules = self._sentence.rules
        binary = [self._index.rules[r] for r in rules.source_rule.tolist()]
        chains = [self._index.chains[c] for c in rules.source_chain.tolist() if c >= 0]
        grammar = Grammar(
            self.grammar.root,
            {rule: self.grammar.binary[rule] for rule in binary},
            {chain: self.grammar.chains[chain] for chain in chains},
            Listed({}),
            memory=self.grammar.memory,
            tags=self.tags,
        )
        entries: list[list[list[Any]]] = [[] for _ in self.words]
        for i, symbol, weight in self._sentence.items:
            entries[i].append([symbol.label, list(symbol.ancestors), weight])
        return {"words": list(self.words), "grammar": grammar.to_json(), "entries": entries}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        grammar, words = Grammar.from_json(given["grammar"]), given["words"].texts()
        entries = []
        for listed in given["entries"].items(size=len(words)):
            entry = []
            for item in listed.items():
                label, above, weight = item.items(size=3)
                entry.append((Symbol(label.one_of(grammar.tags), tuple(above.texts())), weight.number()))
            if len({symbol for symbol, _ in entry}) < len(entry):
                listed.fail("tags of a word, each once")
            entries.append(tuple(entry))
        return given.made(lambda: cls(grammar, words)._with_entries(tuple(entries)))

    def structure_to_json(self, structure: Tree) -> Any:
        return [list(node) for node in self._checked(structure).preorder()]

    def structure_from_json(self, data: Any) -> Tree:
        return self._checked(tree_from_json(Field.of(data, "structure")))


def tree_from_json(field: Field) -> Tree:
    """The tree of a list of [label, word or null, children], parents first."""
    nodes = []
    for node in field.items():
        label, word, arity = node.items(size=3)
        nodes.append((label.text(), None if word.value is None else word.text(), arity.whole()))
    return field.made(lambda: Tree.from_preorder(nodes))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """The rules a sentence can use and its word items (position, preterminal, weight), as the kernels take them."""

    rules: Indexed
    items: list[tuple[int, Symbol, float]]
    lex_ptr: Int64
    lex_id: Int32
    lex_weight: Floats
    view_cell: Int64  # flat cell of the view "tags" of each word item
    chart_cell: Int64  # cell of the chart of each word item

    def kernel_words(self, weights: Floats) -> Any:
        """The word items with these weights as certus.kernels.cky takes them."""
        kernel: Any = kernels.cky
        return kernel.Words(self.lex_ptr, self.lex_id, weights)
