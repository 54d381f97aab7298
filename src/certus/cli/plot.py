"""certus plot: what was measured, as a figure."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from certus import load_result
from certus.cli.arguments import Argument, Option
from certus.cli.overwriting import refuse_overwriting
from certus.clock import Clock
from certus.errors import InvalidInput
from certus.evaluate import Calibration
from certus.evaluate.calibration import arcs_right
from certus.io.conllu import read_conllu
from certus.io.files import read_text
from certus.models.pipeline import load
from certus.relax import steps
from certus.report import convergence, measures


class Kind(StrEnum):
    """What is plotted."""

    convergence = "convergence"
    gap = "gap"
    steps = "steps"
    lengths = "lengths"
    learning = "learning"
    calibration = "calibration"


RULES = {
    "Polyak": steps.polyak(),
    "deflected": steps.deflected(),
    "1 / t": steps.harmonic(),
    "1 / square root of t": steps.inverse_sqrt(),
    "halving": steps.halving(),
}


def plot(
    kind: Annotated[Kind, Argument(help="What to plot")],
    files: Annotated[list[Path], Argument(help="Saved results, or parses, or messages of a training")],
    output: Annotated[Path, Option(help="The figure: .svg, .pdf or .png")],
    model: Annotated[str, Option(help="lengths: name or folder of a trained parser")] = "en",
    calibration: Annotated[Path | None, Option(help="calibration: draw what this makes of it too")] = None,
    title: Annotated[str, Option(help="Above the figure")] = "",
) -> None:
    """Plot what was measured, with matplotlib (the extra certus[plot]).

    convergence and gap: dual and primal values of a saved result by round. steps: the dual values of a saved problem
    that is joint, constrained or has crossing arcs, under five step rules. lengths: parses a CoNLL-U file and plots the
    time by length. learning: accuracy by epoch from what certus train said on stderr. calibration: accuracy by
    confidence, of a gold file and one parsed with --confidences.
    """
    refuse_overwriting(output, *files, calibration)
    wanted = 2 if kind is Kind.calibration else 1
    if len(files) != wanted:
        raise InvalidInput(f"{kind.value} takes {wanted} file{'s' if wanted > 1 else ''}; {len(files)} were given.")
    if kind is Kind.convergence:
        convergence.plot_values(output, load_result(files[0])[1].trace, title=title)
    elif kind is Kind.gap:
        convergence.plot_best(output, load_result(files[0])[1].trace, title=title)
    elif kind is Kind.steps:
        _plot_steps(files[0], output, title)
    elif kind is Kind.lengths:
        lengths, seconds = _timed(files[0], model)
        measures.plot_lengths(output, lengths, seconds, title=title)
    elif kind is Kind.learning:
        curves = measures.learning_curves(read_text(files[0]).splitlines())
        measures.plot_learning(output, curves, title=title)
    else:
        _plot_calibration(files, output, calibration, title)


def _plot_steps(path: Path, output: Path, title: str) -> None:
    problem, _ = load_result(path)
    traces = {name: problem.decode(step=rule, exact=False).trace for name, rule in RULES.items()}
    if not any(len(trace.dual) for trace in traces.values()):
        raise InvalidInput(
            f"{path} is not of a problem that is relaxed step by step; step rules are compared on these."
        )
    convergence.plot_steps(output, traces, title=title)


def _timed(path: Path, model: str) -> tuple[list[int], list[float]]:
    """Words and seconds of each sentence, parsed alone; the first is parsed twice, since kernels are loaded by it."""
    parser, sentences = load(model), list(read_conllu(path))
    list(parser.parse(sentences[:1]))
    seconds = []
    for sentence in sentences:
        clock = Clock()
        list(parser.parse([sentence], workers=1))
        seconds.append(clock.seconds)
    return [len(sentence) for sentence in sentences], seconds


def _plot_calibration(files: Sequence[Path], output: Path, calibration: Path | None, title: str) -> None:
    shares, right = arcs_right(read_conllu(files[0]), read_conllu(files[1]))
    curves: dict[str, Any] = {"confidences": shares}
    if calibration is not None:
        curves["calibrated"] = Calibration.load(calibration)(shares)
    measures.plot_calibration(output, right, curves, title=title)
