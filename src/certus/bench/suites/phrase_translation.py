"""Phrase-based translation: share proved and time, against Moses; the methods of LR 7.7 and growth with length."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from certus.bench.cases import Case, Row, best_seconds, data_folder, exponent
from certus.bench.translation import Phrases, with_terms

MODELS: dict[str, tuple[int, dict[str, float], int, str]] = {
    "trigram": (3, {}, 6, "moses.3gram."),
    "trigram, low distortion": (3, {"Distortion": 0.05}, 6, "moses.3gram.lowdist."),
    "trigram, limit 4": (3, {}, 4, "moses.3gram.dl4."),
    "bigram": (2, {}, 6, "moses.2gram."),
}
METHODS = ("stack", "beam", "astar", "tight", "staged", "alternating", "optimal beam")


def run(data: str = "", sentences: int = 100) -> Iterator[Case | Row]:
    phrases = Phrases(data_folder(data, "mt"), sentences)
    for name, (order, changed, limit, prefix) in MODELS.items():
        model = phrases.model(order, limit, weights=changed)
        yield _proofs(name, phrases, model, phrases.moses(prefix))
        yield Case(
            f"decode, {name}",
            lambda m=model: [m.problem(source).decode() for source in phrases.first],
            items=len(phrases.first),
            numbers=lambda found: [[r.score, r.certificate.exact] for r in found],
        )
    model = phrases.model()
    yield Case(
        "decode, trigram, beside other methods",
        lambda: [model.problem(source).decode().score for source in phrases.first],
        {
            method: lambda m=method: [model.problem(s).decode(method=m, width=1000).score for s in phrases.first]
            for method in METHODS
        },
        items=len(phrases.first),
        agrees=lambda ours, _, theirs: np.testing.assert_array_less(theirs, np.array(ours) + 1e-6),
    )
    gaps = []
    for source in phrases.first:
        result = model.problem(source).decode(method="staged")
        gaps.append(np.minimum.accumulate(result.trace.dual) - result.score)
    for rounds in (0, 5, 10):
        left = np.array([gap[min(rounds, len(gap) - 1)] for gap in gaps])
        cells = {
            "mean": float(left.mean()),
            "90%": float(np.quantile(left, 0.9)),
            "closed": float((left < 1e-9).mean()),
        }
        yield Row(f"gap after {rounds} rounds", cells)
    yield _growth(phrases, model)
    makers = [partial(model.problem, source) for source in phrases.first]
    yield with_terms("trigrams", makers, phrases.folder)


def _proofs(name: str, phrases: Phrases, model: Any, peers: dict[str, Any]) -> Row:
    proved, below, above, total = 0, 0, 0, 0.0
    for k, source in enumerate(phrases.first):
        result = model.problem(source).decode(time_limit=60.0)
        known = max((one[k]["model_score"] for one in peers.values() if k in one), default=np.nan)
        proved += result.certificate.exact
        total += result.score
        below += result.score < known - 1e-3
        above += result.score > known + 1e-3
    moses = {f"Moses, {run}, s": float(np.mean([s["cpu_seconds"] for s in one.values()])) for run, one in peers.items()}
    cells = {"sentences": len(phrases.first), "proved": proved, "below Moses": below, "above": above, "sum": total}
    return Row(f"{name}, proofs", cells | {key: value for key, value in moses.items() if "stack1000" in key})


def _growth(phrases: Phrases, model: Any) -> Row:
    """Seconds for sentences joined up to a length."""
    words = [word for source in phrases.sources for word in source]
    times = {}
    for size in (10, 20, 40, 60, 80):
        some = [words[k * size : (k + 1) * size] for k in range(3)]
        times[size] = best_seconds(lambda s=some: [model.problem(one).decode() for one in s], 1) / 3
    return Row("growth", {"power of length": exponent(times), **{f"s at {size}": t for size, t in times.items()}})
