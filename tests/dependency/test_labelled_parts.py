"""Labels inside higher-order parts and in automata, against all labelled trees scored one by one."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import CrossingLabelledAutomata, LabelledAutomata, LabelledParts
from certus.dependency.labelled_parts import KINDS
from certus.problem import problem_from_json, problem_to_json

SHOWN = settings(deadline=None, max_examples=40)


def draw(rng, n, size, names):
    """Whole scores, some of them -inf."""
    scores = {}
    for name in ("label", *names):
        axes = "hm" if name == "label" else KINDS[name].axes
        labels = [size] if name == "label" else rng.choice([1, size], len(axes)).tolist()
        scores[name] = rng.integers(-4, 5, (*(n + 1 for _ in axes), *labels)).astype(float)
        scores[name][rng.random(scores[name].shape) < 0.1] = -np.inf
    return scores


def score_of(scores, heads, labels):
    """The score of a labelled tree, part by part, in plain Python."""
    total, label = 0.0, [max(k, 0) for k in labels]
    for m in range(1, len(heads)):
        h = int(heads[m])
        total += scores["label"][h, m, label[m]]
        inside = [x for x in range(1, len(heads)) if heads[x] == h and (h < x < m or m < x < h)]
        inside.sort(key=lambda x: -abs(x - h))
        node = {"h": h, "m": m, "s": (*inside, h)[0]}
        if h:
            node["g"] = int(heads[h])
        if inside:
            node["t"] = (*inside, h)[1]
        for name in scores.keys() - {"label"}:
            axes, array = KINDS[name].axes, scores[name]
            if node.keys() >= set(axes):
                of_labels = zip(axes, array.shape[len(axes) :], strict=True)
                chosen = [label[node[x]] if size > 1 else 0 for x, size in of_labels]
                total += array[tuple(node[x] for x in axes) + tuple(chosen)]
    return total


@SHOWN
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 3),
    st.integers(1, 2),
    st.sets(st.sampled_from(list(KINDS)), max_size=3),
    st.sampled_from(["single", "multi"]),
)
def test_every_answer_about_labelled_parts_is_that_of_all_trees(seed, n, size, names, root):
    scores = draw(np.random.default_rng(seed), n, size, sorted(names))
    problem = LabelledParts(**scores, root=root)
    every = [(y, score_of(scores, *y)) for y in problem.all_structures()]
    assert [problem.score(y) for y, _ in every] == [score for _, score in every]
    every = [(y, score) for y, score in every if score > -np.inf]
    if not every:
        with pytest.raises(certus.Infeasible):
            problem.decode()
        return
    values = sorted((score for _, score in every), reverse=True)
    found = problem.kbest(3)
    assert [r.score for r in found] == values[:3]
    for r in found:
        assert r.certificate.exact or not any(problem.terms(r.structure))
        certus.verify(problem, r)
    total = np.logaddexp.reduce(values)
    assert problem.log_partition() == pytest.approx(total, abs=1e-9)
    marginals, best = problem.marginals(), problem.max_marginals()
    for view in problem.views:
        used = np.array([problem.indicator(y, view) for y, _ in every])
        weight = np.array([score for _, score in every]).reshape(-1, *(1,) * (used.ndim - 1))
        assert np.allclose(marginals[view], (np.exp(weight - total) * used).sum(axis=0))
        assert (best[view] == np.where(used > 0, weight, -np.inf).max(axis=0)).all()
    again = problem_from_json(json.loads(json.dumps(problem_to_json(problem))))
    assert again.decode().score == values[0]


class Agreement:
    """Modifiers score by their label and that of the head; the same label twice in a row is forbidden."""

    start = -1

    def __init__(self, g, h):
        self.above = 2 * h.label + g.label

    def step(self, state, m):
        return m.label, float("-inf") if m.label == state else float((m.word * 3 + m.label * self.above) % 5)

    def stop(self, state):
        return float(state == 1)


@SHOWN
@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.booleans(), st.sampled_from(["single", "multi"]))
def test_automata_read_labels(seed, n, by_head, root):
    label = draw(np.random.default_rng(seed), n, 2, ())["label"]
    problem = LabelledAutomata(label, lambda g, h, side: Agreement(g, h), by_head=by_head, root=root)
    values = sorted((s for y in problem.all_structures() if (s := problem.score(y)) > -np.inf), reverse=True)
    again = problem_from_json(json.loads(json.dumps(problem_to_json(problem))))
    for asked in (problem, again):
        if not values:
            with pytest.raises(certus.Infeasible):
                asked.decode()
            continue
        found = asked.kbest(4)
        assert [r.score for r in found] == values[:4]
        for r in found:
            certus.verify(asked, r)
        assert asked.log_partition() == pytest.approx(np.logaddexp.reduce(values), abs=1e-9)


@pytest.mark.parametrize("by_head", [False, True])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_automata_read_labels_of_trees_whose_arcs_cross(by_head, root):
    for n in (0, 1, 2, 2, 3, 3):
        label = draw(np.random.default_rng([n, by_head]), n, 2, ())["label"]
        problem = CrossingLabelledAutomata(label, lambda g, h, side: Agreement(g, h), by_head=by_head, root=root)
        values = sorted((s for y in problem.all_structures() if (s := problem.score(y)) > -np.inf), reverse=True)
        again = problem_from_json(json.loads(json.dumps(problem_to_json(problem))))
        found = again.kbest(3)
        assert [r.score for r in found] == values[:3]
        assert all(r.certificate.exact for r in found)
        for r in found:
            certus.verify(problem, r)


def test_trees_and_taggers_agree_on_labels():
    rng = np.random.default_rng(5)
    trees = LabelledParts(rng.integers(-3, 4, (4, 4, 2)), sibling=rng.integers(-3, 4, (4, 4, 4, 1, 2, 2)))
    tagger = certus.Tagging(rng.integers(-3, 4, (3, 2)), bigram=rng.integers(-3, 4, (2, 2)))
    joint = certus.Joint(trees, tagger, on="tags")
    result = joint.decode()
    assert result.score == max(trees.score(y) + tagger.score(y.labels[1:]) for y in trees.all_structures())
    certus.verify(joint, result)


def test_parts_are_required_and_forbidden():
    rng = np.random.default_rng(6)
    problem = LabelledParts(rng.integers(-3, 4, (4, 4, 2)), grandparent=rng.integers(-3, 4, (*(4,) * 3, *(2,) * 3)))
    every = list(problem.all_structures())
    for view, index in (("arcs", (1, 2)), ("labels", (2, 3, 1)), ("tags", (0, 1))):
        for value in (0, 1):
            kept = [problem.score(y) for y in every if problem.indicator(y, view)[index] == value]
            fixed = problem.with_fixed(view, index, value)
            assert fixed.decode().score == max(kept)
            assert len(list(fixed.forest().graph.hyperpaths())) == len(kept)


def test_scores_of_another_shape_are_refused():
    with pytest.raises(certus.InvalidInput, match="sibling has shape"):
        LabelledParts(np.zeros((3, 3, 2)), sibling=np.zeros((3, 3, 3)))
    with pytest.raises(certus.InvalidInput, match="arc has shape"):
        LabelledParts(np.zeros((3, 3, 2)), arc=np.zeros((3, 3, 3, 1)))
