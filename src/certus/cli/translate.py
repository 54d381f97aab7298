"""certus translate: the best translation of each sentence under rules or phrases and a language model."""

from pathlib import Path
from typing import Annotated, Any

from certus import save_result as save
from certus.cli import options as o
from certus.cli.arguments import Option
from certus.cli.inputs import read_lines
from certus.cli.messages import complain, print_json, proof_fields, say
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import watched
from certus.clock import Clock
from certus.errors import Infeasible, InvalidInput, LimitReached
from certus.result import Result
from certus.translation import ForestTranslation, GrammarModel, PhraseModel, PhraseTranslation


def translate(
    inputs: o.Inputs = None,
    grammar: o.GrammarFile = None,
    glue: o.GlueFile = None,
    phrase_table: o.PhraseTableFile = None,
    lm: o.LmFile = None,
    lm_unknown: o.LmUnknown = None,
    weights: o.WeightsFile = None,
    method: Annotated[
        str | None,
        Option(help="How to search; see the documentation", show_default="exact, and the fastest of these"),
    ] = None,
    pops: Annotated[int | None, Option(min=1, help="Grammar, --method cube: pops of cube pruning")] = None,
    width: Annotated[int | None, Option(min=1, help="Phrase table, --method stack or beam: width")] = None,
    max_span: o.MaxSpan = 10,
    goal: o.Goal = "S",
    distortion_limit: o.DistortionLimit = 6,
    max_iterations: Annotated[int | None, Option(min=1, help="Iterations before giving up on a proof")] = None,
    kbest: o.KBest = None,
    time_limit: o.TimeLimit = None,
    save_result: Annotated[
        Path | None, Option(help="Save the result of the one sentence, to be verified or explained")
    ] = None,
    json: o.JsonLines = False,
) -> int:
    """Translate sentences, one a line, tokenised, from text, files or stdin; one translation a line.

    Every sentence is translated and printed before the next is read. Words that no rule or phrase covers are copied. An
    empty line gives an empty line. A sentence that cannot be translated is reported on stderr with its line and gives
    an empty line too; the exit code is then 2. With --kbest there is a line for each of the best derivations of a
    sentence, in the format of Moses' n-best lists, and none for a sentence without any.
    """
    if pops is not None and grammar is None:
        raise InvalidInput("--pops is for cube pruning, which needs --grammar.")
    if width is not None and phrase_table is None:
        raise InvalidInput("--width is for phrases, which need --phrase-table.")
    model = o.translation_model(
        grammar=grammar,
        glue=glue,
        phrase_table=phrase_table,
        lm=lm,
        lm_unknown=lm_unknown,
        weights=weights,
        max_span=max_span,
        goal=goal,
        distortion_limit=distortion_limit,
    )
    if save_result is not None:
        refuse_overwriting(save_result, grammar, glue, phrase_table, lm, weights, *(inputs or []))
    options = o.given(method=method, pops=pops, width=width, max_iterations=max_iterations, time_limit=time_limit)
    if kbest is not None and options:
        raise InvalidInput(f"--{next(iter(options)).replace('_', '-')} is for the best translation; --kbest is exact.")
    return _translate_lines(model, inputs or [], options, kbest, save_result, json)


def _translate_lines(
    model: GrammarModel | PhraseModel,
    inputs: list[str],
    options: dict[str, Any],
    kbest: int | None,
    save_result: Path | None,
    json: bool,
) -> int:
    """Translates line by line, prints what is found, and returns the exit code."""
    code, done, proved, whole = 0, 0, 0, Clock()
    for number, line in enumerate(watched(read_lines(inputs, tokenised=True), "translating")):
        place = {"source": line.source, "line": line.number, "words": line.words}
        if not line.words:
            none: dict[str, Any] = {"translation": ""} if kbest is None else {"translations": []}
            _print_none(place | none, kbest, json)
            continue
        clock = Clock()
        try:
            problem = model.problem(line.words)
            results: list[Result[Any]] = [problem.decode(**options)] if kbest is None else problem.kbest(kbest)
        except (Infeasible, LimitReached) as error:
            code = complain(f"{line.place}: {error}")
            _print_none(place | {"error": str(error)}, kbest, json)
            continue
        seconds = clock.seconds
        if save_result is not None:
            if done:
                raise InvalidInput(f"{line.place}: a second sentence; --save-result takes one. The first was saved.")
            save(save_result, problem, results[0])
        done += 1
        proved += all(result.certificate.exact for result in results)
        shown = [{"translation": " ".join(problem.words(r.structure))} | proof_fields(r) for r in results]
        if json:
            print_json(place | (shown[0] if kbest is None else {"translations": shown}) | {"seconds": seconds})
        elif kbest is None:
            print(shown[0]["translation"], flush=True)
        else:
            for result, fields in zip(results, shown, strict=True):
                print(_moses(number, problem, result, str(fields["translation"])), flush=True)
    if done:
        rate = whole.seconds / done
        say(f"{done} sentences, {proved} proved optimal, {rate:.3g} seconds a sentence")
    return code


def _print_none(fields: dict[str, Any], kbest: int | None, json: bool) -> None:
    """A line for a sentence without a translation; n-best lists have none."""
    if json:
        print_json(fields)
    elif kbest is None:
        print(flush=True)


def _moses(number: int, problem: ForestTranslation | PhraseTranslation, result: Result[Any], translation: str) -> str:
    """A line of an n-best list: sentence, words, what the language model and the rest of the model give, all of it."""
    lm = problem.lm_weight * sum(problem.lm.terms(translation.split()))
    return f"{number} ||| {translation} ||| LM= {lm:.8g} TM= {result.score - lm:.8g} ||| {result.score:.8g}"
