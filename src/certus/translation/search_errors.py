"""Search errors: how often, and by how much, translations fall short of the certified optimum (the table of LR 5.6)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from certus.result import Certificate

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
