"""certus constituents: the best phrase-structure tree of each sentence, with its certificate."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from certus import save_result as save
from certus.cli.arguments import Option
from certus.cli.inputs import read_lines
from certus.cli.messages import complain, print_json, proof_fields
from certus.cli.options import Inputs, JsonLines, TaggerFile, TimeLimit, Tokenised
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import watched
from certus.constituency import LexicalizedGrammar
from certus.data import demo_tagger
from certus.errors import Infeasible, InvalidInput, LimitReached
from certus.models.constituency import ConstituencyParser
from certus.models.loading import load_grammar, load_tagger
from certus.models.pipeline import load
from certus.models.tagger import Tagger
from certus.tagging import HMM


class Format(StrEnum):
    """How trees are printed."""

    brackets = "brackets"
    tree = "tree"


def constituents(
    inputs: Inputs = None,
    format: Annotated[Format, Option(help="One line a sentence, or an indented tree")] = Format.brackets,
    grammar: Annotated[Path | None, Option(help="Rules as text, or a trained grammar", show_default="bundled")] = None,
    tagger: TaggerFile = None,
    tagger_weight: Annotated[float, Option(help="What a score of --tagger is worth")] = 1.0,
    model: Annotated[
        str | None, Option(help="Lexicalised grammar: name or folder of a dependency parser to agree with")
    ] = None,
    weight: Annotated[float | None, Option(help="What a score of --model is worth", show_default="1")] = None,
    joint: Annotated[bool, Option(help="Have grammar and tagger agree, or the grammar alone")] = True,
    save_result: Annotated[Path | None, Option(help="Save the result of the one sentence, to be verified")] = None,
    max_iterations: Annotated[int, Option(min=1, help="Iterations before giving up on a proof")] = 500,
    time_limit: TimeLimit = None,
    tokenised: Tokenised = False,
    json: JsonLines = False,
) -> int:
    """Parse text, files or stdin, a sentence a line, into phrase-structure trees.

    By default grammar and tagger have to agree on the tags.

    With a lexicalised grammar (certus train grammar --lexicalized) phrases agree with the dependency trees of --model
    and the tags of --tagger, where these are given: the best of all together is found, and proved.

    An empty line gives an empty line. A sentence that cannot be parsed is reported on stderr with its line and gives an
    empty line too; the exit code is then 2.
    """
    parser = _load(grammar, tagger, model, joint=joint, tagger_weight=tagger_weight, weight=weight)
    if save_result is not None:
        refuse_overwriting(save_result, grammar, tagger, *(inputs or []))
    code, saved = 0, None
    for line in watched(read_lines(inputs or [], tokenised=tokenised), "parsing"):
        if not line.words:
            print(flush=True)
            continue
        if save_result is not None and saved is not None:
            raise InvalidInput(f"{line.place}: a second sentence; --save-result takes one. Nothing was saved.")
        place = {"source": line.source, "line": line.number, "words": line.words}
        try:
            problem = parser.problem(line.words)
            result = problem.decode(max_iterations=max_iterations, time_limit=time_limit)
        except (Infeasible, LimitReached) as error:
            code = complain(f"{line.place}: {error}")
            print_json(place | {"error": str(error)}) if json else print(flush=True)
            continue
        saved = (problem, result)
        if not result.certificate.exact:
            complain(f"{line.place}: not proved optimal; a better parse could score {result.certificate.gap:.6g} more.")
        tree = parser.tree(result.structure)
        if json:
            print_json(place | {"tags": tree.tags, "tree": str(tree)} | proof_fields(result))
        else:
            print(str(tree) if format is Format.brackets else tree.pretty() + "\n", flush=True)
    if save_result is not None:
        if saved is None:
            raise InvalidInput("--save-result: no sentence was parsed, so there is nothing to save.")
        save(save_result, *saved)
    return code


def _load(
    grammar: Path | None,
    tagger: Path | None,
    model: str | None,
    *,
    joint: bool,
    tagger_weight: float,
    weight: float | None,
) -> ConstituencyParser:
    """The parser that the options ask for: a grammar that is not lexicalised has a tagger unless that is refused."""
    rules = load_grammar(grammar)
    lexicalized = isinstance(rules, LexicalizedGrammar)
    if not joint and (tagger is not None or model is not None):
        raise InvalidInput("--no-joint uses the grammar alone; leave out --tagger and --model.")
    if model is not None and not lexicalized:
        raise InvalidInput("--model is for a lexicalised grammar; train one with certus train grammar --lexicalized.")
    if weight is not None and model is None:
        raise InvalidInput("--weight is for a lexicalised grammar with --model.")
    tags: Tagger | HMM | None = None
    if tagger is not None:
        tags = load_tagger(tagger)
    elif joint and not lexicalized:
        tags = demo_tagger()
    dependencies = None if model is None else load(model)
    return ConstituencyParser(rules, tags, dependencies, tagger_weight, 1.0 if weight is None else weight)
