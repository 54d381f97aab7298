"""Compiled kernels that come with the package: used where they fit, and in no other case."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import certus.kernels
from certus.kernels import cache, compiling

KERNEL = """
from certus.kernels.compiling import njit

@njit(cache=True)
def twice(x):
    return 2 * x
"""
USE = """
import sys
from certus.kernels import twice
print(twice.twice(21), twice.twice.stats.cache_hits)
"""
PACK = """
import sys
from pathlib import Path
from certus.kernels import cache
package = Path(cache.__file__).parent
print(len(cache.pack(Path(sys.argv[1]), package, package / "compiled")))
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not cache.KNOWN or not cache.machine()["target"], reason="no kernels are shipped for this"),
]


def run(folder, code, *arguments, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "CERTUS_"))}
    environment |= {"PYTHONPATH": str(folder)} | variables
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.split(), done.stderr


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A package with one kernel, which was compiled for the common target and packed; its own cache is empty."""
    folder = tmp_path_factory.mktemp("package")
    kernels = folder / "certus" / "kernels"
    kernels.mkdir(parents=True)
    (folder / "certus" / "__init__.py").touch()
    for module in (certus.kernels, cache, compiling):
        shutil.copy(module.__file__, kernels)
    shutil.copy(Path(cache.__file__).with_name("quick_typing.py"), kernels)
    (kernels / "twice.py").write_text(KERNEL)
    target = {"NUMBA_CPU_NAME": cache.machine()["target"], "NUMBA_CPU_FEATURES": ""}
    run(folder, USE, **target, NUMBA_CACHE_DIR=str(folder / "kept"))
    assert run(folder, PACK, folder / "kept" / "kernels")[0] == ["1"]
    return folder


@pytest.fixture
def copied(package, tmp_path):
    """A copy of it, to be damaged, and the folder of the compiled kernels in it."""
    shutil.copytree(package / "certus", tmp_path / "certus", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path, tmp_path / "certus" / "kernels" / "compiled"


def compiles(folder):
    """Whether the kernel is compiled when it is first used; the answer is right in any case."""
    (answer, *_), err = run(folder, USE, NUMBA_CACHE_DIR=str(folder / "own"))
    assert answer == "42"
    return "compiling" in err


def test_what_came_with_the_package_is_not_compiled_again(copied):
    assert not compiles(copied[0])


@pytest.mark.parametrize("damage", [b"", b"cos\nsystem\n(S'exit 3'\ntR."])
def test_a_damaged_file_is_never_unpickled(copied, damage):
    (file,) = copied[1].glob("*/*")
    file.write_bytes(damage or file.read_bytes()[:-1])
    assert compiles(copied[0])


def test_other_sources_are_compiled(copied):
    source = copied[1].parent / "twice.py"
    before = cache.folder_of(source)
    assert (copied[1] / before).is_dir()
    source.write_text(source.read_text() + "\n# changed\n")
    cache.sources.cache_clear()
    cache.folder_of.cache_clear()
    assert not (copied[1] / cache.folder_of(source)).exists()


@pytest.fixture
def files(copied, monkeypatch):
    """What this process would take from the package: the files of its manifest; and where that stands."""
    monkeypatch.setattr(cache, "SHIPPED", copied[1])
    for name, usual in {"BOUNDSCHECK": None, "CPU_NAME": None, "OPT": 3}.items():
        monkeypatch.setattr(numba.config, name, usual)

    def found():
        cache.manifest.cache_clear()
        return cache.manifest()

    assert len(found()) == 1
    yield found, copied[1] / cache.MANIFEST
    cache.manifest.cache_clear()


@pytest.mark.parametrize("what", ["python", "numba", "llvmlite", "triple", "target"])
def test_another_machine_or_version_takes_nothing(files, what):
    found, manifest = files
    data = json.loads(manifest.read_text())
    data["machine"][what] = "other"
    manifest.write_text(json.dumps(data))
    assert found() == {}


def test_an_older_processor_takes_nothing(files, monkeypatch):
    have = dict(cache.llvm.get_host_cpu_features())
    for feature in cache.TARGETS.get("x86_64")[1]:
        monkeypatch.setattr(cache.llvm, "get_host_cpu_features", lambda feature=feature: have | {feature: False})
        assert found_on_x86(files[0])


def found_on_x86(found):
    return found() == {} or not cache.machine()["triple"].startswith("x86_64")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"machine": 1, "files": []}', "null", "\x00"])
def test_a_damaged_manifest_is_none(files, text):
    files[1].write_text(text)
    assert files[0]() == {}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system does not say who can write")
@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_what_others_can_write_is_not_read(files, mode):
    found, manifest = files
    manifest.parent.chmod(mode)
    assert found() == {}
    manifest.parent.chmod(0o755)
    assert found()
    manifest.chmod(mode)
    assert found() == {}


@pytest.mark.parametrize(("name", "value"), [("BOUNDSCHECK", 1), ("OPT", 1), ("CPU_NAME", "generic")])
def test_other_ways_of_compiling_take_nothing(files, monkeypatch, name, value):
    monkeypatch.setattr(numba.config, name, value)
    assert files[0]() == {}


def test_the_package_can_be_left_out(files, monkeypatch):
    monkeypatch.setenv("CERTUS_COMPILED", "0")
    assert files[0]() == {}


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system does not say who can write")
def test_kernels_are_not_kept_where_others_can_write(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert cache.user_folder() is not None
    for place in tmp_path.iterdir():
        place.chmod(0o777)
    assert cache.user_folder() is None
