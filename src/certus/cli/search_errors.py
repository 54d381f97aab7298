"""certus search-errors: how often and by how much translations miss the certified optimum."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from certus.cli import translation as model
from certus.cli.options import Inputs
from certus.cli.text import read_lines
from certus.clock import Clock
from certus.errors import FormatError, Infeasible, InvalidInput, LimitReached

if TYPE_CHECKING:
    from certus.schema import Field
    from certus.translation.forest_problem import ForestTranslation
    from certus.translation.phrase_problem import PhraseTranslation

Given = tuple[str | None, float | None]  # a translation and its score, if there are any


def search_errors(
    inputs: Inputs = None,
    grammar: model.GrammarFile = None,
    glue: model.GlueFile = None,
    phrase_table: model.PhraseTableFile = None,
    lm: model.LmFile = None,
    lm_unknown: model.LmUnknown = None,
    weights: model.WeightsFile = None,
    pops: Annotated[list[int] | None, typer.Option(min=1, help="Cube pruning with this many pops; repeat")] = None,
    stack: Annotated[list[int] | None, typer.Option(min=1, help="Stack decoding of this width; repeat")] = None,
    translations: Annotated[
        list[Path] | None,
        typer.Option(help="A line a sentence, or JSON with scores as certus translate prints; repeat"),
    ] = None,
    method: Annotated[str | None, typer.Option(help="How the optimum is sought")] = None,
    max_span: model.MaxSpan = 10,
    goal: model.Goal = "S",
    distortion_limit: model.DistortionLimit = 6,
    time_limit: Annotated[float | None, typer.Option(min=0, help="Seconds for one optimum")] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Shortfall that is not an error")] = 1e-3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object")] = False,
) -> int:
    """Decode every sentence exactly and count the search errors of other searches under the same model.

    Others are cube pruning (--pops, with a grammar), stack decoding (--stack, with phrases), and lists of translations.
    A translation without a score gets that of its best derivation (with a grammar only). A sentence that cannot be
    translated is reported on stderr and left out; the exit code is then 2.
    """
    import json as json_

    from certus.cli import complain
    from certus.cli.progress import watched
    from certus.translation.search_errors import SearchErrors

    if pops and grammar is None:
        raise InvalidInput("--pops is for cube pruning, which needs --grammar.")
    if stack and phrase_table is None:
        raise InvalidInput("--stack is for phrases, which need --phrase-table.")
    lists = {str(path): _read_translations(path, scored=phrase_table is not None) for path in translations or []}
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
    options = model.decoding_options(method, time_limit=time_limit)
    found = SearchErrors(tolerance)
    code = 0
    for number, line in enumerate(watched(read_lines(inputs or [], tokenised=True), "translating"), start=1):
        if not line.words:
            continue
        clock = Clock()
        try:
            problem = problem_of(line.words)
            certificate = problem.decode(**options).certificate
        except (Infeasible, LimitReached) as error:
            code = complain(f"{line.place}: {error}")
            continue
        seconds = clock.seconds
        scores: dict[str, float | None] = {}
        times: dict[str, float] = {}
        for name, score, spent in _searches(problem, pops or [], stack or []):
            scores[name], times[name] = score, spent
        for name, rows in lists.items():
            if number > len(rows):
                raise FormatError(name, None, f"has {len(rows)} translations; {line.place} is sentence {number}.")
            scores[name] = _score(problem, rows[number - 1])
        found.add(certificate, seconds, scores, times)
    if not found.sentences:
        raise InvalidInput("there are no sentences to translate.")
    summary = found.summary()
    if json:
        print(json_.dumps(summary))
    else:
        _print(summary)
    return code


def _searches(
    problem: "ForestTranslation | PhraseTranslation", pops: list[int], stack: list[int]
) -> Iterator[tuple[str, float, float]]:
    """(name, score, seconds) of each heuristic search."""
    from certus.translation.cube_pruning import cube_pruning
    from certus.translation.forest_problem import ForestTranslation

    if isinstance(problem, ForestTranslation):
        for limit in pops:
            clock = Clock()
            found = cube_pruning(problem.translation_forest, problem.lm, problem.lm_weight, limit)
            yield f"cube pruning, {limit} pops", found.score, clock.seconds
    else:
        for width in stack:
            clock = Clock()
            result = problem.decode(method="stack", width=width)
            yield f"stack of {width}", result.score, clock.seconds


def _score(problem: Any, row: Given) -> float | None:
    """The score that comes with a translation, or that of its best derivation; None if it has none."""
    text, score = row
    if score is not None or text is None:
        return score
    from certus.translation.forced import forced_derivation

    edges = forced_derivation(problem.translation_forest, text.split())
    return None if edges is None else float(problem.score(edges))


def _read_translations(path: Path, *, scored: bool) -> list[Given]:
    """One entry a sentence, from lines of text, lines of JSON, or a JSON file with "sentences"."""
    from certus.io.files import read_text
    from certus.schema import Field, in_file, parse_json

    text = read_text(path)
    if path.name.removesuffix(".gz").endswith(".json") and not text.startswith("[") and '"sentences"' in text[:2000]:
        with in_file(path):
            rows = [_translation(row) for row in Field(parse_json(text, path))["sentences"].items()]
    elif text.startswith("{"):
        rows = []
        for number, line in enumerate(text.splitlines(), start=1):
            with in_file(f"{path}:{number}"):
                rows.append(_translation(Field(parse_json(line, f"{path}:{number}"))))
    else:
        rows = [(line, None) for line in text.splitlines()]
    if scored and any(score is None and words for words, score in rows):
        raise FormatError(path, None, "holds translations without scores; with phrases these are needed.")
    return rows


def _translation(row: "Field") -> Given:
    text, score = row.maybe("translation"), row.maybe("score") or row.maybe("model_score")
    return None if text is None else text.text(), None if score is None else score.number()


def _print(summary: dict[str, Any]) -> None:
    certified, sentences = summary["certified"], summary["sentences"]
    print(f"{sentences} sentences, {certified} certified; largest gap left {summary['largest gap left']:.4g}")
    within = ", ".join(f"{percent:.0f}% in {limit}" for limit, percent in summary["percent within seconds"].items())
    print(f"certified decoding: median {summary['median seconds']:.3g} seconds; {within}")
    if not summary["runs"]:
        return
    size = max(len(name) for name in summary["runs"]) + 2
    print(f"\n{'':<{size}}{'errors':>8}{'percent':>9}{'mean gap':>10}{'largest':>9}{'better':>8}{'seconds':>9}")
    for name, run in summary["runs"].items():
        seconds = "" if run["median seconds"] is None else f"{run['median seconds']:.3g}"
        print(
            f"{name:<{size}}{run['search errors']:>8}{run['percent']:>9.1f}{run['mean gap']:>10.4f}"
            f"{run['largest gap']:>9.4f}{run['better']:>8}{seconds:>9}"
        )
        if run["not derivable"]:
            print(f"{'':<{size}}{run['not derivable']} translations that the model cannot derive")
