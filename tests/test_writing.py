"""Files are written whole, through links, into devices; leftovers go, and nothing of others does."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from certus import writing
from certus.errors import FormatError
from certus.serialize import write_json
from certus.writing import discard_unfinished, write_atomically

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, pipes and permissions of POSIX")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    target, link, other = tmp_path / "there" / "target", tmp_path / "link", tmp_path / "other"
    link.symlink_to("there/target")  # relative to the folder of the link, and pointing to nothing yet
    other.symlink_to(link)
    for data in (b"one", b"two"):
        write_atomically(other, data)
        assert (link.is_symlink(), other.is_symlink(), target.read_bytes()) == (True, True, data)
    assert names(tmp_path / "there") == ["target"]


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(FormatError, match="cannot be written"):
        write_atomically(tmp_path / "a", b"")
    with pytest.raises(FormatError, match="cannot be written"):
        write_atomically(tmp_path / "a" / "file", b"")


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_json(pipe, {"a": 1})
    reader.join(10)
    assert read == [b'{"a":1}\n']
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_is_written_to():
    write_atomically(os.devnull, b"lost")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="has no /dev/stdout")
def test_dev_stdout_goes_after_what_was_printed_before(tmp_path):
    code = "from certus.writing import write_atomically\nprint('one', flush=True)\n"
    code += "write_atomically('/dev/stdout', b'two\\n')\nprint('three')"
    with open(tmp_path / "out", "a") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "one\ntwo\nthree\n"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).stdout == b"one\ntwo\nthree\n"


def test_permissions_are_those_of_a_new_file_or_of_the_file_that_was_there(tmp_path):
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        write_atomically(path, b"")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        write_atomically(path, b"")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("place", ["missing/file", "folder", "file/below"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(FormatError, match=rf"{place}: cannot be written: \w"):
        write_atomically(tmp_path / place, b"")
    assert names(tmp_path) == ["file", "folder"]


def test_names_as_long_as_they_may_be(tmp_path):
    write_atomically(tmp_path / ("x" * 255), b"data")
    assert names(tmp_path) == ["x" * 255]


def test_leftovers_of_a_killed_run_go_and_nothing_else(tmp_path):
    code = "import sys, time; from pathlib import Path; from certus.writing import _new_file\n"
    code += "_new_file(Path(sys.argv[1])); print(flush=True); time.sleep(600)"
    runs = [subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for run in runs:
            run.stdout.readline()
        mine = names(tmp_path)
        others = [
            ".certus-0123.tmp",
            ".certus-0123456789abcdef.tmp.txt",
            ".file.abcdefgh",
            "certus-0123456789abcdef.tmp",
        ]
        for name in others:
            (tmp_path / name).touch()
        (tmp_path / ".certus-00000000000000aa.tmp").symlink_to(tmp_path / others[0])
        os.mkfifo(tmp_path / ".certus-00000000000000bb.tmp")
        kept = names(tmp_path)
        writing._remove_leftovers.cache_clear()
        write_atomically(tmp_path / "file", b"")
        assert names(tmp_path) == sorted([*kept, "file"]), "both are still being written"
        runs[0].kill()
        runs[0].wait()
        writing._remove_leftovers.cache_clear()
        write_atomically(tmp_path / "file", b"")
        left = names(tmp_path)
        assert sum(name in left for name in mine) == 1
        assert set(kept) - set(mine) < set(left)
    finally:
        for run in runs:
            run.kill()
            run.wait()


def test_what_is_unfinished_when_a_process_ends_is_discarded(tmp_path):
    handle, temporary = writing._new_file(tmp_path)
    assert names(tmp_path) == [temporary.name]
    discard_unfinished()
    os.close(handle)
    writing._unfinished.discard(temporary)
    assert names(tmp_path) == []


def test_a_file_taken_for_a_leftover_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, calls = writing.fcntl.flock, []

    def stolen_once(handle, how):
        if not calls:
            (path,) = tmp_path.iterdir()
            path.unlink()
        calls.append(how)
        lock(handle, how)

    monkeypatch.setattr(writing.fcntl, "flock", stolen_once)
    write_atomically(tmp_path / "file", b"data")
    assert (tmp_path / "file").read_bytes() == b"data"
    assert names(tmp_path) == ["file"]


def test_an_error_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "fsync", full)
    with pytest.raises(FormatError, match="No space left"):
        write_atomically(path, b"new")
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["file"])
