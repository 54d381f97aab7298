"""A slice of the fuzzing that ``make fuzz`` does without end, the same every time; and what it once found."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import cases
from tests.fuzz.cases import KINDS
from tests.fuzz.claims import about
from tests.fuzz.problems import check
from tests.fuzz.runner import Finding, Run, shrunk
from tests.fuzz.targets import target
from tests.fuzz.workers import spread
from tests.oracles.exact import Exact

SAVED = sorted((Path(__file__).parent / "saved").glob("*.json"))
SEED = 15
# Cases of each target: about thirty seconds together once kernels are compiled.
SLICE = {
    "problems": 300,
    "answers": 40,
    "strings": 120,
    "batches": 40,
    "sums": 100,
    "tamper": 60,
    "files:forest json": 200,
    "files:tagger": 100,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SLICE)
def test_slice(name):
    run = Run(target(name), SEED).go(count=SLICE[name])
    assert not run.failed, run.report()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("path", SAVED, ids=[path.stem for path in SAVED])
def test_what_once_failed_holds(path):
    data = json.loads(path.read_text())
    assert not target(data["target"]).replay(data["case"])


@pytest.mark.parametrize("kind", KINDS)
def test_cases_of_every_kind_survive_json(kind):
    case = cases.drawn(np.random.default_rng(3), kind, "masked")
    again = cases.from_json(json.loads(json.dumps(cases.to_json(case))))
    first, second = (Exact(cases.listed(c, cases.made(c))) for c in (case, again))
    assert first.value == second.value
    assert list(first.place) == list(second.place)


def test_a_false_certificate_is_found():
    case = cases.drawn(np.random.default_rng(0), "tagging", "whole")
    case = {**case, "unary": np.array([[0.0, 5.0], [1.0, 0.0]])}
    case.pop("bigram", None)
    case.pop("trigram", None)
    problem = cases.made(case)
    table = Exact(cases.listed(case, problem))
    result = problem.decode()
    assert not list(about(table, result))
    assert not check(case)
    worst = table.order[-1]
    score = problem.score(table.structures[worst])
    forged = replace(
        result,
        structure=table.structures[worst],
        score=score,
        certificate=replace(result.certificate, score=score, bound=score),
    )
    assert {claim.claim for claim in about(table, forged)} == {"a false certificate", "a bound below the optimum"}


def test_failures_are_cut_down():
    case = cases.drawn(np.random.default_rng(1), "dependency", "real")
    cell = tuple(np.argwhere(np.abs(case["scores"]["arc"]) > 1.0)[0])
    smaller = shrunk(case, lambda c: abs(c["scores"]["arc"][cell]) > 1.0)
    assert sum(np.count_nonzero(array) for _, array in cases.arrays(smaller)) == 1
    assert sum(np.count_nonzero(array) for _, array in cases.arrays(case)) > 1


def test_failures_are_saved_and_the_run_goes_on(tmp_path):
    class Odd:
        name = "odd"

        def one(self, rng, tally):
            tally["tried"] += 1
            if tally["tried"] % 2:
                yield Finding("kind/of", "a claim", "that\nfails", lambda: {"number": tally["tried"]})

    run = Run(Odd(), 4, tmp_path).go(count=9)
    assert run.report()["failed"] == {"kind/of: a claim": 5}
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"odd-kind-of-a-claim-4-{k}.json" for k in (0, 2, 4)]
    saved = json.loads((tmp_path / "odd-kind-of-a-claim-4-2.json").read_text())
    assert (saved["target"], saved["detail"], saved["case"]) == ("odd", "that fails", {"number": 3})


@pytest.mark.slow
def test_workers_try_the_same_cases():
    alone = Run(target("problems:hyperpath"), 2).go(count=21, first=5).report()
    spread_out = spread("problems:hyperpath", 2, workers=2, count=21, first=5).report()
    for part in ("target", "seed", "cases", "counts", "failed"):
        assert spread_out[part] == alone[part]
    assert spread_out["slowest"].keys() == alone["slowest"].keys()


def test_the_same_seed_draws_the_same_cases():
    first, second = (Run(target("problems:hyperpath"), 2).go(count=k) for k in (20, 20))
    assert first.tally == second.tally
    assert Run(target("problems:hyperpath"), 3).go(count=20).tally != first.tally
