"""Small problems one by one, each made and decoded: what a public call costs where the algorithm has little to do."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Skipped, data_folder
from certus.bench.translation import Phrases
from certus.errors import InvalidInput

TREES: Mapping[str, tuple[str, ...]] = {
    "arcs": (),
    "siblings": ("sibling",),
    "siblings and grandparents": ("sibling", "grandparent"),
}
TAGS = 12
NOISE = 0.5  # deviation of the scores of parts above arcs, where that of arcs is 1


def run(
    data: str = "",
    problems: int = 40,
    sizes: tuple[int, ...] = (6, 10),
    words: tuple[int, ...] = (10, 25),
    limits: tuple[int, ...] = (4, 6),
    sentences: int = 30,
) -> Iterator[Case | Skipped]:
    """``sizes`` are lengths of sentences that are parsed, ``words`` of those that are tagged.

    The first ``sentences`` are translated under each of the ``limits`` of distortion.
    """
    rng = np.random.default_rng(0)
    for kind, parts in TREES.items():
        for n in sizes:
            arcs = rng.normal(size=(problems, n + 1, n + 1))
            above = {part: NOISE * rng.normal(size=(problems, n + 1, n + 1, n + 1)) for part in parts}
            given = [{"arc": arcs[k], **{part: above[part][k] for part in parts}} for k in range(problems)]
            for how in (False, True):
                name = f"{'projective' if how else 'crossing'} {kind}, n = {n}"
                yield _case(name, partial(_tree, how), given)
    bigram, trigram = rng.normal(size=(TAGS + 1,) * 2), rng.normal(size=(TAGS + 1,) * 3)
    for n in words:
        unary = list(rng.normal(size=(problems, n, TAGS)))
        yield _case(f"tags by bigrams, n = {n}", lambda one: certus.Tagging(one, bigram=bigram), unary)
        yield _case(f"tags by trigrams, n = {n}", lambda one: certus.Tagging(one, trigram=trigram), unary)
    try:
        folder = data_folder(data, "mt")
    except InvalidInput as error:
        yield Skipped(str(error))
        return
    phrases = Phrases(folder, sentences)
    for limit in limits:
        yield _case(f"phrases, limit {limit}", phrases.model(3, limit).problem, phrases.first)


def _tree(projective: bool, given: dict[str, Any]) -> certus.Dependency:
    return certus.Dependency(**given, projective=projective)


def _case(name: str, make: Callable[[Any], certus.Problem[Any]], given: list[Any]) -> Case:
    return Case(
        name,
        lambda: [make(one).decode() for one in given],
        items=len(given),
        unit="problem",
        numbers=lambda found: [[round(r.score, 9), r.certificate.exact] for r in found],
    )
