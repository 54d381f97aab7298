"""Two files, gold and system, compared sentence by sentence on the same words."""

import os
from collections.abc import Iterator
from itertools import zip_longest
from typing import TypeVar

from certus.errors import FormatError
from certus.evaluate.attachment import AttachmentScores
from certus.evaluate.bleu import TranslationScores
from certus.evaluate.evalb import BracketScores
from certus.io.brackets import read_trees
from certus.io.conllu import read_conllu
from certus.io.files import read_text
from certus.text import Sentence, Tree

Path = str | os.PathLike[str]
Item = TypeVar("Item", Sentence, Tree)


def compare_conllu(gold: Path, system: Path) -> AttachmentScores:
    """Attachment scores of two CoNLL-U files. FormatError if words differ, or there are none."""
    return AttachmentScores.of(_paired(gold, system, read_conllu(gold), read_conllu(system)))


def compare_trees(gold: Path, system: Path) -> BracketScores:
    """Labelled brackets and tags of two files of cleaned trees. FormatError if words differ, or there are none."""
    return BracketScores.of(_paired(gold, system, read_trees(gold, clean=True), read_trees(system, clean=True)))


def compare_translations(gold: Path, system: Path, *, tokenizer: str = "13a") -> TranslationScores:
    """BLEU and chrF of two files with a sentence a line. FormatError if one has more lines, or none are there."""
    references, outputs = (read_text(path).removesuffix("\n").split("\n") for path in (gold, system))
    if not any(references):
        raise FormatError(gold, None, "holds no sentences.")
    if len(references) != len(outputs):
        raise FormatError(
            system, None, f"has {len(outputs)} lines, but {gold} has {len(references)}; one is needed for each."
        )
    return TranslationScores.of(references, outputs, tokenizer=tokenizer)


def _paired(gold: Path, system: Path, a: Iterator[Item], b: Iterator[Item]) -> Iterator[tuple[Item, Item]]:
    number = 0
    for number, (g, s) in enumerate(zip_longest(a, b), start=1):
        if g is None or s is None:
            path = gold if g is None else system
            raise FormatError(path, None, f"ends after {number - 1} sentences; the other file has more.")
        _check_words(system, number, g.words, s.words)
        yield g, s
    if not number:
        raise FormatError(gold, None, "holds no sentences.")


def _check_words(system: Path, number: int, gold: list[str], words: list[str]) -> None:
    if gold != words:
        i = next((i for i, (a, b) in enumerate(zip(gold, words, strict=False)) if a != b), min(len(gold), len(words)))
        found = f'"{words[i]}"' if i < len(words) else "nothing"
        expected = f'"{gold[i]}"' if i < len(gold) else "nothing"
        raise FormatError(system, None, f"sentence {number}, word {i + 1} is {found}; the gold file has {expected}.")
