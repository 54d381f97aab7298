r"""The normal form of problems: parts with scores, spaces of structures made of parts, rows that tie the parts.

A structure of a normal form is one structure of every space. It uses parts, some more than once; its score is the sum
of the scores of the parts that it uses, and it satisfies all rows: for row r the sum of coefficient times uses over the
parts of the row equals the right-hand side, or is at most that. Nothing else is said of a problem, so that whoever
checks a proof over normal forms has checked it for every kind of problem. Scores are float64, read as the exact numbers
they are; -inf forbids a part.

This module and its neighbours import no kernel: what certus.verify believes is here, in numpy and plain Python.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from certus.certificates.rounding import Floats
from certus.checks import Bools, Ints


class Graph(NamedTuple):
    """Structures are the derivations of the last vertex of a hypergraph.

    The edges that enter vertex v are in_ptr[v] .. in_ptr[v + 1]; tails of edge e are tail[tail_ptr[e] .. tail_ptr[e +
    1]], each numbered below the vertex that e enters, and its parts part[part_ptr[e] .. part_ptr[e + 1]]. A derivation
    of v is one edge into v with a derivation of each of its tails; it uses the parts of all its edges.
    """

    in_ptr: Ints  # (V + 1,)
    tail_ptr: Ints  # (E + 1,)
    tail: Ints
    part_ptr: Ints  # (E + 1,)
    part: Ints


class Trees(NamedTuple):
    """Structures are the spanning trees of nodes 0 .. n that are directed away from node 0, an arc into every other.

    part[h, m] is the part that the arc h -> m uses; -1 where there is no such arc. With ``single`` exactly one arc
    leaves node 0, if n > 0. With ``labels`` every arc also uses one of the parts labels[h, m], of those that are not
    -1: a structure is then the heads and, for each word, which of these.
    """

    part: Ints  # (n + 1, n + 1)
    single: bool
    labels: Ints | None = None  # (n + 1, n + 1, L)

    def arc_scores(self, scores: Floats) -> Floats:
        """What each arc scores, with its best label, if parts score so much; -inf where there is no arc."""
        padded = np.append(scores, -np.inf)
        own: Floats = padded[self.part]
        return own if self.labels is None else own + padded[self.labels].max(axis=2)


class Referred(NamedTuple):
    """Structures are those of a problem that finds its best value by a reference of its own, which is believed.

    ``part`` are the parts of its cells, which have no score; ``maximum`` takes what they score and gives the best
    value of the problem with that added, and how far rounding may take it from the truth. No structure uses more than
    ``length`` cells, or scores more than ``size`` without them, in absolute value.
    """

    part: Ints
    length: int
    size: float
    maximum: Callable[[Floats], tuple[float, float]]


class Searched(NamedTuple):
    """Structures are those of a problem that are too many to spell out: those above a score are searched for.

    ``part`` are the parts of its cells, one view of ``views`` after the other; they have no score. ``closed`` takes a
    score, what they score, and a witness, any that fits, such as ``make_witness`` makes of the first two; it gives
    every structure that scores more, perhaps with others. No structure uses more than one part of a line: ``line`` has
    the number of that of each part, -1 for none. The positive scores of no structure add up to more than ``ceiling``,
    without those of the cells, of which none uses more than ``length``. ``solved`` guesses what the best structure
    scores; it is not believed.
    """

    part: Ints
    views: tuple[str, ...]
    line: Ints
    ceiling: float
    length: int
    closed: "Callable[[float, Floats, Any], Closed]"
    make_witness: Callable[[float, Floats], Any]
    solved: Callable[[Floats], float]


Space = Graph | Trees | Referred | Searched


class Rows(NamedTuple):
    """Rows over the uses of parts: entries of row r are ptr[r] .. ptr[r + 1].

    A structure may miss a right-hand side by ``slack``, which is 0 where all numbers of a row are whole.
    """

    ptr: Ints  # (R + 1,)
    part: Ints
    coefficient: Floats
    rhs: Floats  # (R,)
    equality: Bools  # (R,): "=" where True, else "<="
    slack: Floats  # (R,)


NO_ROWS = Rows(
    np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), *(np.zeros(0),) * 2, np.zeros(0, dtype=bool), np.zeros(0)
)


class NormalForm(NamedTuple):
    """Scores of the parts, the spaces, and the rows; ``cells[view]`` says which part each cell of a view is.

    A structure uses the part cells[view][k] as often as its indicator of the view says for the flat cell k; -1 where no
    structure uses the cell. Penalties on a view are added to the scores of these parts.
    """

    scores: Floats  # (P,)
    spaces: tuple[Space, ...]
    cells: Mapping[str, Ints]
    rows: Rows = NO_ROWS


class Closed(NamedTuple):
    """What is left of a problem above a score: every structure that scores more is one of the form, a single graph.

    ``structure`` gives the edges of a structure there, heads before tails; None for one that is left out.
    """

    form: NormalForm
    structure: Callable[[Any], list[int] | None]


class Closing(NamedTuple):
    """How the spaces of a form that are searched are closed: by a witness each, above ``levels``.

    The last is closed above what the others leave of a bound, whatever its level; all are if no levels are given.
    """

    witnesses: tuple[Any, ...]
    levels: tuple[float, ...]
