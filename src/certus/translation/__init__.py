"""Translation: language models, synchronous grammars, forests, and their decoders."""

from certus.translation.language_model import LanguageModel

__all__ = ["LanguageModel"]
