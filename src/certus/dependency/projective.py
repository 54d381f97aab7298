"""Projective questions that have a kernel of their own; None sends the question to the forest."""

from typing import TYPE_CHECKING, Any

import numpy as np

from certus import kernels
from certus.checks import Floats, Ints, as_scores
from certus.dependency.parts import check_memory
from certus.errors import Infeasible
from certus.result import Solution
from certus.threads import long_call

if TYPE_CHECKING:
    from certus.dependency.problem import Dependency


THIRD_ORDER = ("sibling", "grandparent", "grandsibling", "trisibling")  # what kernels can score
THIRD_ORDER_KINDS = frozenset(THIRD_ORDER)


def best(problem: "Dependency", arc: Floats) -> Solution[Ints] | None:
    """Best projective tree under the given arc scores."""
    model = _model(problem)
    if model is None:
        return None
    heads: Ints = np.empty((1, problem.n + 1), dtype=np.int64)
    value, score = np.empty(1), np.empty(1)
    if model == "grand":
        value[0] = _best_grand(problem, arc, heads[0])
    else:
        decode(arc[None], _sibling(problem, model), _length(problem), problem.single, heads, value, score)
    if value[0] == -np.inf:
        raise infeasible(arc, problem.single)
    return Solution(heads[0], float(value[0]))


def log_partition(problem: "Dependency") -> float | None:
    """Log of the sum of exp(score) over projective trees."""
    model = _model(problem)
    if model not in ("arcs", "siblings"):
        return None
    total = log_totals(problem.arc[None], _sibling(problem, model), _length(problem), problem.single, 0)[0]
    return float(total[0])


def marginals(problem: "Dependency") -> Floats | None:
    """Probability of each arc."""
    model = _model(problem)
    if model not in ("arcs", "siblings"):
        return None
    total, arcs, _ = log_totals(problem.arc[None], _sibling(problem, model), _length(problem), problem.single, 1)
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
        return Infeasible(
            "no word may be the root: all arcs from node 0 are -inf. Allow one; arc[h, m] has the head first."
        )
    wanted = "projective tree with one root word" if single else "projective tree"
    return Infeasible(f"the parts that are not -inf contain no {wanted}. Allow more of them, or crossing arcs.")


# -- which kernel ----------------------------------------------------------------------------------------------------


def _model(problem: "Dependency") -> str | None:
    """The kernel family for the scores given; None if only the forest serves them."""
    given, model = problem.scores.keys(), problem.model
    if not given:
        return "arcs"
    if problem.listed or not given <= THIRD_ORDER_KINDS:
        return None
    if given == {"sibling"}:
        return "siblings"
    # Every modifier's grandparent and trisiblings at once: n^5, by the forest.
    return None if model.head_at_modifiers and model.pairs else "grand"


def _sibling(problem: "Dependency", model: str | None) -> Floats | None:
    return problem.scores["sibling"].dense()[None] if model == "siblings" else None


def _length(problem: "Dependency") -> Ints:
    return np.array([problem.n], dtype=np.int64)


def _best_grand(problem: "Dependency", arc: Floats, heads: Ints) -> float:
    check_memory(f"decoding with grandparents for {problem.n} words, dense,", (problem.n + 1,) * 3, copies=5)
    absent = np.empty(0)
    arrays = [problem.scores[kind].dense().reshape(-1) if kind in problem.scores else absent for kind in THIRD_ORDER]
    outermost = problem.grandparents == "outermost" or "trisibling" in problem.scores
    kernel: Any = kernels.thirdorder
    scores = kernel.Scores(arc.reshape(-1), *arrays)
    return float(long_call(problem.n**4, kernel.decode, scores, problem.n, problem.single, outermost, heads))


# -- batches of first- and second-order problems: arc (B, N, N), sibling (B, N, N, N) or None --------------------------


# Arc scores have been checked. Sibling scores are checked as they are read; item 0 is called ``start`` if one is bad.


def decode(
    arc: Floats,
    sibling: Floats | None,
    lengths: Ints,
    single: bool,
    heads: Ints,
    value: Floats,
    score: Floats,
    start: int = 0,
) -> float:
    """Best tree of each item, into heads (B, N) padded with -1, value (B,), -inf where there is none, and score (B,).

    The value is that of the chart; the score is summed from the input along the tree. Returns the largest
    magnitude of a sibling score.
    """
    if sibling is None:
        few = len(arc) < kernels.sibling_groups.ENOUGH
        decode = kernels.eisner.decode_and_score if few else kernels.eisner_groups.decode
        long_call(_steps(arc), decode, arc, lengths, single, heads, value, score)
        return 0.0

    read = long_call(_steps(arc), kernels.sibling.decode, arc, sibling, lengths, single, heads, value, score)
    return _checked(read, sibling, lengths, single, start)


def max_totals(arc: Floats, sibling: Floats | None, lengths: Ints, single: bool, start: int = 0) -> Floats:
    """Best score of a tree with each arc, (B, N, N)."""
    out, value = np.empty_like(arc), np.empty(len(arc))
    if sibling is None:
        long_call(_steps(arc), kernels.eisner.max_totals, arc, lengths, single, out, value)
    else:
        read = long_call(_steps(arc), kernels.sibling.max_totals, arc, sibling, lengths, single, out, value)
        _checked(read, sibling, lengths, single, start)
    return out


def log_totals(
    arc: Floats, sibling: Floats | None, lengths: Ints, single: bool, order: int, start: int = 0
) -> tuple[Floats, Floats, Floats]:
    """Log-partition functions (B,); marginals of arcs (B, N, N) if ``order`` is 1 or 2, and of pairs of siblings
    (B, N, N, N) if it is 2; zeros where there is no tree.
    """
    value, out = np.empty(len(arc)), np.empty(arc.shape if order else (1, 1, 1))
    pairs = np.empty((*arc.shape, arc.shape[1]) if order > 1 else (1, 1, 1, 1))
    if sibling is None:
        long_call(_steps(arc), kernels.eisner.log_totals, arc, lengths, single, order > 0, out, value)
    else:
        read = long_call(_steps(arc), kernels.sibling.log_totals, arc, sibling, lengths, single, out, pairs, value)
        _checked(read, sibling, lengths, single, start)
    return value, out, pairs


def _steps(arc: Floats) -> float:
    """About how many steps a batch takes."""
    return float(arc.size * arc.shape[-1])


def _checked(read: tuple[float, int], sibling: Floats, lengths: Ints, single: bool, start: int) -> float:
    """Largest magnitude that a kernel has read; raises InvalidInput if it met a score that is none.

    Item 0 is called item ``start``.
    """
    largest, item = read
    if item >= 0:
        n = int(lengths[item])
        h, s, m = np.ogrid[: n + 1, : n + 1, : n + 1]
        part = ((h <= s) & (s < m) & ((h > 0) | (s == 0) | (not single))) | ((m > 0) & (m < s) & (s <= h))
        scores = np.where(part, sibling[item, : n + 1, : n + 1, : n + 1], -np.inf)
        as_scores(f"sibling[{start + item}]", scores)
    return largest
