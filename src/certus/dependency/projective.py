"""Projective questions that have a kernel of their own; None sends the question to the forest."""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import Floats, Ints
from certus.dependency.parts import check_memory
from certus.errors import Infeasible
from certus.result import Solution

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency

# Sums of exponentials are taken without logarithms while nothing that matters can underflow: see _scaled.
SAFE_EXPONENT = 650.0


def best(problem: "Dependency", arc: Floats) -> Solution[Ints] | None:
    """Best projective tree under the given arc scores."""
    model = _model(problem)
    if model is None:
        return None
    heads: Ints = np.empty((1, problem.n + 1), dtype=np.int64)
    value = np.empty(1)
    if model == "grand":
        value[0] = _best_grand(problem, arc, heads[0])
    else:
        decode(arc[None], _sibling(problem, model), _length(problem), problem.single, heads, value)
    if value[0] == -np.inf:
        raise infeasible(arc, problem.single)
    return Solution(heads[0], float(value[0]))


def log_partition(problem: "Dependency") -> float | None:
    """Log of the sum of exp(score) over projective trees."""
    model = _model(problem)
    if model not in ("arcs", "siblings"):
        return None
    total, _ = log_totals(problem.arc[None], _sibling(problem, model), _length(problem), problem.single, False)
    return float(total[0])


def marginals(problem: "Dependency") -> Floats | None:
    """Probability of each arc."""
    model = _model(problem)
    if model not in ("arcs", "siblings"):
        return None
    total, arcs = log_totals(problem.arc[None], _sibling(problem, model), _length(problem), problem.single, True)
    if total[0] == -np.inf:
        raise infeasible(problem.arc, problem.single)
    probability: Floats = arcs[0]
    return probability


def max_marginals(problem: "Dependency", arc: Floats) -> Floats | None:
    """Best score of a tree with each arc."""
    model = _model(problem)
    if model not in ("arcs", "siblings"):
        return None
    best_with: Floats = max_totals(arc[None], _sibling(problem, model), _length(problem), problem.single)[0]
    return best_with


def infeasible(arc: Floats, single: bool) -> Infeasible:
    """The error for scores that leave no tree; it names a word without a head if there is one."""
    for m in range(1, len(arc)):
        if not (arc[:, m] > -np.inf).any():
            return Infeasible(f"word {m} has no head: all {len(arc) - 1} arcs into it are -inf. Allow one.")
    if single and not (arc[0] > -np.inf).any():
        return Infeasible("no word may be the root: all arcs from node 0 are -inf. Allow one.")
    wanted = "projective tree with one root word" if single else "projective tree"
    return Infeasible(f"the parts that are not -inf contain no {wanted}. Allow more of them, or crossing arcs.")


# -- which kernel ----------------------------------------------------------------------------------------------------


def _model(problem: "Dependency") -> str | None:
    """The kernel family for the scores given; None if only the forest serves them."""
    given = set(problem.scores)
    if problem.listed or given & {"stop", "null"}:
        return None
    if not given:
        return "arcs"
    if given == {"sibling"}:
        return "siblings"
    if "trisibling" in given and given & {"grandparent", "grandsibling"} and problem.grandparents == "all":
        return None  # every modifier's grandparent and trisiblings at once: n^5, by the forest
    return "grand"


def _sibling(problem: "Dependency", model: str | None) -> Floats | None:
    return problem.scores["sibling"].dense()[None] if model == "siblings" else None


def _length(problem: "Dependency") -> Ints:
    return np.array([problem.n], dtype=np.int64)


def _best_grand(problem: "Dependency", arc: Floats, heads: Ints) -> float:
    from certus.kernels import thirdorder

    check_memory(f"decoding with grandparents for {problem.n} words, dense,", (problem.n + 1,) * 3, copies=5)
    absent = np.empty(0)
    kinds = ("sibling", "grandparent", "grandsibling", "trisibling")
    arrays = [problem.scores[kind].dense().reshape(-1) if kind in problem.scores else absent for kind in kinds]
    outermost = problem.grandparents == "outermost" or "trisibling" in problem.scores
    decode: Any = thirdorder.decode
    return float(decode(arc.reshape(-1), *arrays, problem.n, problem.single, outermost, heads))


# -- batches of first- and second-order problems: arc (B, N, N), sibling (B, N, N, N) or None --------------------------


def decode(arc: Floats, sibling: Floats | None, lengths: Ints, single: bool, heads: Ints, value: Floats) -> None:
    """Best tree of each item, into heads (B, N) padded with -1 and value (B,), -inf where there is none."""
    from certus.kernels import eisner
    from certus.kernels import sibling as second

    if sibling is None:
        eisner.decode(arc, lengths, single, heads, value)
    else:
        second.decode(arc, sibling, lengths, single, heads, value)


def max_totals(arc: Floats, sibling: Floats | None, lengths: Ints, single: bool) -> Floats:
    """Best score of a tree with each arc, (B, N, N)."""
    from certus.kernels.hypergraph import MaxPlus

    out = np.empty_like(arc)
    _totals(MaxPlus(), arc, sibling, lengths, single, True, out, np.empty(len(arc)))
    return out


def log_totals(
    arc: Floats, sibling: Floats | None, lengths: Ints, single: bool, with_arcs: bool
) -> tuple[Floats, Floats]:
    """Log-partition functions (B,), and arc marginals (B, N, N) if asked for; zeros where there is no tree."""
    from certus.kernels.hypergraph import Counting, LogPlus
    from certus.kernels.sibling import exponentials

    shifted, siblings, shift = _scaled(arc, sibling, lengths)
    heads, best_value = np.empty(arc.shape[:2], dtype=np.int64), np.empty(len(arc))
    decode(shifted, siblings, lengths, single, heads, best_value)
    # All scores are now at most 0, and so are all parts of a tree. Trees that underflow are below exp(-700) each and
    # there are fewer than exp(2 n) of them: next to the best one they are nothing.
    safe = best_value > 2.0 * lengths + 45.0 - SAFE_EXPONENT
    safe |= best_value == -np.inf
    out, total = np.zeros_like(arc), np.empty(len(arc))
    for linear in (True, False):
        items = np.flatnonzero(safe == linear)
        if not len(items):
            continue
        whole = len(items) == len(arc)
        a = shifted if whole else shifted[items]
        s = siblings if siblings is None or whole else siblings[items]
        found, value = np.empty_like(a) if with_arcs else np.empty((0, 0, 0)), np.empty(len(a))
        if linear:
            if s is not None:
                exponentials(s, lengths[items], s)
            _totals(Counting(), np.exp(a), s, lengths[items], single, with_arcs, found, value)
            with np.errstate(divide="ignore"):
                total[items] = np.log(value)
            if with_arcs:
                out[items] = found / np.where(value > 0, value, 1.0)[:, None, None]
        else:
            _totals(LogPlus(), a, s, lengths[items], single, with_arcs, found, value)
            total[items] = value
            if with_arcs:
                out[items] = np.exp(found - value[:, None, None])
    return total + shift, out


def _scaled(arc: Floats, sibling: Floats | None, lengths: Ints) -> tuple[Floats, Floats | None, Floats]:
    """Scores moved so that none is above 0, keeping all differences between trees; and what was taken off (B,).

    From each word its best arc score (with the best sibling score, which moves to the arc) is taken off.
    """
    if sibling is not None:
        from certus.kernels.sibling import scale

        arcs, siblings = np.full(arc.shape, -np.inf), np.empty(sibling.shape)
        shift = np.empty(len(arc))
        scale(arc, sibling, lengths, arcs, siblings, shift)
        return arcs, siblings, shift
    column = arc.max(axis=1)
    column[column == -np.inf] = 0.0
    return arc - column[:, None, :], None, column.sum(axis=1)


def _totals(
    semiring: object,
    arc: Floats,
    sibling: Floats | None,
    lengths: Ints,
    single: bool,
    with_arcs: bool,
    out: Floats,
    value: Floats,
) -> None:
    from certus.kernels import eisner
    from certus.kernels import sibling as second

    if sibling is None:
        eisner.arc_totals(semiring, arc, lengths, single, with_arcs, out, value)
    else:
        second.arc_totals(semiring, arc, sibling, lengths, single, with_arcs, out, value)
