"""certus verify: true results pass, altered ones fail, damaged files are refused."""

import json
import subprocess
import sys

import numpy as np
import pytest

import certus as library


@pytest.fixture
def saved(certus, tmp_path):
    path = tmp_path / "r.json"
    assert certus("constituents", "--save-result", path, "the old man the boats in the river .").code == 0
    return path


def test_a_saved_parse_is_verified(certus, saved):
    ran = certus("verify", saved)
    assert ran.code == 0
    assert "verified, optimal" in ran.out
    assert "(joint, dual)" in ran.out
    answer = json.loads(certus("verify", "--json", saved).out)
    assert answer["verified"] is True
    assert answer["exact"] is True


def test_it_is_verified_in_another_process_that_has_no_numba(saved):
    code = "import sys; sys.modules['numba'] = None; from certus.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "verify", str(saved)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "verified, optimal" in done.stdout


def alter_score(data):
    data["score"] += 1
    data["certificate"]["score"] += 1
    data["certificate"]["bound"] += 1


def alter_bound(data):
    data["certificate"]["bound"] -= 0.5


def alter_tolerance(data):
    data["certificate"]["tolerance"] = 10.0


def alter_multipliers(data):
    for node in data["certificate"]["witness"]["proof"]:
        for multipliers in node["multipliers"].values():
            multipliers["values"] = [0.0] * len(multipliers["values"])


@pytest.mark.parametrize("alter", [alter_score, alter_bound, alter_tolerance, alter_multipliers])
def test_an_altered_result_is_false(certus, saved, alter):
    data = json.loads(saved.read_text())
    alter(data)
    saved.write_text(json.dumps(data))
    ran = certus("verify", saved)
    assert ran.code == 1
    assert "FALSE" in ran.out
    assert json.loads(certus("verify", "--json", saved).out)["verified"] is False


@pytest.mark.parametrize("keep", [0, 1, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(certus, saved, keep):
    text = saved.read_text().rstrip()
    saved.write_text(text[: int(keep * len(text)) if keep < 1 else keep])
    ran = certus("verify", saved)
    assert f"{saved}:1: not valid JSON" in ran.complaint
    assert ran.out == ""


@pytest.fixture
def hyperpath(tmp_path):
    graph = library.Hypergraph(in_ptr=[0, 1, 2, 4], tail_ptr=[0, 0, 0, 2, 4], tail=[0, 1, 1, 0])
    problem = library.Hyperpath(graph, [1.0, 2.0, 3.0, 4.0])
    path = tmp_path / "h.json"
    library.save_result(path, problem, problem.decode())
    return path


def replaced(data, key, change):
    """The JSON data with ``change`` applied to every value under the key."""
    if isinstance(data, dict):
        return {k: change(v) if k == key else replaced(v, key, change) for k, v in data.items()}
    return [replaced(v, key, change) for v in data] if isinstance(data, list) else data


def test_a_hyperpath_is_verified(certus, hyperpath):
    assert "verified, optimal" in certus("verify", hyperpath).out


def test_a_cyclic_hypergraph_is_refused(certus, hyperpath):
    data = json.loads(hyperpath.read_text())
    hyperpath.write_text(json.dumps(replaced(data, "tail", lambda tail: [2, *tail[1:]])))
    ran = certus("verify", hyperpath)
    assert "edge" in ran.complaint
    assert str(hyperpath) in ran.complaint


@pytest.mark.parametrize("bad", ["NaN", "Infinity", '"x"', "null", "[]"])
def test_a_bad_weight_is_refused(certus, hyperpath, bad):
    data = replaced(json.loads(hyperpath.read_text()), "weights", lambda weights: ["BAD", *weights[1:]])
    hyperpath.write_text(json.dumps(data).replace('"BAD"', bad))
    assert str(hyperpath) in certus("verify", hyperpath).complaint


def test_nan_in_a_tagging_is_refused(certus, tmp_path):
    problem = library.Tagging(np.zeros((2, 2)))
    path = tmp_path / "t.json"
    library.save_result(path, problem, problem.decode())
    assert certus("verify", path).code == 0
    path.write_text(path.read_text().replace('"unary":[[0.0', '"unary":[[NaN', 1))
    assert "problem.data.unary[0][0] is nan" in certus("verify", path).complaint


@pytest.mark.parametrize(
    "text", ["[]", "{}", "3", '{"format": "certus result", "version": 99}', "\0\1\2", "[" * 100_000]
)
def test_other_files_are_refused(certus, tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert str(path) in certus("verify", path).complaint


def test_a_missing_file_is_refused(certus, tmp_path):
    assert "missing.json" in certus("verify", tmp_path / "missing.json").complaint


def test_several_files(certus, saved, hyperpath):
    ran = certus("verify", saved, hyperpath)
    assert (ran.code, len(ran.out.splitlines())) == (0, 2)


def test_one_means_refused_and_nothing_else(certus, saved, hyperpath, tmp_path):
    false = tmp_path / "false.json"
    data = json.loads(saved.read_text())
    data["certificate"]["bound"] -= 1.0
    false.write_text(json.dumps(data))
    missing = tmp_path / "missing.json"
    for files, code, lines in (
        ((saved, false, hyperpath), 1, 3),
        ((missing, hyperpath), 2, 1),
        ((missing, false), 1, 1),
        ((false, missing), 1, 1),
    ):
        ran = certus("verify", *files)
        assert (ran.code, len(ran.out.splitlines())) == (code, lines)
        assert ("cannot be read" in ran.err) == (missing in files)


def test_what_cannot_be_checked_is_not_refused(certus, tmp_path, monkeypatch):
    problem = library.Tagging([[0.0, 1.0], [1.0, 0.0]])
    path = tmp_path / "second.json"
    library.save_result(path, problem, problem.kbest(2)[1])

    def unsupported(problem, result):
        raise library.NotSupported("too many to recount.")

    assert certus("verify", path).code == 0
    monkeypatch.setattr("certus.cli.verify.check", unsupported)
    assert certus("verify", path).complaint == f"certus: {path}: too many to recount."
