"""What newcomers get wrong: every mistake is answered by what was given and what to call, never by a bare error.

``MISTAKES`` are those that people make; ``test_public_names_refuse_nonsense`` hands every public name, every option
and every question things that they are not made for.
"""

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import certus
from certus import constraints
from certus.data import demo_grammar
from certus.errors import CertusError, InvalidInput
from certus.relax.steps import StepRule
from certus.text import Sentence

TAGGING = certus.Tagging([[0, 1], [2, 0]], tags=("A", "B"))
CROSSING = certus.Dependency(np.zeros((3, 3)), sibling=np.zeros((3, 3, 3)), projective=False)
RULES = "[S] ||| [X,1] ||| [1]\n[X] ||| a ||| b"
WORDS = ["Red", "flies"]
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a list of problems": (lambda: certus.Joint([TAGGING, TAGGING], on="tags"), "without brackets"),
    "one problem": (lambda: certus.Joint(TAGGING, on="tags"), "two or more"),
    "one problem for many": (lambda: certus.decode_all(TAGGING), "problems to be decoded, in a list"),
    "None among problems": (lambda: list(certus.decode_all([TAGGING, None])), r"problems\[1\] is None"),
    "another engine": (lambda: certus.decode_all([TAGGING], engine="spark"), "'threads', 'processes', 'ray'"),
    "an array for a problem": (lambda: certus.Joint(TAGGING, np.zeros((2, 2)), on="tags"), "array of shape"),
    "views that are none": (lambda: certus.Joint(TAGGING, TAGGING, on=3), "names of views"),
    "weights as a number": (lambda: certus.Joint(TAGGING, TAGGING, on="tags", weights=2), "for each problem"),
    "a step rule by name": (lambda: StepRule("polyak", None, None), r"steps\.polyak"),
    "a step rule as text": (lambda: CROSSING.decode(step="polyak"), r"such as polyak\(\)"),
    "rules as a path": (lambda: certus.SynchronousGrammar("rules.gz"), r"SynchronousGrammar\.read"),
    "rules as a list": (lambda: certus.SynchronousGrammar.from_text([RULES]), r"SynchronousGrammar\.read"),
    "weights as a list": (lambda: certus.SynchronousGrammar.from_text(RULES, weights=[1.0]), "names of features"),
    "a grammar as text": (lambda: certus.Constituency("S -> a", WORDS), r"Grammar\.from_text"),
    "a sentence as text": (lambda: certus.Constituency(demo_grammar(), "Red flies"), "split it first"),
    "arguments turned round": (lambda: certus.Constituency(WORDS, demo_grammar()), "a list of 2"),
    "a file for a language model": (lambda: certus.LanguageModel("lm.arpa"), r"LanguageModel\.read"),
    "a path that does not exist": (lambda: certus.load_result("/no/such/file.json"), "cannot be read"),
    "no path": (lambda: certus.load_result(None), "path of a file"),
    "a number for a path": (lambda: certus.LanguageModel.read(True), "path of a file"),
    "a model that does not exist": (lambda: certus.load("/no/such/folder"), "certus train parser"),
    "a result before its problem": (lambda: certus.verify(TAGGING.decode(), TAGGING), "the problem comes first"),
    "a structure for a result": (lambda: certus.verify(TAGGING, [0, 0]), r"problem\.decode\(\)"),
    "rows of unequal length": (lambda: certus.Tagging([[0, 1], [2]]), "unary is not an array"),
    "a masked array": (lambda: certus.Tagging(np.ma.masked_array(np.zeros((2, 2)), mask=True)), r"filled\(-np\.inf\)"),
    "dates for scores": (lambda: certus.Tagging(np.zeros((2, 2), "datetime64[s]")), "real numbers"),
    "more than memory holds": (lambda: certus.Tagging(np.broadcast_to(0.0, (10**7, 10**5))), "this machine has"),
    "words beyond memory": (lambda: certus.Dependency.from_parts(10**9, ([0], [1], [0.0])), "this machine has"),
    "a limit that is no number": (lambda: TAGGING.decode(time_limit=np.nan), "time_limit is nan"),
    "costs that overflow": (lambda: certus.Knapsack([1, 2], [1e308, 1e308], 1), "divide it"),
    "arrays as text": (lambda: certus.Tagging("scores"), "unary is not an array"),
    "unequal rows of parts": (lambda: certus.Dependency(np.zeros((3, 3)), sibling=[[0], [0, 1]]), "sibling is not"),
    "a tuple for keywords": (lambda: certus.Dependency((np.zeros((3, 3)), np.zeros((3, 3, 3)))), "arc"),
    "no arrays in a batch": (lambda: certus.SpanTreesBatch(None), "leading axis"),
    "a structure of another kind": (lambda: TAGGING.score([[0], [0, 1]]), "structure is not an array"),
    "a view that is none": (lambda: TAGGING.indicator([0, 0], ["tags"]), "no view"),
    "no number of structures": (lambda: CROSSING.kbest(0), "k is 0"),
    "a time limit as text": (lambda: CROSSING.decode(time_limit="1"), "seconds"),
    "a seed below 0": (lambda: TAGGING.sample(2, seed=-1), "seed is -1"),
    "words of another number": (lambda: CROSSING.picture([-1, 0, 1], "ab"), "split it first"),
    "parts that are none": (lambda: constraints.at_most(1, "tags", None), "a list of parts"),
    "constraints that are none": (lambda: TAGGING.subject_to("tags"), "make one with certus.constraints"),
    "a corpus without tags": (lambda: certus.HMM.estimate(["a b"]), "pairs"),
    "a treebank as text": (lambda: certus.Grammar.from_treebank("(S (N a))"), "read_trees"),
    "a class that is no problem": (lambda: certus.register(dict), "certus.Problem"),
    "words as text": (lambda: Sentence.from_words("Red flies"), "split it first"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered(mistake):
    made, said = MISTAKES[mistake]
    with pytest.raises(InvalidInput, match=said):
        made()


@pytest.mark.compiled
def test_mistakes_with_a_parser_are_answered():
    from certus.models.explain import head_choice

    pipeline = certus.load()
    for given in ("Red flies.", Sentence.from_words(WORDS), None, 3):
        with pytest.raises(InvalidInput, match=r"a list of certus\.text\.Sentence"):
            list(pipeline.parse(given))
    with pytest.raises(InvalidInput, match=r"sentence 1 is a list of 2; .*Sentence\.from_words"):
        list(pipeline.parse([WORDS]))
    with pytest.raises(InvalidInput, match=r"a Pipeline .* load\(\)\.parser"):
        head_choice(pipeline, Sentence.from_words(WORDS), 1)


NONSENSE = {
    "None": None,
    "number": 3,
    "negative": -1,
    "half": 2.5,
    "text": "the dog",
    "bytes": b"x",
    "nothing": [],
    "numbers": [1, 2],
    "words": ["a", "b"],
    "ragged": [[1.0, 2.0], [3.0]],
    "lists of words": [["a"], ["b", "c"]],
    "pair": (1, 2),
    "mapping": {"a": 1},
    "set": {1},
    "matrix": np.zeros((3, 3)),
    "object": object(),
    "class": int,
    "function": len,
    "problem": TAGGING,
    "result": TAGGING.decode(),
    "complex": 1j,
    "Nones": [None, None],
    "huge": 10**400,
    "huge numbers": [[10**400, 1], [1, 1]],
    "masked": np.ma.masked_array(np.zeros((3, 3)), mask=True),
    "dates": np.zeros((3, 3), "datetime64[s]"),
}
PLAIN = {name for name in certus.__all__ if isinstance(getattr(certus, name), type)} & {
    *("Certificate", "LogPartitionBounds", "MarginalEstimates", "Result", "Solution", "Trace", "Verified"),
    *("Batch", "Forest", "DynamicProgram", "Problem"),  # records, and what others are made from
}
NAMES = [
    name
    for name in certus.__all__
    if callable(given := getattr(certus, name))
    and name not in PLAIN
    and not (isinstance(given, type) and issubclass(given, CertusError))
]


def refused(call: Callable[[], Any], asked: str) -> None:
    """Runs a call that may work, or say in words of our own why it does not."""
    try:
        call()
    except CertusError:
        return
    except Exception as error:
        if not _of_python(error):
            raise AssertionError(f"{asked}: {error!r}") from error


def _of_python(error: Exception) -> bool:
    """Whether Python itself counted the arguments, or numpy says that an array is neither true nor false."""
    if isinstance(error, TypeError):
        return "argument" in str(error) and error.__traceback__.tb_next.tb_next is None
    return isinstance(error, ValueError) and "truth value" in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_public_names_refuse_nonsense(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = getattr(certus, name)
    parameters = list(inspect.signature(function).parameters.values())
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    count = max(sum(p.kind is not p.KEYWORD_ONLY for p in needed), 1)
    named = [p.name for p in needed if p.kind is p.KEYWORD_ONLY]
    draw = random.Random(name)
    tried = [[kind] * count for kind in NONSENSE]
    tried += [[draw.choice(list(NONSENSE)) for _ in range(count)] for _ in range(20 if count > 1 else 0)]
    for kinds in tried:
        options = {key: NONSENSE[draw.choice(list(NONSENSE))] for key in named}
        refused(lambda k=kinds, o=options: function(*(NONSENSE[kind] for kind in k), **o), f"{name}{kinds}{options}")


PROBLEMS = {
    "tagging": TAGGING,
    "crossing": CROSSING,
    "trees": certus.Dependency(np.zeros((3, 3))),
    "joint": certus.Joint(TAGGING, certus.Tagging([[0, 1.5], [0, 1]]), on="tags"),
    "labels": certus.LabelledDependency(np.zeros((3, 3, 2))),
    "knapsack": certus.Knapsack([1, 2], [1, 1], 1),
    "factors": certus.FactorGraph([np.zeros(2), np.zeros(2)]),
}
QUESTIONS = ("score", "kbest", "sample", "indicator", "decode", "subject_to", "picture", "solve", "max_marginals")


@pytest.mark.parametrize("kind", PROBLEMS)
def test_questions_refuse_nonsense(kind):
    problem = PROBLEMS[kind]
    usual = {"structure": problem.decode().structure, "view": next(iter(problem.views)), "k": 2}
    for question in QUESTIONS:
        asked = getattr(problem, question)
        parameters = inspect.signature(asked).parameters.values()
        for p in parameters:
            for name, value in NONSENSE.items():
                given = {q.name: usual[q.name] for q in parameters if q.name in usual and q.default is q.empty}
                if p.kind is p.VAR_POSITIONAL:
                    refused(lambda a=asked, v=value: a(v), f"{question}({name})")
                else:
                    refused(lambda a=asked, g=given | {p.name: value}: a(**g), f"{question}({p.name}={name})")
