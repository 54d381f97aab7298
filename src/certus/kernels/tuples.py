"""What kernels of trained models take: arrays that travel together, by name. Importing this imports no numba."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

Array = NDArray[Any]


class Sentence(NamedTuple):
    """Node v of a sentence of n words is row ``base + v`` of ``attribute`` and ``coarse``; see kernels.features."""

    attribute: Array
    coarse: Array
    base: int
    n: int


class TemplateArrays(NamedTuple):
    """Templates in the order of the kernels; components of template t, (role, offset, column), are from ptr[t] on.

    Plain ones end at ``plain``, those with names of arcs at ``named``, those that count at ``counted``, and the others
    are given for each tag between. ``roles`` is the number of nodes of a part, ``shaped`` whether each template gives
    two features, ``most`` more features than any part has.
    """

    ptr: Array
    component: Array
    seed: Array
    plain: int
    named: int
    counted: int
    roles: int
    shaped: bool
    most: int


class LinearModel(NamedTuple):
    """Templates, or a tuple with those of each kind of part, and 2**bits weights."""

    templates: Any
    bits: int
    weight: Array


class ArcFilter(NamedTuple):
    """A model of arcs, and how far below the best tree the max-marginal of an arc may lie."""

    model: LinearModel
    width: float


class Cascade(NamedTuple):
    """A length dictionary and two filters; the second, without templates, lets everything pass.

    ``heads`` is how many heads a word keeps, and twice that after the first filter. ``crossing`` is None for projective
    trees: what they do not need is not even compiled.
    """

    longest: Array
    first: ArcFilter
    second: ArcFilter
    heads: int
    crossing: bool | None
    single: bool


class LabelModel(NamedTuple):
    """Which labels were seen between two coarse tags, the model of one, and the templates of two beside each other."""

    seen: Array
    model: LinearModel
    pairs: TemplateArrays
