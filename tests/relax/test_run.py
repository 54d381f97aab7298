"""A run, and the descent on oracles small enough to follow by hand."""

from math import inf, isnan

import numpy as np
import pytest

from certus import Infeasible, InvalidInput, LimitReached
from certus.relax.descent import Oracle, Round, descend
from certus.relax.run import Log, Run
from certus.relax.steps import constant, deflected, polyak


class Lines(Oracle):
    """max over structures y of  score[y] + u use[y]  subject to use = 0: the dual is a maximum of lines in u."""

    def __init__(self, lines):
        self.lines = lines  # (score, use)
        self.rows = 1

    def ask(self, u):
        score, use = max(self.lines, key=lambda line: line[0] + u[0] * line[1])
        return Round(score + u[0] * use, np.array([float(use)]), [((score, use), score)] if use == 0 else [])


LOOSE = [(4.0, 1), (2.0, -1), (1.0, 0)]  # the dual is 3 at u = -1, the best structure scores 1


def test_limits_that_make_no_sense():
    for limits in ({"max_iterations": 0}, {"time_limit": 0.0}, {"time_limit": -1.0}):
        with pytest.raises(InvalidInput):
            Run(**limits)


def test_a_bound_closes_only_what_it_proves():
    run = Run(scale=10.0)
    assert not run.closes(5.0, lambda: 0.0)
    assert run.closes(-inf, lambda: 0.0)
    assert run.closes(-7.0, lambda: 0.0, lowest=-6.0)  # no structure scores so little
    run.offer("first", 5.0)
    run.offer("worse", 4.0)
    assert (run.structure, run.score) == ("first", 5.0)
    assert run.closes(5.0, lambda: 0.0)
    assert not run.closes(5.0 + 1e-9, lambda: 1e-10)
    assert run.closes(5.0 + 1e-9, lambda: 1e-8)
    assert not run.closes(6.0, lambda: 2.0)  # a gap of this size is no rounding, whatever is said


def test_without_a_structure_the_clock_says_which_error_it_is(monkeypatch):
    with pytest.raises(Infeasible, match="because"):
        Run().give_up("tree", "because")
    late = Run(time_limit=1.0)
    monkeypatch.setattr(late.clock, "start", -1e9)
    with pytest.raises(LimitReached, match="no tree found in 1 s"):
        late.give_up("tree", "because")


def test_rows_and_bursts_make_one_trace():
    log = Log()
    assert len(log.trace()) == 0
    log.add(5.0, -inf, 1.0, 2)
    log.extend(np.array([[4.0, 1.0, 0.5, 2.0, 1.0], [3.0, 1.0, 0.5, 2.0, -inf]]))
    log.add(2.0, 2.0, 0.0, 2, 2.0)
    trace = log.trace()
    assert len(log) == len(trace) == 4
    assert trace.dual.tolist() == [5.0, 4.0, 3.0, 2.0]
    assert trace.primal.tolist() == [-inf, 1.0, 1.0, 2.0]
    assert trace.active.tolist() == [2, 2, 2, 2]
    assert isnan(trace.round_primal[0])
    assert trace.round_primal[1:].tolist() == [1.0, -inf, 2.0]


def test_a_descent_ends_with_agreement():
    run = Run()
    at = descend(run, Lines([(4.0, 1), (5.0, 0)]), np.zeros(1), polyak(), max_iterations=10)
    assert at.closed
    assert (run.score, at.best, run.iterations) == (5.0, 5.0, 1)


def test_a_loose_relaxation_stalls():
    run = Run()
    at = descend(run, Lines(LOOSE), np.zeros(1), deflected(), max_iterations=500, window=10)
    assert not at.closed
    assert at.rounds < 500
    assert at.best >= 3.0
    assert (run.log.trace().dual >= 3.0).all()


def test_the_search_hook_sees_every_round_and_may_end_it():
    run, seen = Run(), []

    def search(at):
        seen.append(at.value)
        if len(seen) == 3:
            run.offer("found", 2.0)
            run.proof = "search"

    at = descend(run, Lines(LOOSE), np.zeros(1), constant(0.5), max_iterations=50, search=search)
    trace = run.log.trace()
    assert trace.dual.tolist() == seen
    assert (at.rounds, run.score) == (3, 2.0)
    assert trace.primal.tolist() == [-inf, -inf, 2.0]
    assert trace.step[-1] == 0.0
    assert (trace.round_primal == -inf).all()  # what the search finds is not of the relaxation


def test_a_stalled_relaxation_is_tightened():
    """Without the lines that cross above it the best structure is proved; multipliers go on from the best."""
    run, asked = Run(), []

    def tighten(at):
        asked.append((at.rounds, at.best))
        return (Lines([(1.0, 0), (0.5, 1)]), at.best_u) if len(asked) == 1 else None

    at = descend(run, Lines(LOOSE), np.zeros(1), constant(1.0), max_iterations=100, window=5, tighten=tighten)
    assert len(asked) == 1
    assert asked[0][1] == 3.0
    assert at.closed
    assert (run.score, at.best) == (1.0, 1.0)


def test_bounds_of_before_hold_after_tightening():
    run = Run()
    worse = (Lines([(9.0, 0)]), np.zeros(1))
    at = descend(run, Lines([(4.0, 1), (2.0, -1)]), np.zeros(1), constant(1.0), max_iterations=9, window=4,
                 tighten=lambda at: worse if at.oracle is not worse[0] else None)  # fmt: skip
    assert at.oracle is worse[0]
    assert at.best == 3.0


def test_a_descent_may_go_on_with_the_same_oracle_after_a_stall():
    run, asked = Run(), []

    def tighten(at):
        asked.append(at.state.count)
        return at.oracle, at.u

    at = descend(run, Lines(LOOSE), np.zeros(1), constant(1.0), max_iterations=30, window=5, tighten=tighten)
    assert at.rounds == 30
    assert len(asked) > 1
    assert asked == sorted(asked)  # the step rule goes on too
    assert asked[-1] > 5


def test_an_oracle_that_has_nothing_better_left_ends_the_descent():
    class Emptied(Lines):
        def ask(self, u):
            return super().ask(u) if u[0] == 0.0 else None

    run = Run()
    run.offer("known", 2.5)
    at = descend(run, Emptied(LOOSE), np.zeros(1), constant(1.0), max_iterations=50)
    assert at.closed
    assert (at.rounds, at.best) == (1, 4.0)


def test_a_subgradient_that_vanishes_without_a_proof_asks_for_tightening():
    class Unscored(Lines):
        def ask(self, u):
            return super().ask(u)._replace(candidates=())

    run, asked = Run(), []
    at = descend(run, Unscored([(1.0, 0)]), np.zeros(1), polyak(), max_iterations=9, tighten=asked.append)
    assert asked == [at]
    assert at.rounds == 1
