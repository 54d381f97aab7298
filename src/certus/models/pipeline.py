"""Text to trees: tokeniser, tagger and parser as one, loaded from a folder."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from certus.checks import as_positive_int, of_kind
from certus.errors import FormatError, InvalidInput
from certus.evaluate.calibration import Calibration
from certus.io.conllu import is_conllu
from certus.io.files import opened
from certus.models.files import pair_of
from certus.models.lengths import of_bounded_length
from certus.models.parser import FILE, Parser
from certus.models.rewriting import Rewritten, rewritten, written
from certus.models.scores import confidences_of
from certus.models.sum_parser import SumParser
from certus.models.tagger import Tagger
from certus.models.tree_parser import BATCH, TreeParser
from certus.models.trees import Confidences, Parsed, Trees, proof_of, ranked_trees
from certus.text import Sentence, tokenize
from certus.threads import in_order, interruptible, thread_count

if TYPE_CHECKING:
    from certus.models.neural import NeuralParser

TAGGER_FILE = "tagger.safetensors"
NEURAL_FILE = "neural.safetensors"  # a network
NEW_TAGGER_FILE = "tagger.new.safetensors"  # there while its parser is being trained


@dataclass(frozen=True)
class Pipeline:
    """A parser, and a tagger for words that come without tags."""

    parser: TreeParser[Any]
    tagger: Tagger | None = None
    calibration: Calibration | None = None  # of confidences

    def parse(
        self,
        sentences: Iterable[Sentence],
        *,
        confidences: bool = False,
        certificates: bool = False,
        time_limit: float | None = None,
        workers: int | None = None,
    ) -> Iterator[Sentence]:
        """The sentences with trees, as they come. Tags that are there are kept; a sentence that lacks one is tagged.

        Parameters
        ----------
        sentences : iterable of Sentence
        confidences : bool
            Write the marginal of every arc into MISC, calibrated if the pipeline has a calibration; with crossing arcs
            above first order an estimate, and a comment that says so.
        certificates : bool
            Write score, bound, kind and scope of the proof of each tree into comments, with digests of the model and
            of what it saw. Like the confidences, they speak of the trees over the arcs that the parser's cascade
            leaves, and not of the labels.
        time_limit : float, optional
            Seconds for a sentence of a parser with crossing arcs above first order; the tree is then the best that was
            found, and its certificate says so. Without it every tree is proved, however long that takes.
        workers : int, optional
            Threads; by default one for each processor. The answer is the same for any number.
        """
        asked = {"confidences": confidences, "certificates": certificates}
        for parsed in self.results(sentences, **asked, time_limit=time_limit, workers=workers):
            yield parsed.annotated()

    def results(
        self,
        sentences: Iterable[Sentence],
        *,
        confidences: bool = False,
        certificates: bool = False,
        time_limit: float | None = None,
        workers: int | None = None,
    ) -> Iterator[Parsed]:
        """As ``parse``, but with proofs and confidences beside the sentences instead of in them."""
        parser = self.parser

        def parsed(work: tuple[list[Sentence], Any]) -> list[Parsed]:
            batch = work[1]
            trees = parser.decode(batch, time_limit=time_limit)
            return [
                Parsed(
                    sentence,
                    trees.certificate(s),
                    proof_of(parser, batch, trees, s) if certificates else None,
                    self._confidences(batch, trees, s) if confidences else None,
                )
                for s, sentence in enumerate(parser.labelled(*work, trees))
            ]

        stream = of_bounded_length(sentences)
        batches = iter(lambda: list(islice(stream, BATCH)), [])
        encoded = ((batch, parser.encode(batch)) for batch in map(self.tagged, batches))
        for batch in in_order(lambda work: interruptible(parsed, work), encoded, thread_count(workers)):
            yield from batch

    def kbest(
        self, sentences: Iterable[Sentence], k: int, *, certificates: bool = False, workers: int | None = None
    ) -> Iterator[list[Parsed]]:
        """The k best trees of each sentence, best first, each with its best labels and with proof of its rank.

        Trees are those over the arcs that the parser's cascade leaves; there may be fewer than k. The other arguments
        are those of ``parse``.
        """
        as_positive_int("k", k)
        parser = self.parser

        def listed(sentence: Sentence) -> list[Parsed]:
            batch = parser.encode([sentence])
            asked = parser.problem_of(batch, 0, unit=1.0)
            out = []
            for rank, trees in enumerate(ranked_trees(asked.kbest(k), asked.arc > -np.inf, parser.unit), 1):
                (labelled,) = parser.labelled([sentence], batch, trees)
                certificate = replace(trees.certificate(0), rank=rank)
                proof = proof_of(parser, batch, trees, 0) if certificates else None
                out.append(Parsed(labelled, certificate, proof, rank=rank))
            return out

        tagged = (self.tagged([sentence])[0] for sentence in of_bounded_length(sentences))
        yield from in_order(lambda sentence: interruptible(listed, sentence), tagged, thread_count(workers))

    def _confidences(self, batch: Any, trees: Trees, s: int) -> Confidences:
        found = confidences_of(self.parser, batch, trees, s)
        return found if self.calibration is None else replace(found, share=self.calibration(found.share).tolist())

    def parse_file(
        self,
        path: str | os.PathLike[str],
        *,
        tokenised: bool = False,
        lines: bool = False,
        time_limit: float | None = None,
        workers: int | None = None,
    ) -> Iterator[Rewritten]:
        """The sentences of a file with trees, as text, in pieces of many sentences.

        A file named .conllu keeps all that it holds, another is plain text: with ``tokenised`` every line is a sentence
        of words, with ``lines`` it is a sentence, to be split into words. Gives what reading, ``parse`` and writing
        give, byte for byte, and makes no object for a word: several times faster around the parser itself. The other
        arguments are those of ``parse``.
        """
        limits: Any = {"time_limit": time_limit, "workers": workers}
        with opened(path) as stream:
            if is_conllu(path):
                yield from rewritten(self, stream, path, **limits)
            else:
                yield from written(self, stream, path, tokenised=tokenised, lines=lines, **limits)

    def parse_text(self, text: str) -> list[Sentence]:
        """The sentences of a plain English text, with tags and trees."""
        return list(self.parse(Sentence.from_words(words) for words in tokenize(text)))

    def tagged(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The sentences, those that lack a tag with the tags of the tagger; InvalidInput if there is none."""
        out = list(sentences)
        bare = [k for k, sentence in enumerate(out) if any(token.upos == "_" for token in sentence)]
        if not bare:
            return out
        if self.tagger is None:
            raise InvalidInput(
                "a sentence has words without tags (column 4, UPOS) and the model has no tagger. "
                "Tag the sentences first, or use a model trained with --tagger."
            )
        for k, sentence in zip(bare, self.tagger.tag([out[k] for k in bare]), strict=True):
            out[k] = sentence
        return out


BUNDLED = Path(__file__).parent / "data"  # a folder for each model that comes with the package


def load(
    model: str | os.PathLike[str] = "en", *, add: str | os.PathLike[str] | None = None, scale: float = 1.0
) -> Pipeline:
    """Load a trained parser, with its tagger if there is one: by name if it is bundled ("en"), or from its folder.

    Parameters
    ----------
    model : str or path
        A folder that holds a linear model, of ``certus train parser``, or a network, which needs torch.
    add : str or path, optional
        The folder of a network: its scores, times ``scale``, are added to those of the linear model, and trees and
        labels are the best by their sum. ``SumParser.tuned`` finds a scale.
    scale : float

    Examples
    --------
    >>> load("nowhere")
    Traceback (most recent call last):
    certus.errors.InvalidInput: nowhere: there is no parser.safetensors in it; train one with certus train parser.
    """
    folder = _folder(model)
    if not (folder / FILE).is_file():
        if add is not None:
            raise InvalidInput(f"{model} holds a network; expected a linear model, to which one is added.")
        return Pipeline(_network(folder), _tagger(folder, None))
    parser = Parser.load(folder / FILE)
    tagger = _tagger(folder, pair_of(folder / FILE))
    if add is None:
        return Pipeline(parser, tagger)
    return Pipeline(SumParser(parser, _network(Path(add)), scale), tagger)


def _network(folder: Path) -> "NeuralParser":
    """The network in a folder."""
    if not (folder / NEURAL_FILE).is_file():
        raise InvalidInput(f"{folder}: there is no {NEURAL_FILE} in it; examples/neural_parser.py trains one.")
    try:
        from certus.models.neural import NeuralParser
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise InvalidInput(
            f'{folder} holds a network, which needs torch: pip install "certus[torch]", or use a linear model.'
        ) from None
    return NeuralParser.load(folder / NEURAL_FILE)


def _tagger(folder: Path, pair: str | None) -> Tagger | None:
    """The tagger that was trained with the parser of a folder; None if there is none."""
    file = tagger_file(folder, pair)
    if file is None and (folder / TAGGER_FILE).is_file():
        Tagger.load(folder / TAGGER_FILE)  # if it is damaged, that is what there is to say
        raise FormatError(
            folder / TAGGER_FILE,
            None,
            f"is not the tagger that {FILE} was trained with; train both together with --tagger, or remove it.",
        )
    return None if file is None else Tagger.load(file)


def _folder(model: str | os.PathLike[str]) -> Path:
    """Where a model is, by its name if it is bundled."""
    folder = Path(of_kind("model", model, (str, os.PathLike), 'the name of a bundled parser, "en", or a folder'))
    if not (folder / FILE).is_file() and os.fspath(model) in bundled():
        folder = BUNDLED / os.fspath(model)
    if not (folder / FILE).is_file() and not (folder / NEURAL_FILE).is_file():
        raise InvalidInput(f"{model}: there is no {FILE} in it; train one with certus train parser.")
    return folder


def model_digest(model: str | os.PathLike[str] = "en") -> str:
    """Of the files of a model, parser and tagger."""
    folder = _folder(model)
    code, own = hashlib.sha256(), folder / (FILE if (folder / FILE).is_file() else NEURAL_FILE)
    for file in (own, tagger_file(folder, pair_of(own))):
        code.update(b"" if file is None else hashlib.sha256(file.read_bytes()).digest())
    return f"sha256:{code.hexdigest()}"


def tagger_file(folder: Path, pair: str | None) -> Path | None:
    """The file of the tagger with this pair, also where a training was killed before it could give it its name."""
    files = (folder / name for name in (TAGGER_FILE, NEW_TAGGER_FILE))
    return next((file for file in files if file.is_file() and pair_of(file) == pair), None)


def bundled_tagger(model: str = "en") -> Tagger:
    """The tagger of a bundled model."""
    return Tagger.load(BUNDLED / model / TAGGER_FILE)


def bundled() -> list[str]:
    """Names of the models that come with the package."""
    return sorted(path.parent.name for path in BUNDLED.glob(f"*/{FILE}"))
