"""Phrase structure from a grammar, a tagger and a dependency parser that must agree."""

from dataclasses import dataclass
from typing import Any

from certus.constituency import Constituency, Grammar, LexicalizedConstituency, LexicalizedGrammar, LexicalizedTree
from certus.constituency.lexicon import BRACKETS
from certus.errors import InvalidInput
from certus.joint import Joint
from certus.models.pipeline import Pipeline
from certus.models.tagger import Tagger
from certus.problem import Problem
from certus.tagging import HMM, Tagging
from certus.text import Sentence, Tree


@dataclass(frozen=True)
class ConstituencyParser:
    """A grammar, and what it has to agree with, if anything.

    Parameters
    ----------
    grammar : Grammar or LexicalizedGrammar
    tagger : Tagger or HMM, optional
        Must agree on the tags, which it must share with the grammar.
    dependencies : Pipeline, optional
        A dependency parser with its tagger, which must agree on the heads of a lexicalised grammar.
    tagger_weight, weight : float
        What a score of the tagger and of the dependency parser is worth.

    Examples
    --------
    >>> from certus.data import demo_grammar, demo_tagger
    >>> parser = ConstituencyParser(demo_grammar(), demo_tagger())
    >>> print(parser.tree(parser.problem("dogs bark".split()).decode().structure))
    (TOP (S (NP (NBAR (NOUN dogs))) (VP (VERB bark))))
    """

    grammar: Grammar | LexicalizedGrammar
    tagger: Tagger | HMM | None = None
    dependencies: Pipeline | None = None
    tagger_weight: float = 1.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.dependencies is not None and isinstance(self.grammar, Grammar):
            raise InvalidInput("a dependency parser can only agree with a lexicalised grammar, which has heads.")

    def problem(self, words: list[str]) -> Problem[Any]:
        """The problem of a sentence: one of trees, or a joint one."""
        found: Problem[Any]
        arcs = None
        if isinstance(self.grammar, Grammar):
            found = Constituency(self.grammar, words)
        else:
            found = trees = LexicalizedConstituency(self.grammar, words)
            if self.dependencies is not None:
                (tagged,) = self.dependencies.tagged([Sentence.from_words(words)])
                arcs = self.dependencies.parser.problem(tagged)
                found = trees.allowing(arcs.arc > float("-inf"))
        if self.tagger is not None:
            found = Joint(found, tagging_problem(self.tagger, words), on="tags", weight=self.tagger_weight)
        return found if arcs is None else Joint(found, arcs, on="arcs", weight=self.weight)

    @staticmethod
    def tree(structure: Any) -> Tree:
        """The tree in a structure of one of its problems."""
        while not isinstance(structure, Tree):
            structure = structure.tree if isinstance(structure, LexicalizedTree) else structure[0]
        return structure


def tagging_problem(tagger: Tagger | HMM, words: list[str]) -> Tagging:
    """The problem of tagging words, in the last column of a tagger that fills several.

    Brackets that a hidden Markov model does not know are tried as treebanks spell them.
    """
    if isinstance(tagger, Tagger):
        return tagger.problem(words, tagger.columns[-1])
    return tagger.tagging([word if word in tagger.lexicon else BRACKETS.get(word, word) for word in words])
