"""certus evaluate: compare a system's trees or tags with the gold ones."""

import json as json_
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from certus.errors import FormatError, InvalidInput

Item = TypeVar("Item")
Scores = dict[str, float | int]


def evaluate(
    gold: Annotated[Path, typer.Argument(help="Gold standard: .conllu, or bracketed trees; plain or .gz")],
    system: Annotated[Path, typer.Argument(help="System output, in the same format")],
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Score system output against a gold standard, sentence by sentence, on the same words.

    All scores are percentages. Bracketed trees: labelled precision, recall and F1 in the manner of evalb, whole
    sentences right, and tagging accuracy, punctuation left out. CoNLL-U: tagging accuracy, and unlabelled and labelled
    attachment scores over all words, punctuation included; labels are compared up to the first colon.
    """
    kinds = {is_conllu(gold), is_conllu(system)}
    if len(kinds) == 2:
        raise InvalidInput(f"{gold} and {system} are in different formats; give two .conllu files, or two of brackets.")
    scores = conllu_scores(gold, system) if kinds == {True} else bracket_scores(gold, system)
    if json:
        print(json_.dumps(scores))
        return
    for name, value in scores.items():
        print(f"{name:<10} {value:>8}" if isinstance(value, int) else f"{name:<10} {value:>8.2f}")


def is_conllu(path: Path) -> bool:
    """True for names that end in .conllu or .conllu.gz."""
    return path.name.removesuffix(".gz").endswith(".conllu")


def conllu_scores(gold: Path, system: Path) -> Scores:
    """Tagging accuracy, UAS and LAS over two CoNLL-U files with the same words."""
    from certus.io.conllu import read_conllu

    sentences = words = upos = xpos = heads = labelled = 0
    for number, (g, s) in enumerate(_paired(gold, system, read_conllu(gold), read_conllu(system)), start=1):
        _same_words(system, number, g.words, s.words)
        sentences += 1
        for a, b in zip(g.tokens, s.tokens, strict=True):
            attached = a.head is not None and a.head == b.head
            words += 1
            upos += a.upos == b.upos
            xpos += a.xpos == b.xpos
            heads += attached
            labelled += attached and a.deprel.split(":")[0] == b.deprel.split(":")[0]
    _some(gold, sentences)
    right = {"UPOS": upos, "XPOS": xpos, "UAS": heads, "LAS": labelled}
    return {"sentences": sentences, "words": words} | {name: 100 * count / words for name, count in right.items()}


def bracket_scores(gold: Path, system: Path) -> Scores:
    """Labelled bracket scores and tagging accuracy over two files of trees with the same words."""
    from certus.constituency.evalb import evaluate as compare
    from certus.io.brackets import read_trees

    trees = list(_paired(gold, system, read_trees(gold, clean=True), read_trees(system, clean=True)))
    for number, (g, s) in enumerate(trees, start=1):
        _same_words(system, number, g.words(), s.words())
    _some(gold, len(trees))
    score = compare(trees)
    return {
        "sentences": len(trees),
        "words": score.words,
        "precision": score.precision,
        "recall": score.recall,
        "F1": score.f1,
        "exact": score.exact,
        "tags": score.tag_accuracy,
    }


def _paired(gold: Path, system: Path, a: Iterator[Item], b: Iterator[Item]) -> Iterator[tuple[Item, Item]]:
    for number, (g, s) in enumerate(zip_longest(a, b), start=1):
        if g is None or s is None:
            path = gold if g is None else system
            raise FormatError(path, None, f"ends after {number - 1} sentences; the other file has more.")
        yield g, s


def _same_words(system: Path, number: int, gold: list[str], words: list[str]) -> None:
    if gold != words:
        i = next((i for i, (a, b) in enumerate(zip(gold, words, strict=False)) if a != b), min(len(gold), len(words)))
        found = f'"{words[i]}"' if i < len(words) else "nothing"
        expected = f'"{gold[i]}"' if i < len(gold) else "nothing"
        raise FormatError(system, None, f"sentence {number}, word {i + 1} is {found}; the gold file has {expected}.")


def _some(gold: Path, sentences: int) -> None:
    if not sentences:
        raise FormatError(gold, None, "holds no sentences.")
