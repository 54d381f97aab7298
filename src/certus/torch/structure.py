"""Structures over tensors with losses and layers by decoding: hinge, risk, samples, perturbed scores, SparseMAP."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from certus.checks import Floats, Ints, as_positive_int, one_of, shown
from certus.errors import InvalidInput, NotSupported
from certus.problem import Limits, Penalties, Problem
from certus.relax import branch
from certus.torch.functions import eager, to_double, to_numpy, to_tensor
from certus.torch.scored import Scored, Views, as_scores
from certus.torch.sparse import ActiveSet, Atom, active_sets, system


class SparseMAP(NamedTuple):
    """The answer of ``sparsemap``: weights of a few structures, and what they amount to. Differentiable, but the gap.

    ``gap`` is how much the value may be below the optimum: 0 but for rounding, unless decoding was not proved, or the
    iterations ran out.
    """

    marginals: Views  # (B, ...) by view
    probability: Tensor  # (B, K), 0 where an item has fewer
    gap: Tensor  # (B,)


class Structure(Scored):
    """Structures of one kind, scored by tensors with a leading axis over the items of a batch.

    Tensors are of any floating type, on any device. All is computed in float64 on the CPU; answers are moved back.
    """

    def hinge(self, gold: Any, cost: Tensor | None = None) -> Tensor:
        """Structured hinge loss, (B,): the best score of a structure with its cost, less the score of the gold one.

        Parameters
        ----------
        gold : structures, one of each item, as ``decode`` gives them
        cost : tensor in the shape of the first array, optional
            What each part costs, that of the gold structure is taken off. By default 1 for every part that the gold
            structure does not use.

        Notes
        -----
        Where decoding is not proved the loss is a lower bound of itself.
        """
        right = self.cells(self._given(gold)[:, None])
        used = self._lead(right)[:, 0]
        price = to_double(_of_shape("cost", 1.0 - used if cost is None else cost, self.first.shape))
        every = np.arange(len(self))
        worst = self.cells(self.taken(every, price.detach()).batch.decode().structure[:, None])
        least = self._lead(worst)[:, 0] - used
        loss = self.scores_of(worst)[:, 0] - self.scores_of(right)[:, 0]
        paid = torch.where(least == 0.0, 0.0, price) * least  # what is not used may cost anything
        return (loss + paid.flatten(1).sum(dim=1)).to(self.first)

    def risk(
        self,
        cost: Callable[[Tensor], Tensor],
        k: int = 8,
        *,
        sampled: bool = False,
        seed: int | None = None,
    ) -> Tensor:
        """Expected cost, (B,), under the distribution over the k best structures of each item, or over k samples.

        ``cost`` takes structures (B, k, ...) and gives what each costs, (B, k). Samples that are drawn twice count
        once.
        """
        if not callable(cost):
            raise InvalidInput(f"cost is {shown(cost)}; expected a function of structures (B, k, ...).")
        if sampled:
            structure = self.batch.sample(as_positive_int("k", k), seed=seed)
            flat = structure.reshape(*structure.shape[:2], -1)
            same = (flat[:, :, None] == flat[:, None]).all(axis=3)
            present = ~np.tril(same, -1).any(axis=2)
        else:
            ranks = self.batch.kbest(as_positive_int("k", k))
            structure, present = ranks.structure, ranks.score > -np.inf
        there = torch.from_numpy(present)
        score = self.scores_of(self.cells(structure, present)).masked_fill(~there, -torch.inf)
        price = _of_shape("cost of the structures", cost(to_tensor(structure, self.first)), score.shape)
        return (torch.softmax(score, dim=1) * torch.where(there, to_double(price), 0.0)).sum(dim=1).to(self.first)

    # -- samples that gradients pass through -----------------------------------------------------------------------

    def _lead(self, cells: Tensor) -> Tensor:
        """(B, k, ...) uses of the cells of the first array, by structures given by all their cells."""
        uses = self.uses_of(cells)[..., : prod(self.first.shape[1:])]
        return uses.reshape(*cells.shape[:2], *self.first.shape[1:])

    def relaxed_sample(self, k: int = 1, *, seed: int | None = None) -> Views:
        """k exact samples of each item as 0/1 in the shapes of the views, (B, k, ...), with straight-through gradients.

        The gradient is that of the marginals: right, in expectation, for losses that are linear in the parts.
        """
        uses = self.uses_of(self.cells(self.batch.sample(as_positive_int("k", k), seed=seed)))
        return self._answers(_straight_through(uses, self._sums()[1][:, None]))

    def perturbed(
        self, k: int = 1, *, noise: str = "gumbel", temperature: float = 1.0, seed: int | None = None
    ) -> Views:
        """Best structures under k draws of noise on the first array, as 0/1 in the shapes of the views, (B, k, ...).

        Perturb-and-MAP, with straight-through gradients: those of the marginals of the perturbed scores over
        ``temperature``, or of the scores of the first array themselves where there are no marginals. ``noise`` is
        "gumbel" or "normal".
        """
        one_of("noise", noise, ("gumbel", "normal"))
        if not 0.0 < temperature < np.inf:
            raise InvalidInput(f"temperature is {temperature}; expected a positive number.")
        rng = np.random.default_rng(seed)
        size = (len(self) * as_positive_int("k", k), *self.first.shape[1:])
        drawn = torch.from_numpy(rng.gumbel(size=size) if noise == "gumbel" else rng.normal(size=size))
        items = np.repeat(np.arange(len(self)), k)
        noisy = self.taken(items, drawn)
        uses = noisy.uses_of(noisy.cells(noisy.batch.decode().structure[:, None]))[:, 0]
        try:
            soft = self.taken(items, drawn, temperature)._sums()[1]
        except NotSupported:
            scores = to_double(noisy.scores)
            soft = torch.where(torch.isfinite(scores), scores, 0.0)
        found = _straight_through(uses, soft)
        return self._answers(found.reshape(len(self), k, found.shape[1]))

    # -- SparseMAP -------------------------------------------------------------------------------------------------

    def sparsemap(self, view: str | None = None, *, max_iterations: int = 1000, tolerance: float = 1e-9) -> SparseMAP:
        """The sparse distribution that maximises the expected score less half the squared norm of its marginals.

        Parameters
        ----------
        view : str, optional
            The view whose marginals are kept even; by default that of the first array.
        max_iterations : int
            Structures that are looked for, for each item.
        tolerance : float
            Gains below this share of the scores end the search.

        Notes
        -----
        Works for everything that can be decoded. The gradient is that of the best weights of the structures found.
        """
        chosen = self._view if view is None else one_of("view", view, tuple(self.batch.views))
        cells: list[dict[Any, Ints]] = [{} for _ in range(len(self))]
        theta = to_numpy(self.scores)

        def oracle(items: Ints, shift: Floats) -> list[tuple[Atom, float]]:
            moved = self._onto_first(chosen, torch.from_numpy(shift))
            found = self.taken(items, moved).batch.decode()
            answers = []
            for k, b in enumerate(items.tolist()):
                own = np.sort(self._cells(found.structure[k], b))
                key = own.tobytes()
                cells[b][key] = own
                atom = Atom(key, float(theta[b, own].sum()), self._in_view(chosen, own))
                answers.append((atom, float(found.certificate.bound[k])))
            return answers

        size = prod(self.batch.views[chosen])
        sets = active_sets(oracle, len(self), size, as_positive_int("max_iterations", max_iterations), tolerance)
        listed = [[cells[b][atom.key] for atom in s.atoms] for b, s in enumerate(sets)]
        index = torch.from_numpy(_padded(listed, self.parts.size))
        probability = _weights(sets, self.scores_of(index))
        gap = to_tensor(np.array([s.gap for s in sets]), self.first)
        return SparseMAP(self._answers(_mean(probability, index, self.parts.size)), probability.to(self.first), gap)

    def _onto_first(self, view: str, values: Tensor) -> Tensor:
        """Values of the parts of a view, flat, as values of the cells of the first array."""
        return values.reshape(-1, *self.first.shape[1:])

    def _in_view(self, view: str, cells: Ints) -> Ints:
        """The flat parts of a view that a structure uses, by the cells that it uses; both in order."""
        return cells[cells < prod(self.first.shape[1:])]


@eager
def sparsemap(
    problems: Sequence[Problem[Any]],
    scores: Tensor,
    view: str,
    *,
    max_iterations: int = 1000,
    time_limit: float | None = None,
    tolerance: float = 1e-9,
) -> SparseMAP:
    """SparseMAP over any problems of certus, joint ones too: ``scores`` (B, ...) are added to one of their views.

    ``time_limit``, in seconds, is that of each decoding of a problem that is relaxed; one that is not proved in time
    leaves a gap. Problems have views of one shape. Differentiable in ``scores``.
    """
    as_scores("scores", scores)
    if not len(problems) or scores.shape != (len(problems), *problems[0].checked_view(view)):
        raise InvalidInput(
            f"scores have shape {tuple(scores.shape)}, and there are {len(problems)} problems; expected one or more, "
            f"and scores of all, each in the shape of {view!r}."
        )
    added = to_numpy(scores).reshape(len(problems), -1)
    if not np.isfinite(added).all():
        raise InvalidInput("some of the scores are not finite; forbid parts in the problems themselves.")
    own: list[dict[Any, float]] = [{} for _ in problems]

    def oracle(items: Ints, shift: Floats) -> list[tuple[Atom, float]]:
        answers = []
        for b, move in zip(items.tolist(), shift, strict=True):
            penalty = (added[b] + move).reshape(scores.shape[1:])
            structure, bound = _solved(problems[b], {view: penalty}, time_limit)
            parts = np.flatnonzero(problems[b].indicator(structure, view))
            score = problems[b].score(structure)
            key = (parts.tobytes(), score)
            own[b][key] = score
            answers.append((Atom(key, score + float(added[b, parts].sum()), parts), bound))
        return answers

    sets = active_sets(
        oracle, len(problems), added.shape[1], as_positive_int("max_iterations", max_iterations), tolerance
    )
    size = added.shape[1]
    index = torch.from_numpy(_padded([[atom.parts for atom in s.atoms] for s in sets], size))
    fixed = np.zeros(index.shape[:2])
    for b, s in enumerate(sets):
        fixed[b, : len(s.atoms)] = [own[b][atom.key] for atom in s.atoms]
    flat = torch.nn.functional.pad(to_double(scores).flatten(1), (0, 1))
    worth = flat.gather(1, index.flatten(1)).reshape(index.shape).sum(dim=2) + torch.from_numpy(fixed)
    probability = _weights(sets, worth)
    mean = _mean(probability, index, size).reshape(scores.shape)
    gap = to_tensor(np.array([s.gap for s in sets]), scores)
    return SparseMAP({view: mean.to(scores)}, probability.to(scores), gap)


def _solved(problem: Problem[Any], penalties: Penalties, time_limit: float | None) -> tuple[Any, float]:
    """The best structure under penalties, and a bound on what any scores under them."""
    relaxation = problem.relaxation()
    if relaxation is None:
        solution = problem.solve(penalties)
        return solution.structure, solution.value
    found = branch.climb(problem, relaxation.penalised(penalties), Limits(time_limit=time_limit))
    return found.structure, found.certificate.bound


def _mean(probability: Tensor, index: Tensor, size: int) -> Tensor:
    """(B, size) how often cells are used by structures (B, K) of some probability; ``index`` (B, K, any) has their
    cells, ``size`` for none.
    """
    weight = probability[..., None].expand(index.shape).flatten(1)
    return torch.zeros((len(index), size + 1), dtype=torch.float64).scatter_add(1, index.flatten(1), weight)[:, :-1]


def _weights(sets: list[ActiveSet], score: Tensor) -> Tensor:
    """(B, K) weights of active structures as a function of their scores: linear, as long as these stay active."""
    most = score.shape[1]
    slope, rest = np.zeros((len(sets), most, most)), np.zeros((len(sets), most))
    for b, s in enumerate(sets):
        k = len(s.atoms)
        inverse = np.linalg.pinv(system(s.overlap), hermitian=True)
        slope[b, :k, :k] = inverse[:k, :k]
        rest[b, :k] = s.weight - inverse[:k, :k] @ [atom.score for atom in s.atoms]
    return (torch.from_numpy(slope) * score[:, None]).sum(dim=2) + torch.from_numpy(rest)


def _padded(rows: list[list[Ints]], rest: int) -> Ints:
    """(B, K, any) lists of cells, ``rest`` where there is none."""
    most, longest = max(map(len, rows), default=0), max((len(r) for row in rows for r in row), default=0)
    found = np.full((len(rows), most, longest), rest)
    for b, row in enumerate(rows):
        for k, cells in enumerate(row):
            found[b, k, : len(cells)] = cells
    return found


def _of_shape(name: str, value: Any, shape: torch.Size) -> Tensor:
    """Return value if it is a tensor of that shape."""
    if not isinstance(value, Tensor):
        raise InvalidInput(f"{name} is {shown(value)}; expected a tensor of shape {tuple(shape)}.")
    if value.shape != shape:
        raise InvalidInput(f"{name} has shape {tuple(value.shape)}; expected {tuple(shape)}.")
    return value


def _straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """Values of the first, gradients of the second."""
    return hard + (soft - soft.detach())
