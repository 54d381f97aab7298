"""Every question of every kind of problem, against all structures one by one, or refused where it is declared so."""

import inspect
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import certus
from certus import constraints
from certus.dependency import AutomataDependency, HeadAutomata, ProjectiveAutomata
from certus.dependency.vine import Vine
from certus.hypergraph import Forest
from certus.io.arpa import Arpa, Ngrams
from certus.problem import PROBLEMS, Problem, problem_from_json, problem_to_json
from certus.relax.constrained import Constrained
from certus.relax.steps import constant
from certus.relax.system import Relaxation
from tests.constituency.spines import RandomSpines

RNG = np.random.default_rng(11)
START = RNG.bit_generator.state


def whole(*shape):
    return RNG.integers(-3, 4, shape).astype(float)


def tagging(n=2):
    return certus.Tagging(whole(n, 2), bigram=whole(2, 2), tags=("N", "V"))


def graph():
    """Two words, each by one of two edges, joined by one edge or two."""
    return certus.Hypergraph(in_ptr=[0, 2, 4, 6], tail_ptr=[0, 0, 0, 0, 0, 2, 4], tail=[0, 1, 1, 0])


def language_model():
    unigrams = Ngrams(np.arange(5, dtype=np.int32)[:, None], np.array([-3, 0, -1, -0.5, -1]), np.zeros(5))
    bigrams = Ngrams(np.array([[1, 3], [3, 4]], dtype=np.int32), np.array([-0.25, -0.125]), np.zeros(2))
    return certus.LanguageModel(Arpa(["<unk>", "<s>", "</s>", "a", "b"], [unigrams, bigrams]))


def forest_translation():
    token_ptr, token = [0, 1, 2, 3, 4, 6, 8], [0, 1, 1, 0, ~0, ~1, ~0, ~1]
    forest = certus.TranslationForest(graph(), token_ptr, token, ["a", "b"], [0.0, 1.0, 0.5, 0.0, 0.25, 0.0])
    return certus.ForestTranslation(forest, language_model())


def phrase_translation():
    options = [(0, 0, ("a",), 1.0), (0, 0, ("b",), 0.5), (1, 1, ("b",), 1.0), (0, 1, ("a", "a"), 0.75)]
    options = [certus.PhraseOption(*option) for option in options]
    return certus.PhraseTranslation(options, language_model(), source=["x", "y"], distortion=0.5)


class Counting:
    """Each modifier but the first of a side costs 1."""

    start = 0

    def step(self, state, m):
        return state + 1, -float(state > 0)

    def stop(self, state):
        return 0.0


class WideGraph(certus.FactorGraph):
    """One that is taken for too wide to be a dynamic program."""

    _whole = None


GRAMMAR = certus.Grammar.from_text(
    '1 S -> N V\n 2 S -> V N\n 0 S -> N N\n 1 N -> N N\n 1 N -> "x"\n 2 V -> "x"\n 0 N -> "y"\n -1 V -> "y"'
)

MADE = {
    "hyperpath": lambda: certus.Hyperpath(graph(), whole(6)),
    "constrained hyperpath": lambda: certus.ConstrainedHyperpath(graph(), whole(6), A=[[1, 0, 1, 0, 0, 0]], b=[1]),
    "tagging": tagging,
    "constituency": lambda: certus.Constituency(GRAMMAR, ["x", "y", "x"]),
    "lexicalized constituency": lambda: certus.LexicalizedConstituency(RandomSpines(3, forbidden=0.0), ["a", "b"]),
    "segmentation": lambda: certus.Segmentation(whole(3, 2, 2), whole(2, 2)),
    "spans": lambda: certus.SpanTrees(whole(4, 4, 2)),
    "spans of any shape": lambda: certus.SpanTrees(whole(4, 4, 2), empty=0),
    "anchored grammar": lambda: certus.AnchoredGrammar(whole(2), whole(2, 3, 3), whole(3, 1)),
    "alignment": lambda: certus.Alignment(whole(3, 3, 3)),
    "spanning tree": lambda: certus.SpanningTree((lambda a: a + a.T)(whole(4, 4))),
    "dependency graph": lambda: certus.DependencyGraph(whole(3, 3), whole(3, 3, 3)),
    "graph of arcs": lambda: certus.DependencyGraph(whole(3, 3), coparent=whole(3, 3, 3)),
    "higher-order graph": lambda: certus.DependencyGraph(whole(3, 3), *(whole(3, 3, 3) for _ in range(3))),
    "ctc": lambda: certus.CTC(whole(4, 3), [1, 2]),
    "projective trees": lambda: certus.Dependency(whole(4, 4), whole(4, 4, 4), projective=True),
    "crossing trees": lambda: certus.Dependency(whole(4, 4)),
    "higher-order trees": lambda: certus.Dependency(whole(4, 4), whole(4, 4, 4)),
    "labelled projective trees": lambda: certus.LabelledDependency(whole(3, 3, 2), projective=True),
    "labelled crossing trees": lambda: certus.LabelledDependency(whole(3, 3, 2), root="multi"),
    "labelled higher-order trees": lambda: certus.LabelledDependency(whole(3, 3, 2), sibling=whole(3, 3, 3)),
    "automata": lambda: AutomataDependency(whole(4, 4), lambda g, h, side: Counting()),
    "projective automata": lambda: ProjectiveAutomata(whole(4, 4), lambda g, h, side: Counting(), by_head=True),
    "labelled automata": lambda: certus.LabelledAutomata(whole(3, 3, 2), lambda g, h, side: Counting(), by_head=True),
    "crossing labelled automata": lambda: certus.CrossingLabelledAutomata(
        whole(3, 3, 2), lambda g, h, side: Counting()
    ),
    "labelled parts": lambda: certus.LabelledParts(whole(3, 3, 2), grandsibling=whole(*(3,) * 4, *(2,) * 4)),
    "head automata": lambda: HeadAutomata(whole(3, 3), lambda g, h, side: Counting()),
    "vine": lambda: Vine(whole(4, 4), whole(4, 2), whole(4, 2), band=1),
    "joint": lambda: certus.Joint(tagging(), tagging(), on="tags"),
    "tied": lambda: certus.Joint(tagging(), tagging(), on="tags", merge=False),
    "soft": lambda: tagging(3).subject_to(constraints.at_most(1, "tags", [(0, 0), (1, 0), (2, 0)], penalty=2.0)),
    "masked": lambda: tagging(3).subject_to(constraints.forbid("tags", (0, 1))),
    "accepted": lambda: tagging(3).subject_to(constraints.contains(["N", "V"])),
    "constrained": lambda: tagging(3).subject_to(constraints.at_most(1, "tags", [(0, 0), (1, 0), (2, 0)])),
    "factor tree": lambda: certus.FactorGraph(whole(3, 2), {(0, 1): whole(2, 2), (1, 2): whole(2, 2)}),
    "factor cycle": lambda: certus.FactorGraph(whole(3, 2), {k: whole(2, 2) for k in ((0, 1), (1, 2), (2, 0))}),
    "wide factor graph": lambda: WideGraph(whole(4, 2), {k: whole(2, 2) for k in combinations(range(4), 2)}, width=4),
    "assignment": lambda: certus.Assignment(whole(2, 3)),
    "knapsack": lambda: certus.Knapsack(whole(4) + 2.0, [2, 1, 3, 1], 4),
    "set cover": lambda: certus.SetCover(whole(4) + 4.0, [[0, 1], [1, 2], [0, 2], [2]]),
    "forest translation": forest_translation,
    "phrase translation": phrase_translation,
    "accepted forest translation": lambda: forest_translation().subject_to(constraints.contains(["b"])),
    "accepted phrase translation": lambda: phrase_translation().subject_to(constraints.contains(["b"])),
}

PAGE = (Path(__file__).parents[1] / "docs" / "questions.md").read_text().split("\n## ")[1]
REFUSED = {  # what a kind of problem declares that it does not answer: the table of the page
    name: set(questions.replace("`", "").split(", "))
    for name, questions in re.findall(r"^\| ([a-z -]+) \| (`[^|]+`) \|", PAGE, re.MULTILINE)
}
RELAXED = {"higher-order graph", "wide factor graph", "constrained", "tied", "soft", "assignment", "knapsack"}
RELAXED |= {"set cover", "crossing labelled automata"}  # whose intervals are wider


class Case:
    """A problem, its structures by something that tells them apart, and their scores."""

    def __init__(self, name):
        self.name = name
        RNG.bit_generator.state = START  # the same problem, whichever tests were run before
        self.problem = MADE[name]()
        scored = {key(y): (y, self.problem.score(y)) for y in self.problem.all_structures()}
        self.every = {k: y for k, (y, score) in scored.items() if score > -np.inf}
        self.scores = {k: score for k, (_, score) in scored.items() if score > -np.inf}
        self.values = np.array(sorted(self.scores.values(), reverse=True))

    @property
    def probability(self):
        return {k: np.exp(score - np.logaddexp.reduce(self.values)) for k, score in self.scores.items()}

    def used(self, k, view):
        return self.problem.indicator(self.every[k], view)


made = cache(Case)


def key(y):
    """A structure as something that can be a key."""
    if isinstance(y, np.ndarray):
        return tuple(y.ravel().tolist())
    if isinstance(y, tuple | list):
        return tuple(map(key, y))
    if isinstance(y, certus.LexicalizedTree):
        return str(y), y.heads
    return (key(y.arcs), key(y.above)) if hasattr(y, "above") else str(y)


def close(a, b):
    return np.allclose(a, b, atol=1e-9, rtol=0)


def ask_decode(case):
    result = case.problem.decode()
    assert close(result.score, case.values[0])
    assert close(result.score, case.scores[key(result.structure)])
    assert result.certificate.exact


def ask_kbest(case):
    found = case.problem.kbest(3)
    assert close([r.score for r in found], case.values[:3])
    assert len({key(r.structure) for r in found}) == len(found) == min(3, len(case.values))
    assert [r.certificate.rank for r in found] == [1, 2, 3][: len(found)]


def ask_sample(case):
    drawn = [key(y) for y in case.problem.sample(300, seed=1)]
    for k, p in case.probability.items():
        assert abs(drawn.count(k) / 300 - p) < 0.15  # five standard deviations
    assert set(drawn) <= set(case.every)


def ask_log_partition(case):
    assert close(case.problem.log_partition(), np.logaddexp.reduce(case.values))


def ask_marginals(case):
    found = case.problem.marginals()
    assert found.keys() == case.problem.views.keys()
    for view in found:
        assert close(found[view], sum(p * case.used(k, view) for k, p in case.probability.items()))


def ask_log_partition_bounds(case):
    found = case.problem.log_partition_bounds()
    assert found.lower <= np.logaddexp.reduce(case.values) <= found.upper
    assert found.width < (8.0 if case.name in RELAXED else 1.0)


def ask_marginal_estimates(case):
    found = case.problem.marginal_estimates(samples=3000, seed=1)
    assert found.marginals.keys() == found.standard_error.keys() == case.problem.views.keys()
    assert (found.method == "exact") == (found.samples == 0) == (found.effective_sample_size == np.inf)
    for view, estimate in found.marginals.items():
        truth = sum(p * case.used(k, view) for k, p in case.probability.items())
        assert (np.abs(estimate - truth) <= 1e-9 + 5.0 * found.standard_error[view] + 0.01 * (found.samples > 0)).all()
    assert abs(found.log_partition - np.logaddexp.reduce(case.values)) < (0.2 if found.samples else 1e-9)


def ask_entropy(case):
    assert close(case.problem.entropy(), -sum(p * np.log(p) for p in case.probability.values()))


def ask_max_marginals(case):
    found = case.problem.max_marginals()
    assert found.keys() == case.problem.views.keys()
    for view, shape in case.problem.views.items():
        best = np.full(shape, -np.inf)
        for k, score in case.scores.items():
            best = np.where(case.used(k, view) > 0, np.maximum(best, score), best)
        assert (np.isneginf(found[view]) == np.isneginf(best)).all()
        assert close(found[view][best > -np.inf], best[best > -np.inf])


def ask_score(case):
    for k, y in case.every.items():
        assert case.problem.score(y) == case.scores[k] == pytest.approx(sum(case.problem.terms(y)))


def ask_all_structures(case):
    assert len(case.every) > 2
    for view, shape in case.problem.views.items():
        assert all(case.used(k, view).shape == shape for k in case.every)


def ask_subject_to(case):
    """The best structure that leaves out one part of the best one, or one of two that it has."""
    best = max(case.scores, key=case.scores.get)
    view = next(iter(case.problem.views))
    parts = [tuple(int(i) for i in part) for part in np.argwhere(case.used(best, view))]
    for k, constraint in ((1, constraints.forbid(view, parts[0])), (2, constraints.at_most(1, view, parts[:2]))):
        kept = [k for k in case.every if constraint.holds({view: case.used(k, view)})]
        if len(parts) < k or not kept:
            continue
        problem = case.problem.subject_to(constraint)
        result = problem.decode()
        assert type(problem) is type(case.problem) or isinstance(problem, Constrained)
        assert result.score == pytest.approx(max(case.scores[y] for y in kept), abs=1e-9)
        assert key(result.structure) in kept
        certus.verify(problem, result)


def ask_to_json(case):
    problem = case.problem
    data = problem.to_json()
    again = type(problem).from_json(data)
    assert again.to_json() == data
    assert problem_to_json(problem_from_json(problem_to_json(problem))) == {"kind": problem.name, "data": data}
    for y in case.every.values():
        assert key(again.structure_from_json(problem.structure_to_json(y))) == key(y)
    assert close(again.decode().score, case.values[0])


def ask_verify(case):
    result = case.problem.decode()
    certus.verify(case.problem, result)
    with pytest.raises(certus.VerificationError):
        certus.verify(case.problem, replace(result, score=result.score + 1.0))
    lower = replace(result.certificate, bound=result.certificate.bound - 1.0)
    with pytest.raises(certus.VerificationError):
        certus.verify(case.problem, replace(result, certificate=lower))


QUESTIONS = {name.removeprefix("ask_"): ask for name, ask in globals().items() if name.startswith("ask_")}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", MADE)
def test_every_question_of_every_kind_of_problem(name, question):
    case = made(name)
    if question not in REFUSED.get(name, ()):
        QUESTIONS[question](case)
        return
    given = {"sample": (1,), "kbest": (2,)}.get(question, ())
    says = {"marginal_estimates": "marginals"}.get(question, question)
    with pytest.raises(certus.NotSupported, match=rf"{says}\(\).*\."):
        getattr(case.problem, question)(*given)


@pytest.mark.parametrize("name", MADE)
def test_capabilities_are_declared(name):
    case = made(name)
    forest, relaxation = case.problem.forest(), case.problem.relaxation()
    if forest is not None:
        assert isinstance(forest, Forest)
        derived = [key(case.problem.from_edges(edges)) for edges in forest.graph.hyperpaths()]
        assert len(set(derived)) == len(derived)
        assert set(derived) >= set(case.every)
    else:
        with pytest.raises(certus.NotSupported):
            case.problem.from_edges([])
    assert relaxation is None or isinstance(relaxation, Relaxation)
    if relaxation is None and not isinstance(case.problem, certus.ConstrainedHyperpath | certus.ForestTranslation):
        assert case.problem.decode().certificate.kind in (case.problem.certificate_kind, "dynamic program")


@pytest.mark.parametrize("name", MADE)
def test_decode_takes_the_same_limits_whatever_the_problem(name):
    """Limits and step rule by name, the same defaults but for how many iterations; what a method needs comes beside."""
    _, *given = inspect.signature(type(made(name).problem).decode).parameters.values()
    assert [p.name for p in given[:3]] == ["max_iterations", "time_limit", "exact"]
    assert "step" in {p.name for p in given}
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in given)
    assert isinstance(given[0].default, int)
    assert (given[1].default, given[2].default) == (None, True)
    case = made(name)
    result = case.problem.decode(max_iterations=3, time_limit=60.0, exact=False, step=constant(0.5))
    assert close(result.score, case.scores[key(result.structure)])
    assert result.certificate.bound >= case.values[0] - 1e-9


def test_every_public_kind_of_problem_is_asked():
    public = {kind for kind in vars(certus).values() if inspect.isclass(kind) and issubclass(kind, Problem)}
    abstract = {Problem, certus.DynamicProgram}
    assert public - abstract <= {type(made(name).problem) for name in MADE}
    ours = {name for name, kind in PROBLEMS.items() if kind.__module__.startswith("certus.")}
    assert ours <= {made(name).problem.name for name in MADE}


def test_every_kind_is_known_in_a_process_that_imported_none():
    code = "import certus\nfrom certus.problem import PROBLEMS\nprint(*PROBLEMS.complete(), sep=';')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    ours = {name for name, kind in PROBLEMS.items() if kind.__module__.startswith("certus.")}
    assert ours <= set(done.stdout.strip().split(";"))


def test_the_page_of_questions_speaks_of_kinds_that_are_asked():
    assert REFUSED.keys() <= MADE.keys()
    assert set().union(*REFUSED.values()) <= QUESTIONS.keys()


def test_what_cannot_be_saved_says_so():
    with pytest.raises(certus.InvalidInput, match="HeadAutomata is not a kind of problem that can be saved; those are"):
        problem_to_json(made("head automata").problem)


def test_a_dependency_problem_is_one_whatever_its_trees():
    for name in ("projective trees", "crossing trees", "higher-order trees"):
        assert type(made(name).problem) is certus.Dependency


def test_a_kind_of_problem_made_elsewhere_can_be_saved(tmp_path):
    class Named(certus.Tagging):
        name = "named tagging"

        @classmethod
        def from_json(cls, data):
            return super().from_json(data)

    try:
        problem = Named([[0.0, 1.0]])
        certus.save_result(tmp_path / "r.json", problem, problem.decode())
        again, result = certus.load_result(tmp_path / "r.json")
        assert type(again) is Named
        certus.verify(again, result)
    finally:
        del PROBLEMS["named tagging"]
