"""Lexicalised trees that agree with dependency trees on arcs and with a tagger on tags, against enumeration."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import Dependency, Infeasible, InvalidInput, Joint, LexicalizedConstituency, Tagging
from certus.relax.linear import solve_lp
from tests.constituency.spines import RandomSpines, trees
from tests.oracles import closed


@st.composite
def joints(draw, sizes=(1, 3)):
    """A lexicalised problem, a second-order dependency problem, a tagger, and the trees of the first with scores."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    grammar = RandomSpines(rng.integers(10**6))
    words = draw(st.lists(st.sampled_from("aabbc,"), min_size=sizes[0], max_size=sizes[1]))
    n = len(words)
    arc, sibling = (rng.integers(-8, 9, (n + 1,) * k).astype(float) for k in (2, 3))
    dependencies = Dependency(arc, sibling=sibling, projective=True)
    tags = Tagging(rng.integers(-8, 9, (n, 3)), bigram=rng.integers(-8, 9, (3, 3)), tags=grammar.tags)
    return LexicalizedConstituency(grammar, words), dependencies, tags, dict(trees(grammar, words))


def tags_of(problem, tree):
    return np.array([problem.tags.index(tag) for tag in tree.tags])


@settings(max_examples=12)
@given(joints(), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([np.inf, 4.0]))
def test_arcs_and_tags(case, weight, width):
    lexical, dependencies, tags, found = case
    if not found:
        with pytest.raises(Infeasible):
            Joint(lexical, dependencies, on="arcs").decode()
        return
    best = max(s + weight * dependencies.score(t.dependencies) for t, s in found.items())
    joint = Joint(lexical, dependencies, on="arcs", weight=weight)
    result = joint.decode()
    assert result.certificate.exact
    assert result.score == pytest.approx(best)
    certus.verify(joint, result)
    all_three = max(
        s + weight * dependencies.score(t.dependencies) + 2.0 * tags.score(tags_of(lexical, t))
        for t, s in found.items()
    )
    three = Joint(Joint(lexical, tags, on="tags", weight=2.0), dependencies, on="arcs", weight=weight)
    result = three.decode()
    assert result.certificate.exact
    assert result.score == pytest.approx(all_three)
    (tree, sequence), heads = result.structure
    assert np.array_equal(tree.dependencies, heads)
    assert np.array_equal(tags_of(lexical, tree), sequence)
    certus.verify(three, result)
    if width < np.inf:
        kept = set(lexical.within(width).all_structures())
        bound = max(s + weight * dependencies.score(t.dependencies) for t, s in found.items() if t in kept)
        assert Joint(lexical.within(width), dependencies, on="arcs", weight=weight).decode().score == pytest.approx(
            bound
        )


@settings(max_examples=12)
@given(joints(), st.integers(0, 10**6))
def test_the_linear_program_names_the_structures_it_lies_between(case, seed):
    lexical, dependencies, _, found = case
    if not found:
        return
    joint = Joint(lexical, dependencies, on="arcs")
    report = solve_lp(joint)
    best = max(s + dependencies.score(t.dependencies) for t, s in found.items())
    assert report.value >= best - 1e-6
    if not report.fractional:
        assert report.value == pytest.approx(best)
    trees, heads = report.mixtures
    assert sum(share for share, _ in trees) == pytest.approx(1.0)
    mixed = sum(share * lexical.indicator(tree, "arcs") for share, tree in trees)
    assert mixed == pytest.approx(sum(share * dependencies.indicator(h, "arcs") for share, h in heads), abs=1e-5)
    assert mixed == pytest.approx(report.views["arcs"], abs=1e-5)
    value = sum(share * lexical.score(t) for share, t in trees) + sum(s * dependencies.score(h) for s, h in heads)
    assert value == pytest.approx(report.value, abs=1e-4)


@settings(max_examples=12)
@given(joints((2, 3)), st.sampled_from([0.0, 3.0]))
def test_a_rehearsal_over_close_trees_changes_no_optimum(case, width):
    lexical, dependencies, _, found = case
    if not found:
        return
    best = max(s + dependencies.score(t.dependencies) for t, s in found.items())
    joint = Joint(lexical, dependencies, on="arcs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("certus.constituency.lexicalized.SHORT", 0)
        patch.setattr("certus.constituency.lexicalized.REHEARSAL", width)
        result = joint.decode()
    assert result.certificate.exact
    assert result.score == best
    assert result.info["rehearsed"] > 0
    certus.verify(joint, result)


@settings(max_examples=10)
@given(joints(), st.integers(0, 10**6))
def test_arcs_that_are_not_allowed(case, seed):
    lexical, _, _, found = case
    rng = np.random.default_rng(seed)
    allowed = rng.random(lexical.views["arcs"]) < 0.7
    left = {t: s for t, s in found.items() if (lexical.indicator(t, "arcs") <= allowed).all()}
    narrower = lexical.allowing(allowed)
    if not left:
        with pytest.raises(Infeasible):
            narrower.decode()
        return
    assert narrower.decode().score == max(left.values())
    assert {t: narrower.score(t) for t in narrower.all_structures()} == left
    closed.check(narrower, {t: left.get(t, -np.inf) for t in found}, max(left.values()) - 9.0)
    with pytest.raises(InvalidInput, match="expected bool"):
        lexical.allowing(np.zeros(2))


@settings(max_examples=8)
@given(joints((1, 3)), st.sampled_from([0.5, 1.0]))
def test_ranks_of_joint_problems_are_proved(case, weight):
    lexical, dependencies, tags, found = case
    if not found:
        return
    for problem, other in (
        (Joint(lexical, tags, on="tags", weight=weight), lambda t: tags.score(tags_of(lexical, t))),
        (Joint(lexical, dependencies, on="arcs", weight=weight), lambda t: dependencies.score(t.dependencies)),
    ):
        wanted = sorted((s + weight * other(t) for t, s in found.items()), reverse=True)
        results = problem.kbest(4)
        assert [r.score for r in results] == wanted[:4]
        for result in results:
            certus.verify(problem, result)
        last = results[-1]
        if len(results) > 2 and results[-2].score > last.score:
            claim = replace(last.certificate, better=last.certificate.better[:-1], rank=len(results) - 1)
            with pytest.raises(certus.VerificationError):
                certus.verify(problem, replace(last, certificate=claim))


def test_saved_results_are_verified_without_numba(tmp_path):
    rng = np.random.default_rng(5)
    grammar = RandomSpines(3, forbidden=0.0)
    lexical = LexicalizedConstituency(grammar, ["a", "b", "a"])
    dependencies = Dependency(rng.integers(-8, 9, (4, 4)), projective=True)
    for name, problem in {
        "joint": Joint(lexical, dependencies, on="arcs"),
        "alone": lexical,
        "near": lexical.within(9.0),
    }.items():
        certus.save_result(tmp_path / f"{name}.json", problem, problem.kbest(2)[-1])
    code = (
        "import sys\nsys.modules['numba'] = None\nimport certus\n"
        "for path in sys.argv[1:]:\n    certus.verify(*certus.load_result(path))\n"
    )
    paths = [str(path) for path in tmp_path.iterdir()]
    done = subprocess.run([sys.executable, "-c", code, *paths], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
