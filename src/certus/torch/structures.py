"""The kinds of structures that networks score with tensors: a class for each, which says how its batch is made."""

from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from certus.checks import Ints, one_of
from certus.dependency.batch import DependencyBatch
from certus.dependency.labelled_batch import LabelledDependencyBatch
from certus.dependency.part_kinds import TABLE
from certus.errors import InvalidInput
from certus.structures.batches import (
    AlignmentBatch,
    AnchoredGrammarBatch,
    AssignmentBatch,
    CTCBatch,
    DependencyGraphBatch,
    SegmentationBatch,
    SpanningTreeBatch,
    SpanTreesBatch,
)
from certus.structures.grammar_sums import GrammarSums
from certus.structures.part_sums import ArrayKind
from certus.tagging.batch import TaggingBatch
from certus.torch.scored import Views, as_scores, check_together
from certus.torch.structure import Structure

Maybe: TypeAlias = "Tensor | None"


class Tagging(Structure):
    """Tag sequences: linear chains of first, second or third order. See ``certus.TaggingBatch``.

    Parameters
    ----------
    unary : tensor of shape (B, N, T)
    bigram, trigram : tensor, optional
        (T, T) and (T, T, T) for all, or with a boundary tag (T + 1, ...); or per position, (B, N, T, T) and so on.
    lengths, mask : optional
        (B,) positions of each item, or (B, N), true where a position is not padding.
    """

    kind = ArrayKind(
        TaggingBatch,
        {"unary": "n.", "bigram": "n..", "trigram": "n..."},
        quick=(TaggingBatch,),
    )

    def __init__(
        self, unary: Tensor, bigram: Maybe = None, trigram: Maybe = None, *, lengths: Any = None, mask: Any = None
    ) -> None:
        super().__init__({"unary": unary, "bigram": bigram, "trigram": trigram}, {"lengths": lengths, "mask": mask})


class Dependency(Structure):
    """Dependency trees, projective or not, with and without labels. See ``certus.Dependency``.

    Sums are there for all projective models, and for arcs, and labels, of trees that may cross; trees that may cross
    with scores above arcs are decoded by relaxation, and have losses by decoding.

    Parameters
    ----------
    arc : tensor of shape (B, N, N)
        Node 0 is the root. May be None if there are labels.
    sibling, grandparent, grandsibling, trisibling, ... : tensor, optional
        As in ``certus.Dependency``, with the axis over items first.
    label : tensor of shape (B, N, N, L), optional
        ``label[b, h, m, l]`` is added to the score of the arc h -> m. Structures are then (B, N, 2): head and label of
        each word; and there are two views, "labels" and "arcs".
    lengths, mask : optional
        (B,) words of each item, up to N - 1, or (B, N - 1), true where a word is not padding.
    projective, root, grandparents
        As in ``certus.Dependency``.
    axes : "hm" or "mh"
        Whether ``arc`` and ``label`` are [head, modifier], as everywhere here, or [modifier, head], as in some parsers:
        then they are turned. Answers are [head, modifier] in any case.
    """

    def __init__(
        self,
        arc: Maybe = None,
        sibling: Maybe = None,
        grandparent: Maybe = None,
        grandsibling: Maybe = None,
        trisibling: Maybe = None,
        *,
        label: Maybe = None,
        lengths: Any = None,
        mask: Any = None,
        projective: bool = False,
        root: str = "single",
        grandparents: str = "all",
        axes: str = "hm",
        **more: Maybe,
    ) -> None:
        for name, tensor in {"arc": arc, "label": label}.items():
            if tensor is not None and as_scores(name, tensor).ndim != (3 if name == "arc" else 4):
                shape = "words + 1, words + 1" + (", labels" if name == "label" else "")
                raise InvalidInput(f"{name} has shape {tuple(tensor.shape)}; expected (items, {shape}).")
        if one_of("axes", axes, ("hm", "mh")) == "mh":
            arc, label = (None if tensor is None else tensor.transpose(1, 2) for tensor in (arc, label))
        above = {"sibling": sibling, "grandparent": grandparent, "grandsibling": grandsibling, "trisibling": trisibling}
        options: dict[str, Any] = {"projective": projective, "root": root}
        if grandparents != "all":
            options["grandparents"] = grandparents
        if label is None:
            self.kind, first = UNLABELLED, {"arc": arc}
        else:
            self.kind, first = LABELLED, {"label": label}
            if arc is not None:
                check_together("label", label, "arc", arc)
                if arc.shape != label.shape[:3]:
                    raise InvalidInput(
                        f"arc has shape {tuple(arc.shape)}; expected {tuple(label.shape[:3])}, as label has."
                    )
                first = {"label": label + arc[..., None]}
        super().__init__({**first, **above, **more}, {"lengths": lengths, "mask": mask, **options})

    @property
    def _view(self) -> str:
        return "labels" if self.kind is LABELLED else "arcs"

    def _views(self, uses: Tensor) -> Views:
        found = super()._views(uses)
        return {**found, "arcs": found["labels"].sum(dim=-1)} if "labels" in found else found

    def _onto_first(self, view: str, values: Tensor) -> Tensor:
        if self.kind is LABELLED and view == "arcs":
            return values.reshape(-1, *self.first.shape[1:3], 1).expand(-1, *self.first.shape[1:])
        return super()._onto_first(view, values)

    def _in_view(self, view: str, cells: Ints) -> Ints:
        own = super()._in_view(view, cells)
        return own // self.first.shape[-1] if self.kind is LABELLED and view == "arcs" else own


TREE_AXES = {kind.name: "".join("." if letter == "d" else "n" for letter in kind.axes) for kind in TABLE}
UNLABELLED = ArrayKind(DependencyBatch, TREE_AXES, more=1, quick=(DependencyBatch,))
LABELLED = ArrayKind(
    LabelledDependencyBatch, {"label": "nn.", **{n: axes for n, axes in TREE_AXES.items() if n != "arc"}}, more=1
)


class SpanTrees(Structure):
    """Trees of labelled spans. See ``certus.SpanTreesBatch``.

    Parameters
    ----------
    span : tensor of shape (B, N + 1, N + 1, L), or (B, N + 1, N + 1)
    empty : int, optional
        The label that is no constituent.
    lengths, mask : optional
        (B,) words of each item, or (B, N), true where a word is not padding.
    """

    kind = ArrayKind(SpanTreesBatch, {"span": "nn"}, more=1, quick=(SpanTreesBatch,))

    def __init__(self, span: Tensor, empty: int | None = None, *, lengths: Any = None, mask: Any = None) -> None:
        super().__init__({"span": span}, {"empty": empty, "lengths": lengths, "mask": mask})


class AnchoredGrammar(Structure):
    """Trees of grammars whose rules are scored for each sentence. See ``certus.AnchoredGrammarBatch``.

    Parameters
    ----------
    root : tensor of shape (A,), for all items, or (B, A)
    rule : tensor of shape (A, S, S), for all items, or (B, A, S, S)
        A phrases, then P tags, S = A + P symbols.
    emission : tensor of shape (B, N, P)
    span : tensor of shape (B, N + 1, N + 1, S), optional
        Scores of symbols over spans; 0 by default. Marginals are theirs.
    lengths, mask : optional
        (B,) words of each item, two at least, or (B, N), true where a word is not padding.
    """

    kind = ArrayKind(
        AnchoredGrammarBatch, {"span": "nn.", "root": ".", "rule": "...", "emission": "n."}, more=1, sums=GrammarSums
    )

    def __init__(
        self,
        root: Tensor,
        rule: Tensor,
        emission: Tensor,
        span: Maybe = None,
        *,
        lengths: Any = None,
        mask: Any = None,
    ) -> None:
        arrays = {"root": root, "rule": rule, "emission": emission}
        for name, tensor in arrays.items():
            as_scores(name, tensor)
            axes = len(self.kind.axes[name]) + 1
            if tensor.ndim != axes and not (name != "emission" and tensor.ndim == axes - 1):
                raise InvalidInput(
                    f"{name} has shape {tuple(tensor.shape)}; expected {axes} axes, that of items first"
                    + ("." if name == "emission" else ", or one less for all items.")
                )
        if span is None:
            side = emission.shape[1] + 1
            span = emission.new_zeros(len(emission), side, side, rule.shape[-1])
        super().__init__({"span": span, **arrays}, {"lengths": lengths, "mask": mask})
        for b in range(min(len(self), 1)):
            self.batch._named(b, self.batch.__getitem__)  # which says whether shapes go together


class Segmentation(Structure):
    """Segments with classes: semi-Markov models. See ``certus.SegmentationBatch``.

    Parameters
    ----------
    segment : tensor of shape (B, N, K, C)
    transition : tensor of shape (C, C), for all items, or (B, C, C), optional
    lengths, mask : optional
        (B,) words of each item, or (B, N), true where a word is not padding.
    """

    kind = ArrayKind(SegmentationBatch, {"segment": "n..", "transition": ".."})

    def __init__(self, segment: Tensor, transition: Maybe = None, *, lengths: Any = None, mask: Any = None) -> None:
        super().__init__({"segment": segment, "transition": transition}, {"lengths": lengths, "mask": mask})


class _TwoLengths(Structure):
    """What has a length on two sides."""

    def __init__(
        self,
        score: Tensor,
        *,
        lengths: Any = None,
        second_lengths: Any = None,
        mask: Any = None,
        second_mask: Any = None,
    ) -> None:
        padding = {"lengths": lengths, "second_lengths": second_lengths, "mask": mask, "second_mask": second_mask}
        super().__init__({"score": score}, padding)

    @property
    def _lengths(self) -> dict[str, Ints]:
        assert isinstance(self.batch, AlignmentBatch | AssignmentBatch)
        return {"lengths": self.batch.lengths, "second_lengths": self.batch.second_lengths}


class Alignment(_TwoLengths):
    """Monotone alignments of two sequences. See ``certus.AlignmentBatch``.

    Parameters
    ----------
    score : tensor of shape (B, N + 1, M + 1, 3)
    lengths, second_lengths, mask, second_mask : optional
        (B,) of the first and of the second sequence, or (B, N) and (B, M), true where there is no padding.
    """

    kind = ArrayKind(AlignmentBatch, {"score": "nm."}, more=1)


class Assignment(_TwoLengths):
    """Matchings of rows and columns. See ``certus.Assignment``; sums over all are permanents, and not to be had.

    Parameters
    ----------
    score : tensor of shape (B, N, M)
    lengths, second_lengths, mask, second_mask : optional
        (B,) rows and columns of each item, or (B, N) and (B, M), true where there is no padding.
    """

    kind = ArrayKind(AssignmentBatch, {"score": "nm"})


class CTC(Structure):
    """Labels of frames that spell a target. See ``certus.CTCBatch``; ``-log_partition()`` is the loss.

    Parameters
    ----------
    frame : tensor of shape (B, T, V)
    target : tensor or array of int, shape (B, S), padded with -1
    blank : int
    lengths, mask : optional
        (B,) frames of each item, or (B, T), true where a frame is not padding.
    """

    kind = ArrayKind(CTCBatch, {"frame": "n."}, own=("target",), quick=(CTCBatch,))

    def __init__(self, frame: Tensor, target: Any, blank: int = 0, *, lengths: Any = None, mask: Any = None) -> None:
        labels = target.detach().cpu().numpy() if isinstance(target, Tensor) else np.asarray(target)
        super().__init__({"frame": frame}, {"target": labels, "blank": blank, "lengths": lengths, "mask": mask})


class SpanningTree(Structure):
    """Undirected spanning trees. See ``certus.SpanningTreeBatch``.

    Parameters
    ----------
    edge : tensor of shape (B, N, N), symmetric
        The cells above the diagonal are those of the view, and have the gradients.
    lengths, mask : optional
        (B,) nodes of each item, or (B, N), true where a node is not padding.
    """

    kind = ArrayKind(SpanningTreeBatch, {"edge": "nn"}, symmetric=True, quick=(SpanningTreeBatch,))

    def __init__(self, edge: Tensor, *, lengths: Any = None, mask: Any = None) -> None:
        super().__init__({"edge": edge}, {"lengths": lengths, "mask": mask})


class DependencyGraph(Structure):
    """Graphs of arcs, with any number of heads for each word. See ``certus.DependencyGraph``.

    Sums are there for arcs, and for arcs with one of sibling and coparent; all have losses by decoding.

    Parameters
    ----------
    arc : tensor of shape (B, N, N)
    sibling, coparent, grandparent : tensor of shape (B, N, N, N), optional
    lengths, mask : optional
        (B,) words of each item, up to N - 1, or (B, N - 1), true where a word is not padding.
    """

    kind = ArrayKind(
        DependencyGraphBatch, {"arc": "nn", "sibling": "nnn", "coparent": "nnn", "grandparent": "nnn"}, more=1
    )

    def __init__(
        self,
        arc: Tensor,
        sibling: Maybe = None,
        coparent: Maybe = None,
        grandparent: Maybe = None,
        *,
        lengths: Any = None,
        mask: Any = None,
    ) -> None:
        arrays = {"arc": arc, "sibling": sibling, "coparent": coparent, "grandparent": grandparent}
        super().__init__(arrays, {"lengths": lengths, "mask": mask})
