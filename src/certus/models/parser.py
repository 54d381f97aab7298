"""A dependency parser trained on a treebank: cascade, tree model of order 1 to 3, labels."""

import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from certus import kernels
from certus.checks import Bools, as_seconds
from certus.errors import FormatError, InvalidInput
from certus.features import templates as T
from certus.features.encode import COLUMNS, MOST_COARSE, PAD, Encoded, Encoder
from certus.io.files import unpacked
from certus.kernels import tuples
from certus.learn.learners import LEARNERS, check_learner
from certus.learn.trees import TreeModel
from certus.learn.weights import Packed
from certus.models.cascade import Cascade
from certus.models.files import Stored, check_templates, load_model, save_model, template_digest
from certus.models.filters import LengthDictionary, LinearFilter
from certus.models.labels import NAMELESS, Labeller
from certus.models.nonprojective import crossing_trees
from certus.models.scores import problem
from certus.models.tree_parser import BATCH, TreeParser
from certus.models.trees import Room, Trees, with_trees
from certus.schema import Field, in_file, parse_json
from certus.text import Sentence

if TYPE_CHECKING:
    from certus.dependency import Dependency

KIND, VERSION = "parser", 8
FILE = "parser.safetensors"  # its name in a folder of models
NAME_BITS = 19
FILTERS = {"first": (T.FIRST_FILTER, 18), "second": (T.SECOND_FILTER, 20)}  # of a cascade: templates and bits


# The least and the most of each setting that is a whole number.
_WHOLE = {
    "order": (1, 3),
    "epochs": (1, 10**6),
    "label_epochs": (1, 10**6),
    "bits": (1, 30),
    "label_bits": (1, 30),
    "max_heads": (1, 10**6),
    "top_words": (0, 10**9),
    "patience": (1, 10**6),
    "seed": (0, 2**63 - 1),
}


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
    first_share: float = 0.8  # of the widths, used after training: more arcs teach, fewer parse faster
    second_share: float = 0.7
    pruning_error: float | None = None  # share of right arcs that each filter may lose; chooses the widths in training
    max_heads: int = 16  # that a word keeps; twice as many after the first filter
    top_words: int = 800
    patience: int = 3
    seed: int = 1

    def __post_init__(self) -> None:
        """Every setting is checked, whoever gives it: kernels index with some of them."""
        given = Field(asdict(self))
        for name, (low, high) in _WHOLE.items():
            given[name].whole(low, high)
        for name in ("trisiblings", "projective"):
            given[name].flag()
        for name in ("first_width", "second_width"):
            given[name].number(0.0)
        if self.trisiblings and self.order < 3:
            raise InvalidInput(f"trisiblings are parts of order 3 and order is {self.order}; leave them out.")
        for name in ("first_share", "second_share"):
            if not 0.0 < (share := given[name].number()) <= 1.0:
                raise InvalidInput(f"{name} is {share}; expected a share of the width, above 0 and at most 1.")
        if self.pruning_error is not None and not 0.0 <= given["pruning_error"].number() < 1.0:
            raise InvalidInput(f"pruning_error is {self.pruning_error}; expected a share of right arcs, 0 to below 1.")
        check_learner(given["learner"].text(), projective=self.projective, order=self.order)

    @classmethod
    def from_json(cls, data: Any) -> "Settings":
        """Settings as a model file has them; InvalidInput for one that is unknown or out of range."""
        given = Field.of(data, "settings")
        given.only([field.name for field in fields(cls)])
        return given.made(lambda: cls(**given.value))

    def to_json(self) -> dict[str, Any]:
        """Settings as a model file has them."""
        return asdict(self)

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters there are: a second one costs as much as it saves where only arcs are scored after it."""
        return ("first",) if self.order == 1 else ("first", "second")

    def filter(self, name: str, weight: Packed, *, single: bool) -> LinearFilter:
        """A filter of the cascade, by its weights, as wide as in training."""
        templates, bits = FILTERS[name]
        width, heads = {"first": (self.first_width, 2 * self.max_heads), "second": (self.second_width, self.max_heads)}[
            name
        ]
        model = TreeModel((templates,), self.projective, single)
        return LinearFilter(f"{name} filter", model, "shortfall", bits, weight, -width, heads=heads)

    def cascade(self, dictionary: LengthDictionary, filters: Iterable[LinearFilter]) -> Cascade:
        """Filters as wide as in training behind a dictionary, as narrow as in use."""
        shares = (self.first_share, self.second_share)
        sharper = (
            replace(stage, threshold=stage.threshold * share) for stage, share in zip(filters, shares, strict=False)
        )
        return Cascade((dictionary, *sharper))

    @property
    def labelled(self) -> bool:
        """Whether the model looks at the names of arcs: above first order, trained by best trees."""
        return self.order > 1 and LEARNERS[self.learner].step is not None


def tree_templates(settings: Settings, encoder: Encoder) -> tuple[T.Templates, ...]:
    """Templates of the kinds of parts up to the order of the model; tri-siblings only if they are asked for."""
    kinds = [kind for kind in T.TREE if kind[0] <= settings.order and (settings.trisiblings or kind[1] != T.TRISIBLING)]
    chosen = tuple(rich if encoder.clusters else plain for _, plain, rich in kinds)
    if not encoder.fine:
        chosen = tuple(T.with_coarse_tags(templates) for templates in chosen)
    if "feats" not in encoder.columns:
        chosen = tuple(T.without_morphology(templates) for templates in chosen)
    return tuple(T.with_names(templates) for templates in chosen) if settings.labelled else chosen


def templates_digest(settings: Settings, encoder: Encoder) -> str:
    """What tells apart the templates that the weights of a parser are for."""
    first, *second = (FILTERS[name][0] for name in settings.filters)
    used = [first, *tree_templates(settings, encoder), T.LABEL, T.LABEL_PAIR, *second]
    used += [T.NAME] if settings.labelled else []
    return template_digest(line for templates in used for line in templates.described)


def _lexicon(stored: Stored) -> tuple[list[str], dict[str, str]]:
    """The frequent words, and the bit strings of words."""
    data = unpacked(stored.path, "lexicon", stored.array("lexicon", np.uint8, (None,)).tobytes())
    frequent, clusters = Field(parse_json(data, stored.path), "lexicon").items(size=2)
    return frequent.texts(), clusters.texts_by_name()


def _packed(stored: Stored, name: str, bits: int) -> Packed:
    """Weights of one byte, and the unit they count in."""
    unit = float(stored.array(f"{name}.unit", np.float32, (1,))[0])
    if not unit > 0.0:
        raise FormatError(stored.path, None, f"{name}.unit is {unit}; expected a number above 0.")
    return Packed(stored.array(name, np.int8, (1 << bits,)), unit)


@dataclass(frozen=True)
class Parser(TreeParser[Encoded]):
    """Turns tagged sentences into labelled dependency trees."""

    settings: Settings
    encoder: Encoder
    cascade: Cascade
    model: TreeModel
    weight: Packed
    labeller: Labeller
    namer: Labeller = NAMELESS

    # -- use -------------------------------------------------------------------------------------------------------

    def encode(self, sentences: Sequence[Sentence]) -> Encoded:
        """The sentences as arrays of attributes."""
        return self.encoder.encode(sentences)

    def labelled(self, sentences: Sequence[Sentence], batch: Encoded, trees: Trees) -> list[Sentence]:
        """Sentences, encoded as ``batch``, with these trees and their best labels; threads may call it at one time."""
        labels = self.labeller.label(batch, trees.start, trees.heads)
        return with_trees(sentences, trees, labels, self.labeller.labels)

    def decode(self, batch: Encoded, *, search: bool = True, time_limit: float | None = None) -> Trees:
        """The best tree of each sentence over the arcs that the cascade keeps, with its score and a bound.

        Every tree is proved to be the best, and does not depend on the speed of the machine, unless one of the options
        says otherwise. They are for crossing arcs above first order: without ``search`` there is no branching where the
        relaxation proves no tree; ``time_limit`` is in seconds, for each sentence that a fixed amount of branching does
        not prove. Threads may call it at the same time.
        """
        as_seconds("time_limit", time_limit)
        if not self.model.projective and not self.model.first_order:
            return crossing_trees(self, batch, search=search, time_limit=time_limit)
        room = Room.of(batch.length)
        model = self.model.weighted(self.settings.bits, self.weight.value)
        if self.model.first_order:
            kernels.parser.parse_arcs(batch, self.pruning, model, room)
        else:
            kernels.parser.parse_parts(batch, self.pruning, self.namer.arrays, model, room)
        kind = "dynamic program" if self.model.projective else "combinatorial"
        return room.trees(self.weight.unit, room.value, [kind] * len(batch.length), {})

    def problem_of(
        self, batch: Encoded, s: int, allowed: Bools | None = None, *, unit: float | None = None
    ) -> "Dependency":
        """The trees of sentence s over the allowed arcs, by default those that the cascade leaves."""
        return problem(self, batch, s, allowed, unit=unit)

    def seen(self, batch: Encoded, s: int) -> bytes:
        """The attributes of the words of sentence s and around it."""
        rows = slice(int(batch.base[s]) - PAD, int(batch.base[s] + batch.length[s]) + 1 + PAD)
        attributes = batch.attribute[rows]
        head = f"{int(batch.length[s])} {attributes.shape[1]}\n".encode()
        return head + attributes.astype("<u8", copy=False).tobytes() + batch.coarse[rows].astype("<i8").tobytes()

    @property
    def projective(self) -> bool:
        return self.model.projective

    @property
    def single(self) -> bool:
        return self.model.single

    @property
    def unit(self) -> float:
        return self.weight.unit

    @property
    def pruning(self) -> tuples.Cascade:
        """The cascade as the kernels take it, one of a dictionary and filters by width."""
        assert self.cascade.arrays is not None
        return self.cascade.arrays

    @cached_property
    def digest(self) -> str:
        """Of all that parses depend on: settings, words, templates, filters, weights. Files keep it."""
        filters, labellers = self.cascade.linear, (self.labeller, self.namer)
        templates = [*self.model.templates, *(t for stage in filters for t in stage.model.templates)]
        templates += [*(labeller.templates for labeller in labellers), T.LABEL_PAIR]
        config = {
            "settings": self.settings.to_json(),
            "words": [self.encoder.coarse, sorted(self.encoder.frequent), sorted(self.encoder.clusters.items())],
            "columns": self.encoder.columns,
            "labels": [labeller.labels for labeller in labellers],
            "templates": [(t.roles, t.lines) for t in templates],
            "widths": [stage.width for stage in filters],
            "cascade": [filters[-1].heads, self.model.projective, self.model.single],
        }
        code = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
        arrays = [self.pruning.longest.astype("<i8"), *(np.packbits(labeller.seen) for labeller in labellers)]
        for weight in (self.weight, *(f.weight for f in filters), *(labeller.weight for labeller in labellers)):
            arrays += [np.array([weight.unit], dtype="<f8"), weight.value]
        for array in arrays:
            code.update(f"{array.shape}\n".encode())
            code.update(array.tobytes())
        return f"sha256:{code.hexdigest()}"

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, pair: str | None = None) -> None:
        """Write the model to one file; what is loaded from it parses the same. ``pair``: see ``save_model``."""
        longest = np.minimum(self.pruning.longest, 2**15 - 1).astype(np.int16)
        arrays: dict[str, Any] = {"longest": longest, "seen": self.labeller.seen.astype(np.uint8)}
        stored = {"trees": self.weight, "labels": self.labeller.weight}
        stored |= {name: stage.weight for name, stage in zip(self.settings.filters, self.cascade.linear, strict=True)}
        if self.settings.labelled:
            stored["names"] = self.namer.weight
        for name, weight in stored.items():
            arrays[name], arrays[f"{name}.unit"] = weight.value, np.array([weight.unit], dtype=np.float32)
        lexicon = json.dumps([sorted(self.encoder.frequent), self.encoder.clusters], ensure_ascii=False)
        arrays["lexicon"] = np.frombuffer(zlib.compress(lexicon.encode(), 9), dtype=np.uint8)
        config = {
            "templates": templates_digest(self.settings, self.encoder),
            "settings": self.settings.to_json(),
            "coarse": list(self.encoder.coarse),
            "columns": list(self.encoder.columns),
            "labels": list(self.labeller.labels),
            "single": self.model.single,
        }
        save_model(path, KIND, VERSION, config, arrays, pair=pair)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Parser":
        """Read what ``save`` wrote; FormatError if the file is damaged, of another kind or of another version."""
        config, stored = load_model(path, KIND, VERSION)
        with in_file(path):
            settings = Settings.from_json(config["settings"])
            columns = [column.one_of(COLUMNS) for column in config["columns"].items()]
            encoder = Encoder(config["coarse"].names(), *_lexicon(stored), columns)
            check_templates(config, templates_digest(settings, encoder))
            labels, single = tuple(config["labels"].names(least=1)), config["single"].flag()
            side = MOST_COARSE + 1
            longest = stored.wholes("longest", np.int16, (2, side, side), 0, 2**15 - 1).astype(np.int64)
            seen = stored.wholes("seen", np.uint8, (2, side, side, len(labels)), 0, 1).astype(np.bool_)
            sizes = {"trees": settings.bits, "labels": settings.label_bits}
            sizes |= {name: FILTERS[name][1] for name in settings.filters}
            if settings.labelled:
                sizes["names"] = NAME_BITS
            weight = {name: _packed(stored, name, bits) for name, bits in sizes.items()}
        dictionary = LengthDictionary(TreeModel((), settings.projective, single), longest)
        filters = (settings.filter(name, weight[name], single=single) for name in settings.filters)
        templates = tree_templates(settings, encoder)
        model = TreeModel(templates, settings.projective, single)
        return cls(
            settings,
            encoder,
            settings.cascade(dictionary, filters),
            model,
            weight["trees"],
            Labeller(labels, seen, settings.label_bits, weight["labels"]),
            Labeller(labels, seen, NAME_BITS, weight["names"], T.NAME) if settings.labelled else NAMELESS,
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
