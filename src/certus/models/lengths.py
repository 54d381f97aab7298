"""How long a sentence may be that is parsed."""

from collections.abc import Iterable, Iterator

from certus.errors import InvalidInput
from certus.text import Sentence

MAX_WORDS = 2000  # in a sentence: time grows with the cube of it


def of_bounded_length(sentences: Iterable[Sentence], *, before: int = 0) -> Iterator[Sentence]:
    """The sentences; InvalidInput for one with more words, or something else. There were so many ``before`` them."""
    for number, sentence in enumerate(sentences, start=before + 1):
        if not isinstance(sentence, Sentence):
            raise InvalidInput(
                f"sentence {number} is {type(sentence).__name__}; expected a list of certus.text.Sentence: "
                "Sentence.from_words(words) makes one, and parse_text(text) takes plain text."
            )
        if len(sentence) > MAX_WORDS:
            name = sentence.comment("sent_id")
            raise InvalidInput(
                f"sentence {number}{f' ({name})' if name else ''}, which begins with "
                f'"{" ".join(sentence.words[:5])}", has {len(sentence)} words; expected at most {MAX_WORDS}. '
                "Split it into sentences."
            )
        yield sentence
