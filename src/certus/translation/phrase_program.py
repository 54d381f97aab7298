r"""The linear and the integer program of a phrase lattice, solved by HiGHS (LR 4.4, for the relaxation of LR 7.3).

A node of the lattice is the number of words covered, where the last phrase ended, and the state of the language model;
an edge is a phrase. A translation is a path on which every source word is covered once: one equation for each word.
Integer points are the translations that keep the distortion limit; its second condition (``window``) is left to those
who ask. Without integrality this is the program that the multipliers of LR 7.3 solve the dual of.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from certus.checks import Ints
from certus.errors import NotSupported
from certus.hypergraph import Hypergraph
from certus.relax.constrained_hyperpath import ConstrainedHyperpath
from certus.relax.linear import LPReport, linear_program
from certus.relax.linear import solve_lp as lp_of_edges

if TYPE_CHECKING:
    from certus.translation.phrase_problem import PhraseTranslation

MOST_EDGES = 100_000
Node = tuple[int, int, int]  # words covered, last position, state of the language model


class PhraseLattice(NamedTuple):
    """The lattice with its equations, and the option of each edge, -1 for the first and the last."""

    problem: ConstrainedHyperpath
    option: Ints


def phrase_lattice(problem: "PhraseTranslation") -> PhraseLattice:
    """The lattice of a sentence. NotSupported if it has too many edges for a solver."""
    lm, n = problem.lm, problem.n
    number: dict[Node, int] = {(0, -1, lm.begin_state): 0}
    layers: list[list[Node]] = [list(number), *([] for _ in range(n))]
    head, tail, option, weight = [0], [-1], [-1], [0.0]
    ends: list[tuple[int, float]] = []
    for covered, nodes in enumerate(layers):
        for node in nodes:
            _, last, state = node
            if covered == n:
                ends.append((number[node], problem.lm_weight * lm.advance(state, lm.end)[0]))
                continue
            for k in problem._order:
                o = problem.options[k]
                after, jump = covered + o.end - o.start + 1, abs(o.start - last - 1)
                if after > n or jump > problem.limit:
                    continue
                value, at = o.score - problem.distortion * jump, state
                for word in o.target:
                    said, at = lm.advance(at, lm.word_id(word))
                    value += problem.lm_weight * said
                target = (after, o.end, at)
                if target not in number:
                    number[target] = len(number)
                    layers[after].append(target)
                head.append(number[target])
                tail.append(number[node])
                option.append(k)
                weight.append(value)
        if len(head) > MOST_EDGES:
            raise NotSupported(f"the lattice has more than {MOST_EDGES} edges; its program is for short sentences.")
    goal = len(number)
    head, tail = [*head, *(goal for _ in ends)], [*tail, *(v for v, _ in ends)]
    option, weight = [*option, *(-1 for _ in ends)], [*weight, *(value for _, value in ends)]
    tail_ptr = np.concatenate(([0, 0], np.arange(1, len(head))))
    graph, edges, _ = Hypergraph.from_edges(head, tail_ptr, tail[1:], n_vertices=goal + 1, root=goal)
    chosen = np.array(option, dtype=np.int64)[edges]
    rows = np.zeros((n, len(chosen)))
    for e, k in enumerate(chosen.tolist()):
        if k >= 0:
            rows[problem.options[k].start : problem.options[k].end + 1, e] = 1.0
    return PhraseLattice(ConstrainedHyperpath(graph, np.array(weight)[edges], rows, np.ones(n)), chosen)


def solve_lp(problem: "PhraseTranslation") -> LPReport:
    """The linear program: its value, which no translation exceeds, how far options are used, where it is fractional.

    Raises Infeasible if not even fractions of options cover every word, NotSupported for long sentences.
    """
    lattice = phrase_lattice(problem)
    found = lp_of_edges(lattice.problem)
    used = np.zeros(len(problem.options))
    phrase = lattice.option >= 0
    np.add.at(used, lattice.option[phrase], found.views["edges"][phrase])
    paths = tuple((share, lattice.option[np.asarray(path)]) for share, path in found.mixtures[0])
    mixture = tuple((share, tuple(options[options >= 0][::-1].tolist())) for share, options in paths)
    return LPReport(found.value, found.fractional, {"options": used}, (mixture,))


def solve_ilp(problem: "PhraseTranslation", time_limit: float | None = None) -> tuple[int, ...]:
    """The options of the best path that covers every word once, in target order; as good as HiGHS's word."""
    lattice = phrase_lattice(problem)
    x, _ = linear_program(lattice.problem).solve(integer=True, time_limit=time_limit)
    graph, uses = lattice.problem.graph, np.zeros(lattice.problem.graph.n_edges)
    uses[lattice.problem.weights > -np.inf] = x
    chosen, v = list[int](), graph.root
    while v >= 0:
        e = next(e for e in graph.edges_into(v) if uses[e] > 0.5)
        chosen.append(int(lattice.option[e]))
        below = graph.tail_of(e).tolist()
        v = below[0] if below else -1
    return tuple(k for k in reversed(chosen) if k >= 0)
