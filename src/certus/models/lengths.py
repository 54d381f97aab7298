"""How long a sentence may be that is parsed."""

from collections.abc import Iterable, Iterator

from certus.errors import InvalidInput
from certus.text import Sentence
from certus.text.sentence import as_sentences

MAX_WORDS = 2000  # in a sentence: time grows with the cube of it


def of_bounded_length(sentences: Iterable[Sentence], *, before: int = 0) -> Iterator[Sentence]:
    """The sentences; InvalidInput for one with more words, or something else. There were so many ``before`` them."""
    for number, sentence in enumerate(as_sentences(sentences, before=before), start=before + 1):
        if len(sentence) > MAX_WORDS:
            name = sentence.comment("sent_id")
            raise InvalidInput(
                f"sentence {number}{f' ({name})' if name else ''}, which begins with "
                f'"{" ".join(sentence.words[:5])}", has {len(sentence)} words; expected at most {MAX_WORDS}. '
                "Split it into sentences."
            )
        yield sentence
