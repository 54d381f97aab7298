"""Cuts: what is rounded down holds for every structure; what the loop finds is proved, and what is forged refused."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certus
from certus import proof_file
from certus.certificates import standalone
from certus.constraints import at_most_one, budget
from certus.errors import InvalidInput, VerificationError
from certus.relax.cuts import Separation, rounded, with_cuts
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import Cut, Leaf, Tighter, from_json, to_json
from certus.relax.system import Relaxation


def odd_cover(n):
    """Every edge of a cycle of n vertices is to be covered: halves all around satisfy the linear program."""
    edges = [[v, (v + 1) % n] for v in range(n)]
    return certus.SetCover([1.0] * n, [[k for k, e in enumerate(edges) if v in e] for v in range(n)], n)


def changed(result, change):
    """The result with the first cut of its proof changed by a function."""
    proof = result.certificate.duals
    first, *others = proof.cuts
    forged = replace(proof, cuts=(change(first), *others))
    return replace(result, certificate=replace(result.certificate, duals=forged, witness=forged))


@given(st.integers(0, 10_000))
def test_a_cut_holds_for_every_structure(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    if rng.random() < 0.5:
        problem = certus.Knapsack(np.ones(n), rng.integers(0, 9, (2, n)) * rng.choice([1.0, 0.3]), [7, 9.5])
    else:
        problem = certus.SetCover(np.ones(n), [rng.choice(4, rng.integers(1, 4), replace=False) for _ in range(n)], 4)
    r = Relaxation.of(problem)
    rows = tuple((row, int(rng.integers(0, 5))) for row in range(r.n_rows))
    cells = tuple((cell, int(rng.integers(0, 3))) for cell in range(r.n_cells))
    coefficients, right = rounded(r, Cut(int(rng.integers(1, 9)), rows, cells))
    for items in problem.all_structures():
        assert sum(coefficients.get(k, 0) for k in items) <= right


@pytest.mark.parametrize("n", [3, 5, 9])
def test_odd_cycles_are_proved_without_branching(n):
    problem = odd_cover(n)
    result = problem.decode()
    assert result.score == -(n + 1) // 2
    assert result.certificate.exact
    assert result.info["nodes"] == 1
    assert result.info["cuts"] >= 1
    assert result.certificate.kind == "dual"
    assert not certus.verify(problem, result).trusts


def test_with_cuts_against_enumeration():
    rng, cut, nodes = np.random.default_rng(3), 0, 0
    for _ in range(40):
        n = int(rng.integers(2, 9))
        if rng.random() < 0.5:
            problem = certus.Knapsack(rng.integers(0, 9, n), rng.integers(1, 9, (2, n)), rng.integers(4, 16, 2))
        else:
            edges = [rng.choice(n, 2, replace=False).tolist() for _ in range(int(rng.integers(1, 12)))]
            sets = [[k for k, e in enumerate(edges) if v in e] for v in range(n)]
            problem = certus.SetCover(rng.integers(0, 5, n), sets, len(edges))
        best = max(problem.score(y) for y in problem.all_structures())
        result = problem.decode()
        assert result.score == best
        assert result.certificate.exact
        certus.verify(problem, result)
        cut += bool(result.info.get("cuts"))
        nodes += result.info["nodes"]
    assert cut > 5
    assert nodes > 40


def test_cuts_of_constraints_and_ranks():
    graph = certus.FactorGraph([[0, 3]] * 5)
    pairs = [at_most_one("labels", [(v, 1), ((v + 1) % 5, 1)]).named(f"edge {v}") for v in range(5)]
    problem = graph.subject_to(*pairs)
    result = problem.decode()
    assert result.score == 6.0
    assert result.info["cuts"] >= 1
    certus.verify(problem, result)
    ranks = problem.kbest(3)
    for found in ranks:
        certus.verify(problem, found)
    scores = sorted((problem.score(y) for y in problem.all_structures()), reverse=True)
    assert [found.score for found in ranks] == scores[:3]


def test_covers_of_a_budget_cut_off_what_is_fractional():
    problem = certus.Knapsack([5, 5, 5], [3, 3, 3], 5)
    r = Relaxation.of(problem)
    (cut, *_) = Separation(r, np.array([1.0, 2 / 3, 0.0]), lambda cell: True).cuts(5)
    assert rounded(r, cut) == ({0: 1, 1: 1, 2: 1}, 1)
    assert with_cuts(r, (cut,)).rhs.tolist() == [5.0, 1.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: replace(c, denominator=1),
        lambda c: replace(c, denominator=0),
        lambda c: replace(c, denominator=3),
        lambda c: replace(c, rows=c.rows[1:]),
        lambda c: replace(c, rows=((99, 1), *c.rows)),
        lambda c: replace(c, rows=((-1, 1), *c.rows)),
        lambda c: replace(c, rows=tuple((r, -k) for r, k in c.rows)),
        lambda c: replace(c, rows=(c.rows[0], *c.rows)),
        lambda c: replace(c, cells=((0, -1), *c.cells)),
        lambda c: replace(c, cells=((99, 1), *c.cells)),
        lambda c: replace(c, cells=((0, 1), *c.cells)),
    ],
)
def test_forged_cuts_are_refused(change):
    problem = odd_cover(5)
    result = problem.decode()
    forged = changed(result, change)
    with pytest.raises(VerificationError):
        certus.verify(problem, forged)


def test_what_is_used_more_than_once_is_not_rounded_up():
    graph, _, _ = certus.Hypergraph.from_edges([0, 1], [0, 0, 2], [0, 0])
    problem = certus.Hyperpath(graph, [1.0, 0.0]).subject_to(budget("edges", [1.0, 0.0], 3.0))
    result = problem.decode()
    cut = Tighter((), (Cut(2, ((0, 1),), ((0, 1),)),), result.certificate.duals)
    forged = replace(result, certificate=replace(result.certificate, duals=cut, witness=cut))
    with pytest.raises(VerificationError, match="once at most"):
        certus.verify(problem, forged)


def test_saved_results_with_cuts_are_verified_elsewhere(tmp_path):
    problem = odd_cover(7)
    result = problem.decode()
    path = tmp_path / "result.json"
    certus.save_result(path, problem, result)
    again, loaded = certus.load_result(path)
    assert loaded.certificate.witness.cuts == from_json(to_json(result.certificate.duals)).cuts
    certus.verify(again, loaded)
    code = f"import certus; certus.verify(*certus.load_result({str(path)!r}))"
    subprocess.run([sys.executable, "-c", code], check=True)
    damaged = json.loads(path.read_text())
    damaged["certificate"]["witness"]["proof"][0]["cuts"][0]["denominator"] = 0
    path.write_text(json.dumps(damaged))
    with pytest.raises(certus.errors.FormatError):
        certus.load_result(path)


def test_the_standalone_checker_derives_cuts_again():
    problem = odd_cover(5)
    data = json.loads(json.dumps(proof_file.proof_to_json(problem, problem.decode())))
    assert data["version"] == 2
    assert "optimal" in standalone.check(data)

    def refused(change):
        forged = json.loads(json.dumps(data))
        change(forged)
        with pytest.raises((standalone.Refused, *standalone.MALFORMED)):
            standalone.check(forged)

    row = data["cuts"][0]["row"]
    refused(lambda d: d["cuts"][0].update(denominator=1))
    refused(lambda d: d["cuts"][0].update(rows=d["cuts"][0]["rows"][1:]))
    refused(lambda d: d["cuts"][0].update(rows=[[row, 1]]))
    refused(lambda d: d["cuts"][0].update(parts=[[0, 0.5]]))
    refused(lambda d: d["rows"]["rhs"].__setitem__(row, d["rows"]["rhs"][row] - 1))
    refused(lambda d: d["rows"]["equality"].__setitem__(row, True))
    refused(lambda d: d.update(version=1))
    first = data["rows"]["ptr"][row]
    refused(lambda d: d["rows"]["coefficient"].__setitem__(first, d["rows"]["coefficient"][first] + 1))


def test_a_proof_with_pieces_of_what_has_none_is_refused():
    problem = odd_cover(5)
    result = problem.decode()
    forged = replace(result.certificate.duals, pieces=((0,),))
    with pytest.raises(VerificationError, match="not made of any"):
        certus.verify(problem, replace(result, certificate=replace(result.certificate, duals=forged, witness=forged)))
    with pytest.raises(InvalidInput):
        from_json([{"node": "leaf", "multipliers": {}}, {"node": "tighter", "pieces": [], "cuts": [], "rest": 0}])


def test_no_cuts_prove_what_is_false_to_either_checker():
    rng, held = np.random.default_rng(7), 0
    for _ in range(80):
        n = int(rng.integers(2, 6))
        cost = rng.integers(0, 9, (2, n)) * rng.choice([1.0, 0.1])
        problem = certus.Knapsack(rng.integers(0, 9, n), cost, rng.integers(2, 14, 2))
        cuts = tuple(
            Cut(int(rng.integers(1, 8)), *(tuple((k, int(rng.integers(0, 4))) for k in range(m)) for m in (2, n)))
            for _ in range(2)
        )
        named = {"rows": -rng.integers(0, 4, 2).astype(float), "cuts": -rng.integers(0, 5, 2).astype(float)}
        proof, result = Tighter((), cuts, Leaf(named)), problem.decode()
        bound = RelaxedForm.of(Relaxation.of(problem)).bound(proof, -np.inf)
        assert bound >= result.score
        claimed = replace(result.certificate, kind="dual", bound=float(np.ceil(bound)), duals=proof, witness=proof)
        certus.verify(problem, replace(result, certificate=claimed))
        standalone.check(
            json.loads(json.dumps(proof_file.proof_to_json(problem, replace(result, certificate=claimed))))
        )
        if bound > result.score + 1:
            false = replace(claimed, bound=result.score)
            with pytest.raises(VerificationError):
                certus.verify(problem, replace(result, certificate=false))
            held += 1
    assert held > 20
