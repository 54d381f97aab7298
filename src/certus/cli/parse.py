"""certus parse: the best tree of each sentence, dependencies or phrases, with its certificate."""

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certus.cli.options import Inputs, JsonLines, TaggerFile, Tokenised
from certus.cli.overwriting import refuse_overwriting
from certus.cli.text import Line, read_lines

if TYPE_CHECKING:
    from certus.constituency import Grammar, Tree
    from certus.problem import Problem
    from certus.result import Result
    from certus.tagging import HMM


class Format(StrEnum):
    """What is printed: dependency trees in CoNLL-U, or phrases."""

    conllu = "conllu"
    brackets = "brackets"
    tree = "tree"


def parse(
    inputs: Inputs = None,
    format: Annotated[
        Format | None,
        typer.Option(help="Dependencies; or phrases, one line a sentence or an indented tree", show_default="conllu"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Dependencies: name or folder of a trained parser; with a lexicalised grammar, one to agree with",
            show_default="en",
        ),
    ] = None,
    conllu: Annotated[bool, typer.Option("--conllu", help="Dependencies: stdin is CoNLL-U")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="Dependencies: every line of a text is a sentence")] = False,
    confidences: Annotated[bool, typer.Option("--confidences", help="Dependencies: marginals of arcs in MISC")] = False,
    certificates: Annotated[
        bool, typer.Option("--certificates", help="Dependencies: score, bound, proof and digests in comments")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Dependencies: threads", show_default="all processors")
    ] = None,
    grammar: Annotated[
        Path | None, typer.Option(help="Phrases: rules as text, or a trained grammar", show_default="bundled")
    ] = None,
    tagger: TaggerFile = None,
    joint: Annotated[bool, typer.Option(help="Phrases: have parser and tagger agree, or the grammar alone")] = True,
    weight: Annotated[
        float | None, typer.Option(help="Phrases: what a score of --model is worth", show_default="1")
    ] = None,
    tagger_weight: Annotated[
        float | None, typer.Option(help="Phrases: what a score of --tagger is worth", show_default="1")
    ] = None,
    save_result: Annotated[
        Path | None, typer.Option(help="Phrases: save the result of the one sentence, to be verified")
    ] = None,
    max_iterations: Annotated[int, typer.Option(min=1, help="Phrases: iterations before giving up on a proof")] = 500,
    time_limit: Annotated[float | None, typer.Option(min=0, help="Seconds for one sentence")] = None,
    tokenised: Tokenised = False,
    json: JsonLines = False,
) -> int:
    """Parse text, files or stdin.

    Dependency trees, unless --grammar or --format brackets or tree asks for phrases. Files that end in .conllu (or
    .conllu.gz) keep their words, tags and comments; text is split into sentences and words.

    With a lexicalised grammar (certus train grammar --lexicalized) phrases agree with the dependency trees of --model
    and the tags of --tagger, where these are given: the best of all together is found, and proved.

    Phrases are parsed line by line. An empty line gives an empty line. A sentence that cannot be parsed is reported on
    stderr with its line and gives an empty line too; the exit code is then 2.
    """
    from certus.cli import complain
    from certus.cli.models import load_grammar, load_lexicalized, load_tagger
    from certus.cli.progress import watched
    from certus.constituency import LexicalizedGrammar
    from certus.errors import Infeasible, InvalidInput, LimitReached

    dependencies = format is Format.conllu or (format is None and grammar is None)
    rules = None if dependencies else load_grammar(grammar)
    lexicalized = isinstance(rules, LexicalizedGrammar)
    _check_options(
        dependencies,
        {
            "--model": model is not None and not lexicalized,
            "--conllu": conllu,
            "--lines": lines,
            "--confidences": confidences,
            "--certificates": certificates,
            "--workers": workers is not None,
        },
        {
            "--grammar": grammar is not None,
            "--tagger": tagger is not None,
            "--no-joint": not joint,
            "--save-result": save_result is not None,
            "--weight": weight is not None,
            "--tagger-weight": tagger_weight is not None,
        },
    )
    if rules is None:
        from certus.cli.dependencies import parse_dependencies

        parse_dependencies(
            inputs or [],
            model=model,
            conllu=conllu,
            tokenised=tokenised,
            lines=lines,
            json=json,
            confidences=confidences,
            certificates=certificates,
            time_limit=time_limit,
            workers=workers,
        )
        return 0
    problem_of: Callable[[list[str]], Problem[Any]]
    if isinstance(rules, LexicalizedGrammar):
        if not joint and (tagger is not None or model is not None):
            raise InvalidInput("--no-joint uses the grammar alone; leave out --tagger and --model.")
        problem_of = load_lexicalized(rules, tagger, model, weight or 1.0, tagger_weight or 1.0).problem
    else:
        if weight is not None:
            raise InvalidInput("--weight is for a lexicalised grammar with --model.")
        tags = load_tagger(tagger) if joint else None
        problem_of = partial(_problem, rules, tags, tagger_weight or 1.0)
    if save_result is not None:
        refuse_overwriting(save_result, grammar, tagger, *(inputs or []))
    code, saved = 0, None
    for line in watched(read_lines(inputs or [], tokenised=tokenised), "parsing"):
        if not line.words:
            print(flush=True)
            continue
        if save_result is not None and saved is not None:
            raise InvalidInput(f"{line.place}: a second sentence; --save-result takes one. Nothing was saved.")
        try:
            problem = problem_of(line.words)
            result = problem.decode(max_iterations=max_iterations, time_limit=time_limit)
        except (Infeasible, LimitReached) as error:
            code = complain(f"{line.place}: {error}")
            print(_failure(line, str(error)) if json else "", flush=True)
            continue
        saved = (problem, result)
        if not result.certificate.exact:
            complain(f"{line.place}: not proved optimal; a better parse could score {result.certificate.gap:.6g} more.")
        print(_described(line, result) if json else _printed(_tree(result), format or Format.brackets), flush=True)
    if save_result is not None:
        if saved is None:
            raise InvalidInput("--save-result: no sentence was parsed, so there is nothing to save.")
        from certus import save_result as save

        save(save_result, *saved)
    return code


def _check_options(dependencies: bool, for_dependencies: dict[str, bool], for_phrases: dict[str, bool]) -> None:
    """Refuse an option that would be ignored."""
    from certus.errors import InvalidInput

    unused = for_phrases if dependencies else for_dependencies
    for name, given in unused.items():
        if given:
            now, other = ("dependencies", "phrases") if dependencies else ("phrases", "dependencies")
            remedy = "--format brackets" if dependencies else "no --grammar and --format conllu"
            raise InvalidInput(f"{name} is for {other}, and {now} are asked for; give {remedy}, or leave {name} out.")


def _problem(grammar: "Grammar", tagger: "HMM | None", weight: float, words: list[str]) -> "Problem[Any]":
    from certus import Constituency

    trees = Constituency(grammar, words)
    if tagger is None:
        return trees
    from certus import Joint
    from certus.cli.models import tagging

    return Joint(trees, tagging(tagger, words), on="tags", weight=weight)


def _tree(result: "Result[Any]") -> "Tree":
    from certus.constituency import LexicalizedTree, Tree

    found = result.structure
    while isinstance(found, tuple):
        found = found[0]
    tree: Tree = found.tree if isinstance(found, LexicalizedTree) else found
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
