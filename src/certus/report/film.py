"""The proof as a film: a relaxation run once more, with what its subproblems chose at every round.

Three kinds of relaxations are filmed: subproblems that must agree, or structures under constraints (``relaxation()`` of
a problem); translation forests, whose words choose the words before them freely; phrases, which may translate a word
twice or not at all. Dual values are bounds whoever computes them, so a film shows a proof even where the decoder, which
runs in kernels and removes parts on its way, took another one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from certus.checks import Floats
from certus.draw import Picture, row
from certus.problem import Problem
from certus.relax.descent import Oracle, Round, descend
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.run import Run
from certus.relax.steps import polyak
from certus.relax.system import Relaxation
from certus.translation.bigram_relaxation import BigramRelaxation, BoundedSearch, default_rule
from certus.translation.forest_problem import ForestTranslation
from certus.translation.phrase_decoding import LatticeOracle
from certus.translation.phrase_problem import PhraseTranslation
from certus.translation.phrase_relaxation import PhraseRelaxation
from certus.translation.scored_forest import prepare

MOST_ROUNDS = 150
MOST_ITEMS = 1  # a film is of the rounds alone, without searches under their bounds
FOREST_WINDOW = 20  # rounds that must close a share of the gap: what is left then is for the search
SECONDS = 30.0
NAMES = {
    "Constituency": "Grammar",
    "LexicalizedConstituency": "Grammar with heads",
    "Tagging": "Tagger",
    "Dependency": "Tree: one head for every word, no cycle",
    "LabelledDependency": "Tree with labels: one head for every word, no cycle",
    "HeadAutomata": "Heads: each chooses its modifiers alone",
    "Lineages": "Lines of heads above each word",
    "Hyperpath": "Hyperpath",
}
Mark = tuple[str, str]  # what is marked in the pictures: an attribute of its elements ("part", "tag"), and its value


class Frame(NamedTuple):
    """A round: its dual value, the best score so far, the pictures shown (by number), what is marked, and a line."""

    dual: float
    primal: float
    shown: tuple[int, ...]
    apart: tuple[Mark, ...]
    said: str


@dataclass
class Film:
    """The rounds of a relaxation; every picture is kept once."""

    names: tuple[str, ...]
    pictures: list[Picture] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    _known: dict[Any, int] = field(default_factory=dict)
    _best: float = -inf

    def add(
        self, found: Round, sides: Sequence[tuple[Any, Callable[[], Picture]]], apart: Sequence[Mark], said: str
    ) -> None:
        """A round; ``sides`` are keys that tell pictures apart, each with what draws it."""
        shown = []
        for key, drawn in sides:
            if key not in self._known:
                self._known[key] = len(self.pictures)
                self.pictures.append(drawn())
            shown.append(self._known[key])
        self._best = max([self._best, *(score for _, score in found.candidates)])
        self.frames.append(Frame(found.value, self._best, tuple(shown), tuple(apart), said))


def film(problem: Problem[Any], words: Sequence[str] | None = None, *, max_rounds: int = MOST_ROUNDS) -> Film | None:
    """The film of a problem that is decoded by relaxation; None for one that has an algorithm of its own."""
    if isinstance(problem, ForestTranslation):
        return _of_forest(problem, max_rounds)
    if isinstance(problem, PhraseTranslation):
        return _of_phrases(problem, max_rounds)
    relaxation = problem.relaxation()
    return None if relaxation is None else _of_relaxation(relaxation, words, max_rounds)


class _Filmed(Oracle):
    """An oracle whose rounds are seen."""

    def __init__(self, inner: Oracle, seen: Callable[[Round], None]) -> None:
        self.inner, self.seen = inner, seen
        self.scale, self.rows, self.inequality, self.lowest = inner.scale, inner.rows, inner.inequality, inner.lowest

    def ask(self, u: Floats) -> Round | None:
        found = self.inner.ask(u)
        if found is not None:
            self.seen(found)
        return found

    def error(self, u: Floats) -> float:
        return self.inner.error(u)

    def moved(self, step: float) -> None:
        self.inner.moved(step)


def _count(k: int, what: str) -> str:
    return f"{k} {what}{'' if k == 1 else 's'}"


# -- subproblems that must agree -------------------------------------------------------------------------------------


def _of_relaxation(relaxation: Relaxation, words: Sequence[str] | None, max_rounds: int) -> Film:
    made = Film(tuple(NAMES.get(type(p).__name__, type(p).__name__) for p in relaxation.subproblems))
    subproblems = Subproblems(relaxation)
    oracle = Lagrangian(subproblems, subproblems.initial)

    def seen(found: Round) -> None:
        apart = _disputed(relaxation, oracle.leaves)
        sides = []
        for i, (problem, leaf) in enumerate(zip(relaxation.subproblems, oracle.leaves, strict=True)):
            used = b"".join(problem.indicator(leaf, view).tobytes() for view in problem.views)
            sides.append(((i, used, str(leaf)), lambda p=problem, y=leaf: p.picture(y, words)))
        broken = int(np.count_nonzero(np.abs(found.residual) > 1e-9))
        if len(relaxation.subproblems) == 1:
            said = f"{_count(broken, 'constraint')} not met exactly" if broken else "all constraints hold"
        else:
            parts = sum(kind == "part" for kind, _ in apart)
            said = f"they disagree on {_count(parts, 'part')}" if apart else "they agree on every part"
        made.add(found, sides, apart, said)

    run: Run[Any] = Run(max_iterations=max_rounds, time_limit=SECONDS, scale=relaxation.scale)
    start = np.zeros(relaxation.n_rows)
    descend(run, _Filmed(oracle, seen), start, polyak(), max_iterations=max_rounds)
    return made


def _disputed(relaxation: Relaxation, leaves: Sequence[Any]) -> list[Mark]:
    """The parts that some of the tied subproblems use and others do not."""
    out: list[Mark] = []
    for name, blocks in relaxation.views.items():
        tied = [b for b in blocks if b in relaxation.offsets]
        used = [np.asarray(relaxation.subproblems[i].indicator(leaves[i], view)) for i, view in tied]
        used = [u for u in used if used and u.shape == used[0].shape]
        if len(used) < 2:
            continue
        different = np.argwhere(np.any([u != used[0] for u in used[1:]], axis=0)).tolist()
        if name.endswith("tags"):
            out += [("tag", str(i)) for i in sorted({i for i, _ in different})]
            out += [("part", f"{i}-{t}") for i, t in different]
        else:
            out += [("part", "-".join(map(str, index))) for index in different]
    return out


# -- translation forests ---------------------------------------------------------------------------------------------


def _of_forest(problem: ForestTranslation, max_rounds: int) -> Film:
    made = Film(("Derivation", "What the language model took to stand before each word"))
    run: Run[list[int]] = Run(max_iterations=max_rounds, time_limit=SECONDS)
    forest = prepare(problem.translation_forest, problem.lm, problem.translation_forest.weights)
    relaxation = BigramRelaxation(forest, problem.lm, problem.lm_weight)
    named = {-1: "<s>", -2: "</s>"} | dict(enumerate(problem.translation_forest.words))
    name = [named[int(k)] for k in forest.name]

    filmed = _Filmed(
        BoundedSearch(problem, relaxation, run, MOST_ITEMS),
        lambda found: _seen_forest(made, problem, relaxation, name, found),
    )
    start = np.zeros(relaxation.size)
    descend(run, filmed, start, default_rule(), max_iterations=max_rounds, window=FOREST_WINDOW)
    return made


def _seen_forest(
    made: Film, problem: ForestTranslation, relaxation: BigramRelaxation, name: Sequence[str], found: Round
) -> None:
    edges = found.candidates[0][0]
    number = {word: k for k, word in enumerate(name)}
    words = ["<s>", *problem.words(np.array(edges)), "</s>"]
    before: list[str] = []
    for k in range(2, len(words)):
        v, w = number.get(words[k - 1], -1), number.get(words[k], -1)
        taken = int(relaxation.taken(np.array([v]), np.array([w]))[0, 0]) if v >= 0 and w >= 0 else -1
        before.append(name[taken] if taken >= 0 else words[k - 2])
    wrong = [k for k, word in enumerate(before) if word != words[k]] if not relaxation.exact else []
    notes = [f"{word} {words[k + 1]} …" for k, word in enumerate(before)]
    sides = [
        (("derivation", tuple(edges)), lambda: problem.picture(np.array(edges))),
        (("before", tuple(words), tuple(before)), lambda: row(words[2:], notes=notes)),
    ]
    said = "every word looks back at what is there"
    if wrong:
        said = f"{_count(len(wrong), 'word')} looking back at a word that is not there"
    made.add(found, sides, [("part", str(k)) for k in wrong], said)


# -- phrases ---------------------------------------------------------------------------------------------------------


def _of_phrases(problem: PhraseTranslation, max_rounds: int) -> Film | None:
    made = Film(("Phrases, each of the best of the lattice: words may be translated twice or not at all",))
    run: Run[Any] = Run(max_iterations=max_rounds, time_limit=SECONDS, scale=problem.extent().size)
    lattice = problem.sentence.lattice(())
    if lattice is None:
        return None
    oracle = LatticeOracle(run, PhraseRelaxation(problem.sentence, lattice, exact_contexts=True))

    def seen(found: Round) -> None:
        structure = problem.of_path(oracle.relaxation.path_and_residual()[0])
        wrong = int(np.count_nonzero(found.residual))
        said = f"{_count(wrong, 'word')} not translated once" if wrong else "every word is translated once"
        known = found._replace(candidates=[*found.candidates, (None, run.score)])
        made.add(known, [(structure, lambda: problem.picture(structure))], [], said)

    descend(
        run,
        _Filmed(oracle, seen),
        np.zeros(problem.n),
        polyak(patience=3),
        max_iterations=max_rounds,
        search=lambda at: oracle.after(at),
    )
    return made
