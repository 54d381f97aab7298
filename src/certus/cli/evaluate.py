"""certus evaluate: compare a system's trees, tags or translations with the gold ones."""

import json as json_
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from certus.errors import FormatError, InvalidInput

if TYPE_CHECKING:
    from certus.models.evaluation import AttachmentScores

Item = TypeVar("Item")
Scores = dict[str, float | int]


def evaluate(
    gold: Annotated[Path, typer.Argument(help="Gold standard: .conllu, or bracketed trees; plain or .gz")],
    system: Annotated[Path, typer.Argument(help="System output, in the same format")],
    by_length: Annotated[bool, typer.Option("--by-length", help="CoNLL-U: short and long sentences too")] = False,
    bleu: Annotated[bool, typer.Option("--bleu", help="The files are translations, one sentence a line")] = False,
    tokenizer: Annotated[
        str | None, typer.Option(help="--bleu: tokenizer of sacrebleu; none for text that is tokenised", metavar="NAME")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> None:
    """Score system output against a gold standard, sentence by sentence, on the same words.

    All scores are percentages. Bracketed trees: labelled precision, recall and F1 in the manner of evalb, whole
    sentences right, and tagging accuracy, punctuation left out. CoNLL-U: tagging accuracy, unlabelled and labelled
    attachment scores as CoNLL 2018 defines them (all words; labels up to the first colon), the same without words
    whose gold tag is PUNCT, whole trees right (UEM, LEM), and with --by-length a table by words in the sentence.
    Translations, with --bleu: BLEU and chrF of the corpus by sacrebleu, which the extra certus[mt] installs.
    """
    if tokenizer is not None and not bleu:
        raise InvalidInput("--tokenizer is for --bleu; leave it out.")
    if bleu:
        quality, signature = translation_scores(gold, system, tokenizer or "13a")
        if json:
            print(json_.dumps(quality | {"signature": signature}))
            return
        for name, value in quality.items():
            print(f"{name:<24}{_shown(value)}")
        print(f"{'signature':<24}{signature}")
        return
    kinds = {is_conllu(gold), is_conllu(system)}
    if len(kinds) == 2:
        raise InvalidInput(f"{gold} and {system} are in different formats; give two .conllu files, or two of brackets.")
    lengths: dict[str, Scores] = {}
    if kinds == {True}:
        attachments = conllu_scores(gold, system)
        scores = attachments.scores()
        lengths = attachments.scores_by_length() if by_length else {}
    else:
        scores = bracket_scores(gold, system)
    if json:
        print(json_.dumps(scores | {"by length": lengths} if lengths else scores))
        return
    for name, value in scores.items():
        print(f"{name:<24}{_shown(value)}")
    if lengths:
        print(f"\n{'words a sentence':<24}" + "".join(f"{name:>11}" for name in next(iter(lengths.values()))))
    for name, row in lengths.items():
        print(f"{name:<24}" + "".join(f"{_shown(value):>11}" for value in row.values()))


def _shown(value: float) -> str:
    return f"{value:>8}" if isinstance(value, int) else f"{value:>8.2f}"


def is_conllu(path: Path) -> bool:
    """True for names that end in .conllu or .conllu.gz."""
    return path.name.removesuffix(".gz").endswith(".conllu")


def conllu_scores(gold: Path, system: Path) -> "AttachmentScores":
    """Scores of two CoNLL-U files with the same words."""
    from certus.io.conllu import read_conllu
    from certus.models.evaluation import AttachmentScores

    scores = AttachmentScores()
    for number, (g, s) in enumerate(_paired(gold, system, read_conllu(gold), read_conllu(system)), start=1):
        _same_words(system, number, g.words, s.words)
        scores.add(g, s)
    _some(gold, scores.count["sentences"])
    return scores


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


def translation_scores(gold: Path, system: Path, tokenizer: str) -> tuple[Scores, str]:
    """BLEU and chrF of two files with a sentence a line, and sacrebleu's signature of how BLEU was computed."""
    from certus.io.files import read_text

    try:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF
    except ImportError:
        raise InvalidInput(
            "BLEU needs the package sacrebleu, which is not installed; install it with: pip install 'certus[mt]'"
        ) from None
    if tokenizer not in BLEU.TOKENIZERS:
        raise InvalidInput(f"sacrebleu has no tokenizer {tokenizer!r}; it has {', '.join(BLEU.TOKENIZERS)}.")
    references, outputs = (read_text(path).removesuffix("\n").split("\n") for path in (gold, system))
    if not any(references):
        raise FormatError(gold, None, "holds no sentences.")
    if len(references) != len(outputs):
        raise FormatError(
            system, None, f"has {len(outputs)} lines, but {gold} has {len(references)}; one is needed for each."
        )
    metric = BLEU(tokenize=tokenizer, force=True)
    score = metric.corpus_score(outputs, [references])
    scores: Scores = {"sentences": len(references), "BLEU": float(score.score), "brevity penalty": float(score.bp)}
    scores["chrF"] = float(CHRF().corpus_score(outputs, [references]).score)
    return scores, str(metric.get_signature())


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
