"""How good structures are: attachment scores, labelled brackets, BLEU, and search errors against certified optima."""

from certus.evaluate.attachment import AttachmentScores
from certus.evaluate.bleu import TranslationScores
from certus.evaluate.evalb import BracketScores
from certus.evaluate.files import compare_conllu, compare_translations, compare_trees
from certus.evaluate.search_errors import SearchErrors

__all__ = [
    "AttachmentScores",
    "BracketScores",
    "SearchErrors",
    "TranslationScores",
    "compare_conllu",
    "compare_translations",
    "compare_trees",
]
