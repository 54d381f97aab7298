"""A trained tagger: a linear model of tags, tag pairs and triples, and hashed features of the words around."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from certus import kernels, tagging
from certus.checks import Floats, Ints, as_positive_int
from certus.errors import InvalidInput, NotSupported
from certus.features.brown import Clusters
from certus.features.tagging import TEMPLATES, WITH_CLUSTERS, WORD, Lexicon, WordEncoder
from certus.learn.learners import TAGS, find_learner
from certus.learn.weights import Float32, Packed, Step, Weights
from certus.models.checkpoints import Checkpoint
from certus.models.loop import Progress, Stage, Training, run_names
from certus.models.text_tagging import TextTagger
from certus.result import Certificate
from certus.text import Sentence, Token
from certus.text.sentence import as_sentences
from certus.threads import interruptible

if TYPE_CHECKING:
    from certus.tagging import Tagging

KIND, VERSION = "tagger", 2
CHECKPOINT = "tagger checkpoint"
COLUMNS = ("upos", "xpos", "feats")
BATCH = 256  # sentences in one call of the kernel
LEAST_BITS, MOST_BITS = 8, 28

# Chosen by accuracy on the development part of English-EWT; none of them is sharp.
KNOWN = 2  # forms seen so often are told apart
SURE = 10  # forms seen so often take no tag but those seen
OPEN = 6  # tags that any other form may take
PATIENCE = 4  # epochs without a better accuracy on dev before training stops


@dataclass(frozen=True)
class ColumnModel:
    """The tags of one column, or of several joined by "+", and their weights: see kernels.tagger for the model."""

    column: str
    tags: tuple[str, ...]
    lexicon: Lexicon
    bits: int
    weight: NDArray[np.int8]

    @cached_property
    def encoder(self) -> WordEncoder:
        return WordEncoder(self.lexicon)

    @cached_property
    def arrays(self) -> Any:
        """What the kernels take beside the words and the weights."""
        encoder, size = self.encoder, len(self.tags)
        lines = encoder.templates.arrays
        _, offset, column = lines.component.T.copy()
        templates = kernels.tagger.Templates(lines.ptr, offset, column, lines.seed)
        width = min(max(OPEN, int(np.diff(encoder.set_ptr).max())), size)
        return kernels.tagger.Model(templates, WORD, encoder.set_ptr, encoder.allowed, self.bits, size, width)

    def new_weights(self) -> Weights:
        """Weights to be trained."""
        weights = Weights(self.bits, beyond=len(self.tags) + 1)
        weights.clock = 0.0  # steps are counted before they are taken: the average leaves the last values out
        return weights

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of sentences of words."""
        return self.decode(sentences)[0]

    def decode(self, sentences: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[float]]:
        """The tags of sentences of words, and their scores: whole numbers, and the best that these words can have."""
        words = self.encoder.encode(sentences)
        out, score = self.decoded(words)
        names = self.tags
        numbers = out.tolist()
        spans = zip(words.first.tolist(), words.length.tolist(), strict=True)
        return [[names[t] for t in numbers[at : at + n]] for at, n in spans], score.tolist()

    def decoded(self, words: Any) -> tuple[Ints, Floats]:
        """The numbers of the tags of words as the encoder gives them, with pads; and the scores of sentences."""
        out, score = np.empty(len(words.rows), dtype=np.int64), np.empty(len(words.length))
        kernels.tagger.tag_batch(words, self.arrays, self.weight, out, score)
        return out, score

    def problem(self, words: Sequence[str]) -> "Tagging":
        """Tagging these words as a problem of its own, with exact whole-number scores."""
        n, size = len(words), len(self.tags)
        if (size + 1) ** 3 > 1 << 24:
            raise NotSupported(f"a table over triples of {size} tags is too large; use Tagger.tag, which needs none.")
        unary, bigram = np.empty((n, size)), np.empty((n + 1, size + 1, size + 1))
        trigram = np.empty((size + 1,) * 3)
        kernels.tagger.local_scores(self.encoder.encode([words]), self.arrays, self.weight, unary, bigram)
        kernels.tagger.pair_scores(self.arrays, self.weight, trigram)
        return tagging.Tagging(unary, bigram=bigram, trigram=trigram, tags=self.tags)


class Tagger:
    r"""Fills the tag columns of sentences: part of speech, treebank tag, morphology.

    For each column the tags of a sentence maximise a sum over its words of the weights of hashed features (form,
    endings, shape, neighbours, clusters, known tags) with the word's tag, with the tag before, and with the two
    before. Frequent words take the tags they were seen with, others the few that their features favour; within these
    the search is exact. Training is by any online learner, as a rule by subgradient steps on the hinge loss with
    Hamming cost, with a step size for each weight, averaged: a perceptron with a margin.

    Make one with ``Tagger.train`` or ``Tagger.load``.

    Examples
    --------
    >>> from certus.text import Sentence, Token
    >>> corpus = [Sentence([Token(1, "dogs", upos="NOUN"), Token(2, "bark", upos="VERB")])] * 3
    >>> tagger = Tagger.train(corpus, column="upos", epochs=2, bits=10)
    >>> [token.upos for token in tagger.tag([Sentence.from_words(["dogs", "bark"])])[0]]
    ['NOUN', 'VERB']
    """

    def __init__(self, models: Sequence[ColumnModel]) -> None:
        self.models = tuple(models)
        self._of_text: dict[str, TextTagger] = {}

    def __repr__(self) -> str:
        return f"Tagger({', '.join(f'{m.column}: {len(m.tags)} tags' for m in self.models)})"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it fills."""
        return tuple(name for model in self.models for name in model.column.split("+"))

    # -- use -------------------------------------------------------------------------------------------------------

    def tag(self, sentences: Iterable[Sentence]) -> list[Sentence]:
        """The sentences with the columns of this tagger filled; those given are left as they are."""
        return list(self.stream(sentences))

    def stream(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """As ``tag``, a few hundred sentences at a time, however many there are."""
        for sentence, _ in self._filled(sentences):
            yield sentence

    def results(self, sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, Certificate]]:
        """As ``stream``, each with the certificate of the tags in its first column."""
        for sentence, score in self._filled(sentences):
            yield sentence, Certificate("dynamic program", score, score, 0.0)

    def _filled(self, sentences: Iterable[Sentence]) -> Iterator[tuple[Sentence, float]]:
        """Sentences with their tags, and the score of those of the first model."""
        source = as_sentences(sentences)
        while batch := list(islice(source, BATCH)):
            filled, scores = self._decode([sentence.words for sentence in batch])
            for k, sentence in enumerate(batch):
                columns = {name: tags[k] for name, tags in filled.items()}
                yield replace(sentence, tokens=_with_columns(sentence.tokens, columns)), scores[k]

    def _decode(self, sentences: Sequence[Sequence[str]]) -> tuple[dict[str, list[list[str]]], list[float]]:
        """For each column the tags of sentences of words; and the scores of those of the first model."""
        found: dict[str, list[list[str]]] = {}
        scores: list[list[float]] = []
        for model in self.models:
            tags, score = model.decode(sentences)
            scores.append(score)
            names = model.column.split("+")
            if len(names) == 1:
                found[names[0]] = tags
            else:
                for k, name in enumerate(names):
                    found[name] = [[tag.split("\t")[k] for tag in row] for row in tags]
        return found, scores[0]

    def of_text(self, style: str) -> TextTagger:
        """The same for plain text as bytes, split into words in a style of ``tokenize``, "web" or "blank"."""
        return self._of_text.setdefault(style, TextTagger(self.models, style))

    def problem(self, words: Sequence[str], column: str) -> "Tagging":
        """The problem that ``tag`` solves for one column of a sentence, to ask for certificates, k-best, marginals.

        Scores are whole numbers, in steps of the stored weights; tags that a word may not take are -inf.
        """
        for model in self.models:
            if model.column == column:
                return model.problem(words)
        raise InvalidInput(f"column is {column!r}; this tagger has {', '.join(m.column for m in self.models)}.")

    # -- training --------------------------------------------------------------------------------------------------

    @classmethod
    def train(
        cls,
        sentences: Iterable[Sentence],
        dev: Iterable[Sentence] | None = None,
        *,
        column: str | Sequence[str] = "upos",
        clusters: Clusters | Mapping[str, str] | None = None,
        learner: str = "adagrad",
        epochs: int = 12,
        seed: int = 0,
        bits: int = 20,
        runs: int = 1,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        progress: Progress | None = None,
        say: Callable[[str], None] = lambda message: None,
        workers: int | None = None,
    ) -> "Tagger":
        """Train a tagger; the same input and seed give the same tagger.

        Parameters
        ----------
        sentences, dev : iterables of Sentence
            With dev the epoch that tags it best is kept, and training ends four epochs after it at the latest.
        column : str or sequence of str
            "upos", "xpos" or "feats", several as a sequence: a model for each. "upos+xpos" is one model whose tags
            are pairs.
        clusters : Clusters or mapping from words to bit strings, optional
            Brown clusters, as further features.
        learner : str
            An online one: see ``certus.learn.learners``.
        bits : int
            Each model has 2**bits weights of one byte.
        runs : int
            Each model is trained so many times, by seeds that follow each other, and has the mean of the weights: more
            accurate, and no slower once trained.
        checkpoint : path, optional
            File that holds the state of training after each epoch. With ``resume`` training goes on from there, if
            the file exists, and ends with the same tagger as a run without a break.
        progress : callable, optional
            Called with an ``Epoch`` after each.
        say : callable, optional
            Called with a line of text when training starts anew for want of a checkpoint, or ends early.
        workers : int, optional
            Threads for several columns; all processors, unless given. The tagger is the same for any number.
        """
        corpus, held_out = list(sentences), list(dev or ())
        wanted = (column,) if isinstance(column, str) else tuple(column)
        step = find_learner(learner).steps(TAGS)
        paths = clusters.paths if isinstance(clusters, Clusters) else clusters or {}
        _check_corpus(corpus, wanted)
        models = {name: _empty_model(name, corpus, paths, bits) for name in wanted}
        runs = as_positive_int("runs", runs)
        courses = {
            stage: (model, seed + k) for name, model in models.items() for k, stage in enumerate(run_names(name, runs))
        }
        stages = {stage: Stage(model.new_weights, epochs, PATIENCE) for stage, (model, _) in courses.items()}
        settings = {"columns": list(wanted), "epochs": epochs, "seed": seed, "bits": bits, "learner": learner}
        settings["runs"] = runs
        file = None
        if checkpoint is not None:
            file = Checkpoint(checkpoint, CHECKPOINT, _digest(settings, corpus, held_out, paths))
        training = Training(stages, file, progress=progress, say=say)
        if resume:
            training.restore()
        trainers = {stage: partial(TagTrainer, model, corpus, step, own) for stage, (model, own) in courses.items()}
        scores = {stage: partial(_accuracy, model, held_out) for stage, (model, _) in courses.items() if held_out}
        found = training.run_each(trainers, workers, scores)
        means = (np.stack(found[k : k + runs]).mean(axis=0, dtype=np.float32) for k in range(0, len(found), runs))
        return cls([replace(m, weight=Packed.of(w).value) for m, w in zip(models.values(), means, strict=True)])

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, pair: str | None = None) -> None:
        """Write the tagger as one safetensors file, the whole file or nothing. ``pair``: see ``save_model``."""
        from certus.models.tagger_file import write_tagger

        write_tagger(path, self.models, pair)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Tagger":
        """Read a tagger that ``save`` wrote; FormatError if it is damaged or something else."""
        from certus.models.tagger_file import read_tagger

        return cls(read_tagger(path))


def tag_of(token: Token, column: str) -> str:
    """The token's value in a column; in several joined by "+", the values between tabs."""
    return "\t".join(getattr(token, name) for name in column.split("+"))


def _with_columns(tokens: Sequence[Token], columns: Mapping[str, Sequence[str]]) -> list[Token]:
    upos, xpos, feats = (columns.get(name) for name in COLUMNS)
    return [
        Token(
            t.id,
            t.form,
            t.lemma,
            t.upos if upos is None else upos[i],
            t.xpos if xpos is None else xpos[i],
            t.feats if feats is None else feats[i],
            t.head,
            t.deprel,
            t.deps,
            t.misc,
        )
        for i, t in enumerate(tokens)
    ]


# -- training ------------------------------------------------------------------------------------------------------


def _check_corpus(corpus: Sequence[Sentence], wanted: Sequence[str]) -> None:
    names = [name for column in wanted for name in column.split("+")]
    if not names or set(names) - set(COLUMNS) or len(set(names)) < len(names):
        raise InvalidInput(
            f"column is {list(wanted)!r}; expected upos, xpos or feats, each once, or some of them joined by +."
        )
    if not any(map(len, corpus)):
        raise InvalidInput("there is no word to learn from; a tagger is trained on at least one tagged sentence.")
    for column in wanted:
        if all(tag_of(token, column).strip("_\t") == "" for sentence in corpus for token in sentence):
            raise InvalidInput(f'every word has "_" in column {column}; train on sentences that have these tags.')


def _empty_model(column: str, corpus: Sequence[Sentence], clusters: Mapping[str, str], bits: int) -> ColumnModel:
    if not LEAST_BITS <= as_positive_int("bits", bits) <= MOST_BITS:
        raise InvalidInput(f"bits is {bits}; expected {LEAST_BITS} to {MOST_BITS}.")
    tags = tuple(sorted({tag_of(token, column) for sentence in corpus for token in sentence}))
    number = {tag: t for t, tag in enumerate(tags)}
    tagged = (((token.form, number[tag_of(token, column)]) for token in sentence) for sentence in corpus)
    lexicon = Lexicon.of(tagged, known=KNOWN, sure=SURE, clusters=clusters)
    return ColumnModel(column, tags, lexicon, bits, np.zeros(weights_of(bits, len(tags)), dtype=np.int8))


def weights_of(bits: int, tags: int) -> int:
    """How many weights a model has: the last feature's weights lie behind the 2**bits places."""
    return int((1 << bits) + tags + 1)


def _digest(settings: Mapping[str, Any], corpus: Sequence[Sentence], dev: Sequence[Sentence], paths: Any) -> str:
    """Tells apart runs that would train different taggers."""
    given = [settings, sorted(paths.items()), (WITH_CLUSTERS if paths else TEMPLATES).lines]
    code = hashlib.blake2b(json.dumps(given).encode(), digest_size=16)
    for part in (corpus, dev):
        code.update(b"part\n")
        for sentence in part:
            for t in sentence:
                code.update(f"{t.form}\t{t.upos}\t{t.xpos}\t{t.feats}\n".encode())
            code.update(b"\n")
    return code.hexdigest()


class TagTrainer:
    """Trains the weights of a column on tagged sentences, epoch by epoch; ``objective`` is the mean hinge loss."""

    def __init__(self, model: ColumnModel, corpus: Sequence[Sentence], step: Step, seed: int, weights: Weights) -> None:
        number = {tag: t for t, tag in enumerate(model.tags)}
        self.model, self.step, self.seed, self.weights = model, step, seed, weights
        self.words = model.encoder.encode([sentence.words for sentence in corpus])
        self.gold = np.full(len(self.words.rows), -1, dtype=np.int64)
        for at, sentence in zip(self.words.first.tolist(), corpus, strict=True):
            self.gold[at : at + len(sentence)] = [number[tag_of(token, model.column)] for token in sentence]
        self.objective: float | None = None

    def epoch(self, number: int) -> Iterator[tuple[int, float]]:
        """Go through all sentences once; yields the words and the wrong tags of all of them."""
        weights, words, count = self.weights, self.words, len(self.words.length)
        order = np.random.default_rng([self.seed, number]).permutation(count)
        task = (order, words, self.gold, self.model.arrays, self.step, weights.clock, weights.arrays)
        loss, wrong = interruptible(kernels.tagger.train_epoch, *task)
        weights.clock += count
        self.objective = float(loss / count) if self.step.margin else None
        yield int(words.length.sum()), float(wrong)


def _accuracy(model: ColumnModel, dev: Sequence[Sentence], weight: Float32) -> float:
    """The share of words of dev that get the right tag with these weights."""
    model = replace(model, weight=Packed.of(weight).value)
    found = model.tag([sentence.words for sentence in dev])
    right = sum(
        tag == tag_of(token, model.column)
        for sentence, tags in zip(dev, found, strict=True)
        for token, tag in zip(sentence, tags, strict=True)
    )
    return right / max(sum(map(len, dev)), 1)
