"""certus explain: why each word of a sentence has its head."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from certus import load_result
from certus.cli.arguments import Option
from certus.cli.inputs import read_sentences
from certus.cli.messages import print_json
from certus.cli.options import Conllu, Inputs, JsonLines, Lines, ParserModel, Tokenised
from certus.cli.overwriting import refuse_overwriting
from certus.errors import InvalidInput
from certus.models.explain import Choice, head_choice
from certus.models.pipeline import load
from certus.report.explanation import explain_parse, explain_result
from certus.text import Sentence
from certus.writing import write_atomically


def explain(
    inputs: Inputs = None,
    word: Annotated[int | None, Option(min=1, help="Explain this word", show_default="every word")] = None,
    instead: Annotated[
        int | None, Option(min=0, help="Rather than this head, 0 for the root", show_default="the next best")
    ] = None,
    sentence: Annotated[int, Option(min=1, help="Which sentence of the input")] = 1,
    features: Annotated[int, Option(min=0, help="Features to print for a word, the strongest ones")] = 15,
    output: Annotated[Path | None, Option(help="Write all of it as one page of HTML")] = None,
    result: Annotated[Path | None, Option(help="--output: explain this saved result instead")] = None,
    words: Annotated[str | None, Option(help="--result: the words, where the problem has none")] = None,
    kbest: Annotated[int, Option(min=1, help="--output: structures to flip through")] = 5,
    model: ParserModel = "en",
    conllu: Conllu = False,
    lines: Lines = False,
    tokenised: Tokenised = False,
    json: JsonLines = False,
) -> None:
    """Explain the heads that a parser gives to the words of a sentence.

    For each word: its head, the head it has in the best other tree, by how much that tree scores less, and with --word
    what speaks for the head (+) and against it (-), by kind of evidence: groups sum up to the difference. Below each
    stand its strongest features, in words; --json has all, with the names that templates give them.

    With --output a page shows the tree with its confidences, the rivals of every head, the next best trees, and the
    proof, round by round where it has any. With --result it does so for any result that was saved.
    """
    if result is not None:
        _explain_result(result, output, words, kbest)
        return
    if words is not None:
        raise InvalidInput("--words are for --result; leave them out.")
    if instead is not None and word is None:
        raise InvalidInput("--instead is the head of one word; say which with --word.")
    pipeline = load(model)
    read = read_sentences(inputs or [], conllu=conllu, tokenised=tokenised, lines=lines)
    chosen = list(islice(read, sentence - 1, sentence))
    if not chosen:
        raise InvalidInput(f"the input has fewer than {sentence} sentences; choose another with --sentence.")
    if output is not None:
        refuse_overwriting(output, *(inputs or []))
        write_atomically(output, explain_parse(pipeline, chosen[0], kbest=kbest).encode())
        return
    (tree,) = pipeline.parse(chosen)
    if len(tree) < 2:
        raise InvalidInput(f"sentence {sentence} has {len(tree)} words and one tree; there is nothing to explain.")
    for m in [word] if word is not None else range(1, len(tree) + 1):
        choice = head_choice(pipeline.parser, tree, m, instead=instead)
        if json:
            print_json(_fields(tree, choice))
        else:
            print(_printed(tree, choice, features if word is not None else 0))


def _explain_result(result: Path, output: Path | None, words: str | None, kbest: int) -> None:
    if output is None:
        raise InvalidInput("--result makes a page; say where with --output page.html.")
    refuse_overwriting(output, result)
    given = None if words is None else words.split()
    write_atomically(output, explain_result(*load_result(result), words=given, kbest=kbest).encode())


def _printed(tree: Sentence, choice: Choice, features: int) -> str:
    """One line of what was chosen, then the heads that change with it, then features."""

    def shown(v: int) -> str:
        return f"{v} {tree.tokens[v - 1].form}" if v else "0 root"

    label = tree.tokens[choice.word - 1].deprel
    heads = f"{shown(choice.word)} <- {shown(choice.head)} ({label}), not {shown(choice.instead)}"
    out = [f"{heads}: {choice.margin:+.4f}"]
    if features:
        changed = [v for v in range(1, len(tree) + 1) if choice.tree[v] != choice.other[v] and v != choice.word]
        out += [f"  then also {shown(v)} <- {shown(int(choice.other[v]))}" for v in changed]
        listed = choice.features[:features]
        for group, total in sorted(choice.groups.items(), key=lambda item: -abs(item[1])):
            own = [feature for feature in listed if feature.group == group]
            out.append(f"  {total:+.4f}  {group}")
            out += [f"      {feature.weight:+.4f}  {feature.plain}" for feature in own]
    return "\n".join(out)


def _fields(tree: Sentence, choice: Choice) -> dict[str, Any]:
    return {
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
