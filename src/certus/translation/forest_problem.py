"""Translation of a sentence: the best derivation of a forest under an n-gram language model (LR 5, 7; SYN)."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from certus.certificates.normal import Closed, NormalForm
from certus.certificates.rounding import Extent, extent_of, of_sum, rounded_up
from certus.certificates.sound import sound, sound_list
from certus.checks import Floats, Ints, as_positive_int, as_scores, of_kind, one_of
from certus.draw import Picture, phrase_tree
from certus.errors import InvalidInput, NotSupported
from certus.hypergraph import DynamicProgram, Forest, sweeps
from certus.hypergraph.readings import Reading
from certus.problem import PROBLEMS, Index, Penalties
from certus.relax.run import Run
from certus.relax.steps import StepRule
from certus.result import Result, Solution, certified
from certus.schema import Field
from certus.translation import bigram_relaxation
from certus.translation.bigram_relaxation import BigramRelaxation, BoundedSearch
from certus.translation.cube_pruning import cube_pruning
from certus.translation.distinct import best_other
from certus.translation.distinct import distinct as distinct_strings
from certus.translation.forest import ForestArrays, TranslationForest
from certus.translation.forest_closed import path
from certus.translation.forest_kbest import within
from certus.translation.forest_proof import closed_form
from certus.translation.forest_witness import multipliers_below
from certus.translation.language_model import LanguageModel
from certus.translation.leaf_paths import decode_by_leaves
from certus.translation.lm_automaton import extent_of_lm, spell_out
from certus.translation.lm_json import lm_from_json, lm_to_json
from certus.translation.reachable import model_of_forest
from certus.translation.scored_forest import longest, prepare
from certus.translation.word_models import WordModel

METHODS = ("search", "beam", "intersection", "simple", "paths", "partitions", "ilp", "cube")
MOST_SPELT_OUT = 30_000_000  # edges of an exhaustive intersection
FEW_SPELT_OUT = 30_000  # the same, where it takes no longer than what was tried before
MOST_MEMORY = 4e9
BYTES_PER_ITEM = 200  # of a search, its tables included


class ForestTranslation(DynamicProgram[Ints]):
    r"""The best translation in a forest of derivations, scored by rules and by a language model.

    Solves  max over derivations y of  sum of forest.weights[e] over its edges  +  lm_weight * ln p(<s> words </s>),
    where the words are what y yields. Structures are int64 arrays of edges of the forest, head before tails, tails from
    left to right; ``words(structure)`` is the translation. The one view is "edges" (E,): how often each edge is used.

    ``decode`` proves the optimum for language models of any order up to 7: bounds from a bigram relaxation with
    multipliers remove what cannot be best, and an exact search does the rest (``bigram_relaxation.py`` beside this).
    With a bigram model the relaxation is the problem itself, and one sweep decodes it. Memory grows with the square of
    the number of different words, and with the sum over vertices of first words times last words. Certificate kind:
    "dual", with the multipliers of the bound as witness.

    The questions that need all structures at once (``log_partition``, ``marginals``, ``sample``, ``max_marginals``)
    spell out the exhaustive intersection of the forest with the model, which only small forests allow.

    Parameters
    ----------
    forest : TranslationForest
        Edges of weight -inf are forbidden.
    lm : LanguageModel or WordModel
        A model of one's own is asked about every n-gram of the forest; ``lm`` of the problem are the tables of that.
    lm_weight : float

    Examples
    --------
    >>> from certus.io.arpa import Arpa, Ngrams
    >>> words = Ngrams(np.arange(5, dtype=np.int32)[:, None], np.array([-9, 0, -1, -2, -0.5]), np.zeros(5))
    >>> lm = LanguageModel(Arpa(["<unk>", "<s>", "</s>", "cat", "dog"], [words]))
    >>> forest = TranslationForest.from_text(chr(10).join(["1 2", "2", "cat ||| ", "dog ||| "]))
    >>> problem = ForestTranslation(forest, lm)
    >>> problem.words(problem.decode().structure)
    ['dog']
    """

    name: ClassVar[str] = "forest translation"
    certificate_kind = "combinatorial"

    def __init__(self, forest: TranslationForest, lm: LanguageModel | WordModel, lm_weight: float = 1.0) -> None:
        if not isinstance(lm_weight, int | float | np.floating) or not np.isfinite(lm_weight):
            raise InvalidInput(f"lm_weight is {lm_weight!r}; expected a finite number.")
        how = "a certus.TranslationForest: SynchronousGrammar.forest(words) or TranslationForest.read(path)"
        of_kind("forest", forest, TranslationForest, how)
        of_kind("lm", lm, (LanguageModel, WordModel), 'a certus.LanguageModel: LanguageModel.read("lm.arpa")')
        if not isinstance(lm, LanguageModel):
            lm = model_of_forest(lm, forest)
        if lm.order > 7:
            raise NotSupported(f"the language model has order {lm.order}; at most 7.")
        self.translation_forest = forest
        self.lm = lm
        self.lm_weight = float(lm_weight)

    # -- structures ------------------------------------------------------------------------------------------------

    def words(self, structure: Ints) -> list[str]:
        """The translation that a derivation yields."""
        return self.translation_forest.yields(self._checked(structure))

    def picture(self, structure: Ints, words: Sequence[str] | None = None) -> Picture:
        """The derivation as a tree over the words of the translation."""
        return phrase_tree(self.translation_forest.preorder(self._checked(structure)), title="Derivation")

    def terms(self, structure: Ints) -> list[float]:
        edges = self._checked(structure)
        words = self.translation_forest.yields(edges)
        rules: list[float] = self.translation_forest.weights[edges].tolist()
        return [*rules, *(self.lm_weight * x for x in self.lm.terms(words))]

    def all_structures(self) -> Iterator[Ints]:
        for edges in self.translation_forest.graph.hyperpaths():
            yield np.array(edges, dtype=np.int64)

    @cached_property
    def _extent(self) -> Extent:
        f, g = self.translation_forest, self.translation_forest.graph
        edges, words = longest(
            ForestArrays(g.in_ptr[: g.root + 2], g.tail_ptr, g.tail, f.token_ptr, f.token, f.weights)
        )
        rules = extent_of(int(min(edges + words, 2.0**62)), f.weights)
        return rules.joined(extent_of_lm(self.lm, self.lm_weight))

    def extent(self) -> Extent:
        return self._extent

    def all_scores(self) -> tuple[Floats] | None:
        return (self.translation_forest.weights,) if self.lm_weight == 0.0 else None

    def without_scores_below(self, least: float) -> Self:
        if least == -np.inf:
            return self  # all of them are read
        weights = self.translation_forest.weights
        return self._with_weights(np.where(weights < least, -np.inf, weights))

    def with_scores_rounded_up(self, step: float) -> Self:
        if self.lm_weight != 0.0:
            raise NotSupported("the scores of a language model are looked up, and cannot be rounded up.")
        return self._with_weights(rounded_up(self.translation_forest.weights, step))

    @property
    def views(self) -> Mapping[str, Index]:
        return {"edges": (self.translation_forest.graph.n_edges,)}

    def indicator(self, structure: Ints, view: str) -> Floats:
        (size,) = self.checked_view(view)
        return np.bincount(self._checked(structure), minlength=size).astype(np.float64)

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """The problem without an edge (value 0). That an edge is used (value 1) is not supported."""
        (size,) = self.checked_view(view)
        if len(index) != 1 or not 0 <= index[0] < size:
            raise InvalidInput(f"index {index!r} is not one of the edges 0..{size - 1}.")
        if value != 0:
            raise NotSupported(
                "an edge of a translation forest can be forbidden by with_fixed(), not required: ask "
                "subject_to(certus.constraints.require(...))."
            )
        weights = self.translation_forest.weights.copy()
        weights[index[0]] = -np.inf
        return self._with_weights(weights)

    def _checked(self, structure: Any) -> list[int]:
        array = np.asarray(structure)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput("a derivation is a list of edges, head before tails.")
        edges: list[int] = array.tolist()
        return edges

    # -- questions -------------------------------------------------------------------------------------------------

    @sound
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
        """The best derivation with its certificate; at a limit the best one seen, with its honest gap.

        Parameters
        ----------
        max_iterations : int
            Steps on the multipliers.
        time_limit : float, optional
            Seconds.
        exact : bool
            False: multipliers and beams only; no exact search.
        method : str
            - "search": the bigram relaxation with removal, and exact search of what it leaves.
            - "beam": the same relaxation, and beam search within its bounds until nothing is dropped (LR 7.6).
            - "intersection": exhaustive dynamic program over forest and model; the oracle. Small forests.
            - "simple", "paths", "partitions": Lagrangian relaxation on single leaves (LR 5.2), on leaves and the paths
              between them (LR 5.3), and the latter tightened by partitions of the leaves (LR 5.4). Some thousand edges.
            - "ilp": the integer program of leaves and paths, solved by HiGHS, and proved as by "search". The same.
            - "cube": cube pruning with ``pops``; a heuristic, bounded by the relaxation without multipliers.
        memory_limit : float
            Bytes that tables and search may take, roughly.
        step : StepRule, optional
            How far the multipliers move, for methods that have any (``certus.relax.steps``); Polyak's by default.
        """
        one_of("method", method, METHODS)
        run: Run[list[int]] = Run(max_iterations=max_iterations, time_limit=time_limit, scale=self.extent().size)
        if method == "intersection":
            return self._by_intersection()
        if method in ("simple", "paths", "partitions"):
            return decode_by_leaves(self, method, max_iterations=max_iterations, time_limit=time_limit, step=step)
        oracle = self._bounded_search(run, int(memory_limit / BYTES_PER_ITEM))
        if method == "ilp":
            from certus.translation.leaf_program import solve_ilp

            oracle.offer(solve_ilp(self, time_limit))
        if method == "cube":
            pops = as_positive_int("pops", pops)
            oracle.offer(cube_pruning(self.translation_forest, self.lm, self.lm_weight, pops).edges)
            return self._result(oracle, oracle.relaxation.value(), np.zeros(oracle.relaxation.size))
        oracle.exact = exact
        at = bigram_relaxation.decode(
            oracle, step or bigram_relaxation.default_rule(), max_iterations, beams=method == "beam"
        )
        found = self._result(oracle, at.best if run.proof is None else run.score, at.best_u)
        if method != "ilp":
            return self._rounded_less(found) if exact and found.certificate.reason is not None else found
        return replace(found, certificate=replace(found.certificate, kind="integer program"))

    def _rounded_less(self, found: Result[Ints]) -> Result[Ints]:
        """The result or, of a small forest, that of a dynamic program, which rounds less than bounds by multipliers."""
        with suppress(NotSupported):
            graph, weights, origin = spell_out(self.translation_forest, self.lm, self.lm_weight, FEW_SPELT_OUT)
            value, edges = sweeps.best(graph, weights)
            structure = origin[edges][origin[edges] >= 0]
            again = self.proved(structure, value, kind="dynamic program")
            if again.certificate.exact:
                return replace(again, trace=found.trace, info=found.info)
        return found

    def _by_intersection(self) -> Result[Ints]:
        forest = self.forest()
        value, edges = sweeps.best(forest.graph, forest.weights)
        structure = self.from_edges(edges.tolist())
        return self.proved(structure, value, kind="dynamic program")

    def _bounded_search(self, run: Run[list[int]], most_items: int) -> BoundedSearch:
        """The relaxation to search under."""
        forest = prepare(self.translation_forest, self.lm, self.translation_forest.weights)
        return BoundedSearch(self, BigramRelaxation(forest, self.lm, self.lm_weight), run, most_items)

    def _with_weights(self, weights: Floats) -> Self:
        return type(self)(self.translation_forest.with_weights(weights), self.lm, self.lm_weight)

    def _result(self, oracle: BoundedSearch, bound: float, u: Floats) -> Result[Ints]:
        run, relaxation = oracle.run, oracle.relaxation
        structure = np.array(run.structure, dtype=np.int64)
        bound = max(run.score, bound)
        rows = relaxation.multipliers(u)
        duals, error = {**rows, "bound": np.array([bound])}, max(self.dual_error(rows), run.error)
        certificate = certified(partial(self.terms, structure), run.score, bound, error, kind="dual", duals=duals)
        if run.proof is not None and self.lm.order > 3:  # others would be found again, by more rounds
            certificate = replace(certificate, witness=rows)
        return run.result(structure, certificate)

    def solve(self, penalties: Penalties | None = None) -> Solution[Ints]:
        problem = self if penalties is None else self._with_weights(self._penalised(penalties))
        run: Run[list[int]] = Run(scale=problem.extent().size)
        oracle = problem._bounded_search(run, int(MOST_MEMORY / BYTES_PER_ITEM))
        at = bigram_relaxation.decode(oracle, bigram_relaxation.default_rule(), 200)
        if not oracle.over(at):
            raise NotSupported("the best derivation under these penalties was not found within memory.")
        return Solution(np.array(run.structure, dtype=np.int64), run.score)

    def kbest(self, k: int, *, distinct: bool = False) -> list[Result[Ints]]:
        """The k best derivations, best first, each a different one, though some may yield the same words.

        All derivations within a margin of the best are spelt out, a margin that is widened until there are k of them.
        With ``distinct``, each yields other words, and is the best derivation of them: the bound of the k-th holds for
        all derivations but those that yield what one of the k - 1 better ones does.
        """
        k = as_positive_int("k", k)
        return self._distinct(k) if distinct else self._derivations(k)

    @sound_list
    def _derivations(self, k: int) -> list[Result[Ints]]:
        return self._listed(k, distinct=False)

    @sound_list
    def _distinct(self, k: int) -> list[Result[Ints]]:
        return self._listed(k, distinct=True)

    def _listed(self, k: int, *, distinct: bool) -> list[Result[Ints]]:
        best = self.decode()
        if (k == 1 and not distinct) or 2.0 * best.certificate.gap > best.certificate.tolerance:
            return [best]
        found = distinct_strings(self, best, k) if distinct else within(self, best, k)
        ranked = [self.proved(y, value, rank=rank) for rank, (value, y) in enumerate(found, start=1)]
        more = {"distinct": distinct, "witness": best.certificate.witness}
        return [replace(r, certificate=replace(r.certificate, **more)) for r in ranked]

    def yielded(self, structure: Ints) -> Hashable:
        return tuple(self.words(structure))

    def best_yielding_other(self, form: NormalForm, above: float, better: Sequence[Ints]) -> float:
        return best_other(self, form, above, [tuple(self.words(y)) for y in better])

    def _penalised(self, penalties: Penalties | None) -> Floats:
        weights = self.translation_forest.weights
        for view, penalty in (penalties or {}).items():
            weights = weights + as_scores(f"penalties[{view!r}]", penalty, self.checked_view(view))
        return weights

    # -- proofs ----------------------------------------------------------------------------------------------------

    @property
    def searched(self) -> bool:
        return True

    def make_witness(self, above: float, penalties: Penalties | None = None) -> dict[str, Floats]:
        """Multipliers of "pairs" of words that bring the bigram relaxation down towards ``above``."""
        return multipliers_below(self, self._penalised(penalties), above)

    def closed_form(self, above: float, witness: Any, penalties: Penalties | None = None) -> Closed:
        """Every derivation that scores more than ``above`` under the penalties, as paths through one graph.

        Parts are edges, of which "edges" are the cells, and n-grams with their weighted log probabilities, those of
        ``terms``; scores are without the penalties. ``witness["pairs"]`` are multipliers, rows of word, word and value,
        which make the graph small: any are sound. InvalidInput if they are none, or leave too much.
        """
        weights = self._penalised(penalties)
        if penalties:
            weights = np.nextafter(weights, np.inf)  # the sum may have been rounded
            weights[np.isneginf(self._penalised(penalties))] = -np.inf
        form = closed_form(self, above, witness, weights)
        return Closed(form, partial(self._path, form))

    def _path(self, form: NormalForm, structure: Ints) -> list[int] | None:
        edges = self._checked(structure)
        self.translation_forest.yields(edges)
        return path(form, self.translation_forest, edges)

    def dual_error(self, rows: Mapping[str, Floats]) -> float:
        """How far rounding may take the bound at multipliers of pairs of words and of contexts from the truth."""
        extent, largest = self.extent(), sum(float(np.abs(values[:, -1]).max(initial=0.0)) for values in rows.values())
        return of_sum(4 * extent.length, self.lm.order * extent.size + 2.0 * largest)

    def read_by(self, reading: Reading) -> "ForestTranslation":
        kind: Any = PROBLEMS["accepted forest translation"]  # by its name, since it is made of this
        restricted: ForestTranslation = kind.of(self, reading)
        return restricted

    # -- forest and model, spelt out -------------------------------------------------------------------------------

    def forest(self) -> Forest:
        return self._forest

    @cached_property
    def _forest(self) -> Forest:
        graph, weights, origin = spell_out(self.translation_forest, self.lm, self.lm_weight, MOST_SPELT_OUT)
        return Forest(graph, weights, {"edges": origin})

    def from_edges(self, edges: Sequence[int]) -> Ints:
        origin = self.forest().parts["edges"][np.asarray(edges, dtype=np.int64)]
        return origin[origin >= 0]

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The forest, and the n-grams of the model over its words."""
        forest = self.translation_forest
        return {"forest": forest.to_json(), "lm": lm_to_json(self.lm, forest.words), "lm_weight": self.lm_weight}

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        forest, lm = TranslationForest.from_json(given["forest"]), lm_from_json(given["lm"])
        return given.made(lambda: cls(forest, lm, given["lm_weight"].number()))

    def structure_to_json(self, structure: Ints) -> list[int]:
        edges = self._checked(structure)
        self.translation_forest.yields(edges)
        return edges

    def structure_from_json(self, data: Any) -> Ints:
        edges = Field.of(data, "structure").wholes(0, self.translation_forest.graph.n_edges - 1)
        return np.array(self.structure_to_json(edges), dtype=np.int64)
