"""The k best trees with crossing arcs, siblings and grandparents, each proved, beside the best tree alone.

Sentences are those of the test set of nl_cdb, scored by a trained parser (``certus train parser --order 2
--no-projective``) whose folder is given; without one, by the stand-in scores of the suite "nonprojective".
"""

from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Row, data_folder, evenly
from certus.bench.suites.nonprojective import LONGEST, MODELS, scores_for
from certus.io.conllu import read_conllu


def run(data: str = "", model: str = "", sentences: int = 736, k: int = 5, verified: int = 20) -> Iterator[Row]:
    read = evenly(list(read_conllu(data_folder(data, "ud") / "nl_cdb" / "test.conllu.gz")), sentences)
    if model:
        parser = certus.load(model).parser
        problems = [parser.problem(sentence) for sentence in read]
    else:
        rng, kinds = np.random.default_rng(0), MODELS["siblings and grandparents"]
        problems = [certus.Dependency(**scores_for(rng, s.heads, kinds)) for s in read if 1 <= len(s) <= LONGEST]
    for problem in problems[:3]:
        problem.kbest(k)  # kernels are compiled and loaded
    once, lists = np.zeros(len(problems)), np.zeros(len(problems))
    results: list[list[Any]] = []
    for at, problem in enumerate(problems):
        started = process_time()
        problem.decode()
        between = process_time()
        results.append(problem.kbest(k))
        once[at], lists[at] = between - started, process_time() - between
    started, checked = process_time(), evenly(list(zip(problems, results, strict=True)), verified)
    for problem, found in checked:
        for result in found:
            certus.verify(problem, result)
    yield Row(
        f"the {k} best trees",
        {
            "sentences": len(problems),
            "lists proved": sum(all(r.certificate.exact for r in found) for found in results) / len(results),
            "ms, best tree": 1e3 * float(once.mean()),
            "ms, list": 1e3 * float(lists.mean()),
            "times the best tree": float(lists.sum() / once.sum()),
            "median of that": float(np.median(lists / once)),
            "lists verified": len(checked),
            "s, verifying a list": (process_time() - started) / max(len(checked), 1),
        },
    )
