"""Weighted context-free grammars, binarised inside, plain outside."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np

from certus.checks import of_kind
from certus.constituency.binarise import Binary, Chain, Memory, Symbol
from certus.constituency.indexed import GrammarIndex
from certus.constituency.lexicon import Entry, Lexicon, lexicon_from_json
from certus.constituency.rule_text import read_rules
from certus.constituency.saved_grammar import SavedGrammar
from certus.constituency.treebank import estimate
from certus.errors import InvalidInput
from certus.schema import Field
from certus.serialize import floats_to_json
from certus.text import Tree

FORMAT = "certus grammar"
VERSION = 1


class Grammar(SavedGrammar):
    """A weighted context-free grammar: rules with any number of children, unary rules, and words.

    Build one with :meth:`from_text`, :meth:`from_treebank` or :meth:`load`. The score of a tree is the sum of the
    weights of its rules. Inside, rules are binary, and a run of unary rules is one *chain*: from text, every path
    through the unary rules, which must not have a cycle; from a treebank, the runs that were observed. Derivations
    and trees correspond one to one, so counts, k-best lists and samples are over different trees.

    Attributes
    ----------
    root : str
        Label of the root of every tree.
    tags : tuple of str
        Labels that stand over words, sorted: the second index of the view "tags".
    memory : Memory
        Horizontal and vertical Markovisation.
    """

    _format, _version = FORMAT, VERSION

    def __init__(
        self,
        root: str,
        binary: Mapping[Binary, float],
        chains: Mapping[Chain, float],
        lexicon: Lexicon,
        *,
        memory: Memory | None = None,
        tags: Iterable[str] = (),
    ) -> None:
        of_kind("root", root, str, "a label; Grammar.from_text, from_treebank and load make grammars")
        of_kind("binary", binary, Mapping, "scores of rules by (label, left, right)")
        of_kind("chains", chains, Mapping, "scores of chains of labels")
        of_kind("lexicon", lexicon, Lexicon, "a Lexicon of certus.constituency.lexicon")
        self.root = root
        self.memory = memory or Memory()
        self.binary = dict(binary)
        self.chains = dict(chains)
        self.lexicon = lexicon
        self.tags: tuple[str, ...] = tuple(sorted({s.label for s in lexicon.preterminals} | set(tags)))

    # -- building --------------------------------------------------------------------------------------------------

    @classmethod
    def from_text(cls, text: str, *, root: str | None = None, path: object = "<text>") -> Self:
        r"""Read a grammar written as one rule a line: ``weight  X -> Y Z``.

        The weight, a finite number, may be left out: it is then 0. A right-hand side is one word in double quotes
        (with ``\"`` and ``\\`` for those characters), the word ``<unknown>`` for every word that no other rule
        names, or one or more symbols. Lines that start with ``#`` are comments.

        Parameters
        ----------
        text : str
            The rules.
        root : str, optional
            Root symbol; the left-hand side of the first rule when left out.
        path : optional
            What errors call the text.

        Raises
        ------
        FormatError : names the line of a malformed or repeated rule, and the symbols of a unary cycle.

        Examples
        --------
        >>> g = Grammar.from_text('''
        ...     1    S -> N V
        ...     0.5  N -> "dogs"
        ...     2    V -> "bark"
        ... ''')
        >>> g.root, g.tags
        ('S', ('N', 'V'))
        """
        return cls(*read_rules(text, root, path))

    @classmethod
    def from_treebank(
        cls,
        trees: Iterable[Tree],
        *,
        horizontal: int | None = 1,
        vertical: int = 2,
        tag_vertical: int = 2,
        root: str = "TOP",
        fallback: str | None = None,
    ) -> Self:
        """Estimate a probabilistic grammar: weights are log-probabilities.

        Parameters
        ----------
        trees : iterable of Tree
            Cleaned trees (:func:`certus.io.brackets.clean_tree`). Trees with another root label get ``root`` on top.
        horizontal : int or None
            How many of the children before it a child depends on; None for all of them.
        vertical : int
            1: rules depend on their own label; 2: also on that of the parent; 3: of the grandparent too.
        tag_vertical : int
            The same for part-of-speech tags: 2 lets words depend on the phrase their tag is in.
        root : str
            Root label.
        fallback : str, optional
            A label, such as "FRAG", whose phrases may hold any tags and phrases side by side, at 30 nats for each
            rule that was not seen: every sentence then has a tree, and few that had one get another.

        Notes
        -----
        Words seen rarely, or never, are smoothed through their signatures: capitals, digits, hyphens and suffixes.
        """
        for name, value, least in (
            ("horizontal", horizontal, 0),
            ("vertical", vertical, 1),
            ("tag_vertical", tag_vertical, 1),
        ):
            if value is None and name == "horizontal":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInput(f"{name} is {value!r}; expected a whole number of at least {least}.")
        return cls(**estimate(trees, Memory(horizontal, vertical, tag_vertical), root, fallback))

    # -- scores ----------------------------------------------------------------------------------------------------

    def entry(self, word: str, *, first: bool = False) -> Entry:
        """The preterminals of a word with their weights; empty if it has none.

        A word that a treebank grammar does not know is looked up by its class; at the start of a sentence (``first``)
        it is first tried in lower case.
        """
        return self.lexicon.entry(word, first=first)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Every symbol of the binarised grammar, sorted."""
        found = {Symbol(self.root), *self.lexicon.preterminals}
        for rule in self.binary:
            found.update(rule)
        for chain in self.chains:
            found.update((chain.path[0], chain.path[-1]))
        return tuple(sorted(found, key=_order))

    @cached_property
    def index(self) -> GrammarIndex:
        """The grammar as flat arrays, made when first asked for."""
        return GrammarIndex(self)

    def __repr__(self) -> str:
        return (
            f"Grammar(root={self.root!r}, {len(self.binary)} binary rules, {len(self.chains)} chains, "
            f"{len(self.lexicon)} words, {len(self.tags)} tags)"
        )

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The grammar as JSON data."""
        used = {*self.symbols, *(symbol for chain in self.chains for symbol in chain.path)}
        order = sorted(used, key=_order)
        number = {symbol: k for k, symbol in enumerate(order)}

        return {
            "format": FORMAT,
            "version": VERSION,
            "root": self.root,
            "tags": list(self.tags),
            "memory": [self.memory.horizontal, self.memory.vertical, self.memory.tag_vertical],
            "symbols": [[s.label, list(s.ancestors), None if s.seen is None else list(s.seen)] for s in order],
            "binary": [[number[symbol] for symbol in rule] for rule in self.binary],
            "binary_weights": floats_to_json(np.array(list(self.binary.values()), dtype=np.float64)),
            "chains": [[number[symbol] for symbol in chain.path] for chain in self.chains],
            "chain_weights": floats_to_json(np.array(list(self.chains.values()), dtype=np.float64)),
            "lexicon": self.lexicon.to_json(number),
        }

    @classmethod
    def _of_json(cls, data: Field) -> Self:
        horizontal, vertical, tag_vertical = data["memory"].items(size=3)
        memory = Memory(
            None if horizontal.value is None else horizontal.whole(), vertical.whole(1), tag_vertical.whole(1)
        )
        symbols = []
        for symbol in data["symbols"].items():
            label, above, seen = symbol.items(size=3)
            children = None if seen.value is None else tuple(seen.texts())
            symbols.append(Symbol(label.text(), tuple(above.texts()), children))
        last = len(symbols) - 1
        rules = [Binary(*(symbols[k] for k in row)) for row in data["binary"].wholes(0, last, (None, 3)).tolist()]
        chains = []
        for path in data["chains"].items():
            steps = path.wholes(0, last).tolist()
            if len(steps) < 2:
                path.fail("two symbols or more")
            chains.append(Chain(tuple(symbols[k] for k in steps)))
        # A chain of finite weights may add up to less than any number; a rule that is forbidden is left out.
        chain_weights = data["chain_weights"].scores((len(chains),)).tolist()
        for name, listed in (("symbols", symbols), ("binary", rules), ("chains", chains)):
            if len(set(listed)) < len(listed):
                data[name].fail("entries that are all different")
        return cls(
            data["root"].text(),
            dict(zip(rules, data["binary_weights"].numbers((len(rules),)).tolist(), strict=True)),
            dict(zip(chains, chain_weights, strict=True)),
            lexicon_from_json(data["lexicon"], symbols),
            memory=memory,
            tags=data["tags"].texts(),
        )


def _order(symbol: Symbol) -> tuple[str, tuple[str, ...], bool, tuple[str, ...]]:
    return symbol.label, symbol.ancestors, symbol.seen is not None, symbol.seen or ()


__all__ = ["Grammar"]
