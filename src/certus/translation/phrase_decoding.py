"""How phrase-based translations are searched for: optimal beam search and its rivals (LR 7.4 - 7.7).

Every method returns the best translation it found and a bound. All but the last two can prove it the best:

optimal beam   beam searches of growing width under bounds from the lattice of coverages and last words; where that is
               too large, as below, with words tracked where the multipliers stall
alternating    LR alg. 13: a round of subgradient descent on the multipliers, then beam search under their bounds
staged         LR alg. 13: all rounds first, then beam searches of growing width
tight          multipliers alone, and words tracked where they stall, in the manner of LR-TIGHT
astar          A* under the bounds of the lattice of coverages, or of the multipliers' lattice at zero
beam           LR alg. 10 once, with bounds at multipliers zero
stack          stack decoding with estimates of what is left in the place of bounds; proves nothing
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from certus import kernels
from certus.checks import Floats
from certus.clock import Clock
from certus.errors import LimitReached
from certus.relax.engine import Log
from certus.relax.steps import StepRule, polyak
from certus.translation.multipliers import Steps
from certus.translation.phrase_relaxation import MOST_HYPOTHESES, PhraseRelaxation, Sentence
from certus.translation.phrases import Int32

METHODS = ("optimal beam", "alternating", "staged", "tight", "astar", "beam", "stack")
WIDEST = MOST_HYPOTHESES  # a beam that prunes nothing
WINDOW = 10  # rounds that must close STALL of the gap, or they are a stall
STALL = 0.1


@dataclass
class Run:
    """A search under way: the best translation so far, the least dual value, and what to report."""

    sentence: Sentence
    clock: Clock
    path: Int32 | None = None
    score: float = -inf
    proof: str | None = None  # "search" or "dual" once the score is proved the best
    dual: float = inf
    multipliers: Floats | None = None  # of the dual, when they are a witness for it
    log: Log = field(default_factory=Log)
    info: dict[str, Any] = field(default_factory=dict)
    error: float = 0.0  # of the bounds by which something was left out or proved

    def spend(self, what: str, started: float) -> float:
        """Adds the time since ``started`` to an entry of the report; returns the time now."""
        now = self.clock.seconds
        self.info[what] = self.info.get(what, 0.0) + now - started
        return now

    @property
    def out_of_time(self) -> bool:
        return self.clock.out_of_time

    def offer(self, found: Any) -> None:
        """Takes what a search found, and the proof if it pruned nothing."""
        self.info["hypotheses"] = self.info.get("hypotheses", 0) + found.hypotheses
        self.info["searches"] = self.info.get("searches", 0) + 1
        if found.score > self.score:
            self.score, self.path = found.score, found.path
        if not found.pruned:
            self.proof = "search"

    def relaxation(self, tracked: tuple[int, ...] | None, *, exact: bool) -> PhraseRelaxation | None:
        """The relaxation that tracks these words (None: all), or None if its lattice is too large."""
        started = self.clock.seconds
        lattice = self.sentence.lattice(tracked)
        made = None if lattice is None else PhraseRelaxation(self.sentence, lattice, exact_contexts=exact)
        self.spend("lattice seconds", started)
        if made is not None:
            self.info["lattice size"] = made.size
        return made

    def counted(self) -> PhraseRelaxation:
        """The relaxation of LR 7.3: number of words covered, last position, state of the language model."""
        made = self.relaxation((), exact=True)
        if made is None:
            raise LimitReached(f"the lattice of a sentence of {self.sentence.arrays.n} words is too large.")
        return made

    def swept(self, relaxation: PhraseRelaxation, multipliers: Floats) -> float:
        """A sweep, timed."""
        started = self.clock.seconds
        self.error = max(self.error, self.sentence.error(multipliers))
        dual = relaxation.sweep(multipliers)
        self.spend("relaxation seconds", started)
        return dual

    def searched(self, relaxation: PhraseRelaxation, width: int, future: Floats | None = None) -> Any:
        """A beam search under the last sweep's bounds, timed, and its find taken."""
        started = self.clock.seconds
        found = relaxation.search(self.score if future is None else -inf, width, future=future)
        self.spend("search seconds", started)
        self.offer(found)
        return found


def decode(run: Run, method: str, *, width: int, max_iterations: int, step: StepRule[Any] | None = None) -> None:
    """Search by a method; ``width`` is the beam of "beam" and "stack", ``step`` the rule for the multipliers."""
    rule = polyak(patience=3) if step is None else step
    if method == "optimal beam":
        _optimal_beam(run, rule, max_iterations)
    elif method in ("alternating", "staged"):
        _rounds(run, rule, max_iterations, staged=method == "staged")
    elif method == "tight":
        _rounds(run, rule, max_iterations, tighten=True, beams=False)
    elif method == "astar":
        _astar(run)
    elif method == "beam":
        relaxation = run.counted()
        run.dual, run.multipliers = run.swept(relaxation, np.zeros(run.sentence.arrays.n)), relaxation.multipliers
        run.searched(relaxation, width)
    else:
        stack(run, width)
    if run.path is None:
        raise LimitReached(
            f"the search ended at its limits before any translation was found; a wider beam than {width}, more time or "
            'the method "optimal beam" may find one.'
        )
    if run.proof is None and run.multipliers is None:
        relaxation = run.counted()
        run.multipliers = np.zeros(run.sentence.arrays.n)
        run.dual = run.swept(relaxation, run.multipliers)


def _optimal_beam(run: Run, rule: StepRule[Any], max_iterations: int) -> None:
    relaxation = run.relaxation(None, exact=False)
    if relaxation is None:
        _start(run, 4)
        _rounds(run, rule, max_iterations, tighten=True)
        return
    dual = run.swept(relaxation, np.zeros(run.sentence.arrays.n))
    for _ in _widths(run, relaxation, 1):
        run.log.add(dual, run.score, 0.0, 0)


def _widths(run: Run, relaxation: PhraseRelaxation, width: int) -> Iterator[int]:
    """Beam searches under the bounds of the last sweep, each ten times as wide, until one proves its find."""
    while True:
        run.searched(relaxation, width)
        yield width
        if run.proof is not None or run.out_of_time or width >= WIDEST:
            return
        width = min(10 * width, WIDEST)


def _start(run: Run, limit: int) -> None:
    """A first translation: the best one within a narrower limit, which is quick to find. There is always one."""
    sentence = replace(run.sentence, limit=min(limit, run.sentence.limit), gap=True)
    lattice = sentence.lattice(None)
    if lattice is not None:
        relaxation = PhraseRelaxation(sentence, lattice, exact_contexts=False)
        run.swept(relaxation, np.zeros(sentence.arrays.n))
        for width in (1, 10, 1000):
            run.searched(relaxation, width)
        run.proof = None


def _rounds(
    run: Run,
    rule: StepRule[Any],
    max_iterations: int,
    *,
    staged: bool = False,
    tighten: bool = False,
    beams: bool = True,
) -> None:
    """Subgradient descent on the multipliers, and beam searches under the bounds it gives.

    Alternating, a search follows every round, wider as the gap shrinks and ten times wider whenever the dual stalls.
    Staged, one of width 1 comes first and the others at the end. With ``tighten`` words are tracked when wider searches
    do not help.
    """
    relaxation, n = run.counted(), run.sentence.arrays.n
    u, steps = np.zeros(n), Steps(rule, 1.0)
    tracked: tuple[int, ...] = ()
    blame, wider, since, mark = np.zeros(n), 1, 0, inf
    best, best_u = inf, u
    for k in range(max_iterations):
        dual = run.swept(relaxation, u)
        path, residual = relaxation.path_and_residual()
        if dual < best:
            best, best_u = dual, u
        if not tracked and dual < run.dual:
            run.dual, run.multipliers = dual, u
        agreed = not residual.any()
        if agreed and _keeps_limit(run.sentence, path):
            run.score, run.path, best = dual, path, dual
        elif k == 0 or (beams and not staged):
            run.searched(relaxation, min(WIDEST, max(_width(best - run.score), wider)))
            if run.path is None and run.proof is None:
                _start(run, 0)
        if run.proof is None and best <= run.score + run.sentence.error(best_u):
            run.proof = "search" if tracked else "dual"
        run.log.add(dual, run.score, 0.0, n)
        if run.proof is not None or run.out_of_time:
            break
        blame += np.abs(residual)
        since += 1
        if since >= WINDOW:
            if mark - best < STALL * (mark - run.score) or agreed:
                wider *= 10
                if staged:
                    break
                more = _tighter(run, tracked, blame) if tighten and (not beams or wider > 1000) else None
                if more is not None:
                    tracked, relaxation = more
                    blame[:] = 0.0
                    steps.restart()
                    best, u, wider, since, mark = inf, best_u, 1, 0, inf
                    continue
            since, mark = 0, best
        if not agreed:
            u = u.copy()
            run.log.step[-1] = steps.move(u, slice(None), residual, dual, run.score)
    run.info["rounds"] = len(run.log.dual)
    run.info["tracked"] = len(tracked)
    if run.proof is None and beams and not run.out_of_time:
        run.swept(relaxation, best_u)
        for _ in _widths(run, relaxation, 100):
            pass


def _width(gap: float) -> int:
    """The beam for a gap: wider as it shrinks."""
    return int(10 ** min(4, max(0, int(4 - gap)))) if np.isfinite(gap) else 1


def _tighter(run: Run, tracked: tuple[int, ...], blame: Floats) -> tuple[tuple[int, ...], PhraseRelaxation] | None:
    """The relaxation with up to three more words tracked, those most often covered twice or not at all.

    None if there is none to add or the lattice becomes too large.
    """
    order = [i for i in np.argsort(-blame, kind="stable").tolist() if blame[i] > 0 and i not in tracked]
    if not order:
        order = [i for i in range(len(blame)) if i not in tracked]
    if not order or len(tracked) >= 60:
        return None
    more = tuple(sorted((*tracked, *order[:3])))
    made = run.relaxation(more, exact=True)
    return None if made is None else (more, made)


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


def _astar(run: Run) -> None:
    relaxation = run.relaxation(None, exact=False) or run.counted()
    dual = run.swept(relaxation, np.zeros(run.sentence.arrays.n))
    run.searched(relaxation, 0)
    run.log.add(dual, run.score, 0.0, 0)


def stack(run: Run, width: int) -> None:
    """Stacks by number of words covered, as Moses has them; no beam threshold."""
    relaxation = run.relaxation(None, exact=False) or run.counted()
    run.searched(relaxation, width, future=future_estimates(run.sentence))
    run.proof = None


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
