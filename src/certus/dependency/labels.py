"""certus.LabelledDependency: dependency trees whose arcs carry labels, for every model of certus.Dependency.

A label depends on its arc alone, so a labelled problem is an unlabelled one with the labels folded into the arc scores:
their maximum where the best is sought, the log of their sum where all are summed (DEP 4.3). Labels are then read off,
or drawn, or given their probabilities, arc by arc.
"""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count, product
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from certus.certificates.assembling import derivation
from certus.certificates.normal import NormalForm
from certus.certificates.normal import Trees as TreeSpace
from certus.certificates.rounding import Extent, extent_of, of_best, of_log_sum, rounded_up
from certus.certificates.sound import measured, sound_list, summed
from certus.checks import Bools, Floats, Ints, as_generator, as_numbers, as_penalties, as_positive_int, as_scores
from certus.dependency import normal_projective
from certus.dependency import parts as P
from certus.dependency.label_folds import fold_labels
from certus.dependency.problem import Dependency
from certus.dependency.tree_law import TreeLaw
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import Forest, Hypergraph
from certus.lazy import once
from certus.problem import Index, Limits, Penalties, Problem
from certus.relax import ranked
from certus.relax.laws import Asked, Law
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import Multipliers, mapped
from certus.relax.system import Relaxation
from certus.result import LogPartitionBounds, MarginalEstimates, Result, Solution, with_proof_of
from certus.schema import MOST, Field
from certus.serialize import floats_to_json


class LabelledTree(NamedTuple):
    """A tree and the labels of its arcs: ``heads[m]`` is the head of word m, ``labels[m]`` the label of that arc.

    Cell 0 of both is -1.
    """

    heads: Ints
    labels: Ints


class LabelledTrees(Problem[LabelledTree]):
    """What problems have in common whose structures are trees with a label for each word.

    Arcs with their labels score ``label[h, m, l]``. Views are "arcs", "labels" and, for some, "tags": labels by word.
    """

    told_apart_by = ("labels",)
    label: Floats
    n: int
    projective: bool
    single: bool  # node 0 has exactly one modifier

    def _checked(self, structure: tuple[ArrayLike, ArrayLike]) -> LabelledTree:
        return checked_tree(structure, self.label.shape, projective=self.projective, single=self.single)

    def all_structures(self) -> Iterator[LabelledTree]:
        for heads in P.all_heads(self.label.max(axis=2) > -np.inf, projective=self.projective, single=self.single):
            allowed = [np.flatnonzero(self.label[heads[m], m] > -np.inf).tolist() for m in range(1, self.n + 1)]
            for labels in product(*allowed):
                yield LabelledTree(heads.copy(), np.array([-1, *labels], dtype=np.int64))

    def _penalised(self, penalties: Penalties | None) -> Floats:
        """The scores of labels with penalties added."""
        scores = self.label
        for view, penalty in as_penalties(penalties).items():
            values = as_scores(f"penalty of {view}", penalty, self.checked_view(view))
            if view == "tags":
                values = np.concatenate((np.zeros((1, values.shape[1])), values))[None]
            scores = scores + (values[:, :, None] if view == "arcs" else values)
        return scores

    def indicator(self, structure: tuple[ArrayLike, ArrayLike], view: str) -> Floats:
        out = np.zeros(self.checked_view(view))
        heads, labels = self._checked(structure)
        words = np.arange(1, self.n + 1)
        out[(words - 1, labels[1:]) if view == "tags" else (heads[1:], words, labels[1:])[: out.ndim]] = 1.0
        return out

    def from_edges(self, edges: Sequence[int]) -> LabelledTree:
        forest = self.forest()
        if forest is None:
            raise self._not_supported("from_edges")
        cell = forest.parts["labels"][np.asarray(edges, dtype=np.int64)]
        h, m, label = np.unravel_index(cell[cell >= 0], self.label.shape)
        heads, labels = np.full((2, self.n + 1), -1, dtype=np.int64)
        heads[m], labels[m] = h, label
        return LabelledTree(heads, labels)

    def structure_to_json(self, structure: tuple[ArrayLike, ArrayLike]) -> dict[str, list[int]]:
        heads, labels = structure
        return {"heads": [int(h) for h in np.asarray(heads)], "labels": [int(x) for x in np.asarray(labels)]}

    def structure_from_json(self, data: Any) -> LabelledTree:
        given = Field.of(data, "structure")
        heads, labels = (given[name].wholes(-1, MOST, (self.n + 1,)) for name in ("heads", "labels"))
        return self._checked((heads, labels))


class LabelledDependency(LabelledTrees):
    r"""The best dependency tree with labelled arcs, for scores of arcs with labels and of higher-order parts.

    A structure is a ``LabelledTree(heads, labels)``. Its score is that of its tree (see ``certus.Dependency``) and
    ``label[h, m, l]`` for each of its arcs h -> m with label l. Views: "arcs" (n + 1, n + 1), "labels"
    (n + 1, n + 1, L).

    Parameters
    ----------
    label : array_like of shape (n + 1, n + 1, L)
        ``label[h, m, l]`` for label l on the arc h -> m; ``-inf`` forbids it. An arc with no label left is forbidden.
    arc : array_like of shape (n + 1, n + 1), optional
        ``arc[h, m]``, whatever the label; 0 by default. An arc and its label score their sum in float64.
    **options
        The other arguments of ``certus.Dependency``: sibling, grandparent, ..., projective, root, grandparents.

    Notes
    -----
    Folding the labels in takes O(n^2 L). The rest costs what it does without labels, and has the same kind of
    certificate; what is intractable without labels stays so. ``Dependency.labelled(label)`` adds labels to a problem
    of pruned parts. ``forest()`` spells labels out, with up to L edges for each edge of the unlabelled forest.

    Examples
    --------
    >>> import numpy as np
    >>> label = np.zeros((3, 3, 2))
    >>> label[0, 2, 0] = label[2, 1, 1] = 5.0
    >>> heads, labels = LabelledDependency(label).decode().structure
    >>> heads.tolist(), labels.tolist()
    ([-1, 2, 0], [-1, 1, 0])
    """

    name: ClassVar[str] = "labelled dependency"
    exclusive: ClassVar[Mapping[str, int]] = {"arcs": 0}  # one head per word

    def __init__(self, label: ArrayLike, arc: ArrayLike | None = None, **options: Any) -> None:
        labels = checked_labels(label)
        trees = Dependency(np.zeros(labels.shape[:2]) if arc is None else arc, **options)
        self._set(trees, *_with_arc_scores(labels, trees))

    @classmethod
    def over(cls, trees: Dependency, label: ArrayLike) -> Self:
        """See ``Dependency.labelled``."""
        return cls._of(trees, *_with_arc_scores(checked_labels(label), trees))

    @classmethod
    def _of(cls, trees: Dependency, label: Floats, whole: bool = False, lost: bool = False) -> Self:
        self = cls.__new__(cls)
        self._set(trees, label, whole, lost)
        return self

    def _set(self, trees: Dependency, label: Floats, whole: bool = False, lost: bool = False) -> None:
        self._whole = whole  # no sum of label and arc was rounded
        self._lost = lost  # some sum of label and arc is below all numbers
        self.label = label  # [h, m, l]: of the arc h -> m and its label l together
        best = label.max(axis=2)
        self.trees = trees.with_arcs(best, rounded=not whole)  # the best label folded in
        self.certificate_kind = trees.certificate_kind
        self.n, self.projective, self.single = trees.n, trees.projective, trees.single

    @property
    def arc(self) -> Floats:
        """``arc[h, m]``: the score of the arc h -> m with its best label."""
        return self.trees.arc

    def __repr__(self) -> str:
        return f"LabelledDependency({self.label.shape[2]} labels, {self.trees!r})"

    # -- structures ------------------------------------------------------------------------------------------------

    def terms(self, structure: tuple[ArrayLike, ArrayLike]) -> list[float]:
        heads, labels = self._checked(structure)
        words = np.arange(1, self.n + 1)
        above_arcs = self.trees._terms(heads)[self.n :]
        return [*self.label[heads[1:], words, labels[1:]].tolist(), *above_arcs]

    @once
    def extent(self) -> Extent:
        extent = extent_of(self.trees.extent().length + self.n, self.label, *self.trees.part_scores())
        return extent._replace(lowest=float(np.finfo(np.float64).min)) if self._lost else extent

    def extent_under(self, views: Collection[str]) -> Extent:
        return self.extent() if "labels" in views else self.trees.extent()  # a label that is not the best is never used

    def all_scores(self) -> tuple[Floats, ...] | None:
        return (self.label, *self.trees.part_scores()) if self._whole else None

    def error_at(self, value: float) -> float:
        return max(self.trees.error_at(value), of_best(self.extent(), value))  # labels that are not the best count too

    def without_scores_below(self, least: float) -> Self:
        label = np.where(self.label < least, -np.inf, self.label)
        trees = self.trees.with_arcs(label.max(axis=2)).without_scores_below(least)
        return self._of(trees, label, self._whole, self._lost and least == -np.inf)

    def with_scores_rounded_up(self, step: float) -> Self:
        return self._of(self.trees.with_scores_rounded_up(step), rounded_up(self.label, step), self._whole)

    # -- the best: labels folded in by their maximum -----------------------------------------------------------------

    def _with_best_labels(self, heads: Ints, scores: Floats) -> LabelledTree:
        """Ties go to the smallest label."""
        labels = np.full(self.n + 1, -1, dtype=np.int64)
        words = np.arange(1, self.n + 1)
        labels[1:] = scores[heads[1:], words].argmax(axis=1)
        return LabelledTree(heads, labels)

    def _decode(self, limits: Limits) -> Result[LabelledTree]:
        best = self.trees.tree_kind.decode(self.trees, limits)
        labelled, certificate = self._with_best_labels(best.structure, self.label), best.certificate
        if isinstance(certificate.duals, Mapping):
            certificate = replace(certificate, duals=self._multipliers(certificate.duals))
        elif certificate.duals is not None:
            certificate = replace(certificate, duals=mapped(certificate.duals, self._multipliers))
        return Result(labelled, best.score, certificate, best.trace, best.info)

    def _multipliers(self, folded: Multipliers) -> Multipliers:
        """Those of ``relaxation``, whose tree has the scores of arcs: less these, where head automata had them."""
        if "arcs" not in folded:
            return folded
        return {**folded, "arcs": folded["arcs"] - np.where(self.arc > -np.inf, self.arc, 0.0)}

    def solve(self, penalties: Penalties | None = None) -> Solution[LabelledTree]:
        scores = self._penalised(penalties)
        best = self.trees.with_arcs(scores.max(axis=2)).solve()
        return Solution(self._with_best_labels(best.structure, scores), best.value)

    @sound_list
    def kbest(self, k: int) -> list[Result[LabelledTree]]:
        """The k best pairs of tree and labels, best first, all different; fewer when there are fewer.

        The k best trees hold them all. Each tree starts with its best labels; the next ones after a labelling have
        one word more with its next label, no word before the one that changed last, so that none appears twice.
        """
        trees = self.trees.tree_kind.kbest(self.trees, as_positive_int("k", k))
        words = np.arange(1, self.n + 1)
        falling = np.argsort(-self.label, axis=2, kind="stable")
        ordered = np.take_along_axis(self.label, falling, axis=2)
        scores = [ordered[r.structure[1:], words] for r in trees]
        losses = [(s[:, :1] - s).tolist() for s in scores]  # by tree, word and rank of the label; inf where forbidden
        order = count()  # ties leave the heap in the order in which they were found
        heap = [(-r.score, next(order), i, (0,) * self.n, 0) for i, r in enumerate(trees)]
        heapq.heapify(heap)
        found: list[Result[LabelledTree]] = []
        while heap and len(found) < k:
            negated, _, i, ranks, last = heapq.heappop(heap)
            heads = trees[i].structure
            tree = LabelledTree(heads.copy(), np.r_[-1, falling[heads[1:], words, ranks]])
            kind, rank = trees[i].certificate.kind, len(found) + 1
            found.append(self.proved(tree, -negated, kind=kind, rank=rank))
            for w in range(last, self.n):
                following = (*ranks[:w], ranks[w] + 1, *ranks[w + 1 :])
                if following[w] < self.label.shape[2] and losses[i][w][following[w]] < np.inf:
                    loss = sum(losses[i][v][r] for v, r in enumerate(following) if r)
                    heapq.heappush(heap, (loss - trees[i].score, next(order), i, following, w))
        if self.relaxation() is None:
            return found
        best = self.decode()
        first = with_proof_of(found[0], best, self.terms(found[0].structure))
        return ranked.witnessed(self, [first, *found[1:]], best)

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        scores = self._penalised(penalties)
        best = scores.max(axis=2)
        arcs = self.trees.with_arcs(best).max_marginals({})["arcs"]
        rest = arcs - np.where(best > -np.inf, best, 0.0)  # of the best tree with the arc, less the arc
        return {"arcs": arcs, "labels": rest[:, :, None] + scores}

    # -- sums: labels folded in by the log of their sum --------------------------------------------------------------

    @cached_property
    def _summed(self) -> tuple[Dependency, Floats]:
        """The problem with the labels summed out, and the probability of each label given its arc."""
        arc, given = fold_labels(self.label)
        return self.trees.with_arcs(arc), given

    @summed
    def log_partition(self) -> float:
        return self._summed[0].log_partition()

    @summed
    def marginals(self) -> dict[str, Floats]:
        trees, given = self._summed
        arcs = trees.marginals()["arcs"]
        return {"arcs": arcs, "labels": arcs[:, :, None] * given}

    @summed
    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        found = self._summed[0].log_partition_bounds(iterations=iterations)
        error = of_log_sum(4 * self.n * self.label.shape[2], self.extent().size)  # of summing the labels of n arcs
        return replace(found, lower=found.lower - error, upper=found.upper + error)

    @summed
    def marginal_estimates(self, *, samples: int = 1000, seed: int | None = None) -> MarginalEstimates:
        trees, given = self._summed
        found = trees.marginal_estimates(samples=samples, seed=seed)
        arcs, errors = found.marginals["arcs"], found.standard_error["arcs"]
        return replace(
            found,
            marginals={"arcs": arcs, "labels": arcs[:, :, None] * given},
            standard_error={"arcs": errors, "labels": errors[:, :, None] * given},
        )

    @summed
    def part_marginals(self, kind: str) -> Floats:
        """Probability of each higher-order part, whatever the labels; see ``Dependency.part_marginals``."""
        return self._summed[0].part_marginals(kind)

    @summed
    def entropy(self) -> float:
        trees, given = self._summed
        of_labels = -np.sum(given * np.log(np.where(given > 0, given, 1.0)), axis=2)
        return trees.entropy() + float(np.sum(trees.marginals()["arcs"] * of_labels))

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[LabelledTree]:
        trees, given = self._summed
        rng = as_generator(seed)
        words = np.arange(1, self.n + 1)
        out = []
        for heads in trees.sample(k, seed=int(rng.integers(2**63))):
            upto = given[heads[1:], words].cumsum(axis=1)
            labels = np.full(self.n + 1, -1, dtype=np.int64)
            # Scaled by the total, which rounding may leave below 1, so that no label of probability 0 is drawn.
            labels[1:] = (upto <= rng.random((self.n, 1)) * upto[:, -1:]).sum(axis=1)
            out.append(LabelledTree(heads, labels))
        return out

    # -- the hypergraph --------------------------------------------------------------------------------------------

    @once
    def forest(self) -> Forest | None:
        """The hypergraph whose hyperpaths are the labelled projective trees, an edge per arc and label; else None."""
        bare = self.trees.with_arcs(np.where(self.arc > -np.inf, 0.0, -np.inf)).forest()
        if bare is None:
            return None
        graph, cell = bare.graph, bare.parts["arcs"]
        n_labels = self.label.shape[2]
        allowed = self.label.reshape(-1, n_labels)[cell] > -np.inf
        allowed[cell < 0] = np.arange(n_labels) == 0  # an edge that is no arc stays one edge
        edge, label = np.nonzero(allowed)
        first = np.r_[0, allowed.sum(axis=1).cumsum()]
        sizes = np.diff(graph.tail_ptr)[edge]
        tail_ptr = np.r_[0, sizes.cumsum()]
        tail = graph.tail[np.repeat(graph.tail_ptr[edge] - tail_ptr[:-1], sizes) + np.arange(tail_ptr[-1])]
        arcs = cell[edge]
        labels = np.where(arcs >= 0, arcs * n_labels + label, -1)
        weights = bare.weights[edge]
        weights[arcs >= 0] += self.label.reshape(-1)[labels[arcs >= 0]]
        labelled = Hypergraph(first[graph.in_ptr], tail_ptr, tail, graph.root)
        return Forest(labelled, weights, {"arcs": arcs, "labels": labels})

    # -- what the relaxation engine needs --------------------------------------------------------------------------

    def law(self, asked: Asked) -> Law | None:
        crossing = self.trees.law(asked._replace(penalties={})) is not None
        return TreeLaw(self.label, self.trees.root, asked, LabelledTree) if crossing else None

    def relaxation(self) -> Relaxation | None:
        """The relaxation of the problem without labels, where it has one; else None. Its spanning tree has them all."""
        bare = self.trees.with_arcs(np.where(self.arc > -np.inf, 0.0, -np.inf)).relaxation()
        if bare is None:
            return None
        tree, *others = bare.subproblems
        assert isinstance(tree, Dependency)
        views = {**bare.views, "labels": ((0, "labels"),)}

        def leaves(structure: LabelledTree) -> tuple[Any, ...]:
            return (structure, *bare.leaves(structure.heads)[1:])

        labelled = (self._of(tree, self.label), *others)
        return replace(bare, subproblems=labelled, views=views, leaves=leaves, shown=("labels",))

    @once
    def normal_form(self) -> NormalForm:
        arc = np.where(self.arc > -np.inf, 0.0, -np.inf)
        if self.projective:
            return normal_projective.of_trees(self.trees, arc, self.label)
        relaxation = self.relaxation()
        if relaxation is not None:
            relaxed = RelaxedForm.of(relaxation)
            return relaxed.form._replace(cells={view: relaxed.parts_in((0, view)) for view in self.views})
        part, label = _numbered(arc > -np.inf, 0), _numbered(self.label > -np.inf, int((arc > -np.inf).sum()))
        scores = np.concatenate((arc[part >= 0], self.label[label >= 0]))
        cells = {"arcs": part.reshape(-1), "labels": label.reshape(-1)}
        return NormalForm(scores, (TreeSpace(part, self.single, label),), cells)

    def normal_structure(self, structure: tuple[ArrayLike, ArrayLike]) -> tuple[Any, ...]:
        checked = self._checked(structure)
        if self.projective:
            return (derivation(self.normal_form(), {view: self.indicator(checked, view) for view in self.views}),)
        relaxation = self.relaxation()
        if relaxation is not None:
            return RelaxedForm.of(relaxation).structure(checked)
        if (self.label[checked.heads[1:], np.arange(1, self.n + 1), checked.labels[1:]] == -np.inf).any():
            raise InvalidInput("the tree uses an arc or a label that is forbidden.")
        return ((checked.heads.tolist(), checked.labels.tolist()),)

    @property
    def views(self) -> Mapping[str, Index]:
        return {"arcs": self.arc.shape, "labels": self.label.shape}

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        self.checked_part(view, index, value)
        h, m = index[:2]
        if value == 1 and (h == m or m == 0):
            raise NotSupported(f"no tree has the arc {h} -> {m}, which is required.")
        scores = self.label.copy()
        if value == 0:
            scores[index] = -np.inf
        else:
            scores[:, m] = -np.inf
            scores[index] = self.label[index]
        return self._of(self.trees, scores, self._whole, self._lost)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {"label": floats_to_json(self.label), "trees": self.trees.to_json()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        trees = Dependency.from_json(given["trees"])
        label = given["label"].scores((*trees.arc.shape, None))
        return given.made(lambda: cls._of(trees, checked_labels(label), True))


def _numbered(which: Bools, first: int) -> Ints:
    """Numbers from ``first`` on, -1 where there is none."""
    return np.where(which, np.cumsum(which).reshape(which.shape) - 1 + first, -1)


def checked_labels(label: ArrayLike) -> Floats:
    """A private copy of the label scores, with -inf where there is no arc."""
    labels: Floats = np.array(as_numbers("label", label, np.float64), order="C")
    if labels.ndim != 3 or labels.shape[0] != labels.shape[1] or not labels.size:
        raise InvalidInput(f"label has shape {labels.shape}; expected (n + 1, n + 1, L) for n words and L >= 1 labels.")
    labels[:, 0] = -np.inf
    labels[np.arange(len(labels)), np.arange(len(labels))] = -np.inf
    return as_scores("label", labels)


def checked_tree(
    structure: tuple[ArrayLike, ArrayLike], shape: Index, *, projective: bool, single: bool
) -> LabelledTree:
    """A labelled tree of words and labels as label scores of a shape have them; InvalidInput says why it is none."""
    if not isinstance(structure, tuple | list) or len(structure) != 2:
        raise InvalidInput(f"a labelled tree is a pair (heads, labels); found {structure!r}.")
    n, most = shape[0] - 1, shape[2] - 1
    heads = P.checked_heads(structure[0], n, projective=projective, single=single)
    labels = np.asarray(structure[1])
    if labels.shape != heads.shape or labels.dtype.kind not in "iu" or labels[0] != -1:
        raise InvalidInput(f"labels are {n + 1} whole numbers, labels[0] = -1; found {structure[1]!r}.")
    for m in range(1, n + 1):
        if not 0 <= labels[m] <= most:
            raise InvalidInput(f"labels[{m}] is {labels[m]}; labels are 0..{most}.")
    return LabelledTree(heads, labels.astype(np.int64))


def _with_arc_scores(label: Floats, trees: Dependency) -> tuple[Floats, bool, bool]:
    """Labels with the scores of their arcs added, whether no sum was rounded, and whether some are below all numbers.

    Two masks may add up to that; such a sum is -inf.
    """
    arc = trees.arc[:, :, None]
    with np.errstate(over="ignore", invalid="ignore"):
        scores = as_scores("label", label, (*trees.arc.shape, None)) + arc
        whole = (scores == -np.inf) | ((scores - arc == label) & (scores - label == arc))
    lost = (scores == -np.inf) & (label > -np.inf) & (arc > -np.inf)
    return scores, bool(whole.all()), bool(lost.any())
