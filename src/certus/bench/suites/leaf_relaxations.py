"""The relaxations on leaves and paths (LR 5.6, SYN 7) on pruned Hiero forests, beside LP, ILP and dynamic program."""

from collections.abc import Callable, Iterator
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import certus
from certus.bench.cases import Row, data_folder
from certus.bench.translation import Hiero, best_rules
from certus.hypergraph import sweeps
from certus.relax.linear import LPReport
from certus.translation.cube_pruning import cube_pruning
from certus.translation.leaf_program import solve_ilp, solve_lp
from certus.translation.lm_automaton import spell_out

SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
CLOSE = 1e-5  # HiGHS's tolerances
SPELT_OUT = 5_000_000  # edges of the dynamic program
FEW_PARTITIONS, SOME_PARTITIONS = 6, 10


class Answer(NamedTuple):
    """What a method found: whether it is solved, in which time, and what else it told."""

    solved: bool
    seconds: float
    found: Any = None


def run(
    data: str = "",
    *,
    sentences: int = 30,
    rules: int = 10,
    order: int = 3,
    iterations: int = 500,
    limit: float = 32.0,
    lengths: tuple[int, ...] = (10, 15, 20, 30),
) -> Iterator[Row]:
    """The best ``rules`` of each vertex are kept. ``limit`` is the time limit of a sentence and method, and ``lengths``
    are the most words of each group of sentences."""
    hiero = Hiero(data_folder(data, "mt"), sentences)
    lm, weight = hiero.lm(order), hiero.weights["LM"]
    problems = [certus.ForestTranslation(best_rules(f, rules), lm, weight) for f in hiero.forests]
    best = [p.decode().score for p in problems]
    ways: dict[str, Callable[[Any], Any]] = {
        "search": lambda p: p.decode(time_limit=limit),
        "paths": lambda p: p.decode(method="paths", max_iterations=iterations, time_limit=limit),
        "partitions": lambda p: p.decode(method="partitions", max_iterations=iterations, time_limit=limit),
        "LP": lambda p: solve_lp(p, limit),
        "ILP": lambda p: p.score(np.array(solve_ilp(p, limit))),
        "dynamic program": lambda p: sweeps.best(*spell_out(p.translation_forest, p.lm, p.lm_weight, SPELT_OUT)[:2])[0],
    }
    answers: dict[str, list[Answer]] = {}
    for name, way in ways.items():
        answers[name] = _asked(way, problems, best)
        yield _within(name, answers[name])
    yield from _by_length(hiero, problems, answers, lengths)
    yield _tightening(answers)
    for pops in (50, 500):
        scores = np.array([cube_pruning(p.translation_forest, lm, weight, pops).score for p in problems])
        ours = np.array([a.found.score for a in answers["partitions"]])
        values = {"below": int((scores < ours - CLOSE).sum()), "above": int((scores > ours + CLOSE).sum())}
        yield Row(f"cube pruning, {pops} pops", {"sentences": len(problems), **values})


def _asked(way: Callable[[Any], Any], problems: list[Any], best: list[float]) -> list[Answer]:
    """One method on all problems; solved if the score is proved, or told, to be the best. AssertionError if it is not.

    The linear program is solved once it has a value, which no derivation exceeds.
    """
    way(problems[0])  # compiles
    out = []
    for p, score in zip(problems, best, strict=True):
        begun = process_time()
        try:
            found = way(p)
        except (certus.NotSupported, certus.LimitReached):
            out.append(Answer(False, process_time() - begun))
            continue
        seconds, solved = process_time() - begun, True
        if isinstance(found, certus.Result):
            assert found.score <= score + CLOSE <= found.certificate.bound + 2 * CLOSE, (found, score)
            solved = found.certificate.exact
        elif isinstance(found, LPReport):
            assert found.value >= score - CLOSE, (found, score)
        else:
            assert found <= score + CLOSE, (found, score)
            solved = found >= score - CLOSE
        out.append(Answer(solved, seconds, found))
    return out


def _within(name: str, answers: list[Answer]) -> Row:
    """The share that is solved in so many seconds (SYN fig. 5)."""
    times = np.array([a.seconds if a.solved else np.inf for a in answers])
    shares = {f"{s:g} s": f"{100 * float((times <= s).mean()):.0f} %" for s in SECONDS}
    solved = f"{100 * float(np.isfinite(times).mean()):.0f} %"
    return Row(name, {**shares, "solved": solved, "median s": float(np.median([a.seconds for a in answers]))})


def _by_length(
    hiero: Hiero, problems: list[Any], answers: dict[str, list[Answer]], lengths: tuple[int, ...]
) -> Iterator[Row]:
    least = 0
    for most in lengths:
        at = [k for k, words in enumerate(hiero.sentences) if least < len(words) <= most]
        least, found = most, [answers["partitions"][k] for k in at]
        if not at:
            continue
        gaps = [a.found.certificate.gap / abs(a.found.score) for a in found if not a.solved]
        values = {
            "edges": float(np.mean([problems[k].translation_forest.graph.n_edges for k in at])),
            "leaves": float(np.mean([a.found.info["leaves"] for a in found])),
            "exact": sum(a.solved for a in found),
            "exact by paths": sum(answers["paths"][k].solved for k in at),
            "iterations": float(np.median([a.found.iterations for a in found])),
            "seconds": float(np.median([a.seconds for a in found])),
            "most s": max(a.seconds for a in found),
            "partitions": float(np.mean([a.found.info["partitions"] for a in found])),
            "most": max(a.found.info["partitions"] for a in found),
            "largest gap, %": 100 * max(gaps, default=0.0),
        }
        yield Row(f"up to {most} words", {"sentences": len(at), **values})


def _tightening(answers: dict[str, list[Answer]]) -> Row:
    """How often the linear program is fractional, and how many partitions that takes (SYN 7)."""
    programs = [a.found for a in answers["LP"] if a.found is not None]
    needed = [a.found.info["partitions"] for a in answers["partitions"] if a.solved and a.found.info["partitions"] > 1]
    values = {
        "LPs": len(programs),
        "fractional": sum(report.fractional for report in programs),
        "tightened and exact": len(needed),
        f"by {FEW_PARTITIONS} partitions": sum(n <= FEW_PARTITIONS for n in needed),
        f"by {SOME_PARTITIONS}": sum(n <= SOME_PARTITIONS for n in needed),
    }
    return Row("tightening", values)
