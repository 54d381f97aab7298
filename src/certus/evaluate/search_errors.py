"""Search errors: how often, and by how much, translations fall short of the certified optimum (the table of LR 5.6)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from certus.clock import Clock
from certus.io.translations import SystemOutput
from certus.result import Certificate
from certus.translation.cube_pruning import cube_pruning
from certus.translation.forced import forced_derivation
from certus.translation.forest_problem import ForestTranslation
from certus.translation.phrase_problem import PhraseTranslation

TranslationProblem = ForestTranslation | PhraseTranslation
TIMES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # seconds, as in LR fig. 5-8


@dataclass(slots=True)
class Run:
    """What one search did on the sentences: gaps to the optimum where that is certified, and seconds."""

    sentences: int = 0
    compared: int = 0  # with a certified optimum
    missing: int = 0  # no translation, or one that the model cannot derive
    gaps: list[float] = field(default_factory=list)  # of the search errors
    better: int = 0  # above a score that was not certified
    seconds: list[float] = field(default_factory=list)

    def summary(self) -> dict[str, float | int | None]:
        """The row of the table."""
        return {
            "sentences": self.sentences,
            "compared": self.compared,
            "not derivable": self.missing,
            "search errors": len(self.gaps),
            "percent": 100.0 * len(self.gaps) / self.compared if self.compared else 0.0,
            "mean gap": sum(self.gaps) / len(self.gaps) if self.gaps else 0.0,
            "largest gap": max(self.gaps, default=0.0),
            "better": self.better,
            "median seconds": median(self.seconds) if self.seconds else None,
        }


class SearchErrors:
    """Counts search errors of any number of runs against certified optima, sentence by sentence.

    A translation is a search error when it scores less than the certified optimum by more than ``tolerance``. Where the
    optimum is not certified nothing is counted, but a score above the best one found is noted as better.
    """

    def __init__(self, tolerance: float = 1e-3) -> None:
        self.tolerance = tolerance
        self.runs: dict[str, Run] = {}
        self.certified = 0
        self.sentences = 0
        self.largest_open_gap = 0.0
        self.seconds: list[float] = []

    def measure(
        self,
        problem_of: Callable[[list[str]], TranslationProblem],
        words: list[str],
        outputs: Mapping[str, SystemOutput],
        *,
        pops: Sequence[int] = (),
        stack: Sequence[int] = (),
        **options: Any,
    ) -> None:
        """Decode a sentence with these options, and count what falls short of it.

        ``problem_of`` makes the problem of a sentence, such as ``PhraseModel.problem``. Compared are cube pruning with
        so many ``pops`` (forests), stack decoding of these widths (phrases), and the outputs of others, by name. An
        output without a score gets that of its best derivation, for which a forest is needed.
        """
        clock = Clock()
        problem = problem_of(words)
        certificate = problem.decode(**options).certificate
        seconds = clock.seconds
        scores: dict[str, float | None] = {}
        times: dict[str, float] = {}
        for name, score, spent in _searches(problem, pops, stack):
            scores[name], times[name] = score, spent
        for name, output in outputs.items():
            scores[name] = _score(problem, output)
        self.add(certificate, seconds, scores, times)

    def add(
        self,
        certificate: Certificate,
        seconds: float,
        scores: Mapping[str, float | None],
        times: Mapping[str, float] | None = None,
    ) -> None:
        """One sentence: certificate and seconds of its decoding; the score of each run, None if not derivable."""
        self.sentences += 1
        self.certified += certificate.exact
        self.seconds.append(seconds)
        if not certificate.exact:
            self.largest_open_gap = max(self.largest_open_gap, certificate.gap)
        for name, score in scores.items():
            run = self.runs.setdefault(name, Run())
            run.sentences += 1
            if times and name in times:
                run.seconds.append(times[name])
            if score is None:
                run.missing += 1
                continue
            if score > certificate.score + self.tolerance:
                run.better += 1
            if certificate.exact:
                run.compared += 1
                if score < certificate.score - self.tolerance:
                    run.gaps.append(certificate.score - score)

    def summary(self) -> dict[str, object]:
        """All of it, for printing and JSON."""
        solved = [sum(s <= limit for s in self.seconds) for limit in TIMES]
        return {
            "sentences": self.sentences,
            "certified": self.certified,
            "largest gap left": self.largest_open_gap,
            "median seconds": median(self.seconds) if self.seconds else None,
            "percent within seconds": {
                str(limit): 100.0 * count / self.sentences if self.sentences else 0.0
                for limit, count in zip(TIMES, solved, strict=True)
            },
            "runs": {name: run.summary() for name, run in self.runs.items()},
        }


def _searches(
    problem: TranslationProblem, pops: Sequence[int], stack: Sequence[int]
) -> Iterator[tuple[str, float, float]]:
    """(name, score, seconds) of each heuristic search."""
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


def _score(problem: TranslationProblem, output: SystemOutput) -> float | None:
    """The score that comes with a translation, or that of its best derivation; None if it has none."""
    if output.score is not None or output.text is None or not isinstance(problem, ForestTranslation):
        return output.score
    edges = forced_derivation(problem.translation_forest, output.text.split())
    return None if edges is None else problem.score(np.array(edges))
