"""certus search-errors: how often and by how much translations miss the certified optimum."""

from pathlib import Path
from typing import Annotated, Any

from certus.cli import options as o
from certus.cli.arguments import Option
from certus.cli.inputs import read_lines
from certus.cli.messages import complain, print_json
from certus.cli.progress import watched
from certus.cli.translation_model import TranslationModel
from certus.errors import FormatError, Infeasible, InvalidInput, LimitReached
from certus.evaluate import SearchErrors
from certus.io.translations import read_translations


def search_errors(
    model: TranslationModel,
    inputs: o.Inputs = None,
    pops: Annotated[list[int] | None, Option(min=1, help="Cube pruning with this many pops; repeat")] = None,
    stack: Annotated[list[int] | None, Option(min=1, help="Stack decoding of this width; repeat")] = None,
    translations: Annotated[
        list[Path] | None,
        Option(help="A line a sentence, or JSON with scores as certus translate prints; repeat"),
    ] = None,
    method: Annotated[str | None, Option(help="How the optimum is sought")] = None,
    time_limit: Annotated[float | None, Option(min=0, help="Seconds for one optimum")] = None,
    tolerance: Annotated[float, Option(min=0, help="Shortfall that is not an error")] = 1e-3,
    json: o.JsonObject = False,
) -> int:
    """Decode every sentence exactly and count the search errors of other searches under the same model.

    Others are cube pruning (--pops, with a grammar), stack decoding (--stack, with phrases), and lists of translations.
    A translation without a score gets that of its best derivation (with a grammar only). A sentence that cannot be
    translated is reported on stderr and left out; the exit code is then 2.
    """
    if pops and model.grammar is None:
        raise InvalidInput("--pops is for cube pruning, which needs --grammar.")
    if stack and model.phrase_table is None:
        raise InvalidInput("--stack is for phrases, which need --phrase-table.")
    lists = {str(path): read_translations(path, scored=model.phrase_table is not None) for path in translations or []}
    read = model.read()
    options = o.given(method=method, time_limit=time_limit)
    found = SearchErrors(tolerance)
    code = 0
    for number, line in enumerate(watched(read_lines(inputs or [], tokenised=True), "translating"), start=1):
        if not line.words:
            continue
        for name, rows in lists.items():
            if number > len(rows):
                raise FormatError(name, None, f"has {len(rows)} translations; {line.place} is sentence {number}.")
        outputs = {name: rows[number - 1] for name, rows in lists.items()}
        try:
            found.measure(read.problem, line.words, outputs, pops=pops or [], stack=stack or [], **options)
        except (Infeasible, LimitReached) as error:
            code = complain(f"{line.place}: {error}")
    if not found.sentences:
        raise InvalidInput("there are no sentences to translate.")
    if json:
        print_json(found.summary())
    else:
        _print(found.summary())
    return code


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
