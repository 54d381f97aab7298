"""A dependency parser trained on a treebank: cascade, tree model of order 1 to 3, labels."""

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certus.dependency.problem import Dependency
from certus.errors import FormatError, InvalidInput
from certus.features import templates as T
from certus.features.encode import MOST_COARSE, Encoded, Encoder
from certus.io.conllu import Sentence, Token
from certus.learn.learners import check_learner
from certus.learn.trees import LEARNERS, TreeModel
from certus.learn.weights import Packed
from certus.models.cascade import PASS, Cascade, Filter
from certus.models.files import load_model, save_model
from certus.models.labels import NAMELESS, Labeller
from certus.models.trees import Room, Trees, about_no_tree
from certus.threads import interruptible

KIND, VERSION = "parser", 5
FILE = "parser.safetensors"  # its name in a folder of models
BATCH = 256  # sentences parsed by one call of the kernel
FIRST_BITS, SECOND_BITS, NAME_BITS = 18, 20, 19


@dataclass(frozen=True)
class Settings:
    """What a parser is trained with; kept in the model so that it can be trained again."""

    order: int = 3
    trisiblings: bool = False  # at order 3, score three modifiers of a head in a row as well
    projective: bool = True
    learner: str = "mira"
    epochs: int = 10
    label_epochs: int = 6
    bits: int = 22
    label_bits: int = 21
    first_width: float = 5.0
    second_width: float = 2.5
    narrower: float = 0.8  # the share of the widths that is used after training: more arcs teach, fewer parse faster
    pruning_error: float | None = None  # share of right arcs that each filter may lose; chooses the widths in training
    most: int = 16
    top_words: int = 800
    patience: int = 3
    seed: int = 1

    def __post_init__(self) -> None:
        if self.order not in (1, 2, 3):
            raise InvalidInput(f"order is {self.order!r}; expected 1, 2 or 3.")
        if self.trisiblings and self.order < 3:
            raise InvalidInput(f"trisiblings are parts of order 3 and order is {self.order}; leave them out.")
        if not 0.0 < self.narrower <= 1.0:
            raise InvalidInput(f"narrower is {self.narrower}; expected a share of the widths, above 0 and at most 1.")
        if self.pruning_error is not None and not 0.0 <= self.pruning_error < 1.0:
            raise InvalidInput(f"pruning_error is {self.pruning_error}; expected a share of right arcs, 0 to below 1.")
        check_learner(self.learner, projective=self.projective, order=self.order, trisiblings=self.trisiblings)

    @property
    def filters(self) -> int:
        """How many filters there are: a second one costs as much as it saves where only arcs are scored after it."""
        return 1 if self.order == 1 else 2

    @property
    def named(self) -> bool:
        """Whether the model looks at the names of arcs: above first order, trained by best trees."""
        return self.order > 1 and self.learner in LEARNERS


def tree_templates(settings: Settings, encoder: Encoder) -> tuple[T.Templates, ...]:
    """Templates of the arcs; siblings and grandparents above order 1; grand-siblings, and tri-siblings, at order 3."""
    plain = (T.ARC, T.SIBLING, T.GRANDPARENT, T.GRANDSIBLING, T.TRISIBLING)
    rich = (T.ARC_WITH_CLUSTERS, T.SIBLING_WITH_CLUSTERS, T.GRANDPARENT_WITH_CLUSTERS, T.GRANDSIBLING, T.TRISIBLING)
    kinds = {1: 1, 2: 3, 3: 4}[settings.order] + settings.trisiblings
    chosen = (rich if encoder.clusters else plain)[:kinds]
    if not encoder.fine:
        chosen = tuple(T.with_coarse_tags(templates) for templates in chosen)
    return tuple(T.with_names(templates) for templates in chosen) if settings.named else chosen


@dataclass(frozen=True)
class Parser:
    """Turns tagged sentences into labelled dependency trees."""

    settings: Settings
    encoder: Encoder
    cascade: Cascade
    model: TreeModel
    weight: Packed
    labeller: Labeller
    namer: Labeller = NAMELESS

    # -- use -------------------------------------------------------------------------------------------------------

    def parse(self, sentences: Iterable[Sentence], *, time_limit: float | None = None) -> Iterator[Sentence]:
        """The sentences with HEAD and DEPREL filled in; everything else is kept. Streams.

        ``time_limit`` is that of ``decode``.
        """
        stream = iter(sentences)
        while batch := list(islice(stream, BATCH)):
            encoded = self.encoder.encode(batch)
            trees = interruptible(partial(self.decode, encoded, time_limit=time_limit))
            yield from interruptible(self.labelled, batch, encoded, trees)

    def labelled(self, sentences: Sequence[Sentence], batch: Encoded, trees: Trees) -> list[Sentence]:
        """Sentences, encoded as ``batch``, with these trees and their best labels; threads may call it at one time."""
        labels = self.labeller.label(batch, trees.start, trees.heads).tolist()
        names = self.labeller.labels
        flat = trees.heads.tolist()
        return [
            replace(
                sentence,
                tokens=[
                    Token(t.id, t.form, t.lemma, t.upos, t.xpos, t.feats, head, names[label], t.deps, t.misc)
                    for t, head, label in zip(sentence.tokens, flat[at + 1 :], labels[at + 1 :], strict=False)
                ],
                comments=about_no_tree(sentence.comments),
            )
            for at, sentence in zip(trees.start.tolist(), sentences, strict=True)
        ]

    def decode(self, batch: Encoded, *, search: bool = True, time_limit: float | None = None) -> Trees:
        """The best tree of each sentence over the arcs that the cascade keeps, with its score and a bound.

        Every tree is proved to be the best, and does not depend on the speed of the machine, unless one of the options
        says otherwise. They are for crossing arcs above first order: without ``search`` there is no branching where the
        relaxation proves no tree; ``time_limit`` is in seconds, for each sentence that a fixed amount of branching does
        not prove. Threads may call it at the same time.
        """
        from certus.kernels.parser import parse_arcs, parse_parts

        if time_limit is not None and not time_limit > 0:
            raise InvalidInput(f"time_limit is {time_limit!r}; expected a positive number of seconds, or None.")
        if not self.model.projective and not self.model.first_order:
            from certus.models.nonprojective import crossing_trees

            return crossing_trees(self, batch, search=search, time_limit=time_limit)
        room = Room(batch.length)
        sentences: tuple[Any, ...] = (batch.attribute, batch.coarse, batch.base, batch.length, self.cascade.arguments)
        model: tuple[Any, ...] = (self.model.arrays, self.settings.bits, self.weight.value, self.index())
        found: tuple[Any, ...] = (room.start, room.heads, room.value, room.square, room.kept)
        if self.model.first_order:
            parse_arcs(*(*sentences, *model, *found))
        else:
            parse_parts(*(*sentences, self.namer.arguments, *model, *found))
        kind = "dynamic program" if self.model.projective else "combinatorial"
        return room.trees(self.weight.unit, room.value, [kind] * len(batch.length), {})

    def index(self) -> NDArray[np.uint64]:
        """Room for the features of any part, for the kernels."""
        filters = (self.cascade.first.templates, self.cascade.second.templates)
        most = max(self.model.most, self.namer.templates.most, *(templates.most for templates in filters))
        return np.empty(most, dtype=np.uint64)

    def problem(self, sentence: Sentence) -> Dependency:
        """The trees of a tagged sentence over the arcs that the cascade leaves, with the scores of the model.

        A problem like any other: ask it for the k best trees, marginals, samples or a certificate.
        """
        from certus.models.scores import problem

        return problem(self, self.encoder.encode([sentence]), 0)

    @cached_property
    def digest(self) -> str:
        """Of all that parses depend on: settings, words, templates, filters, weights. Files keep it."""
        cascade, labellers = self.cascade, (self.labeller, self.namer)
        filters = (cascade.first, cascade.second)
        templates = (*self.model.templates, *(part.templates for part in (*filters, *labellers)), T.LABEL_PAIR)
        config = {
            "settings": asdict(self.settings),
            "words": [self.encoder.coarse, sorted(self.encoder.frequent), sorted(self.encoder.clusters.items())],
            "columns": self.encoder.columns,
            "labels": [labeller.labels for labeller in labellers],
            "templates": [(t.roles, t.lines) for t in templates],
            "widths": [part.width for part in filters],
            "cascade": [cascade.most, cascade.projective, cascade.single],
        }
        code = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
        arrays = [cascade.longest.astype("<i8"), *(np.packbits(labeller.seen) for labeller in labellers)]
        for weight in (self.weight, *(part.weight for part in (*filters, *labellers))):
            arrays += [np.array([weight.unit], dtype="<f8"), weight.value]
        for array in arrays:
            code.update(f"{array.shape}\n".encode())
            code.update(array.tobytes())
        return f"sha256:{code.hexdigest()}"

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, pair: str | None = None) -> None:
        """Write the model to one file; what is loaded from it parses the same. ``pair``: see ``save_model``."""
        arrays: dict[str, Any] = {"longest": self.cascade.longest.astype(np.int16), "seen": self.labeller.seen}
        stored = {
            "first": self.cascade.first.weight,
            "trees": self.weight,
            "labels": self.labeller.weight,
        }
        if self.settings.filters == 2:
            stored["second"] = self.cascade.second.weight
        if self.settings.named:
            stored["names"] = self.namer.weight
        for name, weight in stored.items():
            arrays[name], arrays[f"{name}.unit"] = weight.value, np.array([weight.unit], dtype=np.float32)
        lexicon = json.dumps([sorted(self.encoder.frequent), self.encoder.clusters], ensure_ascii=False)
        arrays["lexicon"] = np.frombuffer(zlib.compress(lexicon.encode(), 9), dtype=np.uint8)
        config = {
            "settings": asdict(self.settings),
            "coarse": list(self.encoder.coarse),
            "columns": list(self.encoder.columns),
            "labels": list(self.labeller.labels),
            "single": self.cascade.single,
        }
        save_model(path, KIND, VERSION, config, arrays, pair=pair)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Parser":
        """Read what ``save`` wrote; FormatError if the file is damaged, of another kind or of another version."""
        config, arrays = load_model(path, KIND, VERSION)
        try:
            settings = Settings(**config["settings"])
            frequent, clusters = json.loads(zlib.decompress(arrays["lexicon"].tobytes()))
            encoder = Encoder(config["coarse"], frequent, clusters, config["columns"])
            sizes = {"first": FIRST_BITS, "trees": settings.bits, "labels": settings.label_bits}
            if settings.filters == 2:
                sizes["second"] = SECOND_BITS
            if settings.named:
                sizes["names"] = NAME_BITS
            weight = {}
            for name, bits in sizes.items():
                value, unit = arrays[name], float(arrays[f"{name}.unit"][0])
                if value.shape != (1 << bits,) or value.dtype != np.int8 or not unit > 0:
                    raise ValueError(
                        f"{name} has {value.size} {value.dtype} weights; expected {1 << bits} of int8 and a unit"
                    )
                weight[name] = Packed(value, unit)
            labels, single = tuple(config["labels"]), bool(config["single"])
            seen, longest = arrays["seen"].astype(np.bool_), arrays["longest"].astype(np.int64)
            side = MOST_COARSE + 1
            if seen.shape != (2, side, side, len(labels)) or longest.shape != (2, side, side):
                raise ValueError("the dictionaries of labels and lengths have another shape")
        except (KeyError, IndexError, TypeError, ValueError, zlib.error) as error:
            raise FormatError(path, None, f"the parser in it is not whole: {error}.") from None
        first = Filter(T.FIRST_FILTER, FIRST_BITS, weight["first"], settings.first_width * settings.narrower)
        second = PASS
        if settings.filters == 2:
            second = Filter(T.SECOND_FILTER, SECOND_BITS, weight["second"], settings.second_width * settings.narrower)
        cascade = Cascade(longest, first, second, settings.most, settings.projective, single)
        templates = tree_templates(settings, encoder)
        model = TreeModel(templates, settings.projective, single)
        return cls(
            settings,
            encoder,
            cascade,
            model,
            weight["trees"],
            Labeller(labels, seen, settings.label_bits, weight["labels"]),
            Labeller(labels, seen, NAME_BITS, weight["names"], T.NAME) if settings.named else NAMELESS,
        )

    def accuracy(self, sentences: Sequence[Sentence]) -> float:
        """Share of words with the right head."""
        right = words = 0
        for at in range(0, len(sentences), BATCH):
            some = sentences[at : at + BATCH]
            heads = self.decode(self.encoder.encode(some), search=False).heads
            gold = np.concatenate([sentence.heads for sentence in some])
            right += int(((heads == gold) & (gold >= 0)).sum())
            words += int((gold >= 0).sum())
        return right / max(words, 1)
