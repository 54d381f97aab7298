"""Markov chains over the structures of a problem that is relaxed, by Metropolis steps from one to the next.

With q the distribution that ``Sampler`` draws from and w = exp(score) / q, a step draws some neighbouring parts of the
first subproblem again, under the multipliers, the others fixed, then all that depends on them, and is taken with the
probability of [Hastings70]_. Each chain begins with a structure drawn from q, and is brought from there through
distributions proportional to q w^b, b from 0 to 1. What w adds with each change of b is, on average over the chains,
the sum of all exp(score) ([Neal01]_). From then on b is 1, and what a chain comes by is what is drawn.
"""

from collections.abc import Iterator

import numpy as np

from certus.checks import Bools, Floats
from certus.relax.sampler import Sampler, State

CHAINS, EACH = (4, 32), 8  # at least and at most, so that they tell how far their mean is off; samples of each
WARM = 128  # steps to b = 1
STEPS = (4, 8)  # between structures that count, at least and at most
LINES = 4  # and one for so many lines of parts
LEVELS, FLATTER = 3, 0.4  # powers to which probabilities are raised in steps, so that other structures are tried too


class Moves:
    """Choices of parts to be drawn again: some of the lines along an axis of a view of the first subproblem.

    Lines are those of which a structure uses one cell each, where there are such; else those along any axis. How many
    is 1, 2, 4, ...: each as likely as it was of use while chains were warmed up.
    """

    def __init__(self, sampler: Sampler) -> None:
        r, first = sampler.relaxation, sampler.order[0]
        exclusive, blocks = r.subproblems[first].exclusive, sorted(r.slices[first])
        self.view, self.cells, self.shape = next((b for b in blocks if b[0] in exclusive), blocks[0])
        self.exclusive = self.view in exclusive
        self.axes = [axis for axis in range(len(self.shape)) if axis != exclusive.get(self.view)]
        self.most = max(max((self.shape[axis] for axis in self.axes), default=1), 1)
        self.tried, self.taken = np.ones((2, self.most.bit_length()))

    @property
    def likely(self) -> Floats:
        """The probabilities of sizes: how many lines change by a step of each."""
        use = 2.0 ** np.arange(len(self.tried)) * self.taken / self.tried
        likely: Floats = use / use.sum()
        return likely

    def drawn(self, likely: Floats, rng: np.random.Generator) -> tuple[int, Bools]:
        """The size, as a power of two, and the cells of the view that stay as they are."""
        power = int(rng.choice(len(likely), p=likely))
        if not self.axes:
            return power, np.zeros(self.shape[0], dtype=np.bool_)
        axis = self.axes[int(rng.integers(len(self.axes)))]
        count = self.shape[axis]
        size = min(1 << power, count)
        kept = np.ones(count, dtype=bool)
        if rng.random() < 0.5:
            start = int(rng.integers(count - size + 1))
            kept[start : start + size] = False
        else:
            kept[rng.permutation(count)[:size]] = False
        along = [1] * len(self.shape)
        along[axis] = count
        return power, np.broadcast_to(kept.reshape(along), self.shape).reshape(-1)


class Chains:
    """Chains of one sampler, each from a structure that was drawn by it."""

    def __init__(self, sampler: Sampler, starts: list[State], count: int, rng: np.random.Generator) -> None:
        self.sampler, self.rng, self.moves = sampler, rng, Moves(sampler)
        self.reward = max(sampler.relaxation.reward(sampler.order[0], lead.penalty) for lead in sampler.leads)
        order = rng.permutation(len(starts))
        chains = min(max(count // EACH, CHAINS[0]), CHAINS[1])
        self.states, self.each = [starts[order[k % len(starts)]] for k in range(chains)], -(-count // chains)

    def warmed_up(self) -> Floats:
        """Bring all chains to b = 1; the logs of what they weigh."""
        weights, moves = np.zeros(len(self.states)), self.moves
        for step in range(1, WARM + 1):
            likely = moves.likely
            for k, state in enumerate(self.states):
                weights[k] += state.log_weight / WARM
                power, kept = moves.drawn(likely, self.rng)
                self.states[k] = self._moved(state, kept, step / WARM)
                moves.tried[power] += 1.0
                moves.taken[power] += float(self.states[k].key != state.key)
        return weights

    def run(self) -> Iterator[State]:
        """What the chains come by, one after the other, ``each`` structures of each: ``count`` or a few more."""
        likely = self.moves.likely
        steps = min(max(self.moves.most // LINES, STEPS[0]), STEPS[1])
        for state in self.states:
            for _ in range(self.each):
                for _ in range(steps):
                    state = self._moved(state, self.moves.drawn(likely, self.rng)[1], 1.0)
                yield state

    def _moved(self, state: State, kept: Bools, b: float) -> State:
        """One Metropolis step that leaves q w^b as it is, and the cells that are kept."""
        sampler, view, cells, rng = self.sampler, self.moves.view, self.moves.cells, self.rng
        lead = sampler.leads[int(rng.choice(len(sampler.leads), p=[lead.share for lead in sampler.leads]))]
        used = np.bincount(state.first.cells[view], minlength=len(kept))
        penalty = lead.penalty.copy()
        penalty[cells][kept & (used == 0)] = -np.inf
        if not self.moves.exclusive:
            penalty[cells][kept & (used > 0)] += self.reward
        law = sampler.sums.law(sampler.order[0], penalty, lead.power * FLATTER ** int(rng.integers(LEVELS)))
        first = law.draws(1, rng)[0]
        if first is None or first.key == state.first.key:
            return state
        if (np.bincount(first.cells[view], minlength=len(kept)) != used)[kept].any():
            return state
        there = sampler.completed(first, rng)
        if there is None or there.log_weight == -np.inf:
            return state
        gained = there.log_probability - state.log_probability + b * (there.log_weight - state.log_weight)
        gained -= law.measure(first) - law.measure(state.first)
        return there if gained >= 0.0 or rng.random() < np.exp(gained) else state
