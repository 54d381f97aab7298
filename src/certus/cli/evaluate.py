"""certus evaluate: compare a system's trees, tags or translations with the gold ones."""

from pathlib import Path
from typing import Annotated, Any

from certus.cli.arguments import Argument, Option
from certus.cli.messages import print_json
from certus.cli.options import JsonObject
from certus.errors import InvalidInput
from certus.evaluate import compare_conllu, compare_translations, compare_trees
from certus.io.conllu import is_conllu


def evaluate(
    gold: Annotated[Path, Argument(help="Gold standard: .conllu, or bracketed trees; plain or .gz")],
    system: Annotated[Path, Argument(help="System output, in the same format")],
    by_length: Annotated[bool, Option("--by-length", help="CoNLL-U: short and long sentences too")] = False,
    bleu: Annotated[bool, Option("--bleu", help="The files are translations, one sentence a line")] = False,
    tokenizer: Annotated[
        str | None, Option(help="--bleu: tokenizer of sacrebleu; none for text that is tokenised", metavar="NAME")
    ] = None,
    json: JsonObject = False,
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
    scores: dict[str, Any]
    if bleu:
        translations = compare_translations(gold, system, tokenizer=tokenizer or "13a")
        scores = translations.scores() | {"signature": translations.signature}
    elif is_conllu(gold) != is_conllu(system):
        raise InvalidInput(f"{gold} and {system} are in different formats; give two .conllu files, or two of brackets.")
    elif is_conllu(gold):
        attachments = compare_conllu(gold, system)
        scores = {**attachments.scores()}
        if by_length:
            scores["by length"] = attachments.scores_by_length()
    else:
        scores = {**compare_trees(gold, system).scores()}
    if json:
        print_json(scores)
    else:
        _print(scores)


def _print(scores: dict[str, Any]) -> None:
    lengths = scores.pop("by length", {})
    for name, value in scores.items():
        print(f"{name:<24}{_shown(value)}")
    if lengths:
        print(f"\n{'words a sentence':<24}" + "".join(f"{name:>11}" for name in next(iter(lengths.values()))))
    for name, row in lengths.items():
        print(f"{name:<24}" + "".join(f"{_shown(value):>11}" for value in row.values()))


def _shown(value: float | str) -> str:
    return f"{value:>8.2f}" if isinstance(value, float) else f"{value:>8}"
