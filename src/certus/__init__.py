"""certus finds the best structure for a sentence, and proves it."""

from certus import constraints
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
from certus.dependency.labelled_automata import LabelledAutomata
from certus.dependency.labelled_batch import LabelledDependencyBatch
from certus.dependency.labelled_parts import LabelledParts
from certus.dependency.labels import LabelledDependency, LabelledTree
from certus.dependency.problem import Dependency
from certus.dependency.projective_automata import ProjectiveAutomata
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
    "CTCBatch",
    "Certificate",
    "CertusError",
    "Constituency",
    "ConstrainedHyperpath",
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
