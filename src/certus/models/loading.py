"""Grammars and taggers from the files of ``certus train``, whatever their kind; bundled ones without a file."""

import os

from certus.constituency import Grammar, LexicalizedGrammar
from certus.constituency.lexicalized_grammar import FORMAT as LEXICALIZED
from certus.data import demo_grammar
from certus.io.files import read_text
from certus.models.pipeline import bundled_tagger
from certus.models.tagger import Tagger
from certus.tagging import HMM


def load_grammar(path: str | os.PathLike[str] | None = None) -> Grammar | LexicalizedGrammar:
    """A grammar that was saved, of either kind, or rules written as text; the small bundled one without a path."""
    if path is None:
        return demo_grammar()
    text = read_text(path)
    if text.lstrip().startswith("{"):
        return LexicalizedGrammar.load(path) if LEXICALIZED in text[:200] else Grammar.load(path)
    return Grammar.from_text(text, path=path)


def load_tagger(path: str | os.PathLike[str] | None = None) -> Tagger | HMM:
    """A tagger that was saved, a linear model or a hidden Markov model; the bundled English one without a path."""
    if path is None:
        return bundled_tagger()
    with open(path, "rb") as stream:
        begins = stream.read(16)
        packed = int.from_bytes(begins[:8], "little") <= os.fstat(stream.fileno()).st_size  # the size of a header
    return HMM.load(path) if begins.lstrip()[:1] in (b"{", b"[") and not packed else Tagger.load(path)
