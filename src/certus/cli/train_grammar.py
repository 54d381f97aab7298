"""certus train grammar: a probabilistic grammar from a treebank."""

from functools import partial
from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Option
from certus.cli.corpora import read_corpus
from certus.cli.messages import say
from certus.cli.overwriting import refuse_overwriting
from certus.constituency import Grammar, HeadRules, LexicalizedGrammar
from certus.io.brackets import read_trees


def grammar(
    treebank: Annotated[list[Path], Option(help="Bracketed trees, plain or .gz; may be repeated")],
    output: Annotated[Path, Option(help="Where the grammar goes")],
    horizontal: Annotated[int, Option(min=0, help="Children before it that a child depends on")] = 1,
    vertical: Annotated[int, Option(min=1, help="Labels a rule depends on: 1 its own, 2 its parent's too")] = 2,
    fallback: Annotated[str | None, Option(help="Label that holds anything, so that all sentences parse")] = None,
    lexicalized: Annotated[
        bool, Option("--lexicalized", help="A grammar of heads and modifiers; without the three options above")
    ] = False,
    heads: Annotated[Path | None, Option(help="Lexicalised: rules for heads", show_default="Penn Treebank")] = None,
    min_count: Annotated[int, Option(min=1, help="Lexicalised: how often a context must have been seen")] = 1,
) -> None:
    """Estimate a probabilistic grammar from a treebank; traces and function tags are removed."""
    refuse_overwriting(output, *treebank, heads)
    trees = read_corpus(treebank, partial(read_trees, clean=True), "a grammar", of="trees")
    estimated: Grammar | LexicalizedGrammar
    if lexicalized:
        rules = None if heads is None else HeadRules.load(heads)
        estimated = LexicalizedGrammar.from_treebank(trees, rules=rules, least=min_count)
    else:
        estimated = Grammar.from_treebank(trees, horizontal=horizontal, vertical=vertical, fallback=fallback)
    estimated.save(output)
    say(f"{output}: {estimated}, from {len(trees)} trees")
