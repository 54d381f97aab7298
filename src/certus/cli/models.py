"""The grammar and the tagger a command works with: files that were given, or the small ones that are bundled."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certus.errors import InvalidInput

if TYPE_CHECKING:
    from certus.constituency import Grammar, LexicalizedGrammar
    from certus.io.conllu import Sentence
    from certus.models.parser import Parser
    from certus.models.tagger import Tagger
    from certus.problem import Problem
    from certus.tagging import HMM, Tagging


def load_grammar(path: Path | None) -> "Grammar | LexicalizedGrammar":
    """A grammar saved by ``certus train grammar``, or rules written as text; the bundled one without a path."""
    if path is None:
        from certus.data import demo_grammar

        return demo_grammar()
    from certus.constituency import Grammar, LexicalizedGrammar
    from certus.constituency.lexicalized_grammar import FORMAT as LEXICALIZED
    from certus.io.files import read_text

    text = read_text(path)
    if text.lstrip().startswith("{"):
        return LexicalizedGrammar.load(path) if LEXICALIZED in text[:200] else Grammar.load(path)
    return Grammar.from_text(text, path=path)


def load_any_tagger(path: Path | None) -> "Tagger | HMM":
    """A tagger saved by ``certus train tagger``, of either kind; the bundled English one without a path."""
    if path is None:
        from certus.models.pipeline import bundled_tagger

        return bundled_tagger()
    with open(path, "rb") as stream:
        begins = stream.read(16)
        packed = int.from_bytes(begins[:8], "little") <= os.fstat(stream.fileno()).st_size  # the size of a header
    if begins.lstrip()[:1] in (b"{", b"[") and not packed:
        return load_tagger(path)
    from certus.models.tagger import Tagger

    return Tagger.load(path)


def load_tagger(path: Path | None) -> "HMM":
    """A hidden Markov model saved by ``certus train tagger --hmm``; a small bundled one without a path."""
    if path is None:
        from certus.data import demo_tagger

        return demo_tagger()
    from certus.tagging import HMM

    return HMM.load(path)


def tagging(tagger: "HMM", words: list[str]) -> "Tagging":
    """The problem of tagging these words; brackets that the tagger does not know are tried as treebanks spell them."""
    from certus.constituency.lexicon import BRACKETS

    return tagger.tagging([word if word in tagger.lexicon else BRACKETS.get(word, word) for word in words])


@dataclass(frozen=True)
class Lexicalized:
    """A lexicalised grammar, and the tagger and the dependency parser it has to agree with, if any."""

    grammar: "LexicalizedGrammar"
    tagger: "Tagger | HMM | None"
    parser: "Parser | None"
    parser_tagger: "Tagger | None"
    weight: float
    tagger_weight: float

    def problem(self, words: list[str]) -> "Problem[Any]":
        """The joint problem of a sentence."""
        from certus import Joint, LexicalizedConstituency

        arcs = None if self.parser is None else self.parser.problem(self._tagged(words))
        trees = LexicalizedConstituency(self.grammar, words)
        found: Problem[Any] = trees if arcs is None else trees.allowing(arcs.arc > float("-inf"))
        if self.tagger is not None:
            found = Joint(found, self._tagging(self.tagger, words), on="tags", weight=self.tagger_weight)
        return found if arcs is None else Joint(found, arcs, on="arcs", weight=self.weight)

    def _tagging(self, tagger: "Tagger | HMM", words: list[str]) -> "Tagging":
        from certus.tagging import HMM

        return tagging(tagger, words) if isinstance(tagger, HMM) else tagger.problem(words, tagger.columns[-1])

    def _tagged(self, words: list[str]) -> "Sentence":
        from certus.io.conllu import Sentence

        if self.parser_tagger is None:
            raise InvalidInput("the dependency parser has no tagger; train it with --tagger.")
        (sentence,) = self.parser_tagger.tag([Sentence.from_words(words)])
        return sentence


def load_lexicalized(
    grammar: "LexicalizedGrammar", tagger: Path | None, model: str | None, weight: float, tagger_weight: float
) -> Lexicalized:
    """What ``certus parse`` needs for a lexicalised grammar; the tagger and the parser only if they are named."""
    pipeline = None
    if model is not None:
        from certus.models.pipeline import load

        pipeline = load(model)
    return Lexicalized(
        grammar,
        None if tagger is None else load_any_tagger(tagger),
        None if pipeline is None else pipeline.parser,
        None if pipeline is None else pipeline.tagger,
        weight,
        tagger_weight,
    )
