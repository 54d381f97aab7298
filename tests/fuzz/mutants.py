"""Damaged files of every kind that certus reads, each kind in a process of its own with little memory.

A file is accepted, or refused with an error of certus. A crash, any other exception, a hang, or a need for more than
2 GB is a failure.
"""

import base64
import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.claims import Claim
from tests.fuzz.files import READERS, Reader, verdict
from tests.fuzz.mutate import mutant
from tests.fuzz.runner import Finding, Tally
from tests.fuzz.scores import Rng

MEMORY = 2 << 30  # bytes of a process
PATIENCE = 60.0  # seconds for one file
START = 600.0  # seconds for a process to read the files that are right; kernels may have to be compiled


class Mutants:
    """One case is one file."""

    name = "files"

    def __init__(self, readers: tuple[str, ...] = ()) -> None:
        self.readers = [reader for reader in READERS if not readers or reader.name in readers]
        self.servants: dict[str, Servant] = {}

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        reader = self.readers[int(rng.integers(len(self.readers)))]
        servant = self.servant(reader)
        data = mutant(servant.seeds[int(rng.integers(len(servant.seeds)))], reader.mutators, rng)
        started = time.perf_counter()
        said = servant.read(data)
        tally[f"{reader.name}: {said.partition(':')[0]}"] += 1
        tally.slowest(reader.name, time.perf_counter() - started)
        for claim in judged(said):
            yield Finding(reader.name, claim.claim, claim.detail, partial(kept, reader, data))

    def replay(self, data: Any) -> list[Claim]:
        reader = next(r for r in READERS if r.name == data["reader"])
        return judged(self.servant(reader).read(base64.b64decode(data["file"])))

    def servant(self, reader: Reader) -> "Servant":
        if reader.name not in self.servants:
            self.servants[reader.name] = Servant(reader)
        return self.servants[reader.name]


def kept(reader: Reader, data: bytes) -> dict[str, str]:
    return {"reader": reader.name, "file": base64.b64encode(data).decode()}


def judged(said: str) -> list[Claim]:
    """What is wrong with what came of a file."""
    sort, _, detail = said.partition(": ")
    return [Claim(sort, detail)] if sort.startswith(("bare", "a crash", "a hang")) else []


class Servant:
    """A process that reads files of one kind; it is started again when it dies."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.seeds = reader, reader.seeds()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / f"file{reader.suffix}"
        for k, data in enumerate(self.seeds):
            (Path(self.folder.name) / f"seed{k:03}{reader.suffix}").write_bytes(data)
        self.process: subprocess.Popen[bytes] | None = None
        self.errors = Path(self.folder.name) / "stderr"

    def read(self, data: bytes) -> str:
        """What comes of a file."""
        self.path.write_bytes(data)
        if self.process is None:
            with self.errors.open("wb") as errors:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "tests.fuzz.mutants", self.reader.name, self.folder.name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                )
            ready = self.answer(START)
            assert ready == "ready", f"the files that are right are not read: {ready}"
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return self.answer(PATIENCE)

    def answer(self, seconds: float) -> str:
        """The next line, or how the process ended."""
        process = self.process
        assert process is not None
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], seconds)
        line = process.stdout.readline() if readable else b""
        if line:
            return str(json.loads(line))
        self.process = None
        if not readable:
            process.kill()
            process.wait()
            return f"a hang: no answer in {seconds:.0f} s"
        code = process.wait()
        return f"a crash: exit code {code} {self.errors.read_bytes()[-1500:].decode(errors='replace')}"


def serve(name: str, folder: Path) -> None:
    """Read the file as often as a line comes in; say what came of it."""
    reader = next(r for r in READERS if r.name == name)
    for path in sorted(folder.glob("seed*")):  # kernels are loaded, or compiled, before memory is counted
        found = verdict(reader, path)
        assert found == "accepted", (name, found)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    say("ready")
    for _ in sys.stdin:
        try:
            said = verdict(reader, folder / f"file{reader.suffix}")
        except Exception as error:
            said = f"bare {type(error).__name__}: {error} {''.join(traceback.format_tb(error.__traceback__)[-3:])}"
        say(said)


def say(text: str) -> None:
    print(json.dumps(text), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]))
