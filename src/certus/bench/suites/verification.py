"""What checking a certificate costs beside finding it: ``certus.verify``, the standalone checker, saved results.

Ratios are of processor time, verify over decode, witnesses made in between included. The bar: at most 10 where
decoding takes more than 10 ms, else at most 0.1 s; none above 60 s.
"""

import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Row, Skipped, data_folder, evenly
from certus.bench.suites.lexicalized import Models
from certus.bench.translation import Hiero, Phrases
from certus.certificates import standalone
from certus.io.brackets import read_trees
from certus.io.conllu import read_conllu
from certus.proof_file import proof_to_json
from certus.saved import result_to_json

QUICK, TIMES, SOON = 0.01, 10.0, 0.1


def run(
    data: str = "", model: str = "", penn: str = "", sentences: int = 100, ranks: int = 20, alone: int = 3
) -> Iterator[Row | Skipped]:
    """``model`` is the folder of a parser of trees with crossing arcs, for the test sentences of nl_cdb; ``penn`` that
    of the models which the suite "lexicalized" keeps in ``work``, for half as many sentences of the Penn sample.

    Lists of the three best are checked for ``ranks`` problems, ``alone`` small ones by the standalone checker.
    """
    for name, problems in [*_translations(data, sentences), *_joint(data, penn, sentences // 2)]:
        problems[0].decode()  # compiles
        yield _measured(name, problems, lambda p: [p.decode()])
        yield _measured(f"{name}, rank 3", evenly(problems, ranks), lambda p: p.kbest(3)[-1:])
        yield _by_itself(name, problems, alone)
    if not penn:
        yield Skipped("joint lexicalised parses: give the folder of trained models with --set penn=FOLDER")
    if not model:
        yield Skipped("crossing parses: give the folder of a trained parser with --set model=FOLDER")
        return
    parser = certus.load(model).parser
    trees = evenly(list(read_conllu(data_folder(data, "ud") / "nl_cdb" / "test.conllu.gz")), 2 * sentences)
    parses = [parser.problem(sentence) for sentence in trees]
    parses[0].decode()
    yield _measured("crossing parses", parses, lambda p: [p.decode()])
    yield _by_itself("crossing parses", parses, alone)


def _joint(data: str, penn: str, sentences: int) -> Iterator[tuple[str, list[Any]]]:
    """Lexicalised trees with the tagger, and with tagger and dependency parser."""
    if penn:
        folder = data_folder(data, "ptb-sample")
        models, weight = Models(folder, Path(penn)), {"arcs": 1.0, "tags": 0.02}
        words = [t.words for t in read_trees(folder / "test.mrg.gz", clean=True) if len(t.words) <= 40][:sentences]
        for kind in ("tags", "both"):
            yield f"joint lexicalised, {kind}", [models.joint(kind, given, weight) for given in words]


def _translations(data: str, sentences: int) -> Iterator[tuple[str, list[Any]]]:
    folder = data_folder(data, "mt")
    hiero, phrases = Hiero(folder, sentences), Phrases(folder, sentences)
    forests = hiero.problems(hiero.lm(3))
    yield "Hiero, trigrams", forests
    shortest = sorted(forests, key=lambda p: p.translation_forest.graph.n_edges)[: max(1, sentences // 10)]
    constrained = (_constrained(p) for p in shortest)
    yield "Hiero, trigrams, an edge forbidden and two tied", [p for p in constrained if _feasible(p)]
    for limit in (6, None):
        named = "no limit" if limit is None else f"limit {limit}"
        yield f"phrases, {named}", [phrases.model(3, limit).problem(source) for source in phrases.first]


def _constrained(problem: certus.ForestTranslation) -> Any:
    """Without an edge of the best derivation, and with at most one of two others."""
    edges = problem.decode().structure.tolist()
    made = [certus.constraints.forbid("edges", (edges[-1],))]
    made.append(certus.constraints.at_most(1, "edges", [(edges[0],), (edges[len(edges) // 2],)]))
    return problem.subject_to(*made)


def _feasible(problem: Any) -> bool:
    try:
        problem.decode()
    except certus.Infeasible:
        return False
    return True


def _timed(call: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    begun = time.process_time()
    return call(*given), time.process_time() - begun


def _measured(name: str, problems: Iterable[Any], asked: Callable[[Any], list[Any]]) -> Row:
    ratios, times, over, proved = list[float](), list[float](), 0, 0
    for problem in problems:
        try:
            found, decoding = _timed(asked, problem)
        except certus.NotSupported:
            continue
        for result in found:
            _, checking = _timed(certus.verify, problem, result)
            ratios.append(checking / max(decoding, 1e-9))
            times.append(checking)
            over += checking > (TIMES * decoding if decoding > QUICK else SOON)
            proved += result.certificate.exact
    if not ratios:
        return Row(name, {"results": 0})
    return Row(
        name,
        {
            "results": len(ratios),
            "exact": proved,
            "median verify / decode": float(np.median(ratios)),
            "worst": max(ratios),
            "slowest, s": max(times),
            "over the bar": over,
            "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        },
    )


def _by_itself(name: str, problems: list[Any], count: int) -> Row:
    """Seconds of the standalone checker on the smallest problems, and the size of what is saved."""
    sizes, seconds = list[float](), list[float]()
    check: Any = standalone.check
    for problem in sorted(problems, key=lambda p: len(json.dumps(p.to_json())))[:count]:
        result = problem.decode()
        saved = result_to_json(problem, result)
        sizes.append(len(json.dumps(saved)) / len(json.dumps(saved["problem"])))
        try:
            data = json.loads(json.dumps(proof_to_json(problem, result)))
        except certus.NotSupported:
            continue
        seconds.append(_timed(check, data)[1])
    cells: dict[str, float] = {"saved result / problem": float(np.median(sizes))} if sizes else {}
    return Row(f"{name}, standalone", cells | ({"slowest, s": max(seconds)} if seconds else {}))
