"""certus explain: why each word of a sentence has its head."""

import json as json_
from typing import TYPE_CHECKING, Annotated

import typer

from certus.cli.options import Inputs, JsonLines, Tokenised

if TYPE_CHECKING:
    from certus.io.conllu import Sentence
    from certus.models.explain import Choice


def explain(
    inputs: Inputs = None,
    word: Annotated[int | None, typer.Option(min=1, help="Explain this word", show_default="every word")] = None,
    instead: Annotated[
        int | None, typer.Option(min=0, help="Rather than this head, 0 for the root", show_default="the next best")
    ] = None,
    sentence: Annotated[int, typer.Option(min=1, help="Which sentence of the input")] = 1,
    most: Annotated[int, typer.Option(min=0, help="Features to print for a word")] = 15,
    model: Annotated[str | None, typer.Option(help="Name or folder of a trained parser", show_default="en")] = None,
    conllu: Annotated[bool, typer.Option("--conllu", help="stdin is CoNLL-U")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Every line of a text is a sentence")] = False,
    tokenised: Tokenised = False,
    json: JsonLines = False,
) -> None:
    """Explain the heads that a parser gives to the words of a sentence.

    For each word: its head, the head it has in the best other tree, by how much that tree scores less, and with --word
    the features in which the two trees differ. What they add, for the head (+) or against it (-), sums up to the
    difference.
    """
    from itertools import islice

    from certus.cli.sentences import read_sentences
    from certus.errors import InvalidInput
    from certus.models.explain import head_choice
    from certus.models.pipeline import load

    if instead is not None and word is None:
        raise InvalidInput("--instead is the head of one word; say which with --word.")
    pipeline = load() if model is None else load(model)
    read = read_sentences(inputs or [], conllu=conllu, tokenised=tokenised, lines=lines)
    chosen = list(islice(read, sentence - 1, sentence))
    if not chosen:
        raise InvalidInput(f"the input has fewer than {sentence} sentences; choose another with --sentence.")
    (tree,) = pipeline.parse(chosen)
    if len(tree) < 2:
        raise InvalidInput(f"sentence {sentence} has {len(tree)} words and one tree; there is nothing to explain.")
    for m in [word] if word is not None else range(1, len(tree) + 1):
        choice = head_choice(pipeline.parser, tree, m, instead=instead)
        print(_described(tree, choice) if json else _printed(tree, choice, most if word is not None else 0))


def _printed(tree: "Sentence", choice: "Choice", most: int) -> str:
    """One line of what was chosen, then the heads that change with it, then features."""

    def named(v: int) -> str:
        return f"{v} {tree.tokens[v - 1].form}" if v else "0 root"

    label = tree.tokens[choice.word - 1].deprel
    heads = f"{named(choice.word)} <- {named(choice.head)} ({label}), not {named(choice.instead)}"
    shown = [f"{heads}: {choice.margin:+.4f}"]
    if most:
        changed = [v for v in range(1, len(tree) + 1) if choice.tree[v] != choice.other[v] and v != choice.word]
        shown += [f"  then also {named(v)} <- {named(int(choice.other[v]))}" for v in changed]
        shown += [f"  {feature.weight:+.4f}  {feature.text}" for feature in choice.features[:most]]
        if rest := choice.features[most:]:
            shown.append(f"  {sum(feature.weight for feature in rest):+.4f}  {len(rest)} more")
    return "\n".join(shown)


def _described(tree: "Sentence", choice: "Choice") -> str:
    data = {
        "word": choice.word,
        "form": tree.tokens[choice.word - 1].form,
        "head": choice.head,
        "deprel": tree.tokens[choice.word - 1].deprel,
        "instead": choice.instead,
        "margin": choice.margin,
        "heads": choice.tree[1:].tolist(),
        "other_heads": choice.other[1:].tolist(),
        "features": [{"text": feature.text, "weight": feature.weight} for feature in choice.features],
    }
    return json_.dumps(data, ensure_ascii=False)
