"""certus translate: the best translation of each sentence under rules or phrases and a language model."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from certus.cli import say
from certus.cli import translation as model
from certus.cli.options import Inputs, JsonLines
from certus.cli.text import Line, read_lines
from certus.clock import Clock

if TYPE_CHECKING:
    from certus.result import Result


def translate(
    inputs: Inputs = None,
    grammar: model.GrammarFile = None,
    glue: model.GlueFile = None,
    phrase_table: model.PhraseTableFile = None,
    lm: model.LmFile = None,
    lm_unknown: model.LmUnknown = None,
    weights: model.WeightsFile = None,
    method: Annotated[
        str | None,
        typer.Option(help="How to search; see the documentation", show_default="exact, and the fastest of these"),
    ] = None,
    pops: Annotated[int | None, typer.Option(min=1, help="Grammar, --method cube: pops of cube pruning")] = None,
    width: Annotated[int | None, typer.Option(min=1, help="Phrase table, --method stack or beam: width")] = None,
    max_span: model.MaxSpan = 10,
    goal: model.Goal = "S",
    distortion_limit: model.DistortionLimit = 6,
    max_iterations: Annotated[int | None, typer.Option(min=1, help="Iterations before giving up on a proof")] = None,
    time_limit: Annotated[float | None, typer.Option(min=0, help="Seconds for one sentence")] = None,
    json: JsonLines = False,
) -> int:
    """Translate sentences, one a line, tokenised, from text, files or stdin; one translation a line.

    Every sentence is translated and printed before the next is read. Words that no rule or phrase covers are copied. An
    empty line gives an empty line. A sentence that cannot be translated is reported on stderr with its line and gives
    an empty line too; the exit code is then 2.
    """
    from certus.cli import complain
    from certus.cli.progress import watched
    from certus.errors import Infeasible, InvalidInput, LimitReached

    if pops is not None and grammar is None:
        raise InvalidInput("--pops is for cube pruning, which needs --grammar.")
    if width is not None and phrase_table is None:
        raise InvalidInput("--width is for phrases, which need --phrase-table.")
    problem_of = model.load_translator(
        grammar,
        glue,
        phrase_table,
        lm,
        weights,
        lm_unknown=lm_unknown,
        max_span=max_span,
        goal=goal,
        distortion_limit=distortion_limit,
    )
    options = model.decoding_options(
        method, pops=pops, width=width, max_iterations=max_iterations, time_limit=time_limit
    )
    code, done, proved, whole = 0, 0, 0, Clock()
    for line in watched(read_lines(inputs or [], tokenised=True), "translating"):
        if not line.words:
            print(_described(line, translation="") if json else "", flush=True)
            continue
        clock = Clock()
        try:
            problem = problem_of(line.words)
            result: Result[Any] = problem.decode(**options)
        except (Infeasible, LimitReached) as error:
            code = complain(f"{line.place}: {error}")
            print(_described(line, error=str(error)) if json else "", flush=True)
            continue
        seconds = clock.seconds
        done += 1
        proved += result.certificate.exact
        translation = " ".join(problem.words(result.structure))
        print(_described(line, result, seconds, translation=translation) if json else translation, flush=True)
    if done:
        rate = whole.seconds / done
        say(f"{done} sentences, {proved} proved optimal, {rate:.3g} seconds a sentence")
    return code


def _described(line: Line, result: "Result[Any] | None" = None, seconds: float = 0.0, **more: str) -> str:
    import json

    data: dict[str, Any] = {"source": line.source, "line": line.number, "words": line.words, **more}
    if result is not None:
        data |= {
            "score": result.score,
            "bound": result.certificate.bound,
            "exact": result.certificate.exact,
            "kind": result.certificate.kind,
            "iterations": result.iterations,
            "seconds": seconds,
        }
    return json.dumps(data, ensure_ascii=False)
