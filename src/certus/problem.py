"""A problem holds scores; you ask it questions. This is the one idea, the same for every structure.

``Problem`` declares all that users, relaxation, verification, saving and batches ask of one. A class of your own needs
four methods: ``views``, ``solve``, ``score`` (or ``terms``) and ``indicator``. What else a kind of problem can do is
what it overrides: the defaults make do with the four, or say that they cannot, by None where that is an answer
(``forest``, ``relaxation``, ``easier``, ``reference_maximum``), else by NotSupported.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from certus.certificates import rounding
from certus.certificates.enumerated import enumerated_structure
from certus.certificates.normal import Closed, NormalForm
from certus.certificates.sound import floored, measured, moderate, sound, sound_list
from certus.checks import Floats, as_positive_int, as_seconds, as_words, of_kind, shown
from certus.draw import Drawn, Picture, arcs, lattice
from certus.errors import Infeasible, InvalidInput, LimitReached, NotSupported
from certus.lazy import once
from certus.result import LogPartitionBounds, MarginalEstimates, Result, Solution, certified, picture_of
from certus.schema import Field
from certus.serialize import plain_from_json, plain_to_json

if TYPE_CHECKING:
    from certus.hypergraph.dynamic_program import Forest
    from certus.hypergraph.readings import Reading
    from certus.relax.constraints import Constraint
    from certus.relax.laws import Asked, Law
    from certus.relax.steps import StepRule
    from certus.relax.system import Relaxation

Y = TypeVar("Y")
Penalties = Mapping[str, Floats]
Index = tuple[int, ...]

FAR = 2.0**20  # what a part is rewarded by, in best scores, when parts are counted


class Limits(NamedTuple):
    """What ends a search, and how far multipliers move in it: the arguments of ``decode`` that every kind has."""

    max_iterations: int = 500
    time_limit: float | None = None
    exact: bool = True
    step: "StepRule[Any] | None" = None


DEFAULT_LIMITS = Limits()


class Factors(NamedTuple):
    """Scores of labels, one for each row of an exclusive view: alone (n, K), and in tables over rows of the view."""

    unary: Floats
    tables: tuple[tuple[tuple[int, ...], Floats], ...]


Entry = TypeVar("Entry")


class Registry(dict[str, Entry]):
    """What modules above this one enter when they are imported, by name: all of it, from the first look-up that fails.

    ``certus`` imports such a module when one of its names is first used.
    """

    def __missing__(self, name: str) -> Entry:
        if name not in self.complete():
            raise KeyError(name)
        return self[name]

    def complete(self) -> Self:
        """With all that certus offers imported."""
        package = import_module("certus")
        for name in package.__all__:
            getattr(package, name)
        return self


# The kinds of problems that can be saved, by name. A class that says its name and how it is read enters itself; one
# that leaves the reading to the default is entered by ``register``. No file can enter a class.
PROBLEMS: "Registry[type[Problem[Any]]]" = Registry()

# Modules above this one that answer a question, by a function of its name, for every kind of problem that has no
# algorithm of its own: by relaxation.
QUESTIONS = {
    "kbest": "certus.relax.ranked",
    "log_partition_bounds": "certus.relax.sums",
    "marginal_estimates": "certus.relax.estimates",
    "max_marginal_bounds": "certus.relax.part_values",
}


@cache
def relaxed_answer(question: str) -> Callable[..., Any]:
    """The function that answers; its module is imported when the question is first asked."""
    answer: Callable[..., Any] = getattr(import_module(QUESTIONS[question]), question)
    return answer


# Why a kind of problem may do without a question, and what to ask in its place; the others are about sums.
REFUSALS = {
    "all_structures": ("it does not list its structures one by one", "decode() or kbest(k)"),
    "without_scores_below": ("it cannot leave out low scores", "decode() with -inf in place of masks"),
    "with_scores_rounded_up": ("it cannot round its scores", "decode()"),
    "max_marginals": ("penalties are for dynamic programs and trees", "max_marginals() without penalties"),
    "from_edges": ("it is no dynamic program", "decode()"),
    "sequence": ("its structures are not read from left to right", "subject_to() with linear constraints"),
    "with_fixed": ("it cannot fix a part by itself", "subject_to(certus.constraints.require(...)) or forbid(...)"),
    "normal_form": ("it is checked through its relaxation, a reference or its structures", "certus.verify()"),
    "closed_form": ("it is spelt out as a whole", "normal_form()"),
    "make_witness": ("it is spelt out as a whole", "normal_form()"),
}


class PartBounds(NamedTuple):
    """What is known of max-marginals, by view: ``lower <= max_marginals <= upper``, rounding aside."""

    lower: dict[str, Floats]
    upper: dict[str, Floats]


class Problem(ABC, Generic[Y]):
    """Scores over a set of structures, and the questions one may ask of them.

    Besides the questions, a problem shows some of its parts through named views: arrays of 0/1 in the shape users
    think in, such as "tags" (n, T) or "arcs" (n + 1, n + 1). Penalties are arrays in the same shapes; a penalty is
    finite, or -inf to forbid a part. A structure that uses a part twice has a 2 there.
    """

    name: ClassVar[str] = ""  # the word for this kind of problem in a saved result, if it can be saved
    # View -> axis along which every structure uses one cell ({"tags": 1}: one tag per position), if any does, so that
    # a part is required by forbidding its rivals along the axis. Views that are not so are left out.
    exclusive: ClassVar[Mapping[str, int]] = {}
    told_apart_by: tuple[str, ...] = ()  # views in which any two structures differ; () if there may be no such views
    certificate_kind: str = "combinatorial"  # of what ``solve`` finds: it is exact, but for rounding
    hard_sums: ClassVar[str] = "it has no algorithm for sums over all structures"  # why there is none
    tags: Sequence[str] | None = None  # the names of the tags, in the order of the view "tags"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if {"name", "from_json"} <= vars(cls).keys():
            PROBLEMS[cls.name] = cls

    # -- structures ------------------------------------------------------------------------------------------------

    def terms(self, structure: Y) -> Sequence[float] | Floats:
        """The scores of the parts that a structure uses, from the input, in plain Python; [-inf] if it is forbidden.

        Raises InvalidInput for what is not a structure of this problem at all. By default the score is the only term.
        """
        if type(self).score is Problem.score:
            raise NotSupported(f"{type(self).__name__} has neither score() nor terms(); write one of them.")
        return [self.score(structure)]

    def score(self, structure: Y) -> float:
        """Score of one structure: the sum of its terms, rounded once; -inf if it uses a forbidden part."""
        return rounding.total(self.terms(structure))

    def all_structures(self) -> Iterator[Y]:
        """Every structure of a small problem, in no special order; the oracle of the tests.

        Structures that use a forbidden part may be left out.
        """
        raise self._not_supported("all_structures")

    @once
    def extent(self) -> rounding.Extent:
        """How many terms a score has at most, and the least and greatest of all scores: what rounding depends on.

        By default that of one term as large as the best score, and of as many parts as a structure uses at most, which
        ``solve`` tells when every part is rewarded. Structures may score less than this says: see ``least_score``.
        """
        try:
            size = abs(self.solve().value)
            reward = FAR * 2.0 ** np.ceil(np.log2(max(size, 1.0)))
            most = self.solve({view: np.full(shape, reward) for view, shape in self.views.items()}).value
        except Infeasible:
            return rounding.Extent(1, 0.0, 0.0)
        return rounding.Extent(2 + int(most / reward), -size, size)

    def least_score(self) -> float:
        """No structure that is not forbidden scores less; -inf if that is not known."""
        if type(self).extent is Problem.extent:
            return -np.inf
        extent = self.extent()
        return -max(extent.length, 1) * extent.size

    def extent_under(self, views: Collection[str]) -> rounding.Extent:
        """The extent for penalties on these views alone: scores that they cannot bring into use need not count."""
        return self.extent()

    def all_scores(self) -> Iterable[Floats] | None:
        """All scores as arrays; None if they are not at hand. Where all are whole numbers nothing is ever rounded."""
        return None

    def without_scores_below(self, least: float) -> Self:
        """The same problem with scores below ``least`` read as -inf, and scores that are never read cleared.

        A problem without it is asked as it is, and says ``exact=False`` where finite masks spoil the proof.
        """
        if least == -np.inf:
            return self
        raise self._not_supported("without_scores_below")

    def with_scores_rounded_up(self, step: float) -> Self:
        """The same problem with all scores rounded up to multiples of ``step``, a power of two."""
        raise self._not_supported("with_scores_rounded_up")

    # -- questions -------------------------------------------------------------------------------------------------

    @sound
    def decode(
        self,
        *,
        max_iterations: int = 500,
        time_limit: float | None = None,
        exact: bool = True,
        step: "StepRule[Any] | None" = None,
    ) -> Result[Y]:
        """The best structure, with its certificate. Raises Infeasible when there is none.

        The arguments matter only to problems decoded by relaxation. ``max_iterations`` limits the relaxation,
        ``time_limit`` (seconds) all; with ``exact`` the decoder climbs from relaxation to branch and bound until proved
        or out of its limits; ``step`` is a rule of certus.relax.steps for the multipliers. A limit that comes before
        any structure was found raises LimitReached.
        """
        if time_limit is not None:
            as_seconds("time_limit", time_limit)
        return self._decode(Limits(max_iterations, time_limit, exact, step))

    def _decode(self, limits: Limits) -> Result[Y]:
        """What ``decode`` asks: a kind of problem that has a decoder of its own overrides this."""
        if self.relaxation() is not None:
            return self.as_relaxed().decode(**limits._asdict())
        solution = self.solve()
        return self.proved(solution.structure, solution.value)

    @sound_list
    def kbest(self, k: int) -> list[Result[Y]]:
        """The k best structures, best first; fewer when there are fewer.

        By default what is left without those found is partitioned and decoded by relaxation (certus.relax.ranked).
        Scores below about -1e280 cannot be added up in float64: where the list might need one, InvalidInput says so.
        """
        found: list[Result[Y]] = relaxed_answer("kbest")(self, as_positive_int("k", k))
        return found

    def answering(self, question: str) -> "Problem[Any]":
        """The problem that answers a question about all structures in place of this one, such as a dynamic program.

        NotSupported, which says what to ask instead, where there is none.
        """
        raise self._not_supported(question)

    def _summing(self, question: str) -> "Problem[Any]":
        """The same for sums, without scores that add nothing to them."""
        self.answering(question)  # what has no answer is refused before anything is decoded
        return moderate(self).answering(question)

    def yielded(self, structure: Y) -> Hashable:
        """What tells distinct structures apart, where several may come to the same: the words of a translation."""
        raise NotSupported(f"{type(self).__name__} has no lists of distinct structures: no two come to the same.")

    def best_yielding_other(self, form: NormalForm, above: float, better: Sequence[Y]) -> float:
        """The best of a closed form, rounded up, of what yields none of what ``better`` yields; at least ``above``."""
        raise NotSupported(f"{type(self).__name__} has no lists of distinct structures: no two come to the same.")

    def sample(self, k: int, *, seed: int | None = None) -> list[Y]:
        """k structures drawn with probability proportional to exp(score)."""
        return self._summing("sample").sample(k, seed=seed)

    def log_partition(self) -> float:
        """Log of the sum of exp(score) over all structures."""
        return self._summing("log_partition").log_partition()

    def marginals(self) -> dict[str, Floats]:
        """For each view, the probability (expected count) of each part under exp(score)."""
        found = self._summing("marginals").marginals()
        return {view: found[view] for view in self.views}

    def part_marginals(self, kind: str) -> Floats:
        """The expected uses of each cell of an array of scores, by the name of the argument, under exp(score)."""
        return self.answering("part_marginals").part_marginals(kind)

    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        """An interval that holds the log-partition function, rounding included, also where that is hard to find.

        ``iterations`` is how long the upper end is lowered; the interval holds after any number. Of a dynamic program
        it is the value itself, but for rounding; of what is decoded by relaxation, see certus.relax.sums.
        """
        try:
            forest = self.forest()
        except Infeasible:
            self.log_partition()  # which says so where scores are too low to be added up
            raise
        if forest is None and self.relaxation() is not None:
            bounds: LogPartitionBounds = relaxed_answer("log_partition_bounds")(self, iterations)
            return bounds
        if forest is None:
            raise self._not_supported("log_partition_bounds")
        extent, edges = moderate(self).extent(), forest.graph.n_edges
        return LogPartitionBounds.around(self.log_partition(), edges, extent.length * extent.size + edges)

    def marginal_estimates(self, *, samples: int = 1000, seed: int | None = None) -> MarginalEstimates:
        """For each view, an estimate of the probability of each part from weighted samples, with its standard error.

        Exact where the problem has exact marginals, which the answer says; of what is decoded by relaxation, see
        certus.relax.estimates. Without a seed one is drawn, and told. Raises LimitReached if no sample is a structure.
        """
        as_positive_int("samples", samples)
        try:
            return MarginalEstimates.known(self.marginals(), self.log_partition())
        except NotSupported:
            if self.relaxation() is None:
                raise
        estimates: MarginalEstimates = relaxed_answer("marginal_estimates")(self, samples, seed)
        return estimates

    def entropy(self) -> float:
        """Entropy, in nats, of the distribution proportional to exp(score)."""
        return self._summing("entropy").entropy()

    @measured
    def max_marginals(self, penalties: Penalties | None = None) -> dict[str, Floats]:
        """For each view, the best score of any structure that uses each part; -inf for parts no structure uses.

        By default every part that no bound decides takes a decoding of its own (certus.relax.part_values); penalties
        are for relaxations, and only algorithms of dynamic programs and of trees take them. Structures that need a
        score below about -1e280 do not count then. Raises InvalidInput where scores above 1e9 leave nothing of the
        digits of a small one; with penalties the caller accounts for rounding.
        """
        if penalties is not None:
            raise self._not_supported("max_marginals")
        lower, upper = self.max_marginal_bounds()
        for view, values in lower.items():
            if not np.array_equal(values, upper[view]):
                raise LimitReached(f"no proof was found for some of {view!r}; ask for max_marginal_bounds().")
        return lower

    def max_marginal_bounds(self, *, time_limit: float | None = None) -> "PartBounds":
        """Bounds on the max-marginals, in as many seconds: ``lower`` are scores of structures, ``upper`` are proved.

        Both are the max-marginals where there is no limit, and where a kind of problem has an algorithm for these.
        """
        if type(self).max_marginals is Problem.max_marginals:
            return self.part_bounds_by_search(time_limit)
        exact = self.max_marginals()
        return PartBounds(exact, exact)

    def part_bounds_by_search(self, time_limit: float | None) -> "PartBounds":
        """The same of a problem that has no algorithm for max-marginals: searches where bounds do not decide."""
        return PartBounds(*floored(self, lambda problem: relaxed_answer("max_marginal_bounds")(problem, time_limit)))

    def subject_to(self, *constraints: "Constraint | Reading") -> "Problem[Y]":
        """The same problem restricted to structures that satisfy constraints; see ``certus.constraints``.

        Parts that are required or forbidden leave the problem what it is, with all its questions; so do constraints
        that automata read. Constraints that tie parts are relaxed. With a penalty they may be broken at that price.
        """
        # Found by its name, since it is made of problems and of their relaxation, which stands above this module.
        kind: Any = PROBLEMS["constrained"]
        constrained: Problem[Y] = kind.of(self, constraints)
        return constrained

    def read_by(self, reading: "Reading") -> "Problem[Y] | None":
        """The problem under a constraint on what it is read as, if that is words of its own, not cells of a view.

        None, the default, for all others: what automata then read is ``sequence``.
        """
        return None

    def as_relaxed(self) -> "Problem[Y]":
        """The problem as one that is decoded, and solved, by its relaxation: subject to no constraint at all."""
        kind: Any = PROBLEMS["constrained"]
        relaxed: Problem[Y] = kind(self, ())
        return relaxed

    # -- dynamic programs ------------------------------------------------------------------------------------------

    def forest(self) -> "Forest | None":
        """The problem spelt out as a hypergraph, if it is a dynamic program; else None.

        Raises NotSupported where it is one, but too large to spell out.
        """
        return None

    def from_edges(self, edges: Sequence[int]) -> Y:
        """The structure of a hyperpath of ``forest()``, given by its edges, head before tails."""
        raise self._not_supported("from_edges")

    def factors(self) -> Factors | None:
        """The problem as labels scored by tables, if it is that and its only view says which: n rows of K labels.

        Structures are the arrays of n labels. Problems that are so can be joined into one; None for all others.
        """
        return None

    @property
    def has_sequence(self) -> bool:
        """Whether structures have a ``sequence`` that automata can read."""
        return type(self).sequence is not Problem.sequence

    def sequence(self, structure: Y, view: str) -> Sequence[int]:
        """The flat cells of a view that a structure uses, in the order in which its derivation is read.

        That is from left to right, the cell of an edge after those of its tails, in ``forest()`` and in the graph of
        ``normal_form()``. It is what automata read; a problem without it is not restricted by any.
        """
        raise self._not_supported("sequence")

    # -- what the relaxation engine needs --------------------------------------------------------------------------

    @property
    @abstractmethod
    def views(self) -> Mapping[str, Index]:
        """Name and shape of each view."""

    @abstractmethod
    def solve(self, penalties: Penalties | None = None) -> Solution[Y]:
        """Argmax of score plus the sum of penalty * view, with its value. Raises Infeasible when there is none."""

    @abstractmethod
    def indicator(self, structure: Y, view: str) -> Floats:
        """Which parts of a view a structure uses."""

    def with_fixed(self, view: str, index: Index, value: int) -> "Problem[Y]":
        """The same problem, less the structures in which the part is not ``value`` (0 or 1)."""
        raise self._not_supported("with_fixed")

    def easier(self) -> "Problem[Y] | None":
        """A problem with the same views and scores but fewer structures, quicker to solve again and again; or None.

        Relaxations are solved over it first; what they find is then proved over this one.
        """
        return None

    def propose(self, structure: Y) -> Y | None:
        """A structure much like this one that may satisfy the constraints that the problem is used under; or None.

        A relaxation asks it for candidates: the better these are, the fewer cases a proof has. Called once for each
        structure that breaks a constraint.
        """
        return None

    def law(self, asked: "Asked") -> "Law | None":
        """The distribution over structures under penalties, where that is known and ``forest`` does not tell it."""
        return None

    def relaxation(self) -> "Relaxation | None":
        """The relaxation that the problem is decoded by; None if it has an algorithm of its own for ``solve``."""
        return None

    # -- proofs ----------------------------------------------------------------------------------------------------

    @property
    def searched(self) -> bool:
        """Whether structures are as a rule too many to spell out, so that ``closed_form`` is asked."""
        return False

    def normal_form(self) -> NormalForm:
        """The problem in the normal form that certus.verify checks bounds of, in numpy, without any kernel.

        Scores of structures are the sums of the scores of their parts, not rounded: an edge of a graph lists several
        parts where a score is a sum. NotSupported for a problem that has none; see ``reference_maximum``.
        """
        raise self._not_supported("normal_form")

    def normal_structure(self, structure: Y) -> tuple[Any, ...]:
        """A structure as one of every space of the normal form: edges, heads before tails, or heads of words."""
        return enumerated_structure(self, structure)

    def reference_maximum(self, penalties: Penalties | None = None) -> float | None:
        """The value ``solve`` must reach, found again by other means; -inf when infeasible. None if there are none.

        For a problem that has no normal form: certus.verify believes this, and lists all structures where it is None.
        """
        return None

    def closed_form(self, above: float, witness: Any, penalties: Penalties | None = None) -> Closed:
        """What is left of the problem above a score: every structure that scores more with penalties is there.

        Scores of the form are without penalties; its cells are parts of their own, or carry the scores of the parts
        that they are. Without any kernel, and whatever the witness says; InvalidInput if it does not fit the problem.
        """
        raise self._not_supported("closed_form")

    def make_witness(self, above: float, penalties: Penalties | None = None) -> Any:
        """What ``closed_form`` takes, by the fastest means: arrays by name."""
        raise self._not_supported("make_witness")

    # -- pictures --------------------------------------------------------------------------------------------------

    def picture(self, structure: Y, words: Sequence[str] | None = None) -> Picture:
        """A structure as a drawing, with what the problem knows of it: arcs, names of tags, words.

        ``words`` are those of the sentence, for problems that do not know them.
        """
        if isinstance(structure, Drawn) or (
            isinstance(structure, tuple) and any(isinstance(s, Drawn) for s in structure)
        ):
            return picture_of(structure, words)
        if "arcs" in self.views:
            used = np.argwhere(self.indicator(structure, "arcs") > 0)
            return arcs(named_words(words, self.views["arcs"][0] - 1), [(h, m) for h, m in used.tolist() if m])
        if "tags" in self.views:
            n, n_tags = self.views["tags"]
            path = self.indicator(structure, "tags").argmax(axis=1).tolist() if n else []
            return lattice(named_words(words, n), path, self.tags or [str(t) for t in range(n_tags)])
        return picture_of(structure, words)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The problem as JSON data, so that a saved result can be verified elsewhere.

        By default all attributes: numbers, text, arrays, problems, and lists, tuples and dicts of these; of a class
        that is registered, since no other is read again.
        """
        known = PROBLEMS.get(self.name)
        if known is None or known.__qualname__ != type(self).__qualname__:  # one defined again reads it as well
            raise NotSupported(f"{type(self).__name__} does not answer to_json(): enter it by certus.register first.")
        kept = {name: value for name, value in vars(self).items() if not _cached(type(self), name)}
        return {
            name: plain_to_json(value, f"{type(self).__name__}.{name}", _inner_to_json) for name, value in kept.items()
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        """The problem that ``to_json`` described. By default an object with these attributes, not initialised again."""
        problem = cls.__new__(cls)
        for name, value in Field.of(data, "").entries():
            if _cached(cls, name) or any(callable(vars(base).get(name)) for base in cls.__mro__):
                value.fail(f"an attribute; {name} is a method of {cls.__name__}")
            problem.__dict__[name] = plain_from_json(value, problem_from_json)
        return problem

    def structure_to_json(self, structure: Y) -> Any:
        """A structure of this problem as JSON data."""
        return plain_to_json(structure, "structure")

    def structure_from_json(self, data: Any) -> Y:
        """The structure that ``structure_to_json`` described; InvalidInput if it is none."""
        structure: Y = plain_from_json(Field.of(data, "structure"))
        return structure

    # -- shared by the models --------------------------------------------------------------------------------------

    def checked_view(self, view: str) -> Index:
        """Shape of a view; InvalidInput for a name that is not one."""
        if not isinstance(view, str) or view not in self.views:
            raise InvalidInput(
                f"{type(self).__name__} has no view {view!r}; it has {', '.join(map(repr, self.views))}."
            )
        return self.views[view]

    def checked_part(self, view: str, index: Index, value: int) -> Index:
        """Shape of a view whose cell ``index`` is to be fixed to ``value``; InvalidInput if that says nothing."""
        shape = self.checked_view(view)
        if len(index) != len(shape) or not all(0 <= k < size for k, size in zip(index, shape, strict=True)):
            raise InvalidInput(f'index {index} is outside view "{view}" of shape {shape}.')
        if value not in (0, 1):
            raise InvalidInput(f"value is {value!r}; a part is fixed to 0 or 1.")
        return shape

    def error(self) -> float:
        """How far rounding may take any sum of scores of this problem from the truth."""
        extent = self.extent()
        return rounding.of_sum(extent.length, extent.size)

    def error_at(self, value: float) -> float:
        """How far rounding may have taken ``value`` from the truth if it was found as the best score."""
        return rounding.of_best(self.extent(), value)

    def proved(
        self, structure: Y, value: float, *, kind: str | None = None, rank: int = 1, scores: list[float] | None = None
    ) -> Result[Y]:
        """Result of an algorithm that is exact but for rounding and found ``value`` for the structure.

        ``kind`` is that of the certificate, by default the problem's own; ``scores`` are the terms, if they are known.
        """
        used = self.terms(structure) if scores is None else scores
        score = rounding.total(used)
        certificate = certified(
            lambda: used, score, value, self.error_at(value), kind=kind or self.certificate_kind, rank=rank
        )
        return Result(structure, score, certificate)

    def _not_supported(self, question: str) -> NotSupported:
        why, instead = REFUSALS.get(question, (self.hard_sums, "decode(), kbest(k) or max_marginals()"))
        return NotSupported(f"{type(self).__name__} does not answer {question}(): {why}. Ask {instead}.")


def named_words(words: Sequence[str] | None, n: int) -> list[str]:
    """The words, or numbers in their place."""
    if words is None:
        return [str(i) for i in range(1, n + 1)]
    named = as_words("words", words)
    if len(named) != n:
        raise InvalidInput(f"there are {len(named)} words for a sentence of {n}.")
    return list(named)


# -- problems by the name of their kind ------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound="type[Problem[Any]]")


def register(kind: Kind) -> Kind:
    """Enter a class of your own among those that saved results may name; also a decorator.

    Reading a file never imports what the file names: a program that loads results of your class registers it first.
    The class says by which ``name``, of which there is no other; one that is defined again takes the place of the old.
    """
    if not (isinstance(kind, type) and issubclass(kind, Problem)):
        raise InvalidInput(f"{shown(kind)} cannot be registered; expected a class made from certus.Problem.")
    known = PROBLEMS.complete().get(kind.name)
    own = known is None or known is kind
    if not kind.name or not (own or (known and known.__qualname__ == kind.__qualname__)):
        taken = "it has no name" if known is None else f"the name {kind.name!r} is taken by {known.__name__}"
        raise InvalidInput(f'{kind.__name__} cannot be registered: {taken}. Write name = "..." in the class.')
    PROBLEMS[kind.name] = kind
    return kind


def _cached(kind: type, name: str) -> bool:
    """Whether an attribute is the answer of a property or method, which is made again when it is asked for."""
    return name.endswith("()") or any(isinstance(vars(base).get(name), cached_property) for base in kind.__mro__)


def _inner_to_json(value: Any) -> Any:
    return problem_to_json(value) if isinstance(value, Problem) else None


def checked_pair(problem: Any, result: Any) -> None:
    """InvalidInput unless these are a problem and a result, which are easily taken for each other."""
    turned = isinstance(problem, Result) and isinstance(result, Problem)
    order = "the problem comes first, then its result" if turned else "a problem, such as certus.Tagging(scores)"
    of_kind("problem", problem, Problem, order)
    of_kind("result", result, Result, "a Result, such as problem.decode() gives")


def problem_to_json(problem: Problem[Any]) -> dict[str, Any]:
    """A problem as JSON data that says its kind."""
    of_kind("problem", problem, Problem, "a problem, such as certus.Tagging(scores)")
    if problem.name not in PROBLEMS:
        known = ", ".join(PROBLEMS.complete())
        raise InvalidInput(
            f"{type(problem).__name__} is not a kind of problem that can be saved; those are {known}. "
            "A class of your own is entered by certus.register."
        )
    return {"kind": problem.name, "data": problem.to_json()}


def problem_from_json(data: Any) -> Problem[Any]:
    """The problem that problem_to_json described."""
    given = Field.of(data, "problem")
    kind = PROBLEMS[given["kind"].one_of(tuple(PROBLEMS.complete()))]
    given["data"].object()
    return kind.from_json(given["data"])
