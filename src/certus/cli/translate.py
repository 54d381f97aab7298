"""certus translate: the best translation of each sentence under rules or phrases and a language model."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from certus import save_result as save
from certus.cli import options as o
from certus.cli.arguments import Option
from certus.cli.inputs import Line, read_lines
from certus.cli.messages import complain, print_json, proof_fields, say
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import watched
from certus.clock import Clock
from certus.errors import CertusError, InvalidInput
from certus.io.lattices import WordLattice
from certus.io.term_files import read_constraints, read_terminology
from certus.result import Result
from certus.threads import in_order
from certus.translation import ForestTranslation, GrammarModel, PhraseModel, PhraseTranslation, PrunedPosterior
from certus.translation.terminology import constraints_of, terms_of


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
    distinct: Annotated[bool, Option("--distinct", help="--kbest: of derivations of the same words the best")] = False,
    constraints: Annotated[Path | None, Option(help="What each translation must be like, a JSON object a line")] = None,
    terminology: Annotated[Path | None, Option(help="Terms: source words, a tab, target words")] = None,
    lattice: Annotated[bool, Option("--lattice", help="Lines are lattices, in PLF or JSON")] = False,
    log_scores: Annotated[bool, Option("--log-scores", help="--lattice: scores are logarithms already")] = False,
    minimum_risk: Annotated[
        bool, Option("--minimum-risk", help="The translation of the greatest expected n-gram matches instead")
    ] = False,
    margin: Annotated[float, Option(min=0, help="--minimum-risk: how far below the best is looked at")] = 3.0,
    scale: Annotated[float, Option(min=0, help="--minimum-risk: what scores are multiplied by")] = 1.0,
    time_limit: o.TimeLimit = None,
    workers: Annotated[int, Option(min=1, help="Threads")] = 1,
    save_result: Annotated[
        Path | None, Option(help="Save the result of the one sentence, to be verified or explained")
    ] = None,
    save_results: Annotated[Path | None, Option(help="Save the results of all sentences in a folder")] = None,
    json: o.JsonLines = False,
) -> int:
    """Translate sentences, one a line, tokenised, from text, files or stdin; one translation a line.

    With one worker every sentence is translated and printed before the next is read. Words that no rule or phrase
    covers are copied. An empty line gives an empty line. A sentence that cannot be translated is reported on stderr
    with its line and gives an empty line too, and the others go on; the exit code is then 2. With --kbest there is a
    line for each of the best derivations of a sentence, in the format of Moses' n-best lists, and none for a sentence
    without any. With --minimum-risk the derivations within --margin of the best vote on n-grams; --json has the share
    of the probability that they leave out at most.
    """
    if pops is not None and grammar is None:
        raise InvalidInput("--pops is for cube pruning, which needs --grammar.")
    if width is not None and phrase_table is None:
        raise InvalidInput("--width is for phrases, which need --phrase-table.")
    if distinct and kbest is None:
        raise InvalidInput("--distinct is for lists: give --kbest too.")
    if lattice and terminology is not None:
        raise InvalidInput("--terminology looks for terms in sentences, not in lattices; give --constraints.")
    if log_scores and not lattice:
        raise InvalidInput("--log-scores is about the scores of --lattice.")
    options = o.given(method=method, pops=pops, width=width, max_iterations=max_iterations, time_limit=time_limit)
    if kbest is not None and options:
        raise InvalidInput(f"--{next(iter(options)).replace('_', '-')} is for the best translation; --kbest is exact.")
    if minimum_risk and (kbest is not None or options or save_result is not None or save_results is not None):
        raise InvalidInput("--minimum-risk makes a choice among many; leave methods, limits, lists and saving out.")
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
        read = (grammar, glue, phrase_table, lm, weights, constraints, terminology)
        refuse_overwriting(save_result, *read, *(inputs or []))
    asked: dict[str, Any] = {"kbest": kbest, "distinct": distinct, "lattice": lattice, "logs": log_scores}
    asked["risk"] = {"margin": margin, "scale": scale} if minimum_risk else None
    job = _Job(model, options, **asked, save_result=save_result, save_results=save_results, json=json)
    job.constraints = None if constraints is None else read_constraints(constraints)
    job.terms = [] if terminology is None else read_terminology(terminology)
    return _translate_lines(job, inputs or [], workers)


@dataclass
class _Job:
    """What is asked of every sentence."""

    model: GrammarModel | PhraseModel
    options: dict[str, Any]
    kbest: int | None
    distinct: bool
    lattice: bool
    logs: bool
    risk: dict[str, float] | None
    save_result: Path | None
    save_results: Path | None
    json: bool
    constraints: list[dict[str, Any]] | None = None
    terms: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def problem(self, number: int, line: Line) -> ForestTranslation | PhraseTranslation:
        """The problem of a line, under its constraints."""
        source: Any = line.words
        if self.lattice:
            source = WordLattice.parse(" ".join(line.words), probabilities=not self.logs)
        readings = terms_of(line.words, self.terms)
        if self.constraints is not None:
            if number >= len(self.constraints):
                raise InvalidInput(f"--constraints has {len(self.constraints)} lines, and none for this sentence.")
            readings += constraints_of(self.constraints[number])
        problem: Any = self.model.problem(source)
        restricted: ForestTranslation | PhraseTranslation = problem.subject_to(*readings) if readings else problem
        return restricted

    def answer(self, numbered: tuple[int, Line]) -> "_Answer":
        """What becomes of a line; an error that says why nothing does."""
        number, line = numbered
        if not line.words:
            return _Answer(number, line)
        clock = Clock()
        try:
            problem = self.problem(number, line)
            if self.risk is not None:
                posterior = PrunedPosterior(problem, **self.risk)
                chosen = posterior.minimum_risk()
                fields: dict[str, Any] = {"translation": " ".join(chosen.words), "gain": chosen.gain}
                if self.json:  # the bound takes longest
                    fields |= {"kept": posterior.count, "left_out": posterior.left_out}
                return _Answer(number, line, problem, [posterior.best], clock.seconds, chosen=fields)
            if self.kbest is None:
                results: list[Result[Any]] = [problem.decode(**self.options)]
            elif self.distinct:
                results = problem.kbest(self.kbest, distinct=True)
            else:
                results = problem.kbest(self.kbest)
            seconds = clock.seconds
            if self.save_results is not None:
                for rank, result in enumerate(results, start=1):
                    name = f"{number + 1:06}.json" if self.kbest is None else f"{number + 1:06}.{rank}.json"
                    save(self.save_results / name, problem, result)
            return _Answer(number, line, problem, results, seconds)
        except CertusError as error:
            return _Answer(number, line, error=str(error))


@dataclass(frozen=True)
class _Answer:
    """A line and its results: none for an empty one, and for one with an error."""

    number: int
    line: Line
    problem: ForestTranslation | PhraseTranslation | None = None
    results: list[Result[Any]] = field(default_factory=list)
    seconds: float = 0.0
    error: str | None = None
    chosen: dict[str, Any] | None = None  # the translation of least risk


def _translate_lines(job: _Job, inputs: list[str], workers: int) -> int:
    """Translates line by line, prints what is found, and returns the exit code."""
    code, done, proved, refused, whole = 0, 0, 0, 0, Clock()
    if job.save_results is not None:
        job.save_results.mkdir(parents=True, exist_ok=True)

    def share() -> str:
        return f"{proved} of {done} proved" + (f", {refused} refused" if refused else "")

    lines: Iterator[tuple[int, Line]] = enumerate(read_lines(inputs, tokenised=True))
    for answer in watched(in_order(job.answer, lines, workers), "translating", share):
        line, results = answer.line, answer.results
        place = {"source": line.source, "line": line.number, "words": line.words}
        if answer.problem is None:
            if answer.error is None:
                none: dict[str, Any] = {"translation": ""} if job.kbest is None else {"translations": []}
            else:
                code, refused = complain(f"{line.place}: {answer.error}"), refused + 1
                none = {"error": answer.error}
            _print_none(place | none, job.kbest, job.json)
            continue
        if job.save_result is not None:
            if done:
                raise InvalidInput(f"{line.place}: a second sentence; --save-result takes one. The first was saved.")
            save(job.save_result, answer.problem, results[0])
        done += 1
        proved += all(result.certificate.exact for result in results)
        _print_results(answer, place, job.kbest, job.json)
    if done:
        say(f"{done} sentences, {proved} proved optimal, {whole.seconds / done:.3g} seconds a sentence")
    return code


def _print_results(answer: _Answer, place: dict[str, Any], kbest: int | None, json: bool) -> None:
    problem = answer.problem
    assert problem is not None
    shown = [{"translation": " ".join(problem.words(r.structure))} | proof_fields(r) for r in answer.results]
    if answer.chosen is not None:
        best = {"best": shown[0]["translation"], "best_score": answer.results[0].score}
        shown = [answer.chosen | best]
    if json:
        print_json(place | (shown[0] if kbest is None else {"translations": shown}) | {"seconds": answer.seconds})
    elif kbest is None:
        print(shown[0]["translation"], flush=True)
    else:
        for result, fields in zip(answer.results, shown, strict=True):
            print(_moses(answer.number, problem, result, str(fields["translation"])), flush=True)


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
