"""Training a parser: filters, labels and trees, stage after stage."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from hashlib import blake2b
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.features import templates as T
from certus.features.encode import Encoded, Encoder
from certus.learn.learners import LEARNERS, EpochTrainer, new_trainer, new_weights
from certus.learn.trees import Trainer, TreeModel, TreeTask, projectivised
from certus.learn.weights import Float32, Packed, Weights
from certus.models.cascade import Cascade
from certus.models.checkpoints import Checkpoint
from certus.models.filters import LengthDictionary, LinearFilter, Treebank, highest_threshold, with_tree
from certus.models.labels import NAMELESS, Labeller, LabelTrainer
from certus.models.loop import Progress, Stage, Trainers, Training, run_names
from certus.models.parser import FILTERS, NAME_BITS, Parser, Settings, templates_digest, tree_templates
from certus.text import Sentence

CHECKPOINT = "parser checkpoint"
FILTER_EPOCHS, NAME_EPOCHS, FOLDS = 3, 3, 3
LABEL_RUNS = 4  # by seeds that follow each other; their mean labels better: 83.50 against 83.45 LAS on en_ewt dev
ROUNDING = 1e-4  # a parser adds up whole units of its weights
Model = TypeVar("Model")


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
    workers: int | None = None,
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
        Called with an ``Epoch`` after each, of every stage.
    checkpoint : path, optional
        Written after every epoch, whole or not at all; to be removed when the parser is saved.
    resume : bool
        Go on from the checkpoint, if there is one; the parser is the same as without the interruption.
    say : callable, optional
        Called with a line of text when training starts anew for want of a checkpoint, or ends early.
    workers : int, optional
        Threads for stages that do not need each other: the folds of filters and of names. All processors, unless given;
        the parser is the same for any number.
    """
    settings = settings or Settings()
    if not any(len(sentence) for sentence in sentences):
        raise InvalidInput("there is no word to learn from: every sentence is empty.")
    run = _Run(sentences, dev, settings, clusters or {}, workers)
    file = None if checkpoint is None else Checkpoint(checkpoint, CHECKPOINT, run.fingerprint())
    run.training = Training(run.stages(), file, progress=progress, say=say)
    if resume:
        run.training.restore()
    return run.train()


class _Run:
    """What the stages of one training learn from."""

    training: Training

    def __init__(
        self,
        sentences: Sequence[Sentence],
        dev: Sequence[Sentence],
        settings: Settings,
        clusters: Mapping[str, str],
        workers: int | None,
    ) -> None:
        self.workers = workers
        self.sentences, self.dev, self.settings = sentences, dev, settings
        self.encoder = Encoder.of(sentences, clusters=clusters, top=settings.top_words)
        self.batch = self.encoder.encode(sentences)
        self.gold = [sentence.heads for sentence in sentences]
        self.single = all((heads == 0).sum() <= 1 for heads in self.gold)
        self.trees = [projectivised(heads) for heads in self.gold] if settings.projective else self.gold
        self.folds = min(FOLDS, len(self.gold)) if len(self.gold) > 1 else 0
        self.everything = np.arange(len(self.gold))
        self.fold = self.everything * self.folds // len(self.gold)  # runs of neighbours, as in a jackknife

    # -- the stages ------------------------------------------------------------------------------------------------

    def stages(self) -> dict[str, Stage]:
        """Every stage that there may be, by name."""
        s = self.settings
        sizes = {f"{name} filter": (bits, FILTER_EPOCHS) for name, (_, bits) in FILTERS.items()}
        sizes |= {"labels": (s.label_bits, s.label_epochs), "names": (NAME_BITS, NAME_EPOCHS)}
        sizes |= {f"{stage}, fold {k + 1}": size for stage, size in sizes.items() for k in range(self.folds)}
        sizes |= dict.fromkeys(run_names("labels", LABEL_RUNS), sizes["labels"])
        stages = {name: Stage(partial(new_weights, "mira", bits), n, forget=True) for name, (bits, n) in sizes.items()}
        online = LEARNERS[s.learner].step is not None
        trees = Stage(partial(new_weights, s.learner, s.bits), s.epochs, s.patience, forget=online)
        return stages | {"trees": trees}

    def train(self) -> Parser:
        s = self.settings
        treebank = Treebank.of(self.batch, self.trees)
        dictionary = LengthDictionary.of(treebank, projective=s.projective, single=self.single)
        cascade = Cascade((dictionary,))
        allowed = self._left_by([cascade])
        for name in s.filters:
            # The arcs that the last filter leaves teach the trees.
            folds = name == "second" or (s.pruning_error is not None and not self.dev)
            weights = self._folded(f"{name} filter", partial(self._filter, FILTERS[name][0], allowed), folds=folds)
            stages = [s.filter(name, Packed.of(weight), single=self.single) for weight in weights]
            cascades = [Cascade((*cascade.filters, stage)) for stage in self._tuned(stages, cascade)]
            cascade = cascades[-1]
            allowed = self._left_by(cascades if name == "second" else [cascade])
        if s.pruning_error is not None:
            widths = {f"{name}_width": stage.width for name, stage in zip(s.filters, cascade.linear, strict=True)}
            s = replace(s, **widths, first_share=1.0, second_share=1.0)  # type: ignore[arg-type]
        cascade = s.cascade(dictionary, cascade.linear)
        labels = [[token.deprel for token in sentence] for sentence in self.sentences]
        labeller = self._labeller(labels)
        namers = [NAMELESS]
        if s.labelled:
            trainer = LabelTrainer(
                self.batch, self.gold, labels, bits=NAME_BITS, seed=s.seed, templates=T.NAME, alone=True
            )
            weights = self._folded("names", lambda members: partial(trainer.on, members))
            namers = [trainer.labeller(weight) for weight in weights]
        templates = tree_templates(s, self.encoder)
        model = TreeModel(templates, s.projective, self.single)
        untrained = Packed(np.zeros(1 << s.bits, dtype=np.int8), 1.0)
        parser = Parser(s, self.encoder, cascade, model, untrained, labeller, namers[-1])
        names = [self._of_fold(namers, k).names(self.batch, k, a) for k, a in enumerate(allowed)]
        return replace(parser, weight=Packed.of(self._trees(parser, allowed, names)))

    def _labeller(self, labels: Sequence[Sequence[str]]) -> Labeller:
        """What labels finished trees."""
        s = self.settings
        trainers = [
            LabelTrainer(self.batch, self.gold, labels, bits=s.label_bits, seed=s.seed + k) for k in range(LABEL_RUNS)
        ]
        runs = {
            name: partial(trainer.on, self.everything)
            for name, trainer in zip(run_names("labels", LABEL_RUNS), trainers, strict=True)
        }
        return trainers[0].labeller(np.mean(self.training.run_each(runs, self.workers), axis=0, dtype=np.float32))

    def _folded(self, stage: str, train: Callable[[Ints], Trainers], *, folds: bool = True) -> list[Float32]:
        """Weights trained without each fold, if folds are wanted, then on everything.

        What comes after a stage must see it as it does on new sentences, where it errs more than on those it learnt.
        """
        left_out = range(self.folds if folds else 0)
        trainers = {f"{stage}, fold {fold + 1}": train(np.flatnonzero(self.fold != fold)) for fold in left_out}
        return self.training.run_each(trainers | {stage: train(self.everything)}, self.workers)

    def _tuned(self, filters: list[LinearFilter], before: Cascade) -> list[LinearFilter]:
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
            found.append(stage.right_levels(Treebank(batch, trees, left)))
        width = max(0.0, -highest_threshold(np.concatenate(found), error)) + ROUNDING
        return [replace(stage, threshold=-width) for stage in filters]

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

    def _filter(self, templates: T.Templates, allowed: Sequence[Bools], members: Ints) -> Trainers:
        """What trains a first-order model on the allowed arcs of some sentences."""
        model = TreeModel((templates,), self.settings.projective, self.single)
        trees, arcs = [self.trees[k] for k in members], [allowed[k] for k in members]

        def trainer(weights: Weights) -> EpochTrainer:
            task = TreeTask(model, self._some(members), trees, arcs.__getitem__)
            return new_trainer("mira", task, weights, self.settings.seed)

        return trainer

    def _trees(self, parser: Parser, allowed: Sequence[Bools], names: Sequence[NDArray[np.uint32]]) -> Float32:
        """Weights of the trees."""

        def trainer(weights: Weights) -> EpochTrainer:
            task = TreeTask(parser.model, self.batch, self.trees, allowed.__getitem__)
            made = new_trainer(self.settings.learner, task, weights, self.settings.seed)
            if isinstance(made, Trainer):
                made.names = names.__getitem__
            return made

        def accuracy(weight: Float32) -> float:
            return replace(parser, weight=Packed.of(weight)).accuracy(self.dev)

        return self.training.run("trees", trainer, accuracy if self.dev else None)

    def fingerprint(self) -> str:
        """What the training depends on: settings, features and trees."""
        digest = blake2b(repr(asdict(self.settings)).encode(), digest_size=16)
        digest.update(templates_digest(self.settings, self.encoder).encode())
        digest.update(self.batch.attribute.tobytes())
        for heads in [*self.gold, *(sentence.heads for sentence in self.dev)]:
            digest.update(heads.tobytes())
        return digest.hexdigest()
