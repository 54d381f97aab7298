"""Training a parser: filters, labels and trees, stage after stage, epoch after epoch, with a checkpoint after each."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from certus.checks import Bools, Ints
from certus.errors import InvalidInput
from certus.features import templates as T
from certus.features.encode import Encoded, Encoder
from certus.io.conllu import Sentence
from certus.learn.learners import TreeTrainer, new_trainer, new_weights
from certus.learn.trees import TreeModel, projectivised
from certus.learn.weights import Float32, Weights
from certus.models.cascade import PASS, Cascade, Filter, longest_arcs
from certus.models.files import load_model, save_model
from certus.models.labels import LabelTrainer
from certus.models.parser import FIRST_BITS, SECOND_BITS, Parser, Settings, tree_templates

KIND, VERSION = "parser checkpoint", 1
FILTER_EPOCHS = 3
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
        Written after every epoch, whole or not at all; removed at the end.
    resume : bool
        Go on from the checkpoint, if there is one; the parser is the same as without the interruption.
    """
    settings = settings or Settings()
    if not any(len(sentence) for sentence in sentences):
        raise InvalidInput("there is no word to learn from: every sentence is empty.")
    run = _Run(sentences, dev, settings, clusters or {}, progress, checkpoint)
    if resume:
        run.restore()
    parser = run.train()
    if checkpoint is not None:
        Path(checkpoint).unlink(missing_ok=True)
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
        self.checkpoint = checkpoint
        self.encoder = Encoder.of(sentences, clusters=clusters, top=settings.top_words)
        self.batch = self.encoder.encode(sentences)
        self.gold = [sentence.heads for sentence in sentences]
        self.single = all((heads == 0).sum() <= 1 for heads in self.gold)
        self.trees = [projectivised(heads) for heads in self.gold] if settings.projective else self.gold
        self.done: dict[str, Float32] = {}  # averaged weights of finished stages; of "trees", the best so far
        self.stage, self.epoch = "", 0
        self.weights: Weights | None = None
        self.score, self.best_epoch = -1.0, 0

    # -- the stages ------------------------------------------------------------------------------------------------

    def train(self) -> Parser:
        s = self.settings
        longest = longest_arcs(self.batch, self.trees)
        cascade = Cascade(longest, PASS, PASS, s.most, s.projective, self.single)
        first = self._filter("first filter", T.FIRST_FILTER, FIRST_BITS, cascade)
        cascade = replace(cascade, first=Filter(T.FIRST_FILTER, FIRST_BITS, first, s.first_width))
        second = self._filter("second filter", T.SECOND_FILTER, SECOND_BITS, cascade)
        cascade = replace(cascade, second=Filter(T.SECOND_FILTER, SECOND_BITS, second, s.second_width))
        labels = [[token.deprel for token in sentence] for sentence in self.sentences]
        namer = LabelTrainer(self.batch, self.gold, labels, bits=s.label_bits, seed=s.seed)
        namer.weights = self._begin("labels", s.label_bits)
        while self._going_on("labels", s.label_epochs):
            wrong = namer.epoch(self.epoch)
            self._end_epoch("labels", s.label_epochs, wrong / self._words(self.batch), None)
        model = TreeModel(tree_templates(s.order, clusters=bool(self.encoder.clusters)), s.projective, self.single)
        labeller = replace(namer.labeller(), weight=self.done["labels"])
        parser = Parser(s, self.encoder, cascade, model, np.zeros(1 << s.bits, dtype=np.float32), labeller)
        self._trees(parser)
        return replace(parser, weight=self.done["trees"])

    def _filter(self, stage: str, templates: T.Templates, bits: int, cascade: Cascade) -> Float32:
        """A first-order model trained on the arcs that the cascade so far leaves."""
        model = TreeModel((templates,), self.settings.projective, self.single)
        weights = self._begin(stage, bits)
        if stage not in self.done:
            trainer = self._trainer(model, cascade, weights, "mira")
            while self._going_on(stage, FILTER_EPOCHS):
                words, errors = np.sum(list(trainer.epoch(self.epoch)), axis=0)
                self._end_epoch(stage, FILTER_EPOCHS, errors / words, None, trainer.objective)
        return self.done[stage]

    def _trees(self, parser: Parser) -> None:
        s, stage = self.settings, "trees"
        weights = self._begin(stage, s.bits, s.learner)
        trainer = self._trainer(parser.model, parser.cascade, weights, s.learner)
        while self._going_on(stage, s.epochs) and (not self.dev or self.epoch - self.best_epoch < s.patience):
            words, errors = np.sum(list(trainer.epoch(self.epoch)), axis=0)
            averaged = weights.averaged()
            score = replace(parser, weight=averaged).accuracy(self.dev) if self.dev else None
            if score is None or score > self.score:
                self.done[stage] = averaged
                self.score, self.best_epoch = (-1.0 if score is None else score), self.epoch + 1
            self._end_epoch(stage, s.epochs, errors / words, score, trainer.objective)

    def _trainer(self, model: TreeModel, cascade: Cascade, weights: Weights, learner: str) -> TreeTrainer:
        allowed = [with_tree(cascade.survivors(self.batch, k), tree) for k, tree in enumerate(self.trees)]
        seed = self.settings.seed
        return new_trainer(learner, model, self.batch, self.trees, allowed.__getitem__, weights, seed)

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
        if self.checkpoint is not None:
            self._save(self.checkpoint)
        self.tell(stage, self.epoch, epochs, float(errors), score, loss)

    @staticmethod
    def _words(batch: Encoded) -> int:
        return int(batch.length.sum())

    # -- checkpoints -----------------------------------------------------------------------------------------------

    def _fingerprint(self) -> str:
        """What the training depends on: settings, features and trees."""
        digest = blake2b(repr(asdict(self.settings)).encode(), digest_size=16)
        digest.update(self.batch.attribute.tobytes())
        for heads in [*self.gold, *(sentence.heads for sentence in self.dev)]:
            digest.update(heads.tobytes())
        return digest.hexdigest()

    def _save(self, path: str | os.PathLike[str]) -> None:
        assert self.weights is not None
        arrays: dict[str, Any] = {f"done.{name}": weight for name, weight in self.done.items()}
        arrays |= {f"extra.{name}": state for name, state in self.weights.extra.items()}
        arrays |= {"value": self.weights.value, "total": self.weights.total, "squares": self.weights.squares}
        config = {
            "fingerprint": self._fingerprint(),
            "stage": self.stage,
            "epoch": self.epoch,
            "clock": self.weights.clock,
            "score": self.score,
            "best_epoch": self.best_epoch,
        }
        save_model(path, KIND, VERSION, config, arrays)

    def restore(self) -> None:
        """Go back to the checkpoint, if there is one."""
        if self.checkpoint is None:
            raise InvalidInput("there is nothing to resume: no checkpoint was named.")
        if not Path(self.checkpoint).exists():
            return
        config, arrays = load_model(self.checkpoint, KIND, VERSION)
        if config.get("fingerprint") != self._fingerprint():
            raise InvalidInput(
                f"{self.checkpoint} belongs to a training with other settings or sentences; "
                "resume with the same ones, or start anew without --resume."
            )
        self.stage, self.epoch = config["stage"], config["epoch"]
        self.score, self.best_epoch = config["score"], config["best_epoch"]
        self.done = {name.removeprefix("done."): a for name, a in arrays.items() if name.startswith("done.")}
        self.weights = Weights(int(arrays["value"].size).bit_length() - 1)
        self.weights.value, self.weights.total = arrays["value"].copy(), arrays["total"].copy()
        self.weights.squares = arrays["squares"].copy()
        self.weights.extra = {k.removeprefix("extra."): a.copy() for k, a in arrays.items() if k.startswith("extra.")}
        self.weights.clock = config["clock"]


def with_tree(allowed: Bools, tree: Ints) -> Bools:
    """Allow the arcs of a tree too: training never prunes the right answer."""
    allowed[tree[1:], np.arange(1, len(tree))] = True
    return allowed
