"""Translation: language models, synchronous grammars, forests, and their decoders."""

from certus.translation.accepted_forest import AcceptedForest
from certus.translation.accepted_phrases import AcceptedPhrases
from certus.translation.cube_pruning import Translation, cube_pruning
from certus.translation.forest import LeafGraph, TranslationForest
from certus.translation.forest_problem import ForestTranslation
from certus.translation.grammar import SynchronousGrammar
from certus.translation.grammar_model import GrammarModel
from certus.translation.language_model import LanguageModel, LmArrays
from certus.translation.phrase_model import PhraseModel
from certus.translation.phrase_problem import PhraseTranslation
from certus.translation.phrases import PhraseOption
from certus.translation.pruned_posterior import PrunedPosterior
from certus.translation.word_models import ClassModel, FunctionModel, NgramModel, WeightedModels, WordModel

__all__ = [
    "AcceptedForest",
    "AcceptedPhrases",
    "ClassModel",
    "ForestTranslation",
    "FunctionModel",
    "GrammarModel",
    "LanguageModel",
    "LeafGraph",
    "LmArrays",
    "NgramModel",
    "PhraseModel",
    "PhraseOption",
    "PhraseTranslation",
    "PrunedPosterior",
    "SynchronousGrammar",
    "Translation",
    "TranslationForest",
    "WeightedModels",
    "WordModel",
    "cube_pruning",
]
