"""Training a parser: filters, labels and trees, stage after stage, epoch after epoch, with a checkpoint after each."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.features import templates as T
from certus.features.encode import Encoded, Encoder
from certus.learn.learners import new_trainer, new_weights
from certus.learn.trees import LEARNERS, Trainer, TreeModel, projectivised
from certus.learn.weights import Float32, Packed, Weights
from certus.models.cascade import PASS, Cascade, Filter, longest_arcs, with_tree
from certus.models.checkpoints import Checkpoint
from certus.models.files import Stored
from certus.models.filters import Treebank, highest_threshold, of_parser
from certus.models.labels import NAMELESS, LabelTrainer
from certus.models.parser import (
    FIRST_BITS,
    NAME_BITS,
    SECOND_BITS,
    Parser,
    Settings,
    templates_digest,
    tree_templates,
)
from certus.schema import Field, in_file
from certus.text import Sentence

KIND, VERSION = "parser checkpoint", 4
FILTER_EPOCHS, NAME_EPOCHS, FOLDS = 3, 3, 3
FORGOTTEN = (1, 3, 6, 10, 15)  # epochs after which weights are averaged anew: early ones are far from good
ROUNDING = 1e-4  # a parser adds up whole units of its weights
Model = TypeVar("Model")
# stage, epoch, epochs, share of errors, dev score, and the loss or other objective of the learner
Progress = Callable[[str, int, int, float, float | None, float | None], None]


def train_parser(
    sentences: Sequence[Sentence],
    dev: Sequence[Sentence] = (),
    *,
    settings: Settings | None = None,
    clusters: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    say: Callable[[str], None] = lambda message: None,
) -> Parser:
    """A parser for a treebank.

    Deterministic for the seed in the settings. With dev sentences the weights of the epoch that parses them best are
    kept, and training ends after ``settings.patience`` epochs without a better one. Trees with crossing arcs are made
    projective for a projective parser.

    Parameters
    ----------
    sentences, dev : sequences of Sentence
        With heads and labels.
    settings : Settings, optional
        Order, learner, epochs and the rest.
    clusters : mapping of str to str, optional
        Brown clusters: bit strings of words.
    progress : callable, optional
        Called after every epoch with (stage, epoch, epochs, share of errors, dev score or None, loss or None).
    checkpoint : path, optional
        Written after every epoch, whole or not at all; to be removed when the parser is saved.
    resume : bool
        Go on from the checkpoint, if there is one; the parser is the same as without the interruption.
    say : callable, optional
        Called with a line of text when training starts anew for want of a checkpoint, or ends early.
    """
    settings = settings or Settings()
    if not any(len(sentence) for sentence in sentences):
        raise InvalidInput("there is no word to learn from: every sentence is empty.")
    run = _Run(sentences, dev, settings, clusters or {}, progress, checkpoint)
    if resume and not run.restore():
        say(f"{checkpoint}: there is no checkpoint to resume; training starts from the beginning.")
    parser = run.train()
    if run.epoch < settings.epochs:
        say(f"trees: stopped after epoch {run.epoch}; dev was best after epoch {run.best_epoch}, which is kept.")
    return parser


class _Run:
    """The state of one training: what is finished, and the weights of the stage that is not."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        dev: Sequence[Sentence],
        settings: Settings,
        clusters: Mapping[str, str],
        progress: Progress | None,
        checkpoint: str | os.PathLike[str] | None,
    ) -> None:
        self.sentences, self.dev, self.settings = sentences, dev, settings
        self.tell = progress or (lambda *report: None)
        self.encoder = Encoder.of(sentences, clusters=clusters, top=settings.top_words)
        self.batch = self.encoder.encode(sentences)
        self.gold = [sentence.heads for sentence in sentences]
        self.single = all((heads == 0).sum() <= 1 for heads in self.gold)
        self.trees = [projectivised(heads) for heads in self.gold] if settings.projective else self.gold
        self.done: dict[str, Float32] = {}  # averaged weights of finished stages; of "trees", the best so far
        self.folds = min(FOLDS, len(self.gold)) if len(self.gold) > 1 else 0
        self.everything = np.arange(len(self.gold))
        self.fold = self.everything * self.folds // len(self.gold)  # runs of neighbours, as in a jackknife
        self.stage, self.epoch = "", 0
        self.weights: Weights | None = None
        self.score, self.best_epoch = -1.0, 0
        self.file = None if checkpoint is None else Checkpoint(checkpoint, KIND, VERSION, self._fingerprint())

    # -- the stages ------------------------------------------------------------------------------------------------

    def train(self) -> Parser:
        s = self.settings
        longest = longest_arcs(self.batch, self.trees)
        cascade = Cascade(longest, PASS, PASS, s.most, s.projective, self.single)
        allowed = self._left_by([cascade])
        to_tune = s.pruning_error is not None and not self.dev
        firsts = [
            Filter(T.FIRST_FILTER, FIRST_BITS, Packed.of(weight), s.first_width)
            for weight in self._folded("first filter", lambda stage, members: self._filter(
                stage, T.FIRST_FILTER, FIRST_BITS, allowed, members), folds=to_tune)
        ]  # fmt: skip
        cascade = replace(cascade, first=self._tuned(firsts, cascade)[-1])
        allowed = self._left_by([cascade])
        filters = [PASS]
        if s.filters == 2:
            filters = [
                Filter(T.SECOND_FILTER, SECOND_BITS, Packed.of(weight), s.second_width)
                for weight in self._folded("second filter", lambda stage, members: self._filter(
                    stage, T.SECOND_FILTER, SECOND_BITS, allowed, members))
            ]  # fmt: skip
            filters = self._tuned(filters, cascade)
            allowed = self._left_by([replace(cascade, second=second) for second in filters])
        if s.pruning_error is not None:
            second_width = filters[-1].width if s.filters == 2 else s.second_width
            s = replace(s, first_width=cascade.first.width, second_width=second_width, narrower=1.0)
        first, second = (replace(f, width=f.width * s.narrower) for f in (cascade.first, filters[-1]))
        cascade = replace(cascade, first=first, second=second)
        labels = [[token.deprel for token in sentence] for sentence in self.sentences]
        trainer = LabelTrainer(self.batch, self.gold, labels, bits=s.label_bits, seed=s.seed)
        labeller = trainer.labeller(self._labels("labels", trainer, s.label_epochs, self.everything))
        namers = [NAMELESS]
        if s.named:
            trainer = LabelTrainer(
                self.batch, self.gold, labels, bits=NAME_BITS, seed=s.seed, templates=T.NAME, alone=True
            )
            weights = self._folded("names", lambda stage, members: self._labels(stage, trainer, NAME_EPOCHS, members))
            namers = [trainer.labeller(weight) for weight in weights]
        templates = tree_templates(s, self.encoder)
        model = TreeModel(templates, s.projective, self.single)
        untrained = Packed(np.zeros(1 << s.bits, dtype=np.int8), 1.0)
        parser = Parser(s, self.encoder, cascade, model, untrained, labeller, namers[-1])
        self._trees(parser, allowed, [self._of_fold(namers, k).names(self.batch, k, a) for k, a in enumerate(allowed)])
        return replace(parser, weight=Packed.of(self.done["trees"]))

    def _folded(self, stage: str, train: Callable[[str, Ints], Float32], *, folds: bool = True) -> list[Float32]:
        """Weights trained without each fold, if folds are wanted, then on everything.

        What comes after a stage must see it as it does on new sentences, where it errs more than on those it learnt.
        """
        left_out = range(self.folds if folds else 0)
        weights = [train(f"{stage}, fold {fold + 1}", np.flatnonzero(self.fold != fold)) for fold in left_out]
        return [*weights, train(stage, self.everything)]

    def _tuned(self, filters: list[Filter], before: Cascade) -> list[Filter]:
        """The filters with the least width that loses few enough of the right arcs that are left before them.

        Right arcs of dev, or else those of each fold under the filter that was trained without it.
        """
        error = self.settings.pruning_error
        if error is None or not (self.dev or self.folds):
            return filters
        held_out = [(filters[-1], self.encoder.encode(self.dev), [sentence.heads for sentence in self.dev])]
        if not self.dev:
            folds = [np.flatnonzero(self.fold == k) for k in range(self.folds)]
            held_out = [
                (stage, self._some(members), [self.gold[k] for k in members])
                for stage, members in zip(filters[:-1], folds, strict=True)
            ]
        found = []
        for stage, batch, trees in held_out:
            left = [before.survivors(batch, k) for k in range(len(trees))]
            found.append(of_parser(stage, before).right_levels(Treebank(batch, trees, left)))
        width = max(0.0, -highest_threshold(np.concatenate(found), error)) + ROUNDING
        return [replace(stage, width=width) for stage in filters]

    def _some(self, members: Ints) -> Encoded:
        """Some of the sentences."""
        b = self.batch
        return Encoded(b.attribute, b.coarse, b.base[members], b.length[members])

    def _of_fold(self, models: Sequence[Model], k: int) -> Model:
        """The one of the models that was trained without sentence k, if there are several."""
        return models[self.fold[k]] if len(models) > 1 else models[0]

    def _left_by(self, cascades: Sequence[Cascade]) -> list[Bools]:
        """The arcs of each sentence that a cascade leaves, and those of its tree."""
        left = [self._of_fold(cascades, k).survivors(self.batch, k) for k in range(len(self.trees))]
        return [with_tree(arcs, tree) for arcs, tree in zip(left, self.trees, strict=True)]

    def _filter(
        self, stage: str, templates: T.Templates, bits: int, allowed: Sequence[Bools], members: Ints
    ) -> Float32:
        """A first-order model trained on the allowed arcs of some sentences."""
        model = TreeModel((templates,), self.settings.projective, self.single)
        weights = self._begin(stage, bits)
        if stage not in self.done:
            trees, arcs = [self.trees[k] for k in members], [allowed[k] for k in members]
            trainer = new_trainer(
                "mira", model, self._some(members), trees, arcs.__getitem__, weights, self.settings.seed
            )
            while self._going_on(stage, FILTER_EPOCHS):
                words, errors = np.sum(list(trainer.epoch(self.epoch)), axis=0)
                self._end_epoch(stage, FILTER_EPOCHS, errors / max(words, 1), None, trainer.objective)
        return self.done[stage]

    def _labels(self, stage: str, trainer: LabelTrainer, epochs: int, members: Ints) -> Float32:
        """Weights of labels, trained on some sentences."""
        trainer.weights = self._begin(stage, trainer.weights.bits)
        while self._going_on(stage, epochs):
            wrong = trainer.epoch(self.epoch, members)
            self._end_epoch(stage, epochs, wrong / max(int(self.batch.length[members].sum()), 1), None)
        return self.done[stage]

    def _trees(self, parser: Parser, allowed: Sequence[Bools], names: Sequence[NDArray[np.uint32]]) -> None:
        s, stage = self.settings, "trees"
        weights = self._begin(stage, s.bits, s.learner)
        trainer = new_trainer(s.learner, parser.model, self.batch, self.trees, allowed.__getitem__, weights, s.seed)
        if isinstance(trainer, Trainer):
            trainer.names = names.__getitem__
        while self._going_on(stage, s.epochs) and (not self.dev or self.epoch - self.best_epoch < s.patience):
            words, errors = np.sum(list(trainer.epoch(self.epoch)), axis=0)
            averaged = weights.averaged()
            score = replace(parser, weight=Packed.of(averaged)).accuracy(self.dev) if self.dev else None
            if score is None or score > self.score:
                self.done[stage] = averaged
                self.score, self.best_epoch = (-1.0 if score is None else score), self.epoch + 1
            self._end_epoch(stage, s.epochs, errors / words, score, trainer.objective)

    # -- epochs ----------------------------------------------------------------------------------------------------

    def _begin(self, stage: str, bits: int, learner: str = "mira") -> Weights:
        """The weights of a stage: new ones, or those of the checkpoint."""
        if self.stage == stage and self.weights is not None:
            return self.weights
        fresh = new_weights(learner, bits)
        if stage not in self.done:
            self.stage, self.epoch, self.weights = stage, 0, fresh
        return fresh

    def _going_on(self, stage: str, epochs: int) -> bool:
        return self.stage == stage and self.epoch < epochs

    def _end_epoch(
        self, stage: str, epochs: int, errors: float, score: float | None, loss: float | None = None
    ) -> None:
        assert self.weights is not None
        self.epoch += 1
        if stage != "trees" and self.epoch == epochs:
            self.done[stage] = self.weights.averaged()
        if self.epoch in FORGOTTEN and (stage != "trees" or self.settings.learner in LEARNERS):
            self.weights.average_from_here()
        if self.file is not None:
            self._save(self.file)
        self.tell(stage, self.epoch, epochs, float(errors), score, loss)

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def _fingerprint(self) -> str:
        """What the training depends on: settings, features and trees."""
        digest = blake2b(repr(asdict(self.settings)).encode(), digest_size=16)
        digest.update(templates_digest(self.settings, self.encoder).encode())
        digest.update(self.batch.attribute.tobytes())
        for heads in [*self.gold, *(sentence.heads for sentence in self.dev)]:
            digest.update(heads.tobytes())
        return digest.hexdigest()

    def _save(self, file: Checkpoint) -> None:
        assert self.weights is not None
        arrays: dict[str, Any] = {f"done.{name}": weight for name, weight in self.done.items()}
        arrays |= {f"extra.{name}": state for name, state in self.weights.extra.items()}
        arrays |= {"value": self.weights.value, "total": self.weights.total, "squares": self.weights.squares}
        config = {
            "stage": self.stage,
            "epoch": self.epoch,
            "clock": self.weights.clock,
            "score": self.score,
            "best_epoch": self.best_epoch,
        }
        file.save(config, arrays)

    def restore(self) -> bool:
        """Go back to the checkpoint, if there is one; whether there is."""
        if self.file is None:
            raise InvalidInput("there is nothing to resume: no checkpoint was named.")
        found = self.file.load()
        if found is None:
            return False
        with in_file(self.file.path):
            self._restored(*found)
        return True

    def _restored(self, config: Field, stored: Stored) -> None:
        s = self.settings
        stages = {
            "first filter": (FIRST_BITS, FILTER_EPOCHS),
            "second filter": (SECOND_BITS, FILTER_EPOCHS),
            "labels": (s.label_bits, s.label_epochs),
            "names": (NAME_BITS, NAME_EPOCHS),
        }
        stages |= {f"{stage}, fold {k + 1}": sizes for stage, sizes in stages.items() for k in range(self.folds)}
        stages["trees"] = (s.bits, s.epochs)
        self.stage = config["stage"].one_of(tuple(stages))
        bits, epochs = stages[self.stage]
        self.epoch = config["epoch"].whole(1, epochs)
        self.score = config["score"].number(-1.0, 1.0)
        self.best_epoch = config["best_epoch"].whole(0, epochs)
        done = [Field(name, "done").one_of(tuple(stages)) for name in stored.names("done.")]
        self.done = {k: stored.array(f"done.{k}", np.float32, (1 << stages[k][0],)).copy() for k in done}
        if self.stage not in done and (self.stage == "trees" or self.epoch == epochs):
            raise InvalidInput(f"the array done.{self.stage} is missing, though epoch {self.epoch} of it is over.")
        weights = self.weights = new_weights(s.learner if self.stage == "trees" else "mira", bits)
        size = (1 << weights.bits,)
        weights.value = stored.array("value", weights.value.dtype, size).copy()
        weights.total = stored.array("total", np.float64, size).copy()
        weights.squares = stored.array("squares", weights.squares.dtype, size).copy()
        extra = stored.names("extra.")
        weights.extra = {name: stored.array(f"extra.{name}", np.float64, (None,)).copy() for name in extra}
        weights.clock = config["clock"].number(1.0)
