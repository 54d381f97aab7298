"""What everything else speaks about: sentences of words with their columns, phrase-structure trees, tokenisers."""

from certus.text.sentence import Sentence, Token
from certus.text.tokenizer import TextSpan, tokenize, tokenize_spans
from certus.text.tree import Span, Tree

__all__ = ["Sentence", "Span", "TextSpan", "Token", "Tree", "tokenize", "tokenize_spans"]
