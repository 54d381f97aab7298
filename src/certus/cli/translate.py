"""certus translate: the best translation of each sentence under rules or phrases and a language model."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from certus import save_result as save
from certus.cli import options as o
from certus.cli.arguments import Option, Setting
from certus.cli.inputs import Line, read_lines
from certus.cli.messages import complain, print_json, proof_fields, say
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import watched
from certus.cli.translation_model import TranslationModel
from certus.clock import Clock
from certus.errors import CertusError, InvalidInput
from certus.io.lattices import WordLattice
from certus.io.term_files import read_constraints, read_terminology
from certus.result import Result
from certus.threads import in_order
from certus.translation import ForestTranslation, GrammarModel, PhraseModel, PhraseTranslation, PrunedPosterior
from certus.translation.terminology import constraints_of, terms_of


@dataclass(frozen=True)
class SearchOptions:
    """How the best translation is searched for."""

    method: Annotated[
        str | None, Option(help="How to search; see the documentation", show_default="exact, and the fastest of these")
    ] = None
    time_limit: o.TimeLimit = None
    max_iterations: Annotated[int | None, Setting(min=1, help="Iterations before giving up on a proof")] = None
    pops: Annotated[int | None, Setting(min=1, help="Grammar, --method cube: pops of cube pruning")] = None
    width: Annotated[int | None, Setting(min=1, help="Phrase table, --method stack or beam: width")] = None

    @property
    def given(self) -> dict[str, Any]:
        """What ``decode`` is called with."""
        return o.given(**asdict(self))


@dataclass(frozen=True)
class Asked:
    """What is asked of every sentence, and what becomes of the answer."""

    kbest: o.KBest = None
    distinct: Annotated[bool, Option("--distinct", help="--kbest: of derivations of the same words the best")] = False
    constraints: Annotated[Path | None, Option(help="What each translation must be like, a JSON object a line")] = None
    terminology: Annotated[Path | None, Option(help="Terms: source words, a tab, target words")] = None
    lattice: Annotated[bool, Option("--lattice", help="Lines are lattices, in PLF or JSON")] = False
    log_scores: Annotated[bool, Option("--log-scores", help="--lattice: scores are logarithms already")] = False
    minimum_risk: Annotated[
        bool, Option("--minimum-risk", help="The translation of the greatest expected n-gram matches instead")
    ] = False
    margin: Annotated[float, Setting(min=0, help="--minimum-risk: how far below the best is looked at")] = 3.0
    scale: Annotated[float, Setting(min=0, help="--minimum-risk: what scores are multiplied by")] = 1.0
    save_result: Annotated[
        Path | None, Option(help="Save the result of the one sentence, to be verified or explained")
    ] = None
    save_results: Annotated[Path | None, Option(help="Save the results of all sentences in a folder")] = None
    json: o.JsonLines = False

    def check(self, options: dict[str, Any]) -> None:
        """InvalidInput for what does not go together, ``options`` being those of the search."""
        if self.distinct and self.kbest is None:
            raise InvalidInput("--distinct is for lists: give --kbest too.")
        if self.lattice and self.terminology is not None:
            raise InvalidInput("--terminology looks for terms in sentences, not in lattices; give --constraints.")
        if self.log_scores and not self.lattice:
            raise InvalidInput("--log-scores is about the scores of --lattice.")
        if self.kbest is not None and options:
            raise InvalidInput(f"{next(iter(options))} is for the best translation; --kbest is exact.")
        saved = self.save_result is not None or self.save_results is not None
        if self.minimum_risk and (self.kbest is not None or options or saved):
            raise InvalidInput("--minimum-risk makes a choice among many; leave methods, limits, lists and saving out.")


def translate(
    model: TranslationModel,
    search: SearchOptions,
    asked: Asked,
    inputs: o.Inputs = None,
    workers: Annotated[int, Option(min=1, help="Threads")] = 1,
) -> int:
    """Translate sentences, one a line, tokenised, from text, files or stdin; one translation a line.

    With one worker every sentence is translated and printed before the next is read. Words that no rule or phrase
    covers are copied. An empty line gives an empty line. A sentence that cannot be translated is reported on stderr
    with its line and gives an empty line too, and the others go on; the exit code is then 2. With --kbest there is a
    line for each of the best derivations of a sentence, in the format of Moses' n-best lists, and none for a sentence
    without any. With --minimum-risk the derivations within a margin of the best vote on n-grams; --json has the share
    of the probability that they leave out at most.
    """
    if search.pops is not None and model.grammar is None:
        raise InvalidInput("pops are of cube pruning, which needs --grammar.")
    if search.width is not None and model.phrase_table is None:
        raise InvalidInput("width is for phrases, which need --phrase-table.")
    asked.check(search.given)
    read = model.read()
    if asked.save_result is not None:
        refuse_overwriting(asked.save_result, *model.files, asked.constraints, asked.terminology, *(inputs or []))
    constraints = None if asked.constraints is None else read_constraints(asked.constraints)
    terms = [] if asked.terminology is None else read_terminology(asked.terminology)
    return _translate_lines(_Job(read, search.given, asked, constraints, terms), inputs or [], workers)


@dataclass(frozen=True)
class _Job:
    """A model and what is asked of it, for sentence after sentence."""

    model: GrammarModel | PhraseModel
    options: dict[str, Any]
    asked: Asked
    constraints: list[dict[str, Any]] | None
    terms: list[tuple[tuple[str, ...], tuple[str, ...]]]

    def problem(self, number: int, line: Line) -> ForestTranslation | PhraseTranslation:
        """The problem of a line, under its constraints."""
        source: Any = line.words
        if self.asked.lattice:
            source = WordLattice.parse(" ".join(line.words), probabilities=not self.asked.log_scores)
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
        asked, clock = self.asked, Clock()
        try:
            problem = self.problem(number, line)
            if asked.minimum_risk:
                posterior = PrunedPosterior(problem, margin=asked.margin, scale=asked.scale)
                chosen = posterior.minimum_risk()
                fields: dict[str, Any] = {"translation": " ".join(chosen.words), "gain": chosen.gain}
                if asked.json:  # the bound takes longest
                    fields |= {"kept": posterior.count, "left_out": posterior.left_out}
                return _Answer(number, line, problem, [posterior.best], clock.seconds, chosen=fields)
            if asked.kbest is None:
                results: list[Result[Any]] = [problem.decode(**self.options)]
            else:
                results = problem.kbest(asked.kbest, distinct=asked.distinct)
            seconds = clock.seconds
            if asked.save_results is not None:
                for rank, result in enumerate(results, start=1):
                    name = f"{number + 1:06}.json" if asked.kbest is None else f"{number + 1:06}.{rank}.json"
                    save(asked.save_results / name, problem, result)
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
    code, done, proved, refused, whole, asked = 0, 0, 0, 0, Clock(), job.asked
    if asked.save_results is not None:
        asked.save_results.mkdir(parents=True, exist_ok=True)

    def share() -> str:
        return f"{proved} of {done} proved" + (f", {refused} refused" if refused else "")

    lines: Iterator[tuple[int, Line]] = enumerate(read_lines(inputs, tokenised=True))
    for answer in watched(in_order(job.answer, lines, workers), "translating", share):
        line, results = answer.line, answer.results
        place = {"source": line.source, "line": line.number, "words": line.words}
        if answer.problem is None:
            if answer.error is None:
                none: dict[str, Any] = {"translation": ""} if asked.kbest is None else {"translations": []}
            else:
                code, refused = complain(f"{line.place}: {answer.error}"), refused + 1
                none = {"error": answer.error}
            _print_none(place | none, asked.kbest, asked.json)
            continue
        if asked.save_result is not None:
            if done:
                raise InvalidInput(f"{line.place}: a second sentence; --save-result takes one. The first was saved.")
            save(asked.save_result, answer.problem, results[0])
        done += 1
        proved += all(result.certificate.exact for result in results)
        _print_results(answer, place, asked.kbest, asked.json)
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
