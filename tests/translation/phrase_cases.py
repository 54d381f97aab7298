"""Random small phrase-based problems: options without words, forbidden ones, unknown words, every kind of limit."""

import numpy as np
from hypothesis import strategies as st

from certus import LanguageModel, PhraseOption, PhraseTranslation
from tests.translation.cases import arpas

TARGETS = ("a", "b", "c", "d")  # the last is not in the models


@st.composite
def phrase_problems(draw, max_words: int = 4, limit: int = 3000):
    """A problem with at most ``limit`` translations, or fewer options than asked for."""
    n = draw(st.integers(1, max_words))
    spans = [(i, j) for i in range(n) for j in range(i, min(n, i + 3))]
    target = st.lists(st.sampled_from(TARGETS), max_size=3).map(tuple)
    score = st.one_of(st.integers(-8, 8), st.integers(-8, 8), st.integers(-8, 8), st.just(-np.inf))
    options = [PhraseOption(i, i, draw(target), float(draw(st.integers(-8, 8)))) for i in range(n)]
    for _ in range(draw(st.integers(0, 6))):
        i, j = draw(st.sampled_from(spans))
        options.append(PhraseOption(i, j, draw(target), float(draw(score))))
    if draw(st.integers(0, 5)) == 0:
        options.pop(draw(st.integers(0, n - 1)))
    problem = PhraseTranslation(
        draw(st.permutations(options)),
        LanguageModel(draw(arpas(max_order=4))),
        source=[f"w{i}" for i in range(n)],
        lm_weight=draw(st.sampled_from([1.0, 1.0, 0.5, 0.0, -1.0])),
        distortion=draw(st.sampled_from([0.0, 0.5, 1.0, 4.0, -1.0])),
        distortion_limit=draw(st.sampled_from([None, 0, 1, 2, 3, 6])),
        window=draw(st.booleans()),
    )
    return problem


def every_score(problem: PhraseTranslation) -> list[float]:
    """Scores of all translations, best first, each added up here; forbidden ones left out."""
    out = []
    for structure in problem.all_structures():
        chosen = [problem.options[k] for k in structure]
        words, last, total = [], -1, 0.0
        for o in chosen:
            total += o.score - problem.distortion * abs(o.start - last - 1)
            words += o.target
            last = o.end
        if total > -np.inf:
            out.append(total + problem.lm_weight * problem.lm.score(words))
    return sorted(out, reverse=True)
