"""Translations of a forest under constraints on their words: exact, by decoding the part that an automaton accepts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from certus.certificates.normal import Closed, Graph, NormalForm
from certus.certificates.rounding import Extent
from certus.checks import Floats, Ints, as_scores
from certus.draw import Gallery
from certus.errors import Infeasible
from certus.hypergraph import Forest
from certus.hypergraph.readings import Reading
from certus.problem import Penalties
from certus.relax.steps import StepRule
from certus.result import Result, Solution
from certus.schema import Field
from certus.translation.forest import NO_DERIVATION, TranslationForest
from certus.translation.forest_problem import MOST_MEMORY, ForestTranslation
from certus.translation.forest_reading import ForestReading
from certus.translation.language_model import LanguageModel
from certus.translation.lm_json import lm_from_json
from certus.translation.word_models import WordModel
from certus.translation.word_reader import WordReader

NONE_ACCEPTED = "no derivation of the forest satisfies the constraints: no translation that they accept has a score."


class AcceptedForest(ForestTranslation):
    """A ``ForestTranslation`` restricted to the translations that an automaton accepts; what ``subject_to`` makes.

    Structures, scores and views are those of the forest as given. ``inner`` is the same problem over the part of the
    forest that is accepted (``forest_reading``), which answers every question, so that nothing is relaxed that was not.
    """

    name: ClassVar[str] = "accepted forest translation"

    def __init__(
        self, forest: TranslationForest, lm: LanguageModel | WordModel, lm_weight: float, reader: WordReader
    ) -> None:
        super().__init__(forest, lm, lm_weight)
        self.reader = reader

    @classmethod
    def of(cls, problem: ForestTranslation, reading: Reading) -> Self:
        """A problem under one constraint more."""
        forest, reader = problem.translation_forest, WordReader.of(reading, problem.translation_forest.words)
        if isinstance(problem, AcceptedForest):
            reader = problem.reader.joined(reader)
        return cls(forest, problem.lm, problem.lm_weight, reader)

    @cached_property
    def _reading(self) -> ForestReading:
        return ForestReading(self.translation_forest, self.reader)

    @cached_property
    def inner(self) -> ForestTranslation:
        """The problem over the accepted part of the forest."""
        return ForestTranslation(self._reading.read.forest, self.lm, self.lm_weight)

    def _with_weights(self, weights: Floats) -> Self:
        return type(self)(self.translation_forest.with_weights(weights), self.lm, self.lm_weight, self.reader)

    # -- structures ------------------------------------------------------------------------------------------------

    def accepts(self, structure: Ints) -> bool:
        """Whether the words of a derivation are accepted."""
        return self.reader.accepts(self.words(structure))

    def terms(self, structure: Ints) -> list[float]:
        scores = super().terms(structure)
        return scores if self.accepts(structure) else [-np.inf]

    def all_structures(self) -> Iterator[Ints]:
        return (y for y in super().all_structures() if self.accepts(y))

    def _outer(self, structure: Ints) -> Ints:
        origin = self._reading.read.origin[structure]
        return origin[origin >= 0]

    def _seen(self, found: Result[Ints]) -> Result[Ints]:
        """A result of the inner problem as one of this."""
        better = tuple(self._outer(y) for y in found.certificate.better)
        return replace(
            found, structure=self._outer(found.structure), certificate=replace(found.certificate, better=better)
        )

    @cached_property
    def _extent(self) -> Extent:
        """That of the accepted part: what no accepted translation uses counts for nothing."""
        return self.inner.extent() if self._reading.read.forest.graph.n_edges else super()._extent

    # -- questions -------------------------------------------------------------------------------------------------

    def decode(
        self,
        *,
        max_iterations: int = 200,
        time_limit: float | None = None,
        exact: bool = True,
        method: str = "search",
        memory_limit: float = MOST_MEMORY,
        pops: int = 200,
        step: StepRule[Any] | None = None,
    ) -> Result[Ints]:
        """As ``ForestTranslation.decode``; Infeasible if no translation is accepted."""
        self._check_feasible()
        limits: Any = {"max_iterations": max_iterations, "time_limit": time_limit, "exact": exact, "step": step}
        return self._seen(self.inner.decode(**limits, method=method, memory_limit=memory_limit, pops=pops))

    def kbest(self, k: int, **options: Any) -> list[Result[Ints]]:
        """As ``ForestTranslation.kbest``."""
        self._check_feasible()
        return Gallery(self._seen(found) for found in self.inner.kbest(k, **options))

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        self._check_feasible()
        found = self.inner.solve(self._inward(penalties))
        return Solution(self._outer(found.structure), found.value)

    def _check_feasible(self) -> None:
        if self._reading.read.forest.graph.n_edges == 0:
            nothing = not (self.translation_forest.weights > -np.inf).any()
            raise Infeasible(NO_DERIVATION if nothing else NONE_ACCEPTED)

    def _inward(self, penalties: Penalties | None) -> dict[str, Floats] | None:
        """Penalties on edges of the forest, on those of the accepted part."""
        if penalties is None:
            return None
        origin = self._reading.read.origin
        shape = {view: as_scores(f"penalties[{view!r}]", p, self.checked_view(view)) for view, p in penalties.items()}
        return {view: np.append(p, 0.0)[origin] for view, p in shape.items()}

    def forest(self) -> Forest:
        own = self.inner.forest()
        origin = np.append(self._reading.read.origin, -1)
        return Forest(own.graph, own.weights, {"edges": origin[own.parts["edges"]]})

    def from_edges(self, edges: Sequence[int]) -> Ints:
        return self._outer(self.inner.from_edges(edges))

    # -- proofs ----------------------------------------------------------------------------------------------------

    def make_witness(self, above: float, penalties: Penalties | None = None) -> dict[str, Floats]:
        if self._reading.read.forest.graph.n_edges == 0:
            return {"pairs": np.zeros((0, 3))}
        return self.inner.make_witness(above, self._inward(penalties))

    def closed_form(self, above: float, witness: Any, penalties: Penalties | None = None) -> Closed:
        """As that of ``ForestTranslation``, over the edges of the forest as given."""
        form, path = self.inner.closed_form(above, witness, self._inward(penalties))

        def structure(edges: Ints) -> list[int] | None:
            own = self._reading.derivation(self._checked(edges))
            return None if own is None else path(np.array(own, dtype=np.int64))

        return Closed(self._outward(form), structure)

    def _outward(self, form: NormalForm) -> NormalForm:
        """A form whose cells are the edges of the accepted part, as one of the edges of the forest."""
        (graph,) = form.spaces
        assert isinstance(graph, Graph)
        weights, cells = self.translation_forest.weights, form.cells["edges"]
        inner = np.flatnonzero(cells >= 0)
        origin = self._reading.read.origin[inner]
        used = np.unique(origin)  # among them -1, for the edges into the new root, which score nothing
        moved = np.full(len(form.scores), -1)
        moved[cells[inner]] = np.searchsorted(used, origin)
        rest = np.flatnonzero(moved < 0)
        moved[rest] = len(used) + np.arange(len(rest))
        scores = np.concatenate((np.append(weights, 0.0)[used], form.scores[rest]))
        outer = np.full(len(weights), -1, dtype=np.int64)
        outer[used[used >= 0]] = np.flatnonzero(used >= 0)
        return form._replace(scores=scores, spaces=(graph._replace(part=moved[graph.part]),), cells={"edges": outer})

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"reader": self.reader.to_json()}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        forest, lm = TranslationForest.from_json(given["forest"]), lm_from_json(given["lm"])
        reader = WordReader.from_json(given["reader"])
        return given.made(lambda: cls(forest, lm, given["lm_weight"].number(), reader))
