"""What exact decoding is worth in translation: BLEU, model scores and search errors beside beams and minimum risk."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from certus.bench.cases import Row, data_folder
from certus.bench.translation import Hiero, Phrases
from certus.constraints import length, starts_with
from certus.evaluate.bleu import TranslationScores
from certus.translation import PrunedPosterior, cube_pruning

STACKS = (10, 30, 100, 1000)
POPS = (10, 50, 200, 1000)
FEW_BOUNDS = 10  # sentences whose mass left out is bounded


class Output(NamedTuple):
    """A translation, its model score, and seconds of the processor."""

    words: str
    score: float
    seconds: float


def run(data: str = "", *, phrases: int = 1000, hiero: int = 300, order: int = 3, margin: float = 3.0) -> Iterator[Row]:
    """The first test sentences, ``phrases`` and ``hiero`` of them, 0 for none; peers translated the first 100.

    Minimum risk is over all derivations within ``margin`` of the best. Scores, and what is lost beside it, are means
    over the sentences; errors are those that score less.
    """
    folder = data_folder(data, "mt")
    references = (folder / "test.en").read_text(encoding="utf-8").splitlines()
    if phrases:
        tables = Phrases(folder, phrases)
        model = tables.model(order)
        moses = {f"Moses, {run}": list(one.values()) for run, one in tables.moses(f"moses.{order}gram.").items()}
        stacks = {f"stack {n}": lambda p, n=n: _decoded(p, method="stack", width=n) for n in STACKS}
        yield from _rows("phrases", [model.problem(s) for s in tables.first], references, stacks, moses, margin)
    if hiero:
        rules = Hiero(folder, hiero)
        cdec = {f"cdec, {n} pops": one for n in POPS for one in rules.cdec(order, n)}
        cubes = {f"cube pruning, {n} pops": lambda p, n=n: _pruned(p, n) for n in POPS}
        yield from _rows("Hiero", rules.problems(rules.lm(order)), references, cubes, cdec, margin)


def _rows(
    name: str,
    problems: Sequence[Any],
    references: Sequence[str],
    beams: Mapping[str, Callable[[Any], Output]],
    peers: Mapping[str, Sequence[Mapping[str, Any]]],
    margin: float,
) -> Iterator[Row]:
    for call in (_decoded, *beams.values()):
        call(problems[0])  # compiles
    best = [_decoded(p) for p in problems]

    def row(system: str, found: Sequence[Output]) -> Row:
        n = len(found)
        lost = np.array([b.score - y.score for b, y in zip(best, found, strict=False)])
        bleu = TranslationScores.of(references[:n], [y.words for y in found], tokenizer="none").bleu
        values: dict[str, float] = {"sentences": n, "BLEU": bleu, "score": float(np.mean([y.score for y in found]))}
        values |= {"lost": float(lost.mean()), "errors": int((lost > 1e-3).sum()), "above": int((lost < -1e-3).sum())}
        return Row(f"{name}, {system}", values | {"seconds": float(np.mean([y.seconds for y in found]))})

    yield row("exact", best)
    for system, call in beams.items():
        yield row(system, [call(p) for p in problems])
    risk, left_out, same = list[Output](), list[float](), 0
    for p, y in zip(problems, best, strict=True):
        start = process_time()
        posterior = PrunedPosterior(p, margin=margin)
        words = posterior.minimum_risk().words
        seconds = process_time() - start
        as_best = " ".join(words) == y.words
        same += as_best
        risk.append(Output(" ".join(words), y.score if as_best else _score_of(p, words), seconds))
        if len(left_out) < FEW_BOUNDS:
            left_out.append(posterior.left_out)
    of_risk = row("minimum risk", risk)
    yield Row(of_risk.name, {**of_risk.cells, "as the best": same, "left out, mean": float(np.mean(left_out))})
    for n in sorted({len(one) for one in peers.values() if len(one) < len(problems)}):
        yield row(f"exact, first {n}", best[:n])
    for system, one in peers.items():
        yield row(system, [Output(s["translation"], s["model_score"], s["cpu_seconds"]) for s in one[: len(problems)]])


def _decoded(problem: Any, **settings: Any) -> Output:
    start = process_time()
    result = problem.decode(**settings)
    seconds = process_time() - start
    assert settings or result.certificate.exact, result
    return Output(" ".join(problem.words(result.structure)), result.score, seconds)


def _pruned(problem: Any, pops: int) -> Output:
    start = process_time()
    found = cube_pruning(problem.translation_forest, problem.lm, problem.lm_weight, pops)
    return Output(" ".join(found.words), found.score, process_time() - start)


def _score_of(problem: Any, words: list[str]) -> float:
    """The score of the best derivation that yields these words."""
    return float(problem.subject_to(starts_with(words), length(len(words), len(words))).decode().score)
