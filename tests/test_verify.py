"""Verification accepts what is true and rejects every result with one thing altered; results travel as JSON."""

import dataclasses
import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

import certus
from certus import FormatError, InvalidInput, Joint, Tagging, VerificationError, load_result, save_result
from certus.constraints import at_most, budget, forbid
from certus.relax.branch import decode
from certus.relax.linear import solve_ilp
from certus.relax.proof import Fix, Leaf, Split
from certus.relax.search import Search
from tests.relax.test_branch import odd_cycle
from tests.relax.test_descent import fractional, two_words

CASES = (
    "dynamic program",
    "third best",
    "dual",
    "gap",
    "branch and bound",
    "harder",
    "constrained",
    "masked",
    "three",
    "integer program",
    "relaxed without rows",
)


@cache
def cases():
    """A problem and its result by name; made when a test asks, since what it compiles is not for every process."""
    tagging = Tagging([[1.0, 2.0], [0.0, 4.0]], bigram=[[0.0, 1.0], [2.0, -1.0]])
    constrained = Tagging([[3.0, 2.5], [3.0, 0.0], [1.0, 0.0]]).subject_to(
        at_most(2, "tags", [(i, 0) for i in range(3)])
    )
    three = Joint(two_words(), Tagging([[0.5, 0.0], [0.0, 0.25]]), on="tags", merge=False)
    masked = tagging.subject_to(forbid("tags", (0, 1)))
    made = (
        (tagging, tagging.decode()),
        (tagging, tagging.kbest(3)[2]),
        (two_words(), two_words().decode()),
        (fractional(), fractional().decode(exact=False, max_iterations=20)),
        (fractional(), fractional().decode()),
        (odd_cycle(6), odd_cycle(6).decode()),
        (constrained, constrained.decode()),
        (masked, masked.decode()),
        (three, three.decode()),
        (two_words(), solve_ilp(two_words())),
        (tagging, decode(tagging)),
    )
    return dict(zip(CASES, made, strict=True))


@pytest.fixture(params=CASES)
def case(request):
    return cases()[request.param]


def altered(result, **changes):
    return dataclasses.replace(result, certificate=dataclasses.replace(result.certificate, **changes))


def rejects(problem, result):
    with pytest.raises(VerificationError):
        certus.verify(problem, result)


def test_true_results_are_accepted(case):
    assert not certus.verify(*case).trusts


@pytest.mark.parametrize("by", [-1.0, -0.01, 0.01, 1.0, 1e9, float("nan"), float("inf")])
def test_an_altered_score_or_bound_is_rejected(case, by):
    problem, result = case
    rejects(problem, dataclasses.replace(result, score=result.score + by))
    rejects(problem, altered(result, score=result.score + by))
    higher = altered(result, bound=result.certificate.bound + by)
    if by > 0 or higher.certificate.bound >= problem.decode().score:
        certus.verify(problem, higher)  # says less, or what the search left open, and is true
        assert not higher.certificate.exact
    else:
        rejects(problem, higher)
    both = dataclasses.replace(result, score=result.score + by)
    rejects(problem, altered(both, score=result.score + by, bound=result.certificate.bound + by))


@pytest.mark.parametrize("tolerance", [1e9, 0.1, -1.0, float("nan"), float("inf")])
def test_an_altered_tolerance_is_rejected(case, tolerance):
    problem, result = case
    wider = altered(result, tolerance=tolerance)
    if tolerance in (1e9, 0.1, float("inf")) and not wider.certificate.exact:
        certus.verify(problem, wider)  # proves nothing and says so
    else:
        rejects(problem, wider)


def test_an_unknown_kind_or_rank_is_rejected(case):
    problem, result = case
    rejects(problem, altered(result, kind="oracle"))
    rejects(problem, altered(result, rank=0))
    rejects(problem, altered(result, rank=10**6))


def parts_changed(problem, structure):
    """The structure with one part changed, in every way that changes its score or makes it none."""
    if isinstance(structure, tuple):
        for k, y in enumerate(structure):
            for z in parts_changed(problem, y):
                yield (*structure[:k], z, *structure[k + 1 :])
    else:
        for i in range(len(structure)):
            for t in range(4):
                if t != structure[i]:
                    out = structure.copy()
                    out[i] = t
                    yield out


def test_one_altered_part_is_rejected(case):
    problem, result = case
    rejected = 0
    for y in parts_changed(problem, result.structure):
        try:
            same = problem.score(y) == result.score
        except InvalidInput:
            same = False
        if not same:
            rejects(problem, dataclasses.replace(result, structure=y))
            rejected += 1
    assert rejected > 3


@pytest.mark.parametrize("structure", [None, "NV", 3, (), np.array([0.5, 1.0]), np.zeros((2, 2), dtype=np.int64)])
def test_what_is_no_structure_is_rejected(case, structure):
    problem, result = case
    rejects(problem, dataclasses.replace(result, structure=structure))


@pytest.mark.parametrize("name", ["dual", "constrained", "three"])
def test_altered_multipliers_are_rejected(name):
    problem, result = cases()[name]
    duals = result.certificate.duals
    key = next(iter(duals))
    certus.verify(problem, altered(result, duals=None))  # a witness is made
    moved = np.arange(1, duals[key].size + 1).reshape(duals[key].shape)
    others = {"more": np.zeros(1)}, {key: np.zeros(17)}, {key: np.full(duals[key].shape, np.nan)}
    far = ({key: duals[key] + value * moved} for value in (100.0, -100.0))
    for witness in ({}, *({**duals, **other} for other in (*others, *far))):
        rejects(problem, altered(result, witness=Leaf(witness)))


def test_a_witness_is_made_where_what_decoding_left_proves_too_little():
    problem, result = cases()["branch and bound"]
    weak = Leaf({"tags": np.zeros((2, 2))})
    rejects(problem, altered(result, witness=weak))
    certus.verify(problem, altered(result, duals=weak))


def test_a_positive_multiplier_of_an_inequality_is_rejected():
    problem, result = cases()["constrained"]
    (key,) = result.certificate.duals
    rejects(problem, altered(result, witness=Leaf({key: np.array([0.5])})))


def test_a_proof_tree_must_prove_all_of_it():
    problem, result = cases()["branch and bound"]
    root = result.certificate.duals

    def leaves(node):
        if isinstance(node, Split):
            return [*leaves(node.zero), *leaves(node.one)]
        return leaves(node.rest) if isinstance(node, Fix) else [node]

    # The first leaf alone is the relaxation, which leaves a gap.
    zeros = {k: np.zeros_like(v) for k, v in leaves(root)[0].multipliers.items()}
    rejects(problem, altered(result, witness=Leaf(zeros)))
    rejects(problem, altered(result, witness=Split("arcs", 0, root, root)))
    rejects(problem, altered(result, witness=Split("tags", 99, root, root)))
    rejects(problem, altered(result, witness=leaves(root)[0]))


def test_removing_parts_that_matter_is_rejected():
    from certus.relax.proof import Removed

    problem, result = cases()["branch and bound"]
    zero = Leaf({"tags": np.zeros((2, 2))})
    everything = tuple(Removed("tags", (k,)) for k in range(4))
    rejects(problem, altered(result, witness=Fix(zero.multipliers, everything, zero)))
    rejects(problem, altered(result, witness=Fix(zero.multipliers, (Removed("tags", (99,)),), zero)))


# -- travel --------------------------------------------------------------------------------------------------------


def test_results_travel(case, tmp_path):
    problem, result = case
    save_result(tmp_path / "result.json", problem, result)
    problem2, result2 = load_result(tmp_path / "result.json")
    certus.verify(problem2, result2)
    assert result2.score == result.score
    assert result2.certificate.bound == result.certificate.bound
    assert result2.certificate.rank == result.certificate.rank
    assert np.array_equal(result2.trace.dual, result.trace.dual)
    assert np.array_equal(result2.trace.primal, result.trace.primal)
    assert repr(result2) == repr(result)
    save_result(tmp_path / "again.json", problem2, result2)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "result.json").read_bytes()


def test_budgets_travel(tmp_path):
    problem = Tagging([[3.0, 2.0], [3.0, 0.0]]).subject_to(budget("tags", [[1.0, 0.5], [2.0, 0.25]], 2.0))
    save_result(tmp_path / "r.json", problem, problem.decode())
    again, result = load_result(tmp_path / "r.json")
    certus.verify(again, result)
    assert [repr(c) for c in again.constraints] == [repr(c) for c in problem.constraints]


def test_verification_imports_no_kernel(tmp_path):
    for k, (problem, result) in enumerate(cases().values()):
        save_result(tmp_path / f"{k}.json", problem, result)
    code = (
        "import sys; sys.modules['numba'] = None; import certus\n"
        "for path in sys.argv[1:]: certus.verify(*certus.load_result(path))\n"
        "plain = {'certus.kernels.steps', 'certus.kernels.tuples'}  # numbers by name: no kernel\n"
        "loaded = {m for m in sys.modules if m.startswith('certus.kernels.')} - plain\n"
        "assert not loaded, loaded"
    )
    files = [str(tmp_path / f"{k}.json") for k in range(len(CASES))]
    done = subprocess.run([sys.executable, "-c", code, *files], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.fixture(params=["dual", "branch and bound", "constrained"])
def saved(request, tmp_path):
    path = tmp_path / "result.json"
    save_result(path, *cases()[request.param])
    return path


def test_a_truncated_file_is_refused(saved):
    text = saved.read_text()
    for length in range(0, len(text) - 2, max(1, len(text) // 40)):
        saved.write_text(text[:length])
        with pytest.raises(FormatError, match=r"result\.json"):
            load_result(saved)


def everywhere(data):
    """Every path into JSON data."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (key,)
        for rest in everywhere(value):
            yield (key, *rest)


@pytest.mark.parametrize("value", [None, "x", -7, 1e308, True, [], {}, [[[0]]], {"kind": "joint"}, float("inf")])
def test_hostile_files_are_refused_or_fail_to_verify(saved, value):
    """Whatever is put anywhere: a FormatError, a VerificationError, or a result that is true all the same."""
    data = json.loads(saved.read_text())
    for path in everywhere(data):
        if path[0] == "trace" and path[-1] not in ("trace", "dual", "primal", "step", "active", 0):
            continue
        changed = json.loads(json.dumps(data))
        at = changed
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        saved.write_text(json.dumps(changed))
        try:
            problem, result = load_result(saved)
            certus.verify(problem, result)
        except (FormatError, VerificationError):
            continue


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[]", "not a certus result"),
        ("{}", "not a certus result"),
        ('{"format": "certus result", "version": 4}', "version 4"),
        ('{"format": "certus result", "version": 3}', "problem is missing"),
        (
            '{"format": "certus result", "version": 3, "problem": {"kind": "os.system", "data": {}}}',
            "problem.kind is 'os.system'",
        ),
        ('{"format": "certus result", "version": 3, "problem": {"kind": "tagging", "data": 3}}', "problem.data is 3"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_errors_say_what_is_wrong_with_a_file(tmp_path, text, message):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        load_result(path)


def test_problems_nested_without_end_are_refused(tmp_path):
    problem = {"kind": "tagging", "data": {}}
    for _ in range(400):
        problem = {"kind": "constrained", "data": {"problem": problem, "constraints": []}}
    path = tmp_path / "deep.json"
    path.write_text(json.dumps({"format": "certus result", "version": 3, "problem": problem}))
    with pytest.raises(FormatError):
        load_result(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FormatError, match="cannot be read"):
        load_result(tmp_path / "nothing.json")


def test_problems_of_ones_own_cannot_be_saved(tmp_path):
    from tests.oracles.enumerated import Enumerated

    problem = Enumerated([[1]], [0])
    with pytest.raises(InvalidInput, match="Enumerated"):
        save_result(tmp_path / "r.json", problem, decode(problem))
    assert list(tmp_path.iterdir()) == []


def test_a_better_structure_that_is_forbidden_is_none():
    problem = Tagging([[3.0, 1.0], [0.0, 2.0]], bigram=[[1.0, 0.0], [0.0, 1.0]])
    result = problem.kbest(2)[1]
    certus.verify(problem, result)
    first = int(result.certificate.better[0][0])
    forbidden = problem.with_fixed("tags", (0, first), 0)
    alone = forbidden.decode()
    rejects(forbidden, altered(alone, rank=2, better=result.certificate.better))


def test_a_rank_of_nothing_is_saved_with_a_witness_that_rounding_does_not_undo(tmp_path):
    """Items that add nothing come second, within a tolerance of 0: it is the scores rounded up that show it."""
    value = [-2.190245885701421, 1.9822779763535183, -2.4692909262421834, -9.061354445462538, 7.488834873940354]
    problem = certus.Knapsack(value, cost=[[3, 1, 0, 1, 2], [0, 1, 2, 4, 5]], budget=[3, 1])
    second = problem.kbest(2)[1]
    assert second.certificate.exact
    path = tmp_path / "second.json"
    certus.save_result(path, problem, second)
    certus.verify(*certus.load_result(path))


@pytest.mark.parametrize("claim", ["another structure", "a rank too high", "a bound too low"])
def test_a_false_claim_without_a_witness_is_refused_by_the_first_structure_above_it(claim, monkeypatch):
    """Not by the end of a search for a proof that there is none of."""
    rng = np.random.default_rng(3)
    problem = certus.Dependency(3.0 * rng.normal(size=(8, 8)), sibling=2.0 * rng.normal(size=(8, 8, 8)))
    first, second, third = problem.kbest(3)
    result = {"another structure": second, "a rank too high": third, "a bound too low": first}[claim]
    changes = {
        "another structure": {"rank": 1, "better": ()},
        "a rank too high": {"rank": 2, "better": (first.structure,)},
        "a bound too low": {"bound": third.score},
    }[claim]
    nodes = list[int]()
    child = Search._child
    monkeypatch.setattr(Search, "_child", lambda *args: nodes.append(1) or child(*args))
    bare = dataclasses.replace(result.certificate, witness=None, duals=None)
    certus.verify(problem, dataclasses.replace(result, certificate=bare))
    honest = len(nodes)
    rejects(problem, dataclasses.replace(result, certificate=dataclasses.replace(bare, **changes)))
    assert len(nodes) - honest <= 20
