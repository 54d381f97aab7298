"""The trees of a batch of sentences, with what the decoding that found them knows of them, and what of it is printed.

Weights are whole numbers of one unit, and so are the scores of trees: sums of them are exact, and a bound is a proof as
soon as it lies less than one unit above a tree.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from certus.checks import Bools, Floats, Ints
from certus.result import Certificate, Result
from certus.text import Sentence, Token

if TYPE_CHECKING:
    from certus.models.tree_parser import Read, TreeParser

ESTIMATED = "confidence_estimates"  # the comment that says that they are estimates
COMMENTS = ("rank", "certificate", "reason", "score", "bound", "scope", "model_digest", "problem_digest")


@dataclass(frozen=True)
class Trees:
    """The best trees of a batch, each with the score and the bound of the decoding that found it.

    The heads of sentence s are ``heads[start[s] :]``, -1 at node 0. ``score`` and ``bound`` count units: no tree over
    the arcs that are ``kept`` scores more than the bound. ``kept`` has a square (n + 1, n + 1) for each sentence, from
    ``square[s]`` on. ``reason`` says why a tree is not proved to be the best.
    """

    start: Ints
    heads: Ints
    score: Ints
    bound: Ints
    unit: float
    square: Ints
    kept: Bools
    kind: Sequence[str]
    reason: Mapping[int, str]

    @property
    def exact(self) -> Bools:
        """Which trees are proved to be the best."""
        return self.bound <= self.score

    @property
    def value(self) -> Floats:
        """The scores, as those of the model."""
        return self.score * np.float64(self.unit)

    def arcs(self, s: int) -> Bools:
        """The arcs of sentence s that the cascade kept, (n + 1, n + 1)."""
        square = self.kept[self.square[s] : self.square[s + 1]]
        size = int(np.sqrt(len(square)))
        return square.reshape(size, size)

    def certificate(self, s: int) -> Certificate:
        """Of the tree of sentence s, in scores of the model; whole units allow for no rounding."""
        score, bound = int(self.score[s]), int(self.bound[s])
        return Certificate(self.kind[s], score * self.unit, bound * self.unit, 0.0, reason=self.reason.get(s))


def ranked_trees(results: Sequence[Result[Ints]], kept: Bools, unit: float) -> list[Trees]:
    """The trees of one sentence, best first, each as a batch of its own; scores of the results count units."""
    out, square = [], np.array([0, kept.size])
    for result in results:
        c, score = result.certificate, np.array([round(result.score)])
        bound = score if c.exact else np.array([floor(c.bound + c.tolerance)])
        reason = {} if c.reason is None else {0: c.reason}
        start = np.zeros(1, dtype=np.int64)
        out.append(Trees(start, result.structure, score, bound, unit, square, kept.reshape(-1), [c.kind], reason))
    return out


class Room(NamedTuple):
    """Arrays for the trees of a batch, to be filled by kernels; ``value`` counts units, the others are as in Trees."""

    start: Ints
    heads: Ints
    value: Floats
    square: Ints
    kept: Bools

    @classmethod
    def of(cls, length: Ints) -> Self:
        """For sentences of these lengths."""
        square = np.concatenate([[0], np.cumsum((length + 1) ** 2)])
        heads, kept = np.full(int((length + 1).sum()), -1, dtype=np.int64), np.zeros(int(square[-1]), dtype=np.bool_)
        return cls(np.cumsum(length + 1) - length - 1, heads, np.zeros(len(length)), square, kept)

    def trees(self, unit: float, bound: Floats, kind: Sequence[str], reason: Mapping[int, str]) -> Trees:
        """What was filled in; values and bounds count units."""
        score, most = self.value.astype(np.int64), np.floor(bound).astype(np.int64)
        return Trees(self.start, self.heads, score, most, unit, self.square, self.kept, kind, reason)


@dataclass(frozen=True)
class Proof:
    """A certificate as it is printed, with what it is about: which trees, of which model, in which sentence.

    ``units`` are score and bound in whole units; ``kept`` of the ``arcs`` of the sentence were searched. The digests
    are those of ``Parser.digest`` and ``problem_digest``.
    """

    certificate: Certificate
    units: tuple[int, int]
    unit: float
    projective: bool
    single: bool
    kept: int
    arcs: int
    model: str
    problem: str

    @property
    def scope(self) -> str:
        """Among which trees there is none better, in words."""
        trees = f"{'projective ' if self.projective else ''}trees{' with one root word' if self.single else ''}"
        arcs = f"all {self.arcs} arcs" if self.kept == self.arcs else f"the {self.kept} arcs kept of {self.arcs}"
        return f"{trees} over {arcs}"

    def comments(self) -> list[str]:
        """As comments of CoNLL-U. Scores are written in full: read again, they are the same numbers."""
        c = self.certificate
        said = (
            f"{c.kind}, {'exact' if c.exact else 'not proved optimal'}",
            c.reason,
            repr(c.score),
            repr(c.bound),
            self.scope,
            self.model,
            self.problem,
        )
        return [f"# {key} = {value}" for key, value in zip(COMMENTS[1:], said, strict=True) if value is not None]


@dataclass(frozen=True)
class Confidences:
    """The confidence in the arc into each word; exact, or an estimate: then from how many samples, and with what seed.

    See ``certus.MarginalEstimates``.
    """

    share: Sequence[float]
    method: str
    samples: int
    effective_sample_size: float
    seed: int | None

    @property
    def exact(self) -> bool:
        """Whether these are the marginals themselves."""
        return self.samples == 0

    def comments(self) -> list[str]:
        """As comments of CoNLL-U: none if they are exact."""
        if self.exact:
            return []
        size = f"effective sample size {self.effective_sample_size:.1f} of {self.samples}"
        return [f"# {ESTIMATED} = {self.method}, {size}, seed {self.seed}"]


@dataclass(frozen=True)
class Parsed:
    """A sentence with its tree and the certificate of that tree; the rest where it was asked for."""

    sentence: Sentence
    certificate: Certificate
    proof: Proof | None = None
    confidence: Confidences | None = None
    rank: int | None = None  # in a list of the best trees

    def annotated(self) -> Sentence:
        """The sentence with rank and proof in comments and the confidence in every arc in MISC."""
        comments, tokens = self.sentence.comments, self.sentence.tokens
        if self.rank is not None:
            comments = [*without_certificate(comments), f"# rank = {self.rank}"]
            comments += [f"# score = {self.certificate.score!r}"] if self.proof is None else []
        if self.proof is not None:
            comments = (comments if self.rank is not None else without_certificate(comments)) + self.proof.comments()
        if self.confidence is not None:
            comments = [*comments, *self.confidence.comments()]
            tokens = [_with_confidence(t, share) for t, share in zip(tokens, self.confidence.share, strict=True)]
        if self.proof is None and self.confidence is None and self.rank is None:
            return self.sentence
        return replace(self.sentence, comments=comments, tokens=tokens)


def with_trees(sentences: Sequence[Sentence], trees: Trees, labels: Ints, names: Sequence[str]) -> list[Sentence]:
    """The sentences of a batch with its trees; ``labels`` go with ``trees.heads``, by their numbers among ``names``."""
    heads, numbers = trees.heads.tolist(), labels.tolist()
    return [
        replace(
            sentence,
            tokens=[
                Token(t.id, t.form, t.lemma, t.upos, t.xpos, t.feats, head, names[label], t.deps, t.misc)
                for t, head, label in zip(sentence.tokens, heads[at + 1 :], numbers[at + 1 :], strict=False)
            ],
            comments=about_no_tree(sentence.comments),
        )
        for at, sentence in zip(trees.start.tolist(), sentences, strict=True)
    ]


def proof_of(parser: "TreeParser[Read]", batch: "Read", trees: Trees, s: int) -> Proof:
    """What is to be printed of the tree of sentence s."""
    kept, n = trees.arcs(s), int(batch.length[s])
    return Proof(
        trees.certificate(s),
        (int(trees.score[s]), int(trees.bound[s])),
        trees.unit,
        parser.projective,
        parser.single,
        int(np.count_nonzero(kept)),
        n * n,
        parser.digest,
        problem_digest(parser.seen(batch, s), kept),
    )


def problem_digest(seen: bytes, kept: Bools) -> str:
    """Of what a parser saw of a sentence, and of the arcs it searched: with its model they make all the scores."""
    return f"sha256:{hashlib.sha256(seen + np.packbits(kept).tobytes()).hexdigest()}"


def without_certificate(comments: Sequence[str]) -> list[str]:
    """Comments without those of a certificate."""
    return [line for line in comments if _key(line) not in COMMENTS]


def about_no_tree(comments: list[str]) -> list[str]:
    """The comments of a sentence whose tree is taken away: without what they say of that tree."""
    keys = {_key(line) for line in comments}
    comments = [line for line in comments if _key(line) != ESTIMATED]
    return without_certificate(comments) if {"certificate", "score", "bound"} <= keys else comments


def _key(comment: str) -> str:
    return comment[1:].partition("=")[0].strip()


def _with_confidence(token: Token, share: float) -> Token:
    kept = [] if token.misc == "_" else token.misc.split("|")
    kept = [item for item in kept if not item.startswith("Confidence=")]
    return replace(token, misc="|".join([*kept, f"Confidence={share:.4f}"]))
