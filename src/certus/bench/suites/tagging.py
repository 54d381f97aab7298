"""Tag sequences: every question of a trigram problem with all tags and with a dictionary, and batches of bigrams."""

from collections.abc import Iterator

import numpy as np

import certus
from certus.bench.cases import Case

QUESTIONS = ("decode", "log_partition", "entropy", "marginals", "max_marginals")


def run(tags: int = 45, n: int = 25, problems: int = 20) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    trigram = rng.normal(size=(tags + 1,) * 3)
    for allowed in (tags, 3):
        unaries = rng.normal(size=(problems, n, tags))
        if allowed < tags:
            order = rng.random(unaries.shape).argsort(axis=2)
            np.put_along_axis(unaries, order[:, :, allowed:], -np.inf, axis=2)
        asked = [certus.Tagging(unary, trigram=trigram) for unary in unaries]
        for question in QUESTIONS:
            yield Case(
                f"{question}, {allowed} tags a word",
                lambda q=question, a=asked: [getattr(problem, q)() for problem in a],
                items=problems,
            )
    unary, bigram = rng.normal(size=(256, n, 20)), rng.normal(size=(21, 21))
    for question in QUESTIONS:
        yield Case(
            f"{question} of a batch, 20 tags, bigrams",
            lambda q=question: getattr(certus.TaggingBatch(unary, bigram=bigram), q)(),
            items=len(unary),
        )
