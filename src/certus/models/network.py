"""A network that scores trees: words, characters and tags, a bidirectional LSTM, then arcs, pairs of arcs and labels.

Arcs and labels are scored by biaffine functions of head and modifier [Dozat17]; siblings and grandparents by products
of three vectors, of few numbers each, so that the scores of all of them are two products of matrices.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from certus.checks import Ints
from certus.text import Sentence, Token

UNKNOWN, ROOT = 0, 1  # numbers that every column has; what it knows comes after them
COLUMNS = ("form", "lemma", "upos", "xpos", "feats")
MAX_FEATS, MAX_CHARACTERS = 8, 16  # of a word; of longer words the beginning and the end are read


@dataclass(frozen=True)
class Sizes:
    """How large a network is."""

    form: int = 80
    lemma: int = 40
    tag: int = 32  # each of coarse tags, fine tags and morphology
    character: int = 24
    filters: int = 48  # over characters
    hidden: int = 128  # of the LSTM, in each direction
    layers: int = 2
    arc: int = 128
    label: int = 64
    part: int = 32  # siblings and grandparents


class Inputs(NamedTuple):
    """A batch of sentences as numbers: (B, N) each, node 0 first, 0 beyond the end of a sentence."""

    form: Tensor
    lemma: Tensor
    upos: Tensor
    xpos: Tensor
    feats: Tensor  # (B, N, MAX_FEATS)
    word: Tensor  # rows of ``characters``
    characters: Tensor  # (words, MAX_CHARACTERS)
    lengths: Tensor  # (B,) words, node 0 not counted


@dataclass(frozen=True)
class Vocabulary:
    """What a network knows of each column, in the order of its numbers, from 2 on; ``character`` too."""

    names: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, sentences: Iterable[Sentence], *, least: int = 2) -> "Vocabulary":
        """Words and lemmas that occur ``least`` times; all tags, features and characters."""
        counts: dict[str, Counter[str]] = {column: Counter() for column in (*COLUMNS, "character")}
        for sentence in sentences:
            for token in sentence:
                for column, values in _described(token).items():
                    counts[column].update(values)
                counts["character"].update(token.form)
        rare = {"form": least, "lemma": least}
        return cls({c: sorted(v for v, k in n.items() if k >= rare.get(c, 1)) for c, n in counts.items()})

    @cached_property
    def _number(self) -> dict[str, dict[str, int]]:
        return {column: {name: k for k, name in enumerate(names, 2)} for column, names in self.names.items()}

    @cached_property
    def _rows(self) -> dict[tuple[str, ...], Ints]:
        return {}

    def size(self, column: str) -> int:
        """How many numbers a column has."""
        return len(self.names[column]) + 2

    def row(self, token: Token) -> Ints:
        """The numbers of a word: form, lemma, two tags, features, characters."""
        key = (token.form, token.lemma, token.upos, token.xpos, token.feats)
        if key not in self._rows:
            row = np.zeros(4 + MAX_FEATS + MAX_CHARACTERS, dtype=np.int64)
            found = {c: [self._number[c].get(v, UNKNOWN) for v in vs] for c, vs in _described(token).items()}
            row[:4] = [found[column][0] for column in COLUMNS[:4]]
            feats = found["feats"][:MAX_FEATS]
            row[4 : 4 + len(feats)] = feats
            half, form = MAX_CHARACTERS // 2, token.form
            shown = form if len(form) <= MAX_CHARACTERS else form[:half] + form[-half:]
            row[4 + MAX_FEATS :][: len(shown)] = [self._number["character"].get(c, UNKNOWN) for c in shown]
            self._rows[key] = row
        return self._rows[key]

    def inputs(self, sentences: Sequence[Sentence]) -> Inputs:
        """Sentences as a batch."""
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        rows = np.zeros((len(sentences), lengths.max(initial=0) + 1, 4 + MAX_FEATS + MAX_CHARACTERS), dtype=np.int64)
        rows[:, 0, : 4 + MAX_FEATS] = ROOT
        for b, sentence in enumerate(sentences):
            for m, token in enumerate(sentence, start=1):
                rows[b, m] = self.row(token)
        flat = rows[..., 4 + MAX_FEATS :].reshape(-1, MAX_CHARACTERS)
        words, place = np.unique(flat, axis=0, return_inverse=True)
        columns = [*np.moveaxis(rows[..., :4], 2, 0), rows[..., 4 : 4 + MAX_FEATS], place.reshape(rows.shape[:2])]
        return Inputs(*(torch.from_numpy(np.ascontiguousarray(a)) for a in (*columns, words, lengths)))


def _described(token: Token) -> dict[str, list[str]]:
    """The values of a word, by column."""
    lemma = token.lemma if token.lemma != "_" else token.form
    feats = [] if token.feats == "_" else token.feats.split("|")
    return {
        "form": [token.form.lower()],
        "lemma": [lemma.lower()],
        "upos": [token.upos],
        "xpos": [token.xpos],
        "feats": feats,
    }


class TreeScores(NamedTuple):
    """What a network makes of a batch: scores of arcs, head before modifier, and vectors that other scores come from.

    ``parts`` are, of each word, its vectors as head, sibling and modifier, as head of its innermost modifier, and as
    grandparent, head and modifier.
    """

    arc: Tensor  # (B, N, N)
    parts: Tensor  # (B, N, 7, d)
    label_head: Tensor  # (B, N, d)
    label_modifier: Tensor  # (B, N, d)

    def pairs(self) -> tuple[Tensor, Tensor]:
        """Scores of all siblings and all grandparents, (B, N, N, N) each."""
        head, inner, modifier, alone, grandparent, middle, below = self.parts.unbind(dim=2)
        sibling = _triples(head, inner, modifier)
        innermost = (alone @ modifier.transpose(1, 2)).transpose(1, 2)  # there is no sibling: s is h
        return torch.diagonal_scatter(sibling, innermost, dim1=1, dim2=2), _triples(grandparent, middle, below)


class Network(nn.Module):
    """Scores of trees for batches of sentences; ``dropout`` is in force while it is trained."""

    def __init__(self, vocabulary: Vocabulary, labels: int, sizes: Sizes, *, dropout: float = 0.33) -> None:
        super().__init__()
        s, count = sizes, vocabulary.size
        self.dropout, self.labels = dropout, labels
        self.form, self.lemma = nn.Embedding(count("form"), s.form), nn.Embedding(count("lemma"), s.lemma)
        self.upos, self.xpos = nn.Embedding(count("upos"), s.tag), nn.Embedding(count("xpos"), s.tag)
        self.feats = nn.Embedding(count("feats"), s.tag, padding_idx=UNKNOWN)
        self.character = nn.Embedding(count("character"), s.character, padding_idx=UNKNOWN)
        self.convolution = nn.Conv1d(s.character, s.filters, 3, padding=1)
        widths = [s.form + s.lemma + 3 * s.tag + s.filters] + [2 * s.hidden] * (s.layers - 1)
        self.lstm = nn.ModuleList(nn.LSTM(w, s.hidden, batch_first=True, bidirectional=True) for w in widths)
        self.split = [s.arc, s.arc, s.label, s.label] + [s.part] * 7
        self.roles = nn.Linear(2 * s.hidden, sum(self.split))
        self.arc = nn.Parameter(torch.zeros(s.arc + 1, s.arc))
        self.label = nn.Parameter(torch.zeros(s.label, labels, s.label))
        self.label_head, self.label_modifier = nn.Linear(s.label, labels), nn.Linear(s.label, labels, bias=False)
        for embedding in (self.form, self.lemma, self.upos, self.xpos, self.feats, self.character):
            nn.init.normal_(embedding.weight, std=embedding.embedding_dim**-0.5)
        nn.init.normal_(self.arc, std=1.0 / s.arc)
        nn.init.normal_(self.label, std=1.0 / s.label)

    def forward(self, inputs: Inputs) -> TreeScores:
        """The scores of all arcs, and the vectors of words that others are made of."""
        x = self._words(inputs)
        for lstm in self.lstm:
            packed = pack_padded_sequence(self._dropped(x), inputs.lengths + 1, batch_first=True, enforce_sorted=False)
            x, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
        roles = nn.functional.leaky_relu(self.roles(self._dropped(x)), 0.1)
        head, modifier, label_head, label_modifier, *rest = self._dropped(roles).split(self.split, dim=2)
        one = torch.ones_like(head[..., :1])
        arc = torch.cat((head, one), dim=2) @ self.arc @ modifier.transpose(1, 2)
        parts = torch.stack(rest, dim=2) * rest[0].shape[2] ** (-1 / 6)  # products of three, a square root smaller
        return TreeScores(arc, parts, label_head, label_modifier)

    def label_scores(self, scores: TreeScores, heads: Tensor) -> Tensor:
        """(B, N, L) log-probabilities of the labels of the arcs of given trees, (B, N); any at node 0 and padding."""
        index = heads.clamp(min=0)[..., None].expand(-1, -1, scores.label_head.shape[2])
        head, modifier = scores.label_head.gather(1, index), scores.label_modifier
        both = torch.einsum("bml,bmkl->bmk", modifier, (head @ self.label.flatten(1)).unflatten(2, (self.labels, -1)))
        return torch.log_softmax(both + self.label_head(head) + self.label_modifier(modifier), dim=2)

    def _words(self, inputs: Inputs) -> Tensor:
        """(B, N, d) what is known of each word without its neighbours; words and lemmas may be forgotten."""
        form, lemma = inputs.form, inputs.lemma
        if self.training:
            form, lemma = (torch.where(torch.rand(x.shape) < 0.25, UNKNOWN, x) for x in (form, lemma))
        letters = self.convolution(self.character(inputs.characters).transpose(1, 2)).amax(dim=2)
        found = [self.form(form), self.lemma(lemma), self.upos(inputs.upos), self.xpos(inputs.xpos)]
        found += [self.feats(inputs.feats).sum(dim=2), torch.tanh(letters)[inputs.word]]
        return torch.cat(found, dim=2)

    def _dropped(self, x: Tensor) -> Tensor:
        """With dropout that is the same for all words of a sentence."""
        return x * nn.functional.dropout(torch.ones_like(x[:, :1]), self.dropout, self.training)


def _triples(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """(B, N, N, N) products of three vectors each, summed."""
    size = a.shape[1]
    pairs = (a[:, :, None] * b[:, None]).flatten(1, 2)
    return (pairs @ c.transpose(1, 2)).unflatten(1, (size, size))
