"""certus.Dependency: dependency trees scored by arcs and by higher-order parts, projective or not."""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent, extent_within, range_of, rounded_up
from certus.certificates.sound import measured, sound_list, summed
from certus.checks import (
    Floats,
    Ints,
    as_bool,
    as_int,
    as_numbers,
    as_positive_int,
    as_scores,
    check_memory,
    one_of,
)
from certus.dependency import parts as P
from certus.dependency.part_kinds import HIGHER_KINDS, PLACES, TABLE, model_of
from certus.dependency.tree_kind import kind_of_trees
from certus.dependency.tree_problem import TreeProblem
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import Forest, sweeps
from certus.lazy import once
from certus.problem import PROBLEMS, Limits, PartBounds, Penalties
from certus.relax.laws import Asked, Law
from certus.relax.system import Relaxation
from certus.result import LogPartitionBounds, MarginalEstimates, Result, Solution
from certus.schema import Field
from certus.serialize import floats_to_json

if TYPE_CHECKING:
    from certus.dependency.forest import DependencyForest
    from certus.dependency.labels import LabelledDependency

Heads = Ints
ROOTS = ("single", "multi")
GRANDPARENTS = ("all", "outermost")


class Dependency(TreeProblem):
    r"""The best dependency tree over n words, for scores of arcs and of higher-order parts.

    A structure is an int64 array ``heads`` of size n + 1: ``heads[m]`` is the head of word m, node 0 is the root and
    ``heads[0]`` is -1. Its score is the sum, over all its parts, of the arrays given. ``-inf`` forbids a part; cells
    that are no part (the diagonal and column 0 of ``arc``, say) are not read. No words: the tree without arcs.

    Parameters
    ----------
    arc : array_like of shape (n + 1, n + 1)
        ``arc[h, m]`` for the arc h -> m.
    sibling : array_like of shape (n + 1,) * 3, optional
        ``sibling[h, s, m]``: s is the modifier of h next inside m on the same side; ``s == h`` when m is innermost.
    grandparent : array_like of shape (n + 1,) * 3, optional
        ``grandparent[g, h, m]`` for arcs g -> h -> m.
    grandsibling : array_like of shape (n + 1,) * 4, optional
        ``grandsibling[g, h, s, m]``: as sibling, with the head g of h.
    trisibling : array_like of shape (n + 1,) * 4, optional
        ``trisibling[h, t, s, m]``: three successive modifiers of h on one side; ``t == h`` when s is innermost. The
        innermost modifier of a side has no such part.
    greatgrandparent : array_like of shape (n + 1,) * 4, optional
        ``greatgrandparent[f, g, h, m]`` for arcs f -> g -> h -> m.
    grandtrisibling : array_like of shape (n + 1,) * 5, optional
        ``grandtrisibling[g, h, t, s, m]``: as trisibling, with the head g of h.
    projective : bool
        Allow only trees without crossing arcs. By default all trees are allowed.
    root : "single" or "multi"
        Exactly one modifier of node 0, or any number.
    grandparents : "all" or "outermost"
        With "outermost", grandparent and grandsibling parts count only where m is the outermost modifier of h on its
        side (Carreras; Model 2). Other parts count at every modifier.
    stop : array_like of shape (n + 1, 2, n + 1), optional
        End-of-side parts: ``stop[h, d, s]`` where s is the outermost modifier of h on its left (d = 0) or right
        (d = 1); ``s == h`` when there is none. Node 0 has only a right side.
    null : array_like of shape (n + 1, n + 1, 2), optional
        Null grandchild parts: ``null[g, h, d]`` for an arc g -> h where h has no modifier on side d.

    Notes
    -----
    Parts that only the innermost modifier has are the cells with ``s == h``; those of the second one are the cells of
    ``trisibling`` with ``t == h``; inner and outer grandchildren are told apart by the order of g, h and m. So
    positional and inner/outer scores need no arrays of their own.

    What decoding costs, for n words:

    ====================================  =========================  ==============================================
    projective                            time, memory               certificate
    ====================================  =========================  ==============================================
    arc                                   n^3, n^2                   "dynamic program" (Eisner)
    + sibling                             n^3, n^2                   "dynamic program" (second order)
    + grandparent (all)                   n^4, n^3                   "dynamic program" (Model 0)
    + grandsibling                        n^4, n^3                   "dynamic program" (Model 1)
    + grandparent (outermost)             n^4, n^3                   "dynamic program" (Carreras)
    + trisibling (and outermost)          n^4, n^3                   "dynamic program" (Model 2)
    + grandtrisibling                     n^5, n^5                   "dynamic program" (DEP B.5.3), by the forest
    + greatgrandparent                    n^5, n^5                   "dynamic program" (DEP B.5.2), by the forest
    ====================================  =========================  ==============================================

    Trees with crossing arcs: n^2 for arcs alone ("combinatorial"); with anything above arcs the problem is NP-hard
    and is decoded by relaxation, to a certificate of kind "dual" or "branch and bound". k-best, marginals, sampling
    and the rest are answered for every projective model, and for arcs alone otherwise. That makes three kinds of trees,
    whose algorithms are in ``projective_trees``, ``crossing_trees`` and ``higher_order_trees`` beside this.

    Examples
    --------
    >>> import certus
    >>> certus.Dependency([[0, 5, 1], [0, 0, 4], [0, 3, 0]], projective=True).decode().structure.tolist()
    [-1, 0, 1]

    References
    ----------
    DEP 5.3, 5.4 and appendix B for the projective models; LR 2.2.4 and 6 for the hypergraph and the relaxations.
    """

    name: ClassVar[str] = "dependency"

    def __init__(
        self,
        arc: ArrayLike,
        sibling: ArrayLike | None = None,
        grandparent: ArrayLike | None = None,
        grandsibling: ArrayLike | None = None,
        trisibling: ArrayLike | None = None,
        *,
        greatgrandparent: ArrayLike | None = None,
        grandtrisibling: ArrayLike | None = None,
        projective: bool = False,
        root: str = "single",
        grandparents: str = "all",
        stop: ArrayLike | None = None,
        null: ArrayLike | None = None,
    ) -> None:
        given = {
            "sibling": sibling,
            "grandparent": grandparent,
            "grandsibling": grandsibling,
            "trisibling": trisibling,
            "greatgrandparent": greatgrandparent,
            "grandtrisibling": grandtrisibling,
            "stop": stop,
            "null": null,
        }
        arcs, extremes = ranged_arcs(arc)
        n = len(arcs) - 1
        scores = {k: P.dense_scores(HIGHER_KINDS[k], a, n) for k, a in given.items() if a is not None}
        self._set(arcs, scores, as_bool("projective", projective), root, grandparents, extremes)

    @classmethod
    def from_parts(
        cls,
        n: int,
        arc: Sequence[ArrayLike],
        sibling: Sequence[ArrayLike] | None = None,
        grandparent: Sequence[ArrayLike] | None = None,
        grandsibling: Sequence[ArrayLike] | None = None,
        trisibling: Sequence[ArrayLike] | None = None,
        *,
        greatgrandparent: Sequence[ArrayLike] | None = None,
        grandtrisibling: Sequence[ArrayLike] | None = None,
        unlisted: float = -np.inf,
        projective: bool = False,
        root: str = "single",
        grandparents: str = "all",
    ) -> Self:
        """The problem of pruned parts, given by lists: its cost grows with the parts that survive, not with n^4.

        Parameters
        ----------
        n : int
            Number of words.
        arc : (h, m, scores)
            Three arrays of one size. Arcs that are not listed are forbidden.
        sibling, grandparent, ... : (h, s, m, scores), (g, h, m, scores), and so on, optional
            One array per index, in the order of the dense arrays, then the scores.
        unlisted : float
            Score of a higher-order part that is not listed: -inf, or 0.0 where lists hold only what is worth a score.
        projective, root, grandparents
            As for the constructor.

        Examples
        --------
        >>> p = Dependency.from_parts(2, arc=([0, 1, 0], [1, 2, 2], [5.0, 4.0, 1.0]), projective=True)
        >>> p.decode().structure.tolist()
        [-1, 0, 1]
        """
        n = as_int("n", n, 0)
        check_memory(f"arcs between {n} words", (n + 1, n + 1))
        if np.isnan(unlisted) or unlisted == np.inf:
            raise InvalidInput(f"unlisted is {unlisted}; scores are finite, or -inf to forbid a part.")
        (heads, mods), scores = P.checked_list(TABLE[0], arc, (n + 1, n + 1))
        arcs = np.full((n + 1, n + 1), -np.inf)
        arcs[heads, mods] = scores
        given = {
            "sibling": sibling,
            "grandparent": grandparent,
            "grandsibling": grandsibling,
            "trisibling": trisibling,
            "greatgrandparent": greatgrandparent,
            "grandtrisibling": grandtrisibling,
        }
        kinds = ((HIGHER_KINDS[k], v) for k, v in given.items() if v is not None)
        listed = {kind.name: P.listed_scores(kind, v, n, float(unlisted)) for kind, v in kinds}
        self = cls.__new__(cls)
        self._set(checked_arcs(arcs), listed, as_bool("projective", projective), root, grandparents)
        return self

    def _set(
        self,
        arc: Floats,
        scores: Mapping[str, P.Scores],
        projective: bool,
        root: str,
        grandparents: str,
        arc_range: tuple[float, float] | None = None,
    ) -> None:
        self.arc = arc
        self.scores = scores
        self.projective = projective
        self.root = one_of("root", root, ROOTS)
        self.grandparents = one_of("grandparents", grandparents, GRANDPARENTS)
        self.n = len(arc) - 1
        self.model = model_of(scores, grandparents == "outermost")
        self.tree_kind = kind_of_trees(self.projective, bool(self.scores))
        self.certificate_kind = self.tree_kind.certificate_kind
        self._rounded = False  # arc scores are rounded sums
        self._arc_range = arc_range  # of their finite scores, where it is known
        self._extent: Extent | None = None  # once it is asked for

    def with_arcs(
        self,
        arc: Floats,
        scores: Mapping[str, P.Scores] | None = None,
        *,
        rounded: bool = False,
        grandparents: str | None = None,
    ) -> Self:
        """The same problem with other scores, already checked; ``rounded``: those of arcs are rounded sums."""
        other = type(self).__new__(type(self))
        kept = self.scores if scores is None else scores
        other._set(arc, kept, self.projective, self.root, grandparents or self.grandparents)
        other._rounded = self._rounded or rounded
        return other

    def with_projective(self, projective: bool) -> Self:
        """The same scores over projective trees, or over all."""
        other = type(self).__new__(type(self))
        other._set(self.arc, self.scores, projective, self.root, self.grandparents)
        other._rounded = self._rounded
        return other

    def labelled(self, label: ArrayLike) -> "LabelledDependency":
        """The same problem with labels on its arcs: ``label[h, m, l]`` is added to the score of the arc h -> m."""
        kind: Any = PROBLEMS["labelled dependency"]  # found by its name, since it is made of problems of this kind
        labelled: LabelledDependency = kind.over(self, label)
        return labelled

    # -- what was given --------------------------------------------------------------------------------------------

    @property
    def listed(self) -> bool:
        """True if higher-order scores come as lists of parts."""
        return any(isinstance(scores, P.ListedScores) for scores in self.scores.values())

    def __repr__(self) -> str:
        given = ", ".join(["arc", *self.scores])
        return f"Dependency(n={self.n}, {given}, projective={self.projective}, root={self.root!r})"

    # -- structures ------------------------------------------------------------------------------------------------

    def terms(self, structure: ArrayLike) -> list[float]:
        return self._terms(self.checked_heads(structure))

    def _terms(self, heads: Heads) -> list[float]:
        """The scores of a tree's parts, in plain Python, for heads that are known to be a tree of this problem."""
        found: list[float] = self.arc[heads[1:], np.arange(1, self.n + 1)].tolist()
        if not self.scores:
            return found
        parts = P.TreeParts(heads.tolist(), self.model)
        for name, scores in self.scores.items():
            found += scores.gather(*parts.of(HIGHER_KINDS[name])).tolist()
        return found

    @cached_property
    def readers(self) -> tuple[P.Reader, ...]:
        """What sums up the scores of parts at a modifier, an outermost one, the end of a side and an empty side."""
        return tuple(P.reader(self.scores, self.model.at(place)) for place in PLACES)

    def extent(self) -> Extent:
        if self._extent is None:
            length = self.n * self.model.terms_of_word + self.model.terms_of_root
            of_arcs = self._arc_range or range_of(self.arc)
            self._extent = extent_within(length, [of_arcs, *[scores.extremes() for scores in self.scores.values()]])
        return self._extent

    def part_scores(self) -> list[Floats]:
        """The scores of parts above arcs, in no special shape."""
        return [scores.all() for scores in self.scores.values()]

    def all_scores(self) -> tuple[Floats, ...] | None:
        return None if self._rounded else (self.arc, *self.part_scores())

    def error_at(self, value: float) -> float:
        return self.tree_kind.error_at(self, value)

    def without_scores_below(self, least: float) -> Self:
        arc = np.where(self.arc < least, -np.inf, self.arc)
        allowed = arc > -np.inf
        kept = {
            name: scores.at_least(least, HIGHER_KINDS[name].readable(allowed, self.single))
            for name, scores in self.scores.items()
        }
        return self.with_arcs(arc, kept)

    def with_scores_rounded_up(self, step: float) -> Self:
        above = {kind: s.rounded_up(step) for kind, s in self.scores.items()}
        return self.with_arcs(rounded_up(self.arc, step), above)

    # -- questions -------------------------------------------------------------------------------------------------

    def _decode(self, limits: Limits) -> Result[Heads]:
        return self.tree_kind.decode(self, limits)

    @sound_list
    def kbest(self, k: int) -> list[Result[Heads]]:
        return self.tree_kind.kbest(self, k)

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[Heads]:
        return self.tree_kind.sample(self, k, seed)

    @summed
    def log_partition(self) -> float:
        return self.tree_kind.log_partition(self)

    @summed
    def marginals(self) -> dict[str, Floats]:
        return {"arcs": self.tree_kind.marginals(self)}

    @summed
    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        """An interval that holds the log-partition function, rounding included: see ``certus.LogPartitionBounds``.

        For trees with crossing arcs and scores above arcs: above, Hoelder's inequality for the sum over spanning trees
        and the sums over the choices of each head, with multipliers that make it as low as ``iterations`` steps can;
        below, the more of Gibbs' inequality for spanning trees with these multipliers, and of the sum over all
        projective trees and some others. Elsewhere the value itself, but for rounding.
        """
        return self.tree_kind.log_partition_bounds(self, as_positive_int("iterations", iterations))

    @summed
    def marginal_estimates(self, *, samples: int = 1000, seed: int | None = None) -> MarginalEstimates:
        """Estimates of the probability of each arc, with standard errors and the effective sample size.

        For trees with crossing arcs and scores above arcs: by weighting ``samples`` trees drawn from a distribution
        of arcs alone. Elsewhere they are exact, and say so. Raises LimitReached if every tree drawn is forbidden.
        """
        return self.tree_kind.marginal_estimates(self, samples, seed)

    @summed
    def part_marginals(self, kind: str) -> Floats:
        """Probability of each higher-order part of a kind that was given, in the shape of its scores; by ``forest()``.

        ``kind`` is the name of an argument: "sibling", "stop" and so on, for projective problems; "arc" for all.
        """
        if one_of("kind", kind, ("arc", *self.scores)) == "arc":
            return self.tree_kind.marginals(self)
        spelt_out = self.spelt_out
        shape = HIGHER_KINDS[kind].shape(self.n)
        P.check_memory(f"the marginals of {kind} parts", shape)
        edges, index = spelt_out.parts(HIGHER_KINDS[kind])
        probability = np.zeros(shape)
        np.add.at(probability, index, sweeps.marginals(spelt_out.forest.graph, spelt_out.forest.weights)[edges])
        return probability

    @summed
    def entropy(self) -> float:
        return self.tree_kind.entropy(self)

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        return {"arcs": self.tree_kind.max_marginals(self, penalties)}

    def max_marginal_bounds(self, *, time_limit: float | None = None) -> PartBounds:
        return self.tree_kind.max_marginal_bounds(self, time_limit)

    # -- the hypergraph --------------------------------------------------------------------------------------------

    @cached_property
    def _spelt_out(self) -> "DependencyForest | None":
        return self.tree_kind.forest(self)

    @property
    def spelt_out(self) -> "DependencyForest":
        """The forest, with the parts that its edges have; NotSupported where trees may cross."""
        if self._spelt_out is None:
            raise NotSupported("trees with crossing arcs are no dynamic program; this needs projective=True.")
        return self._spelt_out

    def forest(self) -> Forest | None:
        """The hypergraph whose hyperpaths are the projective trees, one to one (LR 2.2.4, DEP 5 and B); else None."""
        return None if self._spelt_out is None else self._spelt_out.forest

    def from_edges(self, edges: Sequence[int]) -> Heads:
        return self.spelt_out.heads(edges)

    # -- what the relaxation engine needs --------------------------------------------------------------------------

    def relaxation(self) -> Relaxation | None:
        """For trees with crossing arcs and scores above arcs: the relaxation they are decoded by. Else None."""
        return self.tree_kind.relaxation(self)

    def law(self, asked: Asked) -> Law | None:
        return self.tree_kind.law(self, asked)

    def solve(self, penalties: Penalties | None = None) -> Solution[Heads]:
        return self.tree_kind.solve(self, penalties)

    # -- proofs ----------------------------------------------------------------------------------------------------

    @once
    def normal_form(self) -> NormalForm:
        return self.tree_kind.normal_form(self)

    def normal_structure(self, structure: ArrayLike) -> tuple[Any, ...]:
        return self.tree_kind.normal_structure(self, self.checked_heads(structure))

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "arc": floats_to_json(self.arc),
            "projective": self.projective,
            "root": self.root,
            "grandparents": self.grandparents,
        }
        for kind, scores in self.scores.items():
            if isinstance(scores, P.ListedScores):
                data[kind] = {
                    "keys": scores.keys.tolist(),
                    "scores": floats_to_json(scores.values),
                    "unlisted": floats_to_json(np.array(scores.unlisted)),
                }
            else:
                data[kind] = floats_to_json(scores.dense())
        return data

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        arcs = checked_arcs(given["arc"].scores((None, None)))
        n = len(arcs) - 1
        scores: dict[str, P.Scores] = {}
        for name, kind in ((k, kind) for k, kind in HIGHER_KINDS.items() if k in given):
            part, shape = given[name], kind.shape(n)
            if isinstance(part.value, dict):
                index = np.unravel_index(part["keys"].wholes(0, prod(shape) - 1), shape)
                listed = (*index, part["scores"].scores((None,)))
                unlisted = part["unlisted"].score()
                scores[name] = part.made(partial(P.listed_scores, kind, listed, n, unlisted))
            else:
                scores[name] = P.DenseScores(part.scores(shape))
        settings = (
            given["projective"].flag(),
            given["root"].one_of(ROOTS),
            given["grandparents"].one_of(GRANDPARENTS),
        )
        self = cls.__new__(cls)
        self._set(arcs, scores, *settings)
        return self


def checked_arcs(arc: ArrayLike) -> Floats:
    """A private copy of the arc scores, with -inf where there is no arc."""
    return ranged_arcs(arc)[0]


def ranged_arcs(arc: ArrayLike) -> tuple[Floats, tuple[float, float]]:
    """The same, and the least and the greatest finite score."""
    arcs: Floats = np.array(as_numbers("arc", arc, np.float64), order="C")
    if arcs.ndim != 2 or arcs.shape[0] != arcs.shape[1] or not len(arcs):
        raise InvalidInput(f"arc has shape {arcs.shape}; expected (n + 1, n + 1) for n words and the root.")
    first, diagonal = arcs[:, 0], arcs.reshape(-1)[:: len(arcs) + 1]
    counting = arcs[0, 1] if len(arcs) > 1 else -np.inf  # a score that counts, for those that do not
    first.fill(counting)
    diagonal.fill(counting)
    extremes = range_of(arcs)
    first.fill(-np.inf)
    diagonal.fill(-np.inf)
    return arcs if extremes[1] < np.inf else as_scores("arc", arcs), extremes
