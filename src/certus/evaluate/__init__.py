"""How good structures are: attachment scores, labelled brackets, BLEU, and search errors against certified optima."""

from typing import TYPE_CHECKING

from certus.lazy import lazy

if TYPE_CHECKING:
    from certus.evaluate.attachment import AttachmentScores
    from certus.evaluate.bleu import TranslationScores
    from certus.evaluate.calibration import Calibration, calibration_error, reliability
    from certus.evaluate.evalb import BracketScores
    from certus.evaluate.files import compare_conllu, compare_translations, compare_trees
    from certus.evaluate.search_errors import SearchErrors

__all__ = [
    "AttachmentScores",
    "BracketScores",
    "Calibration",
    "SearchErrors",
    "TranslationScores",
    "calibration_error",
    "compare_conllu",
    "compare_translations",
    "compare_trees",
    "reliability",
]

__getattr__ = lazy(
    __name__,
    {
        "certus.evaluate.attachment": "AttachmentScores",
        "certus.evaluate.bleu": "TranslationScores",
        "certus.evaluate.calibration": "Calibration calibration_error reliability",
        "certus.evaluate.evalb": "BracketScores",
        "certus.evaluate.files": "compare_conllu compare_translations compare_trees",
        "certus.evaluate.search_errors": "SearchErrors",
    },
)
