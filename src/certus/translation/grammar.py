"""Synchronous context-free grammars: rules that rewrite a nonterminal in two languages at once (LR 5.1)."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certus.checks import Floats, as_positive_int, as_words, of_kind, one_of, shown
from certus.errors import FormatError, InvalidInput
from certus.io.hiero import RuleTable, parse_rules, read_rules
from certus.io.lattices import WordLattice
from certus.translation.forest import TranslationForest, feature_weights
from certus.translation.parse_forest import parse_forest, parse_lattice

Int32 = NDArray[np.int32]


class SourceTrie(NamedTuple):
    """The source sides as a trie, for the kernel; certus/kernels/scfg.py has the layout."""

    child_ptr: Int32
    child_symbol: Int32
    child: Int32
    node_left_ptr: Int32
    node_left: Int32
    node_glue: NDArray[np.bool_]
    rule_ptr: Int32  # rules that end at node q are rule[rule_ptr[q]:rule_ptr[q + 1]]
    rule: Int32


class SynchronousGrammar:
    """Weighted synchronous rules, and the forests they give for source sentences.

    Ordinary rules cover at most ``max_span`` source words. Glue rules cover any number, from the first word of the
    sentence on: ``S -> X`` and ``S -> S X`` join what ordinary rules translate. A nonterminal covers at least one word.

    Parameters
    ----------
    rules : RuleTable
        As ``certus.io.hiero.read_rules`` gives them.
    weights : mapping of feature names to numbers
        Names that no rule uses are ignored.
    glue : int, optional
        The file of the table that holds the glue rules, counted from 0; none by default.
    goal : str
        The nonterminal that must cover the sentence.
    max_span : int, optional
        None for no limit.

    Raises
    ------
    InvalidInput : a feature has no weight, the goal is no nonterminal, unary rules form a cycle.

    Examples
    --------
    >>> rules = ["[S] ||| [X,1] ||| [1]", "[X] ||| abarks [X,1] ||| [1] barks loudly", "[X] ||| le dug ||| the dog"]
    >>> grammar = SynchronousGrammar.from_text("\\n".join(rules))
    >>> forest = grammar.forest("abarks le dug".split())
    >>> [" ".join(forest.yields(y)) for y in forest.graph.hyperpaths()]
    ['the dog barks loudly']
    """

    def __init__(
        self,
        rules: RuleTable,
        weights: Mapping[str, float] | None = None,
        *,
        glue: int | None = None,
        goal: str = "S",
        max_span: int | None = 10,
    ) -> None:
        if not isinstance(rules, RuleTable):
            given = f"rules is {type(rules).__name__}"
            raise InvalidInput(
                f"{given}; expected a RuleTable of certus.io.hiero. For files call SynchronousGrammar.read."
            )
        if not len(rules):
            raise InvalidInput("the grammar has no rules.")
        if goal not in rules.nonterminals:
            raise InvalidInput(
                f"the goal {goal!r} is no nonterminal of the grammar; these are {', '.join(rules.nonterminals)}."
            )
        self.rules = rules
        self.goal = goal
        self.max_span = None if max_span is None else as_positive_int("max_span", max_span)
        how = "numbers by the names of features, such as {'Glue': 0.1}"
        self.feature_weights = dict(of_kind("weights", {} if weights is None else weights, Mapping, how))
        if glue is not None and (isinstance(glue, bool) or not isinstance(glue, int)):
            raise InvalidInput(f"glue is {shown(glue)}; expected the number of a file of the table, or None.")
        rule = np.repeat(np.arange(len(rules)), np.diff(rules.feature_ptr))
        values = feature_weights(self.feature_weights, rules.feature_names)[rules.feature] * rules.feature_value
        self.weights: Floats = np.bincount(rule, values, len(rules)).astype(np.float64)
        is_glue = rules.file == glue if glue is not None else np.zeros(len(rules), dtype=bool)
        self.trie = _source_trie(rules, is_glue)
        self.unary_order = _unary_order(rules)
        self.copy_label = int(rules.left[np.argmin(is_glue)])
        self._source_ids = {word: i for i, word in enumerate(rules.source_words)}
        self._linked = _target_order(rules)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        glue: str | os.PathLike[str] | None = None,
        weights: Mapping[str, float] | None = None,
        goal: str = "S",
        max_span: int | None = 10,
        source_words: Iterable[str] | None = None,
    ) -> "SynchronousGrammar":
        """Read rules in cdec's text form, plain or .gz; see ``certus.io.hiero.read_rules`` for ``source_words``."""
        table = read_rules(*([path] if glue is None else [path, glue]), source_words=source_words)
        return cls(table, weights, glue=None if glue is None else 1, goal=goal, max_span=max_span)

    @classmethod
    def from_text(
        cls,
        rules: str,
        *,
        glue: str | None = None,
        weights: Mapping[str, float] | None = None,
        goal: str = "S",
        max_span: int | None = 10,
    ) -> "SynchronousGrammar":
        """The grammar written in a string, one rule a line."""
        for name, text in (("rules", rules), ("glue", "" if glue is None else glue)):
            of_kind(name, text, str, "rules as text, one a line; for a file call SynchronousGrammar.read(path)")
        texts = [rules.encode()] if glue is None else [rules.encode(), glue.encode()]
        table = parse_rules(texts, ["rules", "glue"][: len(texts)])
        return cls(table, weights, glue=None if glue is None else 1, goal=goal, max_span=max_span)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"SynchronousGrammar({len(self.rules)} rules, nonterminals {', '.join(self.rules.nonterminals)})"

    def forest(
        self, words: Sequence[str] | WordLattice, *, unknown: str = "copy", lattice_weight: float = 1.0
    ) -> TranslationForest:
        """All derivations of a sentence, as a forest whose root is the goal over all words (LR 5.1, ex. 5.1.2).

        Parameters
        ----------
        words : sequence of str, or WordLattice
            The source sentence; or a lattice, of which every path is one. Spans are then as long as their nodes are
            apart, and the scores of the arcs, times ``lattice_weight``, are part of the weights of the rules.
        unknown : "copy" or "error"
            What happens to a word that no one-word rule covers: it may be translated by itself, with the feature
            PassThrough=1 if that has a weight, and the left-hand side of the first ordinary rule; or only by the rules.

        Raises
        ------
        Infeasible : the sentence is empty, or no derivation covers it.
        """
        copy = one_of("unknown", unknown, ("copy", "error")) == "copy"
        if isinstance(words, WordLattice):
            return parse_lattice(self, words, copy=copy, weight=lattice_weight)
        return parse_forest(self, list(as_words("words", words)), copy=copy)

    def source_ids(self, words: Iterable[str]) -> Int32:
        """Numbers of source words; -1 for a word that is in no rule."""
        return np.array([self._source_ids.get(word, -1) for word in words], dtype=np.int32)

    @property
    def target_order(self) -> tuple[Int32, Int32, Int32]:
        """(target, link_ptr, link): target sides with ~0, ~1, ... from left to right, and what each refers to.

        The j-th reference of rule r is to nonterminal ``link[link_ptr[r] + j]`` of its source side.
        """
        return self._linked


def _source_trie(rules: RuleTable, is_glue: NDArray[np.bool_]) -> SourceTrie:
    n_labels, lengths = len(rules.nonterminals), np.diff(rules.source_ptr).astype(np.int64)
    symbol = np.where(rules.source < 0, ~rules.source, rules.source + n_labels).astype(np.int64)
    n_symbols = n_labels + len(rules.source_words) + 1
    node = is_glue.astype(np.int64)
    n_nodes, glue = 2, [np.array([False, True])]
    keys: list[NDArray[np.int64]] = []
    for p in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > p)
        key, inverse = np.unique(node[rows] * n_symbols + symbol[rules.source_ptr[rows] + p], return_inverse=True)
        glue.append(np.concatenate(glue)[key // n_symbols])
        node[rows] = n_nodes + inverse
        n_nodes += len(key)
        keys.append(key)
    all_keys = np.concatenate(keys)
    order = np.argsort(all_keys, kind="stable")
    by_node = np.argsort(node, kind="stable").astype(np.int32)
    left = np.unique(node * n_labels + rules.left)
    return SourceTrie(
        _offsets(all_keys // n_symbols, n_nodes),
        (all_keys[order] % n_symbols).astype(np.int32),
        (order + 2).astype(np.int32),
        _offsets(left // n_labels, n_nodes),
        (left % n_labels).astype(np.int32),
        np.concatenate(glue),
        _offsets(node, n_nodes),
        by_node,
    )


def _offsets(owner: NDArray[np.int64], size: int) -> Int32:
    return np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=size)))).astype(np.int32)


def _unary_order(rules: RuleTable) -> Int32:
    """Nonterminals, those that a unary rule rewrites before those it makes; InvalidInput for a cycle."""
    unary = np.flatnonzero((np.diff(rules.source_ptr) == 1) & (rules.source[rules.source_ptr[:-1]] < 0))
    below: dict[int, dict[int, int]] = {}  # left-hand side -> what it is made of -> a rule
    for r in unary.tolist():
        below.setdefault(int(rules.left[r]), {}).setdefault(~int(rules.source[rules.source_ptr[r]]), r)
    order: list[int] = []
    state: dict[int, int] = {}  # 1 open, 2 done

    def visit(label: int) -> None:
        state[label] = 1
        for part, r in below.get(label, {}).items():
            if state.get(part) == 1:
                path, line = rules.place(r)
                raise FormatError(
                    path,
                    line,
                    f"the unary rule [{rules.nonterminals[label]}] -> [{rules.nonterminals[part]}] closes a cycle: a "
                    "sentence would have infinitely many derivations.",
                )
            if part not in state:
                visit(part)
        state[label] = 2
        order.append(label)

    for label in range(len(rules.nonterminals)):
        if label not in state:
            visit(label)
    return np.array(order, dtype=np.int32)


def _target_order(rules: RuleTable) -> tuple[Int32, Int32, Int32]:
    reference = np.flatnonzero(rules.target < 0)
    rule = (np.searchsorted(rules.target_ptr, reference, side="right") - 1).astype(np.int64)
    link_ptr = _offsets(rule, len(rules))
    target = rules.target.copy()
    target[reference] = ~(np.arange(len(reference)) - link_ptr[rule]).astype(np.int32)
    return target, link_ptr, ~rules.target[reference]
