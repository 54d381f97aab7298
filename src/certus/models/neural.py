"""A parser whose scores come from a network: arcs are pruned by their marginals, trees proved like any other."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from certus.checks import Bools, Floats, Ints
from certus.dependency.batch import DependencyBatch
from certus.dependency.part_kinds import PART_KINDS
from certus.dependency.problem import Dependency
from certus.learn.trees import TreeModel
from certus.models.files import load_model, save_model
from certus.models.network import COLUMNS, Network, Sizes, TreeScores, Vocabulary
from certus.models.scores import listed_problem, part_rows
from certus.models.tree_parser import TreeParser
from certus.models.trees import Trees, with_trees
from certus.schema import in_file
from certus.text import Sentence

KIND, VERSION = "neural parser", 1
UNIT = 2.0**-16  # scores are rounded to whole numbers of this, so that sums of them are exact
WORDS = 4000  # of sentences that go through the network together, padding included
RARE = 1e-4  # arcs with a lower marginal, by scores of arcs alone, are not looked at


KINDS = ("arc", "sibling", "grandparent")
SCORED_KINDS = np.array([kind.name in KINDS for kind in PART_KINDS])


class SentenceScores(NamedTuple):
    """What the network makes of a sentence of n words: as in TreeScores, and the arcs worth a look."""

    seen: bytes
    arc: Floats  # (n + 1, n + 1)
    parts: Floats  # (n + 1, 7, d)
    labels: tuple[NDArray[Any], NDArray[Any]]  # (n + 1, d) each
    kept: Bools  # (n + 1, n + 1)

    @property
    def kinds(self) -> Bools:
        """Which kinds of parts have scores."""
        return SCORED_KINDS

    def of(self, rows: Ints) -> Floats:
        """(P,) scores of parts, as kernels have them; 0 for kinds that the network does not score."""
        score = np.zeros(len(rows))
        for number, kind in enumerate(PART_KINDS):
            chosen = rows[:, 0] == number
            index = kind.columns(rows[chosen]) if kind.name in KINDS else []
            if kind.name == "arc":
                score[chosen] = self.arc[tuple(index)]
            elif kind.name == "sibling":
                h, s, m = index
                inner = np.where((s == h)[:, None], self.parts[h, 3], self.parts[h, 0] * self.parts[s, 1])
                score[chosen] = (inner * self.parts[m, 2]).sum(axis=1)
            elif kind.name == "grandparent":
                g, h, m = index
                score[chosen] = (self.parts[g, 4] * self.parts[h, 5] * self.parts[m, 6]).sum(axis=1)
        return score


class Scored(NamedTuple):
    """A batch of sentences as the network scores them."""

    length: Ints
    sentences: Sequence[SentenceScores]


@dataclass(frozen=True)
class NeuralParser(TreeParser[Scored]):
    """Turns tagged sentences into labelled dependency trees, by the scores of a network."""

    network: Network
    vocabulary: Vocabulary
    labels: tuple[str, ...]
    sizes: Sizes
    model: TreeModel  # without templates: which trees there are

    repeatable = False  # what a network adds up depends on the other sentences of a batch, by the last digits

    @property
    def projective(self) -> bool:
        return self.model.projective

    @property
    def single(self) -> bool:
        return self.model.single

    @property
    def unit(self) -> float:
        return UNIT

    # -- use -------------------------------------------------------------------------------------------------------

    def encode(self, sentences: Sequence[Sentence]) -> Scored:
        """The scores of the network, sentences of like lengths at a time."""
        found: dict[int, SentenceScores] = {}
        training = self.network.training
        self.network.eval()
        with torch.inference_mode():
            for some in by_length([len(sentence) for sentence in sentences], WORDS):
                found |= zip(some, self._scored([sentences[k] for k in some]), strict=True)
        self.network.train(training)
        return Scored(np.array([len(s) for s in sentences]), [found[k] for k in range(len(sentences))])

    def _scored(self, sentences: Sequence[Sentence]) -> Iterator[SentenceScores]:
        inputs = self.vocabulary.inputs(sentences)
        arc, parts, *labels = (tensor.numpy() for tensor in self.network(inputs))
        lengths, root = inputs.lengths.numpy(), "single" if self.single else "multi"
        arcs = DependencyBatch(
            np.rint(arc.astype(np.float64) / UNIT) * UNIT, lengths=lengths, projective=self.projective, root=root
        )
        kept, best = arcs.marginals()["arcs"] >= RARE, arcs.decode().structure
        for b, sentence in enumerate(sentences):
            n = len(sentence) + 1
            own = kept[b, :n, :n]
            own[best[b, 1:n], np.arange(1, n)] = True
            rows = [self.vocabulary.row(token) for token in sentence]
            yield SentenceScores(
                np.array(rows, dtype="<i8").tobytes(),
                arc[b, :n, :n].astype(np.float64),
                parts[b, :n].astype(np.float64),
                (labels[0][b, :n], labels[1][b, :n]),
                own,
            )

    def seen(self, batch: Scored, s: int) -> bytes:
        """The numbers of the words of sentence s."""
        return batch.sentences[s].seen

    def problem_of(
        self, batch: Scored, s: int, allowed: Bools | None = None, *, unit: float | None = None
    ) -> Dependency:
        """The trees of sentence s over the allowed arcs, by default those that are not rare."""
        own = batch.sentences[s]
        rows = part_rows(own.kept if allowed is None else allowed, own.kinds)
        score = (UNIT if unit is None else unit) * np.rint(own.of(rows) / UNIT)
        return listed_problem(self, rows, score, int(batch.length[s]))

    def label_scores(self, batch: Scored, trees: Trees) -> Floats:
        """(nodes, labels) log-probabilities of the labels of all words, in the order of the heads of the trees."""
        found = np.zeros((len(trees.heads), len(self.labels)))
        with torch.inference_mode():
            for at, own in zip(trees.start.tolist(), batch.sentences, strict=True):
                heads = torch.from_numpy(trees.heads[at : at + len(own.arc)])[None]
                vectors = (torch.from_numpy(v)[None] for v in own.labels)
                scores = TreeScores(torch.empty(0), torch.empty(0), *vectors)
                found[at : at + len(own.arc)] = self.network.label_scores(scores, heads)[0].numpy()
        return found

    def labelled(self, sentences: Sequence[Sentence], batch: Scored, trees: Trees) -> list[Sentence]:
        """Sentences with these trees; each word with its best label."""
        return with_trees(sentences, trees, self.label_scores(batch, trees).argmax(axis=1), self.labels)

    # -- files -----------------------------------------------------------------------------------------------------

    @property
    def _config(self) -> dict[str, Any]:
        return {
            "sizes": asdict(self.sizes),
            "vocabulary": {column: list(names) for column, names in self.vocabulary.names.items()},
            "labels": list(self.labels),
            "projective": self.projective,
            "single": self.single,
        }

    @cached_property
    def digest(self) -> str:
        """Of all that parses depend on."""
        code = hashlib.sha256(json.dumps(self._config, sort_keys=True).encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            code.update(f"{name} {tuple(tensor.shape)}\n".encode())
            code.update(tensor.numpy().astype("<f4").tobytes())
        return f"sha256:{code.hexdigest()}"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file."""
        arrays = {name: tensor.numpy() for name, tensor in self.network.state_dict().items()}
        save_model(path, KIND, VERSION, self._config, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "NeuralParser":
        """Read what ``save`` wrote; FormatError if the file is damaged, of another kind or of another version."""
        config, stored = load_model(path, KIND, VERSION)
        with in_file(path):
            given = config["sizes"]
            given.only(list(asdict(Sizes())))
            sizes = Sizes(**{name: field.whole(1, 1 << 14) for name, field in given.entries()})
            known = config["vocabulary"]
            vocabulary = Vocabulary({column: known[column].names() for column in (*COLUMNS, "character")})
            labels = tuple(config["labels"].names(least=1))
            model = TreeModel((), config["projective"].flag(), config["single"].flag())
            network = Network(vocabulary, len(labels), sizes)
            state = network.state_dict()
            for name, tensor in state.items():
                state[name] = torch.from_numpy(stored.array(name, np.float32, tuple(tensor.shape)))
        network.load_state_dict(state)
        return cls(network.eval(), vocabulary, labels, sizes, model)


def by_length(lengths: Sequence[int], words: int, order: Sequence[int] | None = None) -> Iterator[list[int]]:
    """Sentences of like lengths together, with up to so many words and padding; ``order`` breaks ties of lengths."""
    batch: list[int] = []
    for k in sorted(range(len(lengths)) if order is None else order, key=lengths.__getitem__):
        if batch and (len(batch) + 1) * (lengths[k] + 1) > words:
            yield batch
            batch = []
        batch.append(k)
    if batch:
        yield batch
