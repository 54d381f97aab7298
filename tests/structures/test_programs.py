"""Dynamic programs over arrays against enumeration: whole scores, ties, -inf, cells that nobody reads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import (
    CTC,
    Alignment,
    AnchoredGrammar,
    Infeasible,
    InvalidInput,
    NotSupported,
    Segmentation,
    SpanTrees,
    constraints,
)
from tests.oracles import structures as oracle
from tests.oracles.normal import check
from tests.strategies import edge_weights


@st.composite
def arrays(draw, *shape):
    return draw(edge_weights(int(np.prod(shape)))).reshape(shape)


@st.composite
def segmentations(draw):
    n, longest, classes = draw(st.integers(0, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    segment = draw(arrays(n, longest, classes))
    segment[np.indices(segment.shape)[:2].sum(axis=0) >= n] = np.nan
    given_ = {"segment": segment, "transition": draw(st.none() | arrays(classes, classes))}
    return Segmentation, oracle.segmentations, given_


@st.composite
def span_trees(draw):
    sort = draw(st.sampled_from(["plain", "labels", "empty"]))
    n, labels = draw(st.integers(0, 3)), draw(st.integers(1, 2)) + (sort == "empty")
    span = draw(arrays(n + 1, n + 1) if sort == "plain" else arrays(n + 1, n + 1, labels))
    span[np.tril_indices(n + 1)] = np.nan
    return (
        SpanTrees,
        oracle.span_trees,
        {"span": span, "empty": draw(st.integers(0, labels - 1)) if sort == "empty" else None},
    )


@st.composite
def alignments(draw):
    score = draw(arrays(draw(st.integers(1, 4)), draw(st.integers(1, 3)), 3))
    score[-1, :, :2] = score[:, -1, [0, 2]] = np.nan
    return Alignment, oracle.alignments, {"score": score}


@st.composite
def labellings(draw):
    length, size = draw(st.integers(0, 4)), draw(st.integers(2, 3))
    blank = draw(st.integers(0, size - 1))
    target = draw(st.lists(st.sampled_from([v for v in range(size) if v != blank]), max_size=3))
    return CTC, oracle.labellings, {"frame": draw(arrays(length, size)), "target": target, "blank": blank}


@st.composite
def grammars(draw):
    n, phrases, tags = draw(st.integers(0, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    size = phrases + tags
    given_ = {
        "root": draw(arrays(phrases)),
        "rule": draw(arrays(phrases, size, size)),
        "emission": draw(arrays(n, tags)),
    }
    given_["span"] = draw(st.none() | arrays(n + 1, n + 1, size))
    return AnchoredGrammar, oracle.grammar_trees, given_


programs = st.one_of(segmentations(), span_trees(), alignments(), labellings(), grammars())


def keyed(structure):
    return tuple(map(tuple, structure)) if isinstance(structure, tuple) else tuple(structure.tolist())


@given(programs)
@settings(max_examples=150)
def test_best_structures_are_those_of_enumeration(drawn):
    kind, listed, arguments = drawn
    problem = kind(**arguments)
    score = {keyed(y): sum(parts) for y, parts in listed(**arguments)}
    possible = sorted((s for s in score.values() if s > -np.inf), reverse=True)
    check(problem, [y for y, _ in listed(**arguments)])
    if not possible:
        with pytest.raises(Infeasible):
            problem.decode()
        assert problem.log_partition() == -np.inf
        return
    found = problem.kbest(4)
    assert [r.score for r in found] == possible[:4]
    for r in found:
        assert score[keyed(r.structure)] == r.score == problem.score(r.structure)
        certus.verify(problem, r)
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(possible))
    again = kind.from_json(problem.to_json())
    assert again.decode().score == possible[0]


@given(programs, st.integers(0, 10**6), st.integers(0, 1))
@settings(max_examples=100)
def test_fixed_parts(drawn, pick, value):
    kind, listed, arguments = drawn
    problem = kind(**arguments)
    shape = problem.views[problem.view]
    cell = np.unravel_index(pick % max(int(np.prod(shape)), 1), shape) if np.prod(shape) else None
    if cell is None:
        return
    index = tuple(map(int, cell))
    if value and arguments.get("empty") is not None:
        with pytest.raises(NotSupported, match=r"with_fixed\(\)"):
            problem.with_fixed(problem.view, index, value)
        return
    kept = [sum(p) for y, p in listed(**arguments) if problem.indicator(y, problem.view)[index] == value]
    best = max(kept, default=-np.inf)
    if best == -np.inf:
        with pytest.raises((Infeasible, NotSupported)):  # the latter where nothing has room for the part
            problem.with_fixed(problem.view, index, value).decode()
    else:
        assert problem.with_fixed(problem.view, index, value).decode().score == best


@given(span_trees(), st.integers(0, 10**6))
@settings(max_examples=30)
def test_a_required_span(drawn, pick):
    kind, listed, arguments = drawn
    problem = kind(**arguments)
    scored = [(y, sum(parts)) for y, parts in listed(**arguments)]
    spans = sorted({cell for y, s in scored for cell in y if s > -np.inf})
    if spans:
        chosen = spans[pick % len(spans)]
        limited = problem.subject_to(constraints.require("spans", chosen))
        result = limited.decode()
        assert result.score == max(s for y, s in scored if chosen in y)
        certus.verify(limited, result)


@given(st.integers(0, 4).flatmap(lambda n: arrays(n, n)))
@settings(max_examples=60)
def test_spanning_trees_are_those_of_enumeration(above):
    edge = np.triu(np.where(np.isneginf(above), 99.0, above), 1)
    edge = edge + edge.T
    edge[edge == 99.0] = -np.inf
    np.fill_diagonal(edge, np.nan)
    problem = certus.SpanningTree(edge)
    score = {y: sum(parts) for y, parts in oracle.spanning_trees(edge)}
    possible = sorted((s for s in score.values() if s > -np.inf), reverse=True)
    if not possible:
        with pytest.raises(Infeasible):
            problem.decode()
        return
    found = problem.kbest(4)
    assert [r.score for r in found] == possible[:4]
    for r in found:
        assert score[r.structure] == r.score == problem.score(r.structure[::-1])
        certus.verify(problem, r)
    assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(possible))
    edges = problem.marginals()["edges"]
    assert edges.sum() == pytest.approx(max(len(edge) - 1, 0))
    assert certus.SpanningTree.from_json(problem.to_json()).decode().score == possible[0]


@given(st.integers(0, 2), st.sets(st.sampled_from(["sibling", "coparent", "grandparent"])), st.data())
@settings(max_examples=40, deadline=None)
def test_graphs_are_those_of_enumeration(n, kinds, data):
    size = n + 1
    arrays_ = {"arc": data.draw(arrays(size, size)), **{name: data.draw(arrays(size, size, size)) for name in kinds}}
    np.fill_diagonal(arrays_["arc"], np.nan)
    problem = certus.DependencyGraph(**arrays_)
    score = {tuple(y.ravel().tolist()): sum(parts) for y, parts in oracle.dependency_graphs(**arrays_)}
    result = problem.decode()
    assert result.score == max(score.values()) == score[tuple(result.structure.ravel().tolist())]
    assert result.certificate.exact
    certus.verify(problem, result)
    if len(kinds - {"grandparent"}) <= 1 and "grandparent" not in kinds:
        check(problem)
        values = [s for s in score.values() if s > -np.inf]
        assert problem.log_partition() == pytest.approx(np.logaddexp.reduce(values))
    else:
        with pytest.raises(NotSupported, match=r"log_partition\(\) of graphs"):
            problem.log_partition()


def test_span_trees_become_trees():
    problem = SpanTrees(np.zeros((4, 4, 3)), empty=0)
    tree = problem.tree(((0, 3, 1), (1, 3, 2), (0, 1, 1)), ["a", "b", "c"], ["", "S", "S+VP"], ["D", "N", "V"])
    assert str(tree) == "(S (S (D a)) (S (VP (N b) (V c))))"
    assert str(SpanTrees(np.zeros((2, 2))).tree(((0, 1),), ["a"])) == "(0 (X a))"
    with pytest.raises(InvalidInput, match="there are 2 words"):
        problem.tree((), ["a", "b"])


@pytest.mark.parametrize(
    ("problem", "wrong", "said"),
    [
        (Segmentation(np.zeros((3, 2, 1))), ((0, 3, 0),), "segment from word 0, of up to 2 of 3 words"),
        (Segmentation(np.zeros((3, 2, 1))), ((0, 2, 0),), "cover 3 words"),
        (SpanTrees(np.zeros((4, 4))), ((0, 3), (0, 2), (1, 3)), "crosses another"),
        (SpanTrees(np.zeros((4, 4))), ((0, 3), (0, 1), (1, 2), (2, 3)), "not cut into two"),
        (SpanTrees(np.zeros((4, 4))), ((0, 2), (0, 1), (1, 2)), "whole sentence"),
        (SpanTrees(np.zeros((3, 3, 2)), empty=1), ((0, 2, 1),), "a label below 2 but 1"),
        (Alignment(np.zeros((2, 2, 3))), ((0, 0, 1),), r"end in \(1, 1\)"),
        (Alignment(np.zeros((2, 2, 3))), ((0, 0, 1), (1, 0, 1)), "leads out"),
        (certus.SpanningTree(np.zeros((3, 3))), ((0, 1),), "there are 1 edges; expected 2"),
        (certus.SpanningTree(np.zeros((4, 4))), ((0, 1), (1, 2), (0, 2)), "make a cycle"),
        (certus.SpanningTree(np.zeros((4, 4))), ((1, 2), (2, 3), (1, 3)), "node 1 is not connected"),
        (CTC(np.zeros((2, 3)), [1]), [1, 2], r"spells \[1, 2\]"),
        (CTC(np.zeros((2, 3)), [1]), [1.0, 0.0], "expected 2 labels"),
    ],
)
def test_what_is_no_structure_is_refused(problem, wrong, said):
    with pytest.raises(InvalidInput, match=said):
        problem.score(wrong)


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (CTC(np.zeros((4, 3)), [1, 1, 2, 2]), "4 frames and the target takes 6 at least"),
        (CTC(np.zeros((0, 3)), [1]), "0 frames and the target takes 1 at least"),
        (CTC(np.full((2, 3), -np.inf), [1]), "every structure uses a part that scores -inf"),
        (Segmentation(np.full((3, 2, 1), -np.inf)), "every structure uses a part that scores -inf"),
    ],
)
@pytest.mark.parametrize("question", ["decode", "marginals", "entropy"])
def test_what_has_no_structure_says_why_in_words_of_the_problem(problem, said, question):
    with pytest.raises(Infeasible, match=said):
        getattr(problem, question)()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Segmentation(np.zeros((3, 0, 1))), "a length and a class"),
        (lambda: Segmentation(np.zeros((3, 2, 1)), np.zeros((2, 2))), r"transition has shape \(2, 2\)"),
        (lambda: SpanTrees(np.zeros((3, 2))), r"expected \(words \+ 1, words \+ 1\)"),
        (lambda: SpanTrees(np.zeros((3, 3)), empty=0), "empty is 0"),
        (lambda: SpanTrees(np.full((3, 3), np.nan)), r"span\[0, 1\] is nan"),
        (lambda: Alignment(np.zeros((0, 2, 3))), r"expected \(items \+ 1, items \+ 1, 3\)"),
        (lambda: certus.SpanningTree([[0, 1], [2, 0]]), "expected a symmetric array"),
        (lambda: CTC(np.zeros((2, 3)), [0]), r"target\[0\] is 0"),
        (lambda: CTC(np.zeros((2, 3)), [1], blank=3), "blank is 3"),
    ],
)
def test_what_makes_no_problem_is_refused(make, said):
    with pytest.raises(InvalidInput, match=said):
        make()
