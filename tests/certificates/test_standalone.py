"""The standalone checker accepts what certus.verify accepts, and refuses what is false or hostile."""

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import certus
from certus.certificates import standalone
from certus.constraints import at_most, avoids, budget, contains, forbid, require
from certus.proof_file import proof_to_json
from tests.translation.cases import arpas, forests
from tests.translation.phrase_cases import phrase_problems


def written(problem, result):
    """A proof as another program would read it."""
    return json.loads(json.dumps(proof_to_json(problem, result)))


def scores(rng, *shape):
    found = rng.integers(-5, 6, shape).astype(float) if rng.random() < 0.5 else rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.05, -np.inf, found)


def problems(rng):
    """Problems of all spaces: graphs, trees, both tied by rows, constraints that forbid, require and count."""
    n, size = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    a, b = (certus.Tagging(scores(rng, n, size), scores(rng, size, size)) for _ in range(2))
    yield a
    yield certus.Joint(a, b, on="tags", weight=float(rng.choice([1.0, 0.5])))
    first = [(i, 0) for i in range(n)]
    yield a.subject_to(at_most(1, "tags", first))
    yield a.subject_to(forbid("tags", (0, 0)))
    yield a.subject_to(require("tags", (0, size - 1)), budget("tags", rng.random((n, size)), 0.6 * n))
    yield a.subject_to(at_most(1, "tags", first, penalty=0.75), contains([0]))
    yield certus.Joint(a, b, a, on="tags", weights=(1.0, 0.5, 2.0)).subject_to(avoids([0, size - 1]))
    shape = (n + 1, n + 1)
    root = str(rng.choice(["single", "multi"]))
    yield certus.Dependency(scores(rng, *shape), root=root)
    yield certus.Dependency(scores(rng, *shape), scores(rng, *shape, n + 1), projective=True, root=root)
    above = scores(rng, *shape, n + 1), scores(rng, *shape, n + 1)
    yield certus.Dependency(scores(rng, *shape), *above, root=root)


@st.composite
def translations(draw):
    """Phrase-based and of a forest: constrained, two models tied, a forest tied to a path, alone."""
    weight = draw(st.sampled_from([0.3, 1.0, 4.0]))
    phrases = draw(phrase_problems(max_words=3))
    forest = draw(forests(max_vertices=4, limit=20))
    edges = forest.graph.n_edges
    one, other = (certus.ForestTranslation(forest, certus.LanguageModel(draw(arpas(max_order=3)))) for _ in range(2))
    path = certus.Hyperpath(forest.graph, draw(st.lists(st.integers(-4, 4), min_size=edges, max_size=edges)))
    last = len(phrases.options) - 1
    assume(last > 1 and edges > 1)
    return draw(
        st.sampled_from(
            [
                phrases,
                one,
                phrases.subject_to(at_most(1, "options", [(0,), (last,)])),
                phrases.subject_to(require("options", (last,))),
                one.subject_to(at_most(1, "edges", [(0,), (edges - 1,)]), forbid("edges", (edges // 2,))),
                certus.Joint(one, other, on="edges", weight=weight),
                certus.Joint(path, other, on="edges", weight=weight),
            ]
        )
    )


@given(translations(), st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_translations_are_closed_and_checked(problem, seed):
    try:
        found = [problem.decode()] if isinstance(problem, certus.Joint) else results(problem)
    except certus.Infeasible:
        return
    best = sorted((problem.score(y) for y in problem.all_structures()), reverse=True)
    rng = np.random.default_rng(seed)
    for result in found:
        certus.verify(problem, result)
        data = written(problem, result)
        standalone.check(data)
        for _ in range(3):
            changed_data = forged(rng, data)
            claim = changed_data["claim"]
            try:
                standalone.check(changed_data)
            except (standalone.Refused, LookupError, TypeError, ValueError, AttributeError):
                continue
            above = claim["bound"] + claim["tolerance"]
            assert best[claim["rank"] - 1] <= above + 1e-9 * (1 + abs(above))


def results(problem):
    try:
        found = problem.kbest(3)
    except certus.NotSupported:
        found = [problem.decode()]
    except certus.Infeasible:
        found = []
    return found


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_what_is_proved_is_accepted(seed):
    for problem in problems(np.random.default_rng(seed)):
        try:
            found = results(problem)
        except certus.Infeasible:
            continue
        for result in found:
            certus.verify(problem, result)
            standalone.check(written(problem, result))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_no_structure_beats_what_a_forged_claim_is_accepted_for(seed):
    """Numbers of a proof are changed at random: what is then accepted is true all the same."""
    rng = np.random.default_rng(seed)
    for problem in problems(rng):
        try:
            found = results(problem)
        except certus.Infeasible:
            continue
        for result in found:
            data = forged(rng, written(problem, result))
            try:
                standalone.check(data)
            except (standalone.Refused, LookupError, TypeError, ValueError, AttributeError):
                continue
            claim = data["claim"]
            best = sorted((problem.score(y) for y in problem.all_structures()), reverse=True)
            above = claim["bound"] + claim["tolerance"]
            assert best[claim["rank"] - 1] <= above + 1e-9 * (1 + abs(above))


def forged(rng, data):
    data = copy.deepcopy(data)
    way = int(rng.integers(6))
    for space in data["spaces"]:
        if space["kind"] == "searched" and rng.random() < 0.5:
            space["above"] += float(rng.choice([1.0, -1.0, 100.0]))
            space["witness"] = {name: changed(rng, value) for name, value in space["witness"].items()}
    if "closing" in data and rng.random() < 0.5:
        data["closing"]["u"] = changed(rng, data["closing"]["u"])
    if way == 0:
        data["claim"]["bound"] = data["claim"]["score"] = data["claim"]["score"] - float(rng.integers(0, 3))
    elif way == 1:
        data["claim"]["bound"] -= float(rng.choice([1.0, 0.5, 1e-6]))
    elif way == 2:
        data["claim"]["rank"] += int(rng.choice([-1, 1]))
    elif way == 3 and data["better"]:
        data["better"] = [data["better"][0]] * len(data["better"])
    else:
        node = data["proof"][int(rng.integers(len(data["proof"])))]
        for name in ("u", "reward", "part", "parts", "rivals", "known", "zero", "one", "rest"):
            if name in node and rng.random() < 0.5:
                node[name] = changed(rng, node[name])
        if node.get("spaces") and way == 5:
            node["spaces"] = [None if s is None else {k: changed(rng, v) for k, v in s.items()} for s in node["spaces"]]
    return data


def changed(rng, value):
    if isinstance(value, list):
        return [changed(rng, x) for x in value] if rng.random() < 0.7 else value[:-1]
    if isinstance(value, int):
        return value + int(rng.integers(-1, 2))
    return value + float(rng.choice([0.0, 1.0, -1.0, 100.0, -100.0])) if isinstance(value, float) else value


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (("format",), "another", "no proof"),
        (("spaces", 0, "part"), [[-1, -1], [-1, -1]], "heads do not fit"),
        (("scores", 0), 1e308, "score"),
        (("structure", 0, 0), 0, "heads do not fit"),
        (("claim", "tolerance"), -1.0, "negative|apart"),
        (("claim", "tolerance"), 100.0, "too wide"),
        (("proof", 0, "reward"), -1.0, "negative"),
        (("proof", 0, "spaces", 0, "alpha"), [0.0], "alpha"),
        (("proof", 0, "spaces", 0, "gamma"), -1.0, "negative"),
    ],
)
def test_hostile_files_are_refused(tmp_path, place, value, reason):
    problem = certus.Dependency([[0, 5, 1], [0, 0, 4], [0, 3, 0]])
    data = written(problem, problem.decode())
    holder = data
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(data))
    said = run(path)
    assert said.returncode in (1, 2)
    assert not said.stderr
    assert any(word in said.stdout for word in reason.split("|")), said.stdout


def run(path):
    command = [sys.executable, "-I", standalone.__file__, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_file_needs_nothing_of_certus(tmp_path):
    problem = certus.Dependency([[0, 5, 1], [0, 0, 4], [0, 3, 0]])
    path = tmp_path / "proof.json"
    certus.save_proof(path, problem, problem.decode())
    said = run(path)
    assert (said.returncode, said.stderr) == (0, "")
    assert "verified, optimal, rank 1" in said.stdout
    path.write_text("{")
    assert run(path).returncode == 2
