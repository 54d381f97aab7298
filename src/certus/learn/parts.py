"""Trees, marginals and subgradients of one sentence as vectors over its parts, and parts as sums of features."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels
from certus.checks import Bools, Floats, Ints
from certus.dependency.matrix_tree import marginals_batch
from certus.errors import Infeasible, NotSupported
from certus.features.encode import Encoded
from certus.kernels.tuples import Sentence
from certus.learn.trees import TreeModel

Rows = NDArray[np.int32]  # (P, 5): the parts, as kernels.parts has them


class PartVectors:
    """Vectors over the parts of one sentence that a model scores; ``rows`` lists them, the arcs first, by (h, m)."""

    rows: Rows

    def __init__(self, model: TreeModel, allowed: Bools) -> None:
        self.model, self.n = model, len(allowed) - 1
        self.allowed: Bools = allowed & ~np.eye(len(allowed), dtype=np.bool_)
        self.allowed[:, 0] = False
        self.n_arcs = int(self.allowed.sum())
        self.kinds = np.array([len(t.seed) > 0 for t in model.arrays])

    def of_tree(self, heads: Ints) -> Floats:
        """1 for the parts of a tree, 0 for the others."""
        vector = np.empty(len(self.rows))
        kernels.parts.mark_tree(self.rows, heads, vector)
        return vector

    def errors(self, heads: Ints) -> Floats:
        """1 for the arcs that are not in a tree, 0 for all other parts: the Hamming loss as a vector."""
        vector = np.zeros(len(self.rows))
        arcs = self.rows[: self.n_arcs]
        vector[: self.n_arcs] = heads[arcs[:, 2]] != arcs[:, 1]
        return vector


class ForestParts(PartVectors, ABC):
    """Vectors over the parts of the structures of a hypergraph, with sums and maxima over all these structures."""

    @abstractmethod
    def _build(self) -> tuple[Any, ...]:
        """The hypergraph and its parts, (in_ptr, tail_ptr, tail, rows, part_of), as kernels.learning has them."""

    @cached_property
    def _forest(self) -> tuple[Any, ...]:
        return self._build()

    def log_sum(self, score: Floats) -> tuple[float, Floats]:
        """Log of the sum of exp(score) over all structures, and the probability of each part (DEP 4.2, 4.3)."""
        in_ptr, tail_ptr, tail, _, part_of = self._forest
        marginal = np.empty(len(score))
        value = float(kernels.learning.forest_log_sum(in_ptr, tail_ptr, tail, part_of, score, marginal))
        self._require(value)
        return value, marginal

    def best(self, score: Floats) -> tuple[float, Floats]:
        """Value and parts of a best structure."""
        value, _, vector = self.filter(score, 1.0)
        return value, vector

    def filter(self, score: Floats, eta: float) -> tuple[float, Floats, Floats]:
        """Value of the best tree, max-marginals of the arcs (-inf for one in no tree), and the vector of tau(eta).

        tau(eta) = eta * best + (1 - eta) * mean of the max-marginals is the product of that vector and the scores: eta
        times the parts of the best tree and (1 - eta) times the mean of those of the best tree with each arc.
        """
        through, mean = np.empty(self.n_arcs), np.empty(len(score))
        in_ptr, tail_ptr, tail, _, part_of = self._forest
        best = float(kernels.learning.forest_filter(in_ptr, tail_ptr, tail, part_of, score, eta, through, mean))
        self._require(best)
        return best, through, mean

    def _require(self, value: float) -> None:
        if value == -np.inf:
            raise Infeasible(f"the {self.n_arcs} arcs allowed for {self.n} words contain no tree; allow more of them.")


class Parts(ForestParts):
    """The trees of one sentence over the allowed arcs, as vectors over the parts that a model scores.

    Projective trees of any order, and trees with crossing arcs of first order; sums and max-marginals over higher-order
    trees with crossing arcs are NP-hard.
    """

    def __init__(self, model: TreeModel, allowed: Bools) -> None:
        if not model.projective and not model.first_order:
            raise NotSupported(
                "sums and max-marginals over trees with crossing arcs are NP-hard above first order; "
                "train with the perceptron over relaxed trees, or on projective trees."
            )
        super().__init__(model, allowed)
        self.rows = kernels.parts.list_parts(self.allowed, self.kinds)[0] if model.first_order else self._forest[3]

    def _build(self) -> tuple[Any, ...]:
        forest: tuple[Any, ...] = kernels.parts.forest_parts(self.allowed, self.model.single, self.kinds)
        return forest

    def log_sum(self, score: Floats) -> tuple[float, Floats]:
        if not self.model.first_order:
            return super().log_sum(score)
        values, out = np.empty(1), np.empty((1, self.n + 1, self.n + 1))
        arc, lengths = self._matrix(score)[None], np.array([self.n])
        if self.model.projective:
            kernels.eisner.log_totals(arc, lengths, self.model.single, True, out, values)
        else:
            out, values = marginals_batch(arc, lengths, "single" if self.model.single else "multi")
        self._require(float(values[0]))
        return float(values[0]), out[0][self.allowed]

    def best(self, score: Floats) -> tuple[float, Floats]:
        if not self.model.first_order:
            return super().best(score)

        heads = np.empty(self.n + 1, dtype=np.int64)
        value = float(kernels.parser.best_tree(self._matrix(score), self.model.crossing, self.model.single, heads))
        self._require(value)
        return value, self.of_tree(heads)

    def filter(self, score: Floats, eta: float) -> tuple[float, Floats, Floats]:
        if self.model.projective:
            return super().filter(score, eta)

        through, mean = np.empty(self.n_arcs), np.empty(len(score))
        best = float(kernels.learning.crossing_filter(self.rows, self.n, score, self.model.single, eta, through, mean))
        self._require(best)
        return best, through, mean

    def _matrix(self, score: Floats) -> Floats:
        arc = np.full(self.allowed.shape, -np.inf)
        arc[self.allowed] = score
        return arc


class Features:
    """Parts of the sentences of a batch as feature vectors: their scores, and sums of them.

    ``vector`` is zero between uses; whoever calls ``gather`` clears what it touched.
    """

    def __init__(self, model: TreeModel, batch: Encoded, bits: int) -> None:
        self.model, self.batch, self.bits = model, batch, bits
        self.vector: Floats = np.zeros(1 << bits)

    def scores(self, s: int, rows: Rows, weight: Floats) -> Floats:
        """Score of each part of sentence s."""
        score = np.empty(len(rows))
        kernels.parts.score_parts(*self._sentence(s), self.model.weighted(self.bits, weight), rows, score)
        return score

    def gather(self, s: int, rows: Rows, amount: Floats) -> Ints:
        """Add amount times the features of each part to ``vector``; returns the places that are no longer zero."""
        model = self.model.weighted(self.bits, self.vector)
        touched: Ints = kernels.learning.gather(*self._sentence(s), model, rows, amount, self.vector)
        return touched

    def _sentence(self, s: int) -> tuple[Sentence, NDArray[np.uint32]]:
        """Sentence s, and its arcs without names."""
        sentence = self.batch.sentence(s)
        return sentence, np.zeros((sentence.n + 1, sentence.n + 1), dtype=np.uint32)
