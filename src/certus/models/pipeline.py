"""Text to trees: tokeniser, tagger and parser as one, loaded from a folder."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from certus.errors import InvalidInput
from certus.io.conllu import Sentence
from certus.models.parser import BATCH, FILE, Parser
from certus.models.tagger import Tagger

TAGGER_FILE = "tagger.safetensors"


@dataclass(frozen=True)
class Pipeline:
    """A parser, and a tagger for words that come without tags."""

    parser: Parser
    tagger: Tagger | None = None

    def parse(
        self, sentences: Iterable[Sentence], *, confidences: bool = False, certificates: bool = False
    ) -> Iterator[Sentence]:
        """The sentences with trees. Tags that are there are kept; a sentence with a word without one is tagged.

        With ``confidences`` MISC holds the marginal of every arc; with ``certificates`` comments hold score, bound and
        kind of proof. Both speak of the trees over the arcs that the parser's cascade leaves.
        """
        trees = self.parser.parse(self._tagged(sentences))
        if not (confidences or certificates):
            yield from trees
            return
        from certus.models.scores import annotated

        while batch := list(islice(trees, BATCH)):
            yield from annotated(self.parser, batch, confidences=confidences, certificates=certificates)

    def parse_text(self, text: str) -> list[Sentence]:
        """The sentences of a plain English text, with tags and trees."""
        from certus.models.tokenizer import tokenize

        return list(self.parse(Sentence.from_words(words) for words in tokenize(text)))

    def _tagged(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        stream = iter(sentences)
        while batch := list(islice(stream, BATCH)):
            bare = [k for k, sentence in enumerate(batch) if any(token.upos == "_" for token in sentence)]
            if bare:
                if self.tagger is None:
                    raise InvalidInput(
                        "a sentence has words without tags (column 4, UPOS) and the model has no tagger. "
                        "Tag the sentences first, or use a model trained with --tagger."
                    )
                for k, tagged in zip(bare, self.tagger.tag([batch[k] for k in bare]), strict=True):
                    batch[k] = tagged
            yield from batch


def load(model: str | os.PathLike[str]) -> Pipeline:
    """Load a trained parser from its folder, as ``certus train parser`` leaves it, with its tagger if there is one.

    Examples
    --------
    >>> load("nowhere")
    Traceback (most recent call last):
    certus.errors.InvalidInput: nowhere: there is no parser.safetensors in it; train one with certus train parser.
    """
    folder = Path(model)
    if not (folder / FILE).is_file():
        raise InvalidInput(f"{model}: there is no {FILE} in it; train one with certus train parser.")
    tagger = Tagger.load(folder / TAGGER_FILE) if (folder / TAGGER_FILE).is_file() else None
    return Pipeline(Parser.load(folder / FILE), tagger)
