"""Files in, files out: every engine writes the same, a run goes on where it was, and nothing is left half done."""

import gzip
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import certus
from certus.engines import ENGINES, Settings, WorkerLost, engine_of, parse
from certus.engines.ray import _answers
from certus.errors import InvalidInput
from certus.io.conllu import read_conllu
from certus.io.files import opened
from certus.io.texts import found_files, read_file, stem

TEXT = "The dog barks.\n\nRed flies some large jet. It is late.\n"


@pytest.fixture
def folder(tmp_path):
    """A folder of texts: plain, packed, below, and some that are none."""
    folder = tmp_path / "in"
    (folder / "below").mkdir(parents=True)
    (folder / "a.txt").write_text(TEXT)
    (folder / "below" / "b.txt.gz").write_bytes(gzip.compress(b"A second file.\n"))
    (folder / "below" / "c.conllu").write_text("# sent_id = c1\n1\tDogs\t_\tNOUN\tNNS\t_\t_\t_\t_\t_\n\n")
    (folder / "d.csv").write_text("no,text")
    (folder / ".hidden.txt").write_text("Not read.")
    return folder


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def outputs(folder):
    return {name: data for name, data in contents(folder).items() if not name.startswith(".certus")}


def test_files_of_folders_patterns_and_names(folder, monkeypatch):
    names = [str(name) for _, name in found_files(str(folder))]
    assert names == ["a.txt", "below/b.txt.gz", "below/c.conllu"]
    assert [str(name) for _, name in found_files(str(folder / "**" / "*.gz"))] == ["b.txt.gz"]
    assert [str(name) for _, name in found_files(str(folder / "d.csv"))] == ["d.csv"]
    assert found_files("What is this?") is None
    assert found_files(str(folder / "*.none")) is None
    assert found_files("a\0b") is None
    assert [stem(n) for n in ("x/a.txt", "a.conllu.zst", ".txt", "a.csv")] == ["x/a", "a", None, None]
    (folder / "empty").mkdir()
    with pytest.raises(InvalidInput, match="there is no file to read in this folder"):
        found_files(str(folder / "empty"))


def test_packed_files_read_as_plain_ones(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "a.txt.zst").write_bytes(zstandard.compress(TEXT.encode()))
    assert list(read_file(tmp_path / "a.txt.zst")) == list(read_file(tmp_path / "a.txt"))
    long = (TEXT * 5000).encode()  # two frames
    (tmp_path / "d.txt.zst").write_bytes(zstandard.compress(long[:7]) + zstandard.compress(long[7:]))
    with opened(tmp_path / "d.txt.zst") as stream:
        assert stream.read() == long
    (tmp_path / "b.txt.zst").write_bytes(zstandard.compress(TEXT.encode())[:-9])
    (tmp_path / "c.txt.zst").write_text(TEXT)
    for name, words in {"b": "cut short", "c": "not a zstd file"}.items():
        with pytest.raises(certus.FormatError, match=words):
            list(read_file(tmp_path / f"{name}.txt.zst"))


@pytest.mark.compiled
@pytest.mark.slow
def test_a_run_goes_on_where_it_was(folder, tmp_path):
    out = tmp_path / "out"
    first = list(parse([folder], out))
    assert [(done.words, done.sentences, done.skipped, done.error) for done in first] == [
        (14, 3, False, ""),
        (4, 1, False, ""),
        (1, 1, False, ""),
    ]
    assert set(outputs(out)) == {"a.conllu", "below/b.conllu", "below/c.conllu"}
    assert [t.form for s in read_conllu(out / "a.conllu", require_heads=True) for t in s][:3] == ["The", "dog", "barks"]
    before = contents(out)
    assert all(done.skipped and done.words for done in parse([folder], out))
    assert contents(out) == before

    def parsed_again():
        return [Path(done.source).name for done in parse([folder], out) if not done.skipped]

    (folder / "a.txt").write_text(TEXT + "More.\n")
    assert parsed_again() == ["a.txt"]
    (out / "below" / "b.conllu").unlink()
    assert parsed_again() == ["b.txt.gz"]
    (out / "below" / "c.conllu").write_text("cut")
    assert parsed_again() == ["c.conllu"]
    (out / ".certus" / "a.conllu.json").write_text("{}")
    assert parsed_again() == ["a.txt"]
    assert len([done for done in parse([folder], out, settings=Settings(lines=True)) if not done.skipped]) == 3
    assert len([done for done in parse([folder / "a.txt"], out, again=True) if not done.skipped]) == 1


@pytest.mark.compiled
@pytest.mark.slow
def test_an_error_of_one_file_leaves_the_others_alone(folder, tmp_path, monkeypatch):
    (folder / "broken.txt.gz").write_bytes(gzip.compress(TEXT.encode())[:-5])
    done = {Path(one.source).name: one for one in parse([folder], tmp_path / "out")}
    assert "cut short" in done["broken.txt.gz"].error
    assert [name for name, one in done.items() if one.error] == ["broken.txt.gz"]
    assert set(outputs(tmp_path / "out")) == {"a.conllu", "below/b.conllu", "below/c.conllu"}


def test_places_that_clash_are_refused(folder, tmp_path):
    (folder / "a.txt.gz").write_bytes(gzip.compress(b"x"))
    with pytest.raises(InvalidInput, match="would both be written to"):
        list(parse([folder], tmp_path / "out"))
    with pytest.raises(InvalidInput, match="the output would replace the input"):
        list(parse([folder / "below" / "c.conllu"], folder / "below"))
    with pytest.raises(InvalidInput, match="no such file or folder"):
        list(parse([tmp_path / "nothing"], tmp_path / "out"))
    with pytest.raises(InvalidInput, match="format is 'xml'; expected one of conllu"):
        Settings(format="xml")
    with pytest.raises(InvalidInput, match="engine"):
        engine_of("magic")


@pytest.mark.compiled
@pytest.mark.slow
def test_parquet_has_a_row_for_a_token_or_a_sentence(folder, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    list(parse([folder], tmp_path / "conllu"))
    sentences = list(read_conllu(tmp_path / "conllu" / "a.conllu"))
    for kind in ("parquet", "parquet-sentences"):
        list(parse([folder], tmp_path / kind, settings=Settings(format=kind)))
    rows = parquet.read_table(tmp_path / "parquet" / "a.parquet").to_pylist()
    wanted = [(k, t.id, t.form, t.upos, t.head, t.deprel) for k, s in enumerate(sentences, 1) for t in s]
    assert [(r["sentence"], r["token"], r["form"], r["upos"], r["head"], r["deprel"]) for r in rows] == wanted
    assert rows[0]["lemma"] is None
    rows = parquet.read_table(tmp_path / "parquet-sentences" / "a.parquet").to_pylist()
    assert [(r["form"], r["head"]) for r in rows] == [(s.words, [t.head for t in s]) for s in sentences]
    assert parquet.read_table(tmp_path / "parquet" / "below" / "c.parquet").to_pylist()[0]["sent_id"] == "c1"


class Fatal:
    """Squares numbers; a number below zero kills its worker, once each, or always if it is below -100."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def start(self, threads: int) -> None:
        self.started = threads

    def __call__(self, item: int) -> int:
        mark = Path(self.folder, f"died{item}")
        if item < -100 or (item < 0 and not mark.exists()):
            mark.touch()
            os._exit(9)
        if item == 7:
            raise ValueError("seven")
        with open(Path(self.folder, "done"), "a") as stream:
            stream.write(f"{item}\n")
        return item * item


def held(engine, folder):
    """Nothing is lost and nothing twice, whatever workers die; an error is an answer."""
    items = [3, -1, 4, 7, -200, *range(10, 20), -2, 5]
    found = dict(engine.run(Fatal(str(folder)), iter(items)))
    assert set(found) == set(items)
    assert isinstance(found.pop(7), ValueError)
    assert isinstance(found.pop(-200), WorkerLost)
    assert found == {n: n * n for n in items if n not in (7, -200)}


@pytest.mark.slow
def test_processes_that_die_lose_nothing(tmp_path):
    held(engine_of("processes", 2), tmp_path)


@pytest.fixture
def ray(monkeypatch):
    """Ray, whose workers find the tests too."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")  # on a busy machine
    ray = pytest.importorskip("ray")
    yield ray
    ray.shutdown()


class Lossy:
    """What is asked of Ray, with one actor: a fatal item, below zero, takes along all that is under way beside it."""

    class exceptions:
        class RayActorError(Exception):
            pass

    def __init__(self):
        self.do, self.under_way, self.lost = self, {}, set()

    def remote(self, item):
        self.under_way[done := object()] = item
        return done

    def wait(self, running, num_returns):
        return running[:1], running[1:]

    def get(self, done):
        if any(item < 0 for item in self.under_way.values()):
            self.lost |= self.under_way.keys()
        item = self.under_way.pop(done)
        if done in self.lost:
            raise self.exceptions.RayActorError
        return item * item


def test_innocent_items_beside_a_fatal_one_are_done_by_ray():
    ray = Lossy()
    found = dict(_answers(ray, [ray], [-200, 10, 11, 12]))
    assert isinstance(found.pop(-200), WorkerLost)
    assert found == {10: 100, 11: 121, 12: 144}


@pytest.mark.ray
def test_ray_workers_that_die_lose_nothing(ray, tmp_path):
    held(engine_of("ray", 2), tmp_path)


@pytest.mark.compiled
@pytest.mark.parametrize(
    "engine",
    [pytest.param(name, marks=pytest.mark.ray if name == "ray" else pytest.mark.slow) for name in ENGINES],
)
def test_every_engine_writes_and_decodes_the_same(engine, folder, tmp_path):
    if engine == "ray":
        pytest.importorskip("ray")
    list(parse([folder], tmp_path / "plain"))
    assert {done.error for done in parse([folder], tmp_path / engine, engine=engine, workers=2)} == {""}
    assert outputs(tmp_path / engine) == outputs(tmp_path / "plain")
    rng = np.random.default_rng(1)
    problems = [certus.Tagging(rng.normal(size=(n, 3))) for n in (4, 1, 3)]
    problems.insert(1, certus.Tagging([[-np.inf, -np.inf]]))
    found = list(certus.decode_all(problems, engine=engine, workers=2, errors="yield"))
    assert [isinstance(r, certus.Infeasible) for r in found] == [False, True, False, False]
    assert [r.score for r in found if isinstance(r, certus.Result)] == [
        p.decode().score for p in problems if p is not problems[1]
    ]
    with pytest.raises(certus.Infeasible):
        list(certus.decode_all(problems, engine=engine, workers=2))


def processes():
    """The processes of Ray's actors of ours."""
    named = ((int(path.name), path / "cmdline") for path in Path("/proc").iterdir() if path.name.isdecimal())
    return [pid for pid, path in named if path.exists() and path.read_bytes().startswith(b"ray::_Actor")]


@pytest.mark.ray
@pytest.mark.compiled
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_a_ray_worker_that_is_killed_in_the_middle_loses_no_file(ray, tmp_path):
    """Two workers, twelve files; one worker is killed when the first file is there."""
    source = tmp_path / "in"
    source.mkdir()
    for k in range(12):
        (source / f"{k:02d}.txt").write_text(f"File {k} of the corpus. " * 200)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    run = parse([source], tmp_path / "out", engine="ray", workers=2)
    done = [next(run)]
    os.kill(next(pid for pid in processes() if pid != os.getpid()), signal.SIGKILL)
    done += list(run)
    assert sorted(Path(one.source).name for one in done) == [f"{k:02d}.txt" for k in range(12)]
    assert not any(one.error for one in done)
    list(parse([source], tmp_path / "plain"))
    assert outputs(tmp_path / "out") == outputs(tmp_path / "plain")
