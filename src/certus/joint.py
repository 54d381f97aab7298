"""Problems that must agree: joint decoding by dual decomposition (LR 4.2)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import frexp, inf, isfinite
from typing import Any, Self

import numpy as np

from certus.certificates.rounding import WIDTH, Extent
from certus.certificates.sound import sound_list, summed
from certus.checks import Floats, as_members, as_positive_int, of_kind, shown
from certus.errors import Infeasible, InvalidInput, NotSupported
from certus.factors import FactorGraph, merged
from certus.hypergraph import Forest
from certus.hypergraph.readings import Reading
from certus.problem import Index, Limits, Penalties, Problem, problem_from_json, problem_to_json
from certus.relax import branch, ranked, sums
from certus.relax.constraints import Constraint
from certus.relax.descent import descend
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.proof import Fix, Leaf, Split, Tighter
from certus.relax.run import Run
from certus.relax.steps import polyak
from certus.relax.system import Relaxation
from certus.result import Certificate, LogPartitionBounds, Result, Solution, certified, with_proof_of
from certus.schema import Field

Structures = tuple[Any, ...]
Place = tuple[int, str]  # a problem, by its number, and a view of it


class Joint(Problem[Structures]):
    r"""The best structures, one of each problem, that agree on views.

    Solves  max over (y_0, y_1, ...) of  sum of weights[k] * problems[k].score(y_k)  such that all use the same parts
    of the views ``on``: the same tag for every word, the same head for every word. Each problem keeps its own fast
    algorithm; Lagrange multipliers bring them to agree. When they do not, parts are removed and branched on until the
    optimum is proved. Certificate kind: "dual" or "branch and bound".

    Parameters
    ----------
    *problems : Problem
        Two or more. If those that agree on "tags" have names of ``tags``, these are equal. A problem may be a Joint
        itself, and all are relaxed together. The first problem leads when candidates are made, so it is best the one
        with the harder structures.
    on : str or sequence of str
        Name of the view that all share, such as "tags" or "arcs"; or several names, each of a view that is shared by
        all the problems that have it, of which there are two at least. In a Joint that does not share a view itself,
        it is that of the one problem that has it: "0.arcs" is found by "arcs".
    weights : sequence of float, optional
        What the scores of each problem are worth (LR eq. 4.11); positive, 1 by default.
    weight : float, optional
        For two problems: what a score of the second is worth; the same as ``weights=(1, weight)``.
    merge : bool
        Problems that score labels by tables (taggings, factor graphs) are one such problem when put together, and are
        decoded as one where that is small: without multipliers, so without a gap. False relaxes them all the same.

    Notes
    -----
    Structures are tuples (y_0, y_1, ...). The views ``on`` are shared; the others are called "0.name", "1.name", ...

    Examples
    --------
    >>> from certus import Joint, Tagging
    >>> a = Tagging([[0, 1], [0, 0]], bigram=[[2, 0], [0, 0]])
    >>> b = Tagging([[0, 0], [0, 3]])
    >>> Joint(a, b, on="tags").decode().score
    4.0
    >>> Joint(a, b, b, on="tags", weights=(1, 1, 2)).decode().score
    10.0
    """

    name = "joint"

    def __init__(
        self,
        *problems: Problem[Any],
        on: str | Sequence[str],
        weights: Sequence[float] | None = None,
        weight: float | None = None,
        merge: bool = True,
    ) -> None:
        for k, problem in enumerate(problems):
            if not isinstance(problem, Problem):
                listed = "without brackets, " if isinstance(problem, list | tuple) else ""
                raise InvalidInput(
                    f"problem {k} is {shown(problem)}; expected problems, {listed}as in Joint(a, b, on={on!r})."
                )
        if len(problems) < 2:
            raise InvalidInput(f"there is {len(problems)} problem to agree with others; expected two or more.")
        views = 'names of views that the problems share, such as "tags" or ("tags", "arcs")'
        self.problems, self.on = problems, on if isinstance(on, str) else as_members("on", on, views)
        for name in () if isinstance(on, str) else self.on:
            of_kind("a view in on", name, str, views)
        self.weights, self.merge = _weights(len(problems), weights, weight), merge
        self.ties = _ties(problems, self.on)
        self.exclusive = {  # type: ignore[misc]
            name: problems[k].exclusive[view]
            for name, ((k, view), *_) in self.ties.items()
            if view in problems[k].exclusive
        }
        self._tie_of = {place: name for name, places in self.ties.items() for place in places}
        self.tags = _common_tags([(k, problems[k].tags) for k, _ in self.ties.get("tags", ())])

    def __repr__(self) -> str:
        weights = ", ".join(f"{w:g}" for w in self.weights)
        return f"Joint({', '.join(map(repr, self.problems))}, on={self.on!r}, weights=({weights}))"

    # -- structures ------------------------------------------------------------------------------------------------

    @cached_property
    def _places(self) -> dict[str, list[Place]]:
        """Where each view is found, by the name it has here."""
        every = ((k, view) for k, problem in enumerate(self.problems) for view in problem.views)
        return self.ties | {f"{k}.{view}": [(k, view)] for k, view in every if (k, view) not in self._tie_of}

    @cached_property
    def views(self) -> Mapping[str, Index]:
        return {name: self.problems[k].views[view] for name, ((k, view), *_) in self._places.items()}

    def _checked(self, structure: Structures) -> Structures:
        if not isinstance(structure, tuple) or len(structure) != len(self.problems):
            raise InvalidInput(
                f"structure is {type(structure).__name__}; expected a tuple of {len(self.problems)} structures."
            )
        return structure

    def indicator(self, structure: Structures, view: str) -> Floats:
        self.checked_view(view)
        k, inner = self._places[view][0]
        return self.problems[k].indicator(self._checked(structure)[k], inner)

    def terms(self, structure: Structures) -> list[float]:
        scores: list[float] = []
        for problem, y, weight in zip(self.problems, self._checked(structure), self.weights, strict=True):
            scores += [weight * float(x) for x in problem.terms(y)]
        for name, ((first, view), *others) in self.ties.items():
            used = self.problems[first].indicator(structure[first], view)
            for k, inner in others:
                apart = np.argwhere(used != self.problems[k].indicator(structure[k], inner))
                if len(apart):
                    raise InvalidInput(f"structures {first} and {k} do not agree on {name}{apart[0].tolist()}.")
        return scores

    def all_structures(self) -> Iterator[Structures]:
        return self._extended(())

    def _extended(self, chosen: Structures) -> Iterator[Structures]:
        """All structures that begin with the ones chosen."""
        k = len(chosen)
        if k == len(self.problems):
            yield chosen
            return
        ties = [(places[0], view) for places in self.ties.values() for at, view in places if at == k]
        key = tuple(self.problems[j].indicator(chosen[j], own).tobytes() for (j, own), _ in ties if j < k)
        for y in self._by_parts[k].get(key, ()):
            yield from self._extended((*chosen, y))

    @cached_property
    def _by_parts(self) -> list[dict[tuple[bytes, ...], list[Any]]]:
        """The structures of each problem by the parts that they share with problems before it."""
        out = []
        for k, problem in enumerate(self.problems):
            shared = [view for places in self.ties.values() for at, view in places[1:] if at == k]
            found: dict[tuple[bytes, ...], list[Any]] = {}
            for y in problem.all_structures():
                found.setdefault(tuple(problem.indicator(y, view).tobytes() for view in shared), []).append(y)
            out.append(found)
        return out

    def extent(self) -> Extent:
        whole = Extent(0, inf, -inf)
        for problem, weight in zip(self.problems, self.weights, strict=True):
            whole = whole.joined(problem.extent(), weight)
        return whole

    def all_scores(self) -> list[Floats] | None:
        found: list[Floats] = []
        for problem, weight in zip(self.problems, self.weights, strict=True):
            scores = problem.all_scores()
            if scores is None:
                return None
            found += scores if weight == 1.0 else [weight * array for array in scores]
        return found

    def _of(self, problems: Sequence[Problem[Any]]) -> Self:
        return type(self)(*problems, on=self.on, weights=self.weights, merge=self.merge)

    def without_scores_below(self, least: float) -> Self:
        pairs = zip(self.problems, self.weights, strict=True)
        return self._of([problem.without_scores_below(least / weight) for problem, weight in pairs])

    def with_scores_rounded_up(self, step: float) -> Self:
        for weight in self.weights:
            if frexp(weight)[0] != 0.5:
                raise NotSupported(f"scores times {weight:g} are rounded, unless they are times a power of two.")
        pairs = zip(self.problems, self.weights, strict=True)
        return self._of([problem.with_scores_rounded_up(step / weight) for problem, weight in pairs])

    def with_fixed(self, view: str, index: Index, value: int) -> Self:
        """A shared part is fixed in every problem that can do so, which must be one at least."""
        self.checked_view(view)
        problems, unable = list(self.problems), list[NotSupported]()
        for k, inner in self._places[view]:
            try:
                problems[k] = problems[k].with_fixed(inner, index, value)
            except NotSupported as error:
                unable.append(error)
        if len(unable) == len(self._places[view]):
            raise unable[0]
        return self._of(problems)

    def subject_to(self, *constraints: Constraint | Reading) -> Problem[Structures]:
        """As for any problem; what automata read is read in the first problem that has the view and a sequence."""
        problems = list(self.problems)
        for reading in (c for c in constraints if isinstance(c, Reading)):
            view = next(iter(self.views)) if reading.view is None else reading.view
            self.checked_view(view)
            places = [(k, own) for k, own in self._places[view] if problems[k].has_sequence]
            if not places:
                raise NotSupported(f"no problem with the view {view!r} has a sequence that {reading} could read.")
            k, own = places[0]
            problems[k] = problems[k].subject_to(replace(reading, view=own))
        linear = [c for c in constraints if not isinstance(c, Reading)]
        whole = self._of(problems)
        return Problem.subject_to(whole, *linear) if linear else whole

    # -- questions -------------------------------------------------------------------------------------------------

    @cached_property
    def _merged(self) -> FactorGraph | None:
        """All as one factor graph, where they are that together and their tables are small."""
        given = [problem.factors() for problem in self.problems] if self.merge and len(self.ties) == 1 else [None]
        known = [factors for factors in given if factors is not None]
        return merged(known, self.weights) if len(known) == len(given) else None

    def relaxation(self) -> Relaxation:
        """That of all problems as one factor graph, or all side by side, with rows for every part of shared views."""
        if self._merged is None:
            return self._tied()
        inner, (name,) = Relaxation.of(self._merged), self.ties
        return replace(
            inner,
            views={name: inner.views["labels"]},
            assemble=lambda leaves: (inner.assemble(leaves),) * len(self.problems),
            leaves=lambda structures: inner.leaves(structures[0]),
            shown=(name,) if inner.shown else (),
        )

    def _tied(self) -> Relaxation:
        return Relaxation.side_by_side([Relaxation.of(p) for p in self.problems], self.weights, self.ties)

    def _decode(self, limits: Limits) -> Result[Structures]:
        return branch.decode(self, limits)

    @sound_list
    def kbest(self, k: int) -> list[Result[Structures]]:
        """The k best structures.

        Of two dynamic programs: goes through the k-best structures of a under the multipliers, completes each by its
        k-best partners, and ends when the multipliers show that no later structure of a can take part. Of others what
        is left without those found is partitioned (certus.relax.ranked). Where derivations may use a part twice,
        proofs, which only say whether a part is used, show no more of the second and later ones than of the best.
        """
        if as_positive_int("k", k) == 1:
            return [self.decode()]
        if len(self.problems) > 2 or len(self.ties) > 1 or any(problem.searched for problem in self.problems):
            return ranked.kbest(self, k)
        a, b = (problem.forest() for problem in self.problems)
        if a is None or b is None:
            return ranked.kbest(self, k)
        best = self.decode()
        first, *others = self._ranked(a, b, k)
        if self._repeats(0, a) or self._repeats(1, b):
            others = [self._bounded(r, best.certificate) for r in others]
        return [with_proof_of(first, best, self.terms(first.structure)), *others]

    def _ranked(self, a: Forest, b: Forest, k: int) -> list[Result[Structures]]:
        relaxation = self._tied()
        subproblems = Subproblems(relaxation)
        oracle = Lagrangian(subproblems, subproblems.initial)
        origin, run = np.zeros(relaxation.n_rows), Run[Any](scale=relaxation.scale)
        u = descend(run, oracle, origin, polyak(), max_iterations=200, window=15).best_u
        penalty = relaxation.penalties(u, subproblems.initial)
        rest = subproblems.solve(1, penalty, ()).value
        error = max(self.error(), oracle.error(u))
        penalties = relaxation.question(0, penalty, ())[0]
        partners: dict[bytes, list[Any]] = {}
        asked, pairs, done = 2 * k, {}, 0
        while True:
            found = a.kbest(asked, penalties)
            for at in range(done, len(found)):
                y = self.problems[0].from_edges(found[at][0])
                used = self.problems[0].indicator(y, self._own(0))
                key = used.tobytes()
                if key not in partners:
                    partners[key] = self._partners(b, used, k)
                for j, z in enumerate(partners[key]):
                    pairs[at, j] = (self.score((y, z)), (y, z))
            done = len(found)
            best = sorted(pairs.items(), key=lambda item: (-item[1][0], item[0]))[:k]
            if len(found) < asked or (len(best) == k and best[-1][1][0] >= found[-1][1] + rest):
                return [self._listed(pair, s, rank, error) for rank, (_, (s, pair)) in enumerate(best, start=1)]
            asked *= 2

    def _own(self, k: int) -> str:
        """What one of two problems calls the view they share."""
        (places,) = self.ties.values()
        return places[k][1]

    def _repeats(self, k: int, forest: Forest) -> bool:
        """Whether a derivation of one of two problems may use a part that they share more than once."""
        if self._own(k) in self.problems[k].exclusive:
            return False
        try:
            forest.graph.check(connected=False, disjoint_references=True)
        except InvalidInput:
            return True
        return False

    def _listed(self, pair: Structures, score: float, rank: int, error: float) -> Result[Structures]:
        scores = partial(self.terms, pair)
        return Result(pair, score, certified(scores, score, score, error, kind="combinatorial", rank=rank))

    def _bounded(self, result: Result[Structures], best: Certificate) -> Result[Structures]:
        """A result of a higher rank that is proved to be no better than the best one, and no more."""
        own, duals = result.certificate, best.duals
        if duals is None:
            return replace(result, certificate=replace(own, bound=inf, tolerance=0.0))
        error = max(own.tolerance, best.tolerance) / WIDTH
        scores = partial(self.terms, result.structure)
        made = certified(scores, result.score, best.bound, error, kind=own.kind, rank=own.rank)
        tree = duals if isinstance(duals, Leaf | Fix | Split | Tighter) else Leaf(duals)
        return replace(result, certificate=replace(made, witness=tree))

    def _partners(self, forest: Forest, used: Floats, k: int) -> list[Any]:
        """The k best structures of b, whose forest is given, that use the given parts, and all of them."""
        problem, view, asked = self.problems[1], self._own(1), k
        while True:
            try:
                listed = forest.kbest(asked, {view: np.where(used > 0, 0.0, -np.inf)})
            except Infeasible:
                return []
            found = (problem.from_edges(edges) for edges, _ in listed)
            partners = [z for z in found if np.array_equal(used, problem.indicator(z, view))]
            if len(partners) >= k or len(listed) < asked:
                return partners[:k]
            asked *= 4

    # -- sums, where all problems are one factor graph of small width --------------------------------------------------

    def answering(self, question: str) -> FactorGraph:
        if self._merged is None or self._merged.forest() is None:
            raise NotSupported(
                f"{question}() of problems that must agree has no tractable answer, unless they score labels by tables "
                "and are one factor graph of small width together. Ask decode(), kbest(k), max_marginals(), "
                "log_partition_bounds() or marginal_estimates()."
            )
        return self._merged

    @summed
    def log_partition_bounds(self, *, iterations: int = 150) -> LogPartitionBounds:
        if self._merged is None:
            return sums.log_partition_bounds(self, iterations)
        return self._merged.log_partition_bounds(iterations=iterations)

    @summed
    def marginals(self) -> dict[str, Floats]:
        found, (name,) = self.answering("marginals").marginals(), self.ties
        return {name: found["labels"]}

    @summed
    def sample(self, k: int, *, seed: int | None = None) -> list[Structures]:
        return [(labels,) * len(self.problems) for labels in self.answering("sample").sample(k, seed=seed)]

    # -- for the engine, when a joint problem is part of another ---------------------------------------------------

    def solve(self, penalties: Penalties | None = None) -> Solution[Structures]:
        """Climbs the whole ladder: exact, and as costly as decode()."""
        result = branch.climb(self, self.relaxation().penalised(penalties))
        return Solution(result.structure, result.score)

    # -- travel ----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        return {
            "problems": [problem_to_json(problem) for problem in self.problems],
            "on": self.on if isinstance(self.on, str) else list(self.on),
            "weights": list(self.weights),
            "merge": self.merge,
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:
        given = Field.of(data, "")
        problems = [problem_from_json(problem) for problem in given["problems"].items()]
        on = given["on"].texts() if isinstance(given["on"].value, list) else given["on"].text()
        weights = [weight.number() for weight in given["weights"].items()]
        merge = given["merge"].flag() if "merge" in given else False  # older files have proofs of what is not merged
        return given.made(lambda: cls(*problems, on=on, weights=weights, merge=merge))

    def structure_to_json(self, structure: Structures) -> Any:
        return [p.structure_to_json(y) for p, y in zip(self.problems, self._checked(structure), strict=True)]

    def structure_from_json(self, data: Any) -> Structures:
        given = Field.of(data, "structure").items(size=len(self.problems))
        return tuple(p.structure_from_json(y) for p, y in zip(self.problems, given, strict=True))


def _weights(count: int, weights: Sequence[float] | None, weight: float | None) -> tuple[float, ...]:
    """A positive number for each of the problems."""
    if weight is not None:
        if count != 2 or weights is not None:
            raise InvalidInput(
                f"weight is that of the second of two problems; give weights= for {count}, and only one."
            )
        weights = (1.0, weight)
    given = (1.0,) * count if weights is None else as_members("weights", weights, "a number for each problem")
    if len(given) != count:
        raise InvalidInput(f"there are {len(given)} weights; expected one for each of {count} problems.")
    for w in given:
        if isinstance(w, bool) or not isinstance(w, int | float | np.number) or not (isfinite(w) and w > 0):
            raise InvalidInput(f"a weight is {w!r}; expected a positive number.")
    return tuple(map(float, given))


def _ties(problems: Sequence[Problem[Any]], on: str | tuple[str, ...]) -> dict[str, list[Place]]:
    """For each name the problems that share the view, and what they call it; InvalidInput where that makes no sense."""
    ties: dict[str, list[Place]] = {}
    for name in (on,) if isinstance(on, str) else on:
        found = [(k, _view_called(problem, name)) for k, problem in enumerate(problems)]
        ties[name] = [(k, view) for k, view in found if view is not None]
        if isinstance(on, str) or len(ties[name]) < 2:
            for k, view in found:
                if view is None:
                    problems[k].checked_view(name)
        (first, own), *others = ties[name]
        for k, view in others:
            a, b = problems[first].views[own], problems[k].views[view]
            if a != b:
                raise InvalidInput(
                    f"view {name!r} has shape {a} in problem {first} and {b} in problem {k}; they must be equal."
                )
    tied = {k for places in ties.values() for k, _ in places}
    for k, problem in enumerate(problems):
        if k not in tied:
            raise InvalidInput(
                f"problem {k} shares none of the views {on!r}; it has {', '.join(map(repr, problem.views))}."
            )
    return ties


def _view_called(problem: Problem[Any], name: str) -> str | None:
    """The view of a problem that a name means: its own, or in a joint problem the one of a side; None if none."""
    found = [view for view in problem.views if view == name or view.endswith(f".{name}")]
    return name if name in found else found[0] if len(found) == 1 else None


def _common_tags(given: Sequence[tuple[int, Any]]) -> Any:
    """The names all problems use for their tags, where any are given; InvalidInput that says where they differ."""
    known = [(k, tuple(tags)) for k, tags in given if tags is not None]
    if not known:
        return None
    (first, names), *others = known
    for k, tags in others:
        if tags == names:
            continue
        only = [(first, sorted(set(names) - set(tags))), (k, sorted(set(tags) - set(names)))]
        found = ", ".join(f"only problem {at} has {', '.join(map(repr, extra))}" for at, extra in only if extra)
        if not found:
            t = next(t for t, (x, y) in enumerate(zip(names, tags, strict=True)) if x != y)
            found = f"tag {t} is {names[t]!r} in problem {first} and {tags[t]!r} in problem {k}"
        raise InvalidInput(f"the problems have different tags: {found}. Give both the same tags in the same order.")
    return names
