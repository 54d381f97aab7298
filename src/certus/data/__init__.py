"""A small English grammar and a small tagged corpus, written by hand, so that certus can be tried at once."""

from functools import cache
from importlib import resources

from certus.constituency import Grammar
from certus.tagging import HMM


@cache
def demo_grammar() -> Grammar:
    """The bundled grammar: 13 tags, a few hundred rules, any word."""
    return Grammar.from_text(_text("english.grammar"), path="english.grammar")


@cache
def demo_tagger() -> HMM:
    """The bundled tagger: a trigram hidden Markov model estimated from the bundled tagged sentences."""
    return HMM.estimate(demo_tagged_sentences())


def demo_tagged_sentences() -> list[list[tuple[str, str]]]:
    """The bundled tagged sentences, as lists of (word, tag)."""
    lines = _text("english.tagged").splitlines()
    return [[(word, tag) for word, _, tag in (token.rpartition("/") for token in line.split())] for line in lines]


def _text(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")
