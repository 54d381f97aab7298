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

    The first ``looks`` rows of ``plan`` are all different components, the others in which template each is seen:
    (role, template, component), by role. Plain templates end at ``plain``, those with names of arcs at ``named``, those
    that count at ``counted``, and the others are given for each tag between. ``roles`` is the number of nodes of a
    part, ``shaped`` what the shapes of arcs are multiplied by where each template gives two features, 0 where it gives
    one, ``max_features`` more features than any part has.
    """

    ptr: Array
    component: Array
    plan: Array
    seed: Array
    looks: int
    plain: int
    named: int
    counted: int
    roles: int
    shaped: int
    max_features: int


class LinearModel(NamedTuple):
    """Templates, or a tuple with those of each kind of part, and 2**bits weights."""

    templates: Any
    bits: int
    weight: Array


class ArcFilter(NamedTuple):
    """A model of arcs, how far below the best tree the max-marginal of an arc may lie, and how many heads a word keeps.

    The weights count whole units, and so does the width.
    """

    model: LinearModel
    width: float
    heads: int


class Cascade(NamedTuple):
    """A length dictionary and one or more filters.

    ``crossing`` is None for projective trees: what they do not need is not even compiled.
    """

    longest: Array
    filters: tuple[ArcFilter | None, ...]
    crossing: bool | None
    single: bool


class LabelModel(NamedTuple):
    """Which labels were seen between two coarse tags, the model of one, and the templates of two beside each other."""

    seen: Array
    model: LinearModel
    pairs: TemplateArrays


class TextLayout(NamedTuple):
    """Where the sentences of a text of CoNLL-U lie, and their words; see kernels.conllu.

    Sentence s lies in text[start[s] : end[s]], from line line[s] on, and has the words word[s] .. word[s + 1] - 1. Of
    word w column 2 begins at form[w], column 6 ends at feats[w], column 7 begins at head[w], column 8 ends at tail[w].
    """

    start: Array
    end: Array
    line: Array
    odd: Array
    word: Array
    form: Array
    feats: Array
    head: Array
    tail: Array


class ByteTable(NamedTuple):
    """Rows by the bytes of words: slot[k] is the number of a key, -1 for none; a power of two of them.

    Key k is bytes[ptr[k] : ptr[k + 1]], and has the row row[k].
    """

    slot: Array
    ptr: Array
    row: Array
    bytes: Array
