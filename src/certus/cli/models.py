"""The grammar and the tagger a command works with: files that were given, or the small ones that are bundled."""

from pathlib import Path
from typing import TYPE_CHECKING

from certus.errors import FormatError

if TYPE_CHECKING:
    from certus.constituency import Grammar
    from certus.models.tagger import Tagger
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


def load_any_tagger(path: Path | None) -> "Tagger | HMM":
    """A tagger saved by ``certus train tagger``, of either kind; the bundled English one without a path."""
    if path is None:
        from certus.models.pipeline import bundled_tagger

        return bundled_tagger()
    with open(path, "rb") as stream:
        begins = stream.read(16).lstrip()[:1]
    if begins in (b"{", b"["):
        return load_tagger(path)
    from certus.models.tagger import Tagger

    return Tagger.load(path)


def load_tagger(path: Path | None) -> "HMM":
    """A hidden Markov model saved by ``certus train tagger --hmm``; a small bundled one without a path."""
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
