"""certus bench: suites are found, settings read, contestants timed in turns, two versions compared."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from certus.bench import Case, Row, Skipped, runner
from certus.bench.cases import data_folder, evenly, exponent
from certus.cli import main
from certus.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[2]


def test_every_suite_says_what_it_shows_and_has_settings_with_defaults():
    for name in runner.names():
        assert runner.title(name).endswith((".", ":"))
        assert runner.settings_of(name, {}) == {}


def test_settings_are_read_as_their_defaults_are():
    assert runner.settings_of("arborescence", {"sentences": "3", "sizes": "5,7"}) == {"sentences": 3, "sizes": (5, 7)}
    with pytest.raises(InvalidInput, match="no setting 'words'; it has sentences, sizes"):
        runner.settings_of("arborescence", {"words": "3"})
    with pytest.raises(InvalidInput, match="expected something like 64"):
        runner.settings_of("arborescence", {"sentences": "many"})
    with pytest.raises(InvalidInput, match="no suite 'speed'"):
        runner.suite("speed")


def test_contestants_take_turns_and_answers_are_compared(monkeypatch):
    calls = []

    def run():
        yield Case("a", lambda: calls.append("ours") or 1, {"peer": lambda: calls.append("peer") or 1})
        yield Row("b", {"share": 0.5})
        yield Skipped("c is not installed")

    monkeypatch.setattr(runner, "suite", lambda name: SimpleNamespace(run=run))
    monkeypatch.setattr(runner, "TURN", 0.0)
    timed, row, skipped = runner.measured("any", {}, rounds=3)
    assert calls == ["ours", "peer"] * 4
    assert set(timed.cells) == {"ours, us a sentence", "peer, us a sentence", "peer / ours"}
    assert runner.as_data(row) == {"name": "b", "share": 0.5}
    assert list(runner.as_lines([row, skipped]))[1:] == [f"{'b':<44}        0.5", "left out: c is not installed"]


def test_short_calls_run_again_in_their_turn(monkeypatch):
    ticks, calls = iter(range(10**6)), []
    case = Case("a", lambda: calls.append("ours") or 1, {"peer": lambda: calls.append("peer") or 1})
    monkeypatch.setattr(runner, "suite", lambda name: SimpleNamespace(run=lambda: [case]))
    monkeypatch.setattr(runner, "TURN", 4.0)
    monkeypatch.setitem(runner.CLOCKS, "cpu", lambda: next(ticks))  # each look takes a second
    list(runner.measured("any", {}, rounds=1))
    assert calls == ["ours", "peer"] + ["ours"] * 2 + ["peer"] * 2


def test_a_peer_that_answers_otherwise_is_an_error(monkeypatch):
    def agrees(ours, name, theirs):
        assert ours == theirs, name

    case = Case("a", lambda: 1, {"peer": lambda: 2}, agrees=agrees)
    monkeypatch.setattr(runner, "suite", lambda name: SimpleNamespace(run=lambda: [case]))
    with pytest.raises(AssertionError, match="peer"):
        list(runner.measured("any", {}))


def test_small_helpers():
    assert exponent({10: 1.0, 100: 1000.0}) == pytest.approx(3.0)
    assert evenly(range(10), 3) == [0, 3, 6]
    with pytest.raises(InvalidInput, match="does not exist"):
        data_folder("nowhere", "ud")


@pytest.mark.slow
def test_a_suite_from_the_command_line(capsys):
    assert main(["bench", "hypergraph", "--set", "edges=2000", "--rounds", "1", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["suite"] for row in rows} == {"hypergraph"}
    assert all(np.isfinite(row["numpy pass / ours"]) for row in rows[:-1])
    assert main(["bench"]) == 0
    assert "hypergraph" in capsys.readouterr().out
    assert main(["bench", "hypergraph", "--set", "edges"]) == 2
    assert "expected NAME=VALUE" in capsys.readouterr().err


@pytest.mark.slow
def test_two_versions_of_certus_in_turns():
    rows = list(runner.compared("tagging", {"tags": 3, "n": 4, "problems": 2}, ROOT, rounds=1))
    assert len(rows) == 15
    assert all(row.cells["same"] == "yes" for row in rows)
    with pytest.raises(InvalidInput, match="holds no certus"):
        next(runner.compared("tagging", {}, ROOT / "tests"))


def test_answers_that_differ_by_rounding_are_told_from_others():
    here = {"tree": [0, 1], "score": [1.5, float("nan")]}
    assert runner._alike(here, {"tree": [0, 1], "score": [1.5 + 1e-12, float("nan")]}) == "rounded"
    assert runner._alike(here, {"tree": [1, 0], "score": [1.5, float("nan")]}) == "no"
    assert runner._alike([1, 2], [1, 2]) == "yes"
    assert runner._alike([1], [1, 2]) == "no"
