"""Translations by their words: distinct lists, constraints on the words and lattices, against all derivations.

Every derivation of a small problem is listed, and what counts of it is the string that it yields: the best score of
each string is the oracle. ``problems`` asks for derivations; here a case is one question, so that there are many.
"""

from collections.abc import Iterator
from functools import partial
from math import fsum, inf
from typing import Any

import certus
from certus.io.lattices import WordLattice
from certus.translation import GrammarModel, PhraseModel, PhraseTranslation
from tests.fuzz import cases, translations
from tests.fuzz.cases import KINDS, Case
from tests.fuzz.claims import Claim
from tests.fuzz.problems import smaller_by
from tests.fuzz.runner import Finding, Tally
from tests.fuzz.scores import Rng
from tests.translation.test_lattices import RULES, SOURCE, WEIGHTS, options_of_path, paths, table

CLOSE = 1e-9
VERIFIED = 50
REGIMES = ("whole", "real")
LM_WEIGHT = 0.5

Best = dict[tuple[str, ...], float]


def drawn_from(kind: str, rng: Rng) -> Case:
    """A case of another target's kind, with ordinary scores."""
    return {**cases.drawn(rng, kind, str(rng.choice(REGIMES))), "k": int(rng.integers(1, 9))}


def listed_strings(case: Case, problem: Any) -> Best:
    """The best score of each string among the derivations listed."""
    best: Best = {}
    for structure, parts in KINDS[case["kind"]].listed(case, problem):
        words = tuple(word for k in structure for word in case["options"][k][2]) if "options" in case else None
        words = tuple(KINDS[case["kind"]].words(case, structure.tolist())) if words is None else words
        if -inf not in parts:
            best[words] = max(best.get(words, -inf), fsum(map(float, parts)))
    return best


def draw_lattice(rng: Rng) -> Case:
    """Columns of arcs, with a path through all nodes; a language model, a table and a limit on reordering."""
    n, columns = int(rng.integers(1, 4)), []
    for k in range(n):
        ends = [1, *(int(rng.integers(1, n - k + 1)) for _ in range(int(rng.integers(0, 3))))]
        columns.append([[str(rng.choice(SOURCE)), int(rng.integers(-3, 1)), end] for end in ends])
    limit = int(rng.integers(-1, 4))
    model = translations.draw_model(rng, list("abd"))
    return {"columns": columns, "seed": int(rng.integers(21)), "limit": limit, "model": model, "k": 3}


def lattice_of(case: Case) -> WordLattice:
    return WordLattice.of([[tuple(arc) for arc in column] for column in case["columns"]], probabilities=False)


def phrase_model(case: Case) -> PhraseModel:
    limit = None if case["limit"] < 0 else case["limit"]
    lm = translations.model_of(case["model"])
    return PhraseModel(table(case["seed"]), lm, WEIGHTS, distortion_limit=limit, unknown=-3.0)


def phrases_of_paths(case: Case, _: Any) -> Best:
    """The best score of each string by the phrases of one path."""
    model, best = phrase_model(case), Best()
    for words in paths(case["columns"]):
        options = options_of_path(model, words)
        limits = {"lm_weight": LM_WEIGHT, "distortion": 1.0, "distortion_limit": model.distortion_limit}
        one = PhraseTranslation(options, model.lm, source=["x"] * len(case["columns"]), **limits)
        for y in one.all_structures():
            text = tuple(one.words(y))
            best[text] = max(best.get(text, -inf), one.score(y))
    return best


def grammar() -> certus.SynchronousGrammar:
    return certus.SynchronousGrammar.from_text(RULES, weights={"f": 1.0, "PassThrough": -2.0}, max_span=None)


def rules_of_paths(case: Case, _: Any) -> Best:
    """The best score of each string by the rules over one path."""
    lm, rules, best = translations.model_of(case["model"]), grammar(), Best()
    for words in paths(case["columns"]):
        try:
            forest = rules.forest([w[2] for w in words])
        except certus.Infeasible:
            continue
        for y in forest.graph.hyperpaths():
            text = tuple(forest.yields(y))
            score = forest.score(y) + sum(w[3] for w in words) + LM_WEIGHT * lm.score(list(text))
            best[text] = max(best.get(text, -inf), score)
    return best


def rules_problem(case: Case) -> Any:
    return GrammarModel(grammar(), translations.model_of(case["model"]), LM_WEIGHT).problem(lattice_of(case))


# name: how a case is drawn, the problem, the oracle, and whether a list is asked for
PARTS: dict[str, tuple[Any, Any, Any, bool]] = {
    "distinct forests": (partial(drawn_from, "forest translation"), cases.made, listed_strings, True),
    "distinct phrases": (partial(drawn_from, "phrase translation"), cases.made, listed_strings, True),
    "constrained forests": (partial(drawn_from, "accepted forest translation"), cases.made, listed_strings, False),
    "constrained phrases": (partial(drawn_from, "accepted phrase translation"), cases.made, listed_strings, False),
    "lattice forests": (draw_lattice, rules_problem, rules_of_paths, False),
    "lattice phrases": (
        draw_lattice,
        lambda case: phrase_model(case).problem(lattice_of(case)),
        phrases_of_paths,
        False,
    ),
}


class Strings:
    """One case is one problem and one question."""

    name = "strings"

    def __init__(self, parts: tuple[str, ...] = ()) -> None:
        self.parts = parts or tuple(PARTS)

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        part = str(rng.choice(self.parts))
        case = PARTS[part][0](rng) | {"part": part}
        tally[part] += 1
        for name, detail in check(case, tally, verified=not rng.integers(VERIFIED)):
            yield Finding(part, name, detail, partial(smaller_by, check, case, name))

    def replay(self, data: Any) -> list[Claim]:
        return check(cases.from_json(data))


def check(case: Case, tally: Tally | None = None, verified: bool = True) -> list[Claim]:
    """The claims about one problem that do not hold."""
    tally = Tally() if tally is None else tally
    _, make, strings, ranks = PARTS[case["part"]]
    best: Best | None = None
    try:
        if "columns" in case:
            best = strings(case, None)
        problem = make(case)
        best = strings(case, problem) if best is None else best
        found = problem.kbest(case["k"], distinct=True) if ranks else [problem.decode()]
        claims = list(compared(best, problem, found, case["k"] if ranks else 1))
        if verified and not claims and found[-1].certificate.exact:
            tally["verified"] += 1
            certus.verify(problem, found[-1])
        return claims
    except certus.Infeasible as error:
        tally["infeasible"] += 1
        return [Claim("infeasible, though there is a translation", str(error))] if best or best is None else []
    except Exception as error:
        return [Claim(f"{type(error).__name__} where none is due", str(error))]


def compared(best: Best, problem: Any, found: list[Any], k: int) -> Iterator[Claim]:
    """The list against the best score of every string."""
    values = sorted(best.values(), reverse=True)
    if len(found) != min(k, len(values)):
        yield Claim("a list of the wrong length", f"{len(found)} of {min(k, len(values))}")
    texts = [tuple(problem.words(r.structure)) for r in found]
    if len(set(texts)) < len(texts):
        yield Claim("a string twice", f"{texts}")
    for r, text, value in zip(found, texts, values, strict=False):
        room = CLOSE * (1.0 + sum(map(abs, problem.terms(r.structure))))
        if abs(r.score - value) > room or abs(r.score - best.get(text, inf)) > room:
            yield Claim("a score that is not the best", f"{r.score!r} of {text}, {best.get(text)!r}, rank {value!r}")
        if not r.certificate.exact and not (r.certificate.reason and r.certificate.gap <= room):  # rounding is said
            yield Claim("a rank without proof", f"{r.certificate!r}")
