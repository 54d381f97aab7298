"""Phrase-based translation: share proved and time, against Moses; the methods of LR 7.7 and growth with length."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from certus.bench.cases import Case, Row, best_seconds, data_folder, exponent
from certus.bench.translation import Phrases
from certus.clock import Clock
from certus.constraints import contains
from certus.evaluate.bleu import TranslationScores
from certus.translation import PrunedPosterior

MODELS: dict[str, tuple[int, dict[str, float], int, str]] = {
    "trigram": (3, {}, 6, "moses.3gram."),
    "trigram, low distortion": (3, {"Distortion": 0.05}, 6, "moses.3gram.lowdist."),
    "trigram, limit 4": (3, {}, 4, "moses.3gram.dl4."),
    "bigram": (2, {}, 6, "moses.2gram."),
}
LONG_WORD, MOST_TERMS = 3, 50
FEW_BOUNDS = 10  # sentences whose mass left out is bounded
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
    yield _terms(phrases, model)
    yield from _quality(phrases, model)


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


def _terms(phrases: Phrases, model: Any) -> Row:
    """A word of the reference that the best translation lacks, where some option has it, must stand in the output."""
    references = (phrases.folder / "test.en").read_text(encoding="utf-8").split("\n")
    proved, free, bound = 0, list[float](), list[float]()
    for source, reference in zip(phrases.first, references, strict=False):
        problem, clock = model.problem(source), Clock()
        best = problem.decode()
        seconds, said = clock.seconds, set(problem.words(best.structure))
        known = {word for option in problem.options for word in option.target}
        term = next((w for w in reference.split() if w in known - said and len(w) > LONG_WORD), None)
        if term is None or len(bound) == MOST_TERMS:
            continue
        clock = Clock()
        restricted = model.problem(source).subject_to(contains([term]))
        result = restricted.decode()
        free.append(seconds)
        bound.append(clock.seconds)
        proved += result.certificate.exact and term in restricted.words(result.structure)
    times = {"s without": float(np.mean(free)), "s with": float(np.mean(bound))}
    ratio = {"with over without": sum(bound) / sum(free), "median": float(np.median(np.divide(bound, free)))}
    return Row("trigram, a term", {"sentences": len(bound), "proved": proved} | times | ratio)


def _quality(phrases: Phrases, model: Any) -> Iterator[Row]:
    """BLEU and sum of model scores of the best translations, of Moses' and of those of least risk."""
    references = [line.split() for line in (phrases.folder / "test.en").read_text(encoding="utf-8").splitlines()]
    references = references[: len(phrases.first)]
    exact, risk, scores, left_out = [], [], 0.0, list[float]()
    for source in phrases.first:
        problem = model.problem(source)
        posterior = PrunedPosterior(problem)
        exact.append(problem.words(posterior.best.structure))
        scores += posterior.best.score
        risk.append(posterior.minimum_risk().words)
        if len(left_out) < FEW_BOUNDS:
            left_out.append(posterior.left_out)
    yield Row("quality, exact", {"BLEU": _bleu(references, exact), "sum of scores": scores})
    stack = phrases.moses("moses.3gram.").get("stack100", {})
    if all(k in stack for k in range(len(exact))):
        moses = [stack[k]["translation"].split() for k in range(len(exact))]
        total = sum(stack[k]["model_score"] for k in range(len(exact)))
        yield Row("quality, Moses, stack 100", {"BLEU": _bleu(references, moses), "sum of scores": total})
    cells = {"BLEU": _bleu(references, risk), "as the best": sum(a == b for a, b in zip(exact, risk, strict=True))}
    yield Row("quality, minimum risk, margin 3", cells | {"left out, mean": float(np.mean(left_out))})


def _bleu(references: list[list[str]], found: list[list[str]]) -> float:
    outputs, expected = ([" ".join(words) for words in some] for some in (found, references))
    return TranslationScores.of(expected, outputs, tokenizer="none").bleu
