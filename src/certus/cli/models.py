"""The grammar and the tagger a command works with: files that were given, or the small ones that are bundled."""

from pathlib import Path
from typing import TYPE_CHECKING

from certus.errors import FormatError

if TYPE_CHECKING:
    from certus.constituency import Grammar
    from certus.tagging import HMM, Tagging


def load_grammar(path: Path | None) -> "Grammar":
    """A grammar saved by ``certus train grammar``, or rules written as text; the bundled one without a path."""
    if path is None:
        from certus.data import demo_grammar

        return demo_grammar()
    from certus.constituency import Grammar

    text = _read(path)
    if text.lstrip().startswith("{"):
        return Grammar.load(path)
    return Grammar.from_text(text, path=path)


def load_tagger(path: Path | None) -> "HMM":
    """A tagger saved by ``certus train tagger``; the bundled one without a path."""
    if path is None:
        from certus.data import demo_tagger

        return demo_tagger()
    from certus.tagging import HMM

    return HMM.load(path)


def tagging(tagger: "HMM", words: list[str]) -> "Tagging":
    """The problem of tagging these words; brackets that the tagger does not know are tried as treebanks spell them."""
    from certus.constituency.lexicon import BRACKETS

    return tagger.tagging([word if word in tagger.lexicon else BRACKETS.get(word, word) for word in words])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(path, None, f"not UTF-8 text (byte {error.start}).") from None
