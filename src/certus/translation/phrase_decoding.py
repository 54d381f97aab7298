"""How phrase-based translations are searched for: optimal beam search and its rivals (LR 7.4 - 7.7).

Every method returns the best translation it found and a bound. All but the last two can prove it the best:

optimal beam   beam searches of growing width under bounds from the lattice of coverages and last words; where that is
               too large, as below, with words tracked where the multipliers stall
alternating    LR alg. 13: a round of subgradient descent on the multipliers, then beam search under their bounds
staged         LR alg. 13: all rounds first, then beam searches of growing width
tight          multipliers alone, and words tracked where they stall, in the manner of LR-TIGHT
astar          A* under the bounds of the lattice of coverages, or of the multipliers' lattice at zero
ilp            optimal beam, from what an integer program finds (``phrase_program``)
beam           LR alg. 10 once, with bounds at multipliers zero
stack          stack decoding with estimates of what is left in the place of bounds; proves nothing
"""

from dataclasses import replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from certus import kernels
from certus.checks import Floats
from certus.errors import Infeasible, LimitReached
from certus.relax.beams import WINDOW, Beam, BeamOracle
from certus.relax.descent import Descent, Round, descend
from certus.relax.run import Run
from certus.relax.steps import StepRule, polyak
from certus.translation.phrase_relaxation import MOST_HYPOTHESES, PhraseRelaxation, Sentence
from certus.translation.phrases import Int32

METHODS = ("optimal beam", "alternating", "staged", "tight", "astar", "ilp", "beam", "stack")
WIDEST = MOST_HYPOTHESES  # a beam that prunes nothing
MOST_TRACKED = 60
AT_ONCE = 3  # words more that a tighter lattice tracks
NONE_ACCEPTED = "no translation satisfies the constraints: none of those that the options make is accepted."
PATIENCE = 1000  # beams as wide as this come before words are tracked


class Witness(NamedTuple):
    """A dual value of the lattice that tracks no word, and the multipliers of the source words that prove it."""

    bound: float
    multipliers: Floats


class LatticeOracle(BeamOracle):
    """Lagrangian relaxation of which words are covered, but for those tracked, and searches under its bounds."""

    widest = WIDEST

    def __init__(
        self,
        run: Run[Int32],
        relaxation: PhraseRelaxation,
        method: str = "alternating",
        tracked: tuple[int, ...] = (),
        witness: Witness | None = None,
    ) -> None:
        super().__init__(run, staged=method in ("staged", "tight"))
        self.relaxation, self.sentence, self.method = relaxation, relaxation.sentence, method
        self.tracked, self.witness, self.rows = tracked, witness, self.sentence.arrays.n
        self._blame = np.zeros(self.rows)

    def sweep(self, u: Floats) -> float:
        """The dual value at u, which leaves the bounds for searches; a witness if no word is tracked."""
        self.run.allow(self.error(u))
        value = self.relaxation.sweep(u)
        if value == -inf:
            raise Infeasible(NONE_ACCEPTED)
        if not self.tracked and (self.witness is None or value < self.witness.bound):
            self.witness = Witness(value, u)
        return value

    def ask(self, u: Floats) -> Round:
        value = self.sweep(u)
        path, residual = self.relaxation.path_and_residual()
        self._blame += np.abs(residual)
        found = not residual.any() and _keeps_limit(self.sentence, path)
        return Round(value, residual, [(path, value)] if found else [])

    def error(self, u: Floats) -> float:
        return self.sentence.error(u)

    def beam(self, width: int, u: Floats) -> Beam:
        if self.relaxation.multipliers is not u:
            self.sweep(u)
        found = self.relaxation.search(self.run.score, width)
        return Beam(found.path if found.score > -inf else None, found.score, found.pruned, found.hypotheses)

    def after(self, at: Descent[Any]) -> None:
        super().after(at)
        if self.run.structure is None and self.run.proof is None:
            _start(self.run, self.sentence, 0)

    def stalled(self, at: Descent[Any]) -> "tuple[LatticeOracle, Floats] | None":
        """Words are tracked where wider beams do not help, or there are none: in the manner of LR-TIGHT."""
        self.width *= 10
        tightens = self.method == "tight" or (self.method == "optimal beam" and self.width > PATIENCE)
        tighter = self._tighter() if tightens else None
        if tighter is not None:
            return tighter, at.best_u
        return None if self.method == "staged" or (self.method == "tight" and at.norm2 == 0) else (self, at.u)

    def _tighter(self) -> "LatticeOracle | None":
        """With more words tracked, those most often covered twice or not at all; None if its lattice is too large."""
        order = [i for i in np.argsort(-self._blame, kind="stable").tolist() if i not in self.tracked]
        blamed = [i for i in order if self._blame[i] > 0] or sorted(order)
        if not order or len(self.tracked) >= MOST_TRACKED:
            return None
        more = tuple(sorted((*self.tracked, *blamed[:AT_ONCE])))
        made = _relaxation(self.run, self.sentence, more, exact=True)
        return None if made is None else LatticeOracle(self.run, made, self.method, more, self.witness)


def _relaxation(
    run: Run[Int32], sentence: Sentence, tracked: tuple[int, ...] | None, *, exact: bool
) -> PhraseRelaxation | None:
    """The relaxation that tracks these words (None: all), or None if its lattice is too large."""
    lattice = sentence.lattice(tracked)
    if lattice is None:
        return None
    made = PhraseRelaxation(sentence, lattice, exact_contexts=exact)
    run.info |= {"lattice size": made.size, "tracked": len(tracked or ())}
    return made


def _counted(run: Run[Int32], sentence: Sentence, method: str = "alternating") -> LatticeOracle:
    """The relaxation of LR 7.3: number of words covered, last position, state of the language model."""
    made = _relaxation(run, sentence, (), exact=True)
    if made is None:
        raise LimitReached(f"the lattice of a sentence of {sentence.arrays.n} words is too large.")
    return LatticeOracle(run, made, method)


def decode(
    run: Run[Int32], sentence: Sentence, method: str, *, width: int, max_iterations: int, step: StepRule[Any] | None
) -> Witness | None:
    """Search by a method; ``width`` is the beam of "beam" and "stack", ``step`` the rule for the multipliers.

    The run gets the best translation, as a path. Returns a bound that holds, unless a search has proved the path.
    """
    u, everything = np.zeros(sentence.arrays.n), None
    if method in ("optimal beam", "astar", "stack"):
        everything = _relaxation(run, sentence, None, exact=False)
    if everything is None:
        oracle = _counted(run, sentence, method)
    else:
        oracle = LatticeOracle(run, everything, method, tracked=tuple(range(len(u))))
    if method == "stack":
        _stack(oracle, width)
    elif everything is None and method not in ("astar", "beam"):
        oracle = _rounds(oracle, step or polyak(patience=3), max_iterations)
    else:
        dual = oracle.sweep(u)
        if method == "optimal beam":
            oracle.widen(u, 1)
        else:
            oracle.search(0 if method == "astar" else width, u)
        run.iterations += 1
        run.log.add(dual, run.score, 0.0, 0)
    if run.structure is None and run.proof is not None and sentence.reading is not None:
        raise Infeasible(NONE_ACCEPTED)
    if run.structure is None:
        raise LimitReached(
            f"the search ended at its limits before any translation was found; a wider beam than {width}, more time or "
            'the method "optimal beam" may find one.'
        )
    if run.proof is None and oracle.witness is None:
        oracle = _counted(run, sentence)
        oracle.sweep(u)
    return oracle.witness


def _start(run: Run[Int32], sentence: Sentence, limit: int) -> None:
    """A first translation: the best one within a narrower limit, which is quick to find.

    There is always one, unless an automaton refuses all of these.
    """
    narrow = replace(sentence, limit=min(limit, sentence.limit), gap=True)
    lattice = narrow.lattice(None)
    if lattice is not None:
        oracle = LatticeOracle(run, PhraseRelaxation(narrow, lattice, exact_contexts=False))
        u = np.zeros(narrow.arrays.n)
        if oracle.relaxation.sweep(u) == -inf:
            return  # an automaton accepts none within the narrower limit
        for width in (1, 10, 1000):
            oracle.search(width, u)
        run.proof = None


def _rounds(oracle: LatticeOracle, rule: StepRule[Any], max_iterations: int) -> LatticeOracle:
    """Subgradient descent on the multipliers, and beam searches under the bounds it gives; the oracle it ends with."""
    run, u = oracle.run, np.zeros(oracle.rows)
    if oracle.method == "optimal beam":
        _start(run, oracle.sentence, 4)
    at = descend(
        run,
        oracle,
        u,
        rule,
        max_iterations=max_iterations,
        window=WINDOW,
        search=lambda at: at.oracle.after(at),
        tighten=lambda at: at.oracle.stalled(at),
    )
    last = at.oracle
    run.info["step"] = repr(rule)
    if at.closed and run.proof is None:
        run.proof = "search" if last.tracked else "dual"
    if last.method != "tight":
        last.widen(at.best_u, 100)
    return last


def _keeps_limit(sentence: Sentence, path: Int32) -> bool:
    """True if a path that covers every word once keeps the distortion limit and its second condition."""
    p = sentence.arrays
    last, g, covered = -1, 0, np.zeros(p.n + 1, dtype=bool)
    for span in p.phrase_span[path].tolist():
        i, j = int(p.span_start[span]), int(p.span_end[span])
        if abs(i - last - 1) > sentence.limit or (sentence.gap and i != g and j + 1 - g > sentence.limit):
            return False
        covered[i : j + 1] = True
        while covered[g]:
            g += 1
        last = j
    return True


def _stack(oracle: LatticeOracle, width: int) -> None:
    """Stacks by number of words covered, as Moses has them; no beam threshold. Proves nothing."""
    found = oracle.relaxation.search(-inf, width, future=future_estimates(oracle.sentence))
    oracle.run.count(searches=1, hypotheses=found.hypotheses)
    if found.score > -inf:
        oracle.run.offer(found.path, found.score)


def future_estimates(sentence: Sentence) -> Floats:
    """Estimates [i, j] of what the words i .. j will score: best segmentation, no context, no distortion (Koehn)."""
    p = sentence.arrays
    value = np.empty(len(p.word))
    state = np.zeros(len(p.word_ptr) - 1, dtype=np.int32)
    kernels.language_model.advance_all(sentence.lm.arrays, state, p.word, p.word_ptr.astype(np.int64), value)
    sums = np.concatenate(([0.0], np.cumsum(value)))
    alone = p.score + sentence.lm_weight * (sums[p.word_ptr[1:-1]] - sums[p.word_ptr[:-2]])
    out = np.full((p.n, p.n), -inf)
    np.maximum.at(out, (p.span_start[p.phrase_span], p.span_end[p.phrase_span]), alone)
    for length in range(2, p.n + 1):
        for i in range(p.n - length + 1):
            j = i + length - 1
            out[i, j] = max(out[i, j], float((out[i, i:j] + out[i + 1 : j + 1, j]).max()))
    return out
