"""certus finds the best structure for a sentence, and proves it."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from certus.lazy import lazy

if TYPE_CHECKING:
    from certus import constraints
    from certus.batch import Batch
    from certus.constituency import (
        Constituency,
        Grammar,
        LexicalizedConstituency,
        LexicalizedGrammar,
        LexicalizedTree,
        Tree,
    )
    from certus.decode_all import decode_all
    from certus.dependency.automata_problem import AutomataDependency
    from certus.dependency.batch import DependencyBatch
    from certus.dependency.crossing_labels import CrossingLabelledAutomata
    from certus.dependency.labelled_automata import LabelledAutomata
    from certus.dependency.labelled_batch import LabelledDependencyBatch
    from certus.dependency.labelled_parts import LabelledParts
    from certus.dependency.labels import LabelledDependency, LabelledTree
    from certus.dependency.problem import Dependency
    from certus.dependency.projective_automata import ProjectiveAutomata
    from certus.dependency.vine import Vine
    from certus.errors import (
        CertusError,
        FormatError,
        Infeasible,
        InvalidInput,
        LimitReached,
        NotSupported,
        VerificationError,
    )
    from certus.factors import Assignment, FactorGraph, Knapsack, SetCover
    from certus.hypergraph import Automaton, DynamicProgram, Forest, Hypergraph, HypergraphBuilder, Hyperpath, intersect
    from certus.joint import Joint
    from certus.models.pipeline import load
    from certus.problem import Problem, register
    from certus.proof_file import save_proof
    from certus.relax.constrained_hyperpath import ConstrainedHyperpath
    from certus.result import Certificate, LogPartitionBounds, MarginalEstimates, Result, Solution, Trace
    from certus.saved import load_problem, load_result, problem_digest, save_problem, save_result
    from certus.structures import (
        CTC,
        Alignment,
        AlignmentBatch,
        AnchoredGrammar,
        AnchoredGrammarBatch,
        AssignmentBatch,
        CTCBatch,
        DependencyGraph,
        DependencyGraphBatch,
        Segmentation,
        SegmentationBatch,
        SpanningTree,
        SpanningTreeBatch,
        SpanTrees,
        SpanTreesBatch,
    )
    from certus.tagging import HMM, Tagging, TaggingBatch
    from certus.translation import (
        ForestTranslation,
        LanguageModel,
        PhraseModel,
        PhraseOption,
        PhraseTranslation,
        SynchronousGrammar,
        TranslationForest,
    )
    from certus.verify import Verified, verify

__version__ = "0.1.0"

__all__ = [
    "CTC",
    "HMM",
    "Alignment",
    "AlignmentBatch",
    "AnchoredGrammar",
    "AnchoredGrammarBatch",
    "Assignment",
    "AssignmentBatch",
    "AutomataDependency",
    "Automaton",
    "Batch",
    "CTCBatch",
    "Certificate",
    "CertusError",
    "Constituency",
    "ConstrainedHyperpath",
    "CrossingLabelledAutomata",
    "Dependency",
    "DependencyBatch",
    "DependencyGraph",
    "DependencyGraphBatch",
    "DynamicProgram",
    "FactorGraph",
    "Forest",
    "ForestTranslation",
    "FormatError",
    "Grammar",
    "Hypergraph",
    "HypergraphBuilder",
    "Hyperpath",
    "Infeasible",
    "InvalidInput",
    "Joint",
    "Knapsack",
    "LabelledAutomata",
    "LabelledDependency",
    "LabelledDependencyBatch",
    "LabelledParts",
    "LabelledTree",
    "LanguageModel",
    "LexicalizedConstituency",
    "LexicalizedGrammar",
    "LexicalizedTree",
    "LimitReached",
    "LogPartitionBounds",
    "MarginalEstimates",
    "NotSupported",
    "PhraseModel",
    "PhraseOption",
    "PhraseTranslation",
    "Problem",
    "ProjectiveAutomata",
    "Result",
    "Segmentation",
    "SegmentationBatch",
    "SetCover",
    "Solution",
    "SpanTrees",
    "SpanTreesBatch",
    "SpanningTree",
    "SpanningTreeBatch",
    "SynchronousGrammar",
    "Tagging",
    "TaggingBatch",
    "Trace",
    "TranslationForest",
    "Tree",
    "VerificationError",
    "Verified",
    "Vine",
    "constraints",
    "decode_all",
    "intersect",
    "load",
    "load_problem",
    "load_result",
    "problem_digest",
    "register",
    "save_problem",
    "save_proof",
    "save_result",
    "verify",
]

# Where the names above stand, as type checkers read it from the imports: a module is imported when one is first used.
_HOMES = {
    "certus.batch": "Batch",
    "certus.constituency": "Constituency Grammar LexicalizedConstituency LexicalizedGrammar LexicalizedTree Tree",
    "certus.decode_all": "decode_all",
    "certus.dependency.automata_problem": "AutomataDependency",
    "certus.dependency.batch": "DependencyBatch",
    "certus.dependency.crossing_labels": "CrossingLabelledAutomata",
    "certus.dependency.labelled_automata": "LabelledAutomata",
    "certus.dependency.labelled_batch": "LabelledDependencyBatch",
    "certus.dependency.labelled_parts": "LabelledParts",
    "certus.dependency.labels": "LabelledDependency LabelledTree",
    "certus.dependency.problem": "Dependency",
    "certus.dependency.projective_automata": "ProjectiveAutomata",
    "certus.dependency.vine": "Vine",
    "certus.errors": "CertusError FormatError Infeasible InvalidInput LimitReached NotSupported VerificationError",
    "certus.factors": "Assignment FactorGraph Knapsack SetCover",
    "certus.hypergraph": "Automaton DynamicProgram Forest Hypergraph HypergraphBuilder Hyperpath intersect",
    "certus.joint": "Joint",
    "certus.models.pipeline": "load",
    "certus.problem": "Problem register",
    "certus.proof_file": "save_proof",
    "certus.relax.constrained_hyperpath": "ConstrainedHyperpath",
    "certus.result": "Certificate LogPartitionBounds MarginalEstimates Result Solution Trace",
    "certus.saved": "load_problem load_result problem_digest save_problem save_result",
    "certus.structures": (
        "Alignment AlignmentBatch AnchoredGrammar AnchoredGrammarBatch AssignmentBatch CTC CTCBatch "
        "DependencyGraph DependencyGraphBatch Segmentation SegmentationBatch SpanTrees SpanTreesBatch "
        "SpanningTree SpanningTreeBatch"
    ),
    "certus.tagging": "HMM Tagging TaggingBatch",
    "certus.translation": (
        "ForestTranslation LanguageModel PhraseModel PhraseOption PhraseTranslation SynchronousGrammar "
        "TranslationForest"
    ),
    "certus.verify": "Verified verify",
}


class _Package(ModuleType):
    """The module ``certus``: ``certus.verify`` stays a function when the module of that name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, ModuleType) or value.__name__ not in ("certus.verify", "certus.decode_all"):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
