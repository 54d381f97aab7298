"""certus parse: the best tree of each sentence, parser and tagger in agreement, with its certificate."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certus.cli.options import Inputs, JsonLines, TaggerFile, Tokenised
from certus.cli.text import Line, read_lines

if TYPE_CHECKING:
    from certus.constituency import Grammar, Tree
    from certus.problem import Problem
    from certus.result import Result
    from certus.tagging import HMM


class Format(StrEnum):
    """How trees are printed."""

    brackets = "brackets"
    tree = "tree"


def parse(
    inputs: Inputs = None,
    model: Annotated[Path | None, typer.Option(help="Folder of a trained parser: dependency trees, in CoNLL-U")] = None,
    conllu: Annotated[bool, typer.Option("--conllu", help="With --model: stdin is CoNLL-U")] = False,
    grammar: Annotated[Path | None, typer.Option(help="Rules as text, or a trained grammar [bundled]")] = None,
    tagger: TaggerFile = None,
    joint: Annotated[bool, typer.Option(help="Have parser and tagger agree, or use the grammar alone")] = True,
    tokenised: Tokenised = False,
    format: Annotated[Format, typer.Option(help="One line a sentence, or an indented tree")] = Format.brackets,
    json: JsonLines = False,
    save_result: Annotated[
        Path | None, typer.Option(help="Save the result of the one sentence, to be verified")
    ] = None,
    max_iterations: Annotated[int, typer.Option(min=1, help="Iterations before giving up on a proof")] = 500,
    time_limit: Annotated[float | None, typer.Option(min=0, help="Seconds for one sentence")] = None,
) -> int:
    """Parse sentences, one per line. Lines are read, parsed and printed as they come.

    With --model, dependency trees from .conllu files, whose words, tags and comments are kept, or from text; otherwise
    phrase structure by a grammar.

    An empty line gives an empty line. A sentence that cannot be parsed is reported on stderr with its line and
    gives an empty line too; the exit code is then 2.
    """
    from certus.cli import complain
    from certus.cli.models import load_grammar, load_tagger
    from certus.cli.progress import watched
    from certus.errors import Infeasible, InvalidInput, LimitReached

    if model is not None:
        from certus.cli.dependencies import parse_dependencies

        parse_dependencies(model, inputs or [], tokenised=tokenised, conllu=conllu, json=json)
        return 0
    rules = load_grammar(grammar)
    tags = load_tagger(tagger) if joint else None
    code, saved = 0, None
    for line in watched(read_lines(inputs or [], tokenised=tokenised), "parsing"):
        if not line.words:
            print(flush=True)
            continue
        if save_result is not None and saved is not None:
            raise InvalidInput(f"{line.place}: a second sentence; --save-result takes one. Nothing was saved.")
        try:
            problem = _problem(rules, tags, line)
            result = problem.decode(max_iterations=max_iterations, time_limit=time_limit)
        except (Infeasible, LimitReached) as error:
            code = complain(f"{line.place}: {error}")
            print(_failure(line, str(error)) if json else "", flush=True)
            continue
        saved = (problem, result)
        if not result.certificate.exact:
            complain(f"{line.place}: not proved optimal; a better parse could score {result.certificate.gap:.6g} more.")
        print(_described(line, result) if json else _printed(_tree(result), format), flush=True)
    if save_result is not None:
        if saved is None:
            raise InvalidInput("--save-result: no sentence was parsed, so there is nothing to save.")
        from certus import save_result as save

        save(save_result, *saved)
    return code


def _problem(grammar: "Grammar", tagger: "HMM | None", line: Line) -> "Problem[Any]":
    from certus import Constituency

    trees = Constituency(grammar, line.words)
    if tagger is None:
        return trees
    from certus import Joint
    from certus.cli.models import tagging

    return Joint(trees, tagging(tagger, line.words), on="tags")


def _tree(result: "Result[Any]") -> "Tree":
    from certus.constituency import Tree

    tree: Tree = result.structure if isinstance(result.structure, Tree) else result.structure[0]
    return tree


def _printed(tree: "Tree", format: Format) -> str:
    return str(tree) if format is Format.brackets else tree.pretty() + "\n"


def _described(line: Line, result: "Result[Any]") -> str:
    import json

    tree = _tree(result)
    return json.dumps(
        {
            "source": line.source,
            "line": line.number,
            "words": line.words,
            "tags": tree.tags(),
            "tree": str(tree),
            "score": result.score,
            "bound": result.certificate.bound,
            "exact": result.certificate.exact,
            "kind": result.certificate.kind,
            "iterations": result.iterations,
        },
        ensure_ascii=False,
    )


def _failure(line: Line, message: str) -> str:
    import json

    data = {"source": line.source, "line": line.number, "words": line.words, "error": message}
    return json.dumps(data, ensure_ascii=False)
