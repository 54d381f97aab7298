"""Mutated files read in processes of their own, so that a crash, a hang or a hunger for memory is seen and named.

python -m tests.fuzz.in_processes 20000 --seed 1 --failures FOLDER [--only NAME ...]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.files import READERS, Reader, verdict
from tests.fuzz.mutate import mutant

MEMORY = 2 << 30  # bytes of a process
PATIENCE = 60.0  # seconds for one file


def drawn(reader: Reader, seeds: list[bytes], seed: int, number: int) -> bytes:
    """Mutant ``number``."""
    rng = np.random.default_rng([seed, number, *reader.name.encode()])
    return mutant(seeds[int(rng.integers(len(seeds)))], reader.mutators, rng)


def worker(name: str, folder: Path, seed: int, first: int, count: int) -> None:
    """Read mutants; one line of JSON for each that was read, after one that says its number."""
    reader = next(r for r in READERS if r.name == name)
    seeds = [path.read_bytes() for path in sorted((folder / "seeds").iterdir())]
    path = folder / f"mutant-{os.getpid()}{reader.suffix}"
    for data in seeds:  # kernels are loaded, or compiled, before memory is counted
        path.write_bytes(data)
        found = verdict(reader, path)
        assert found == "accepted", (name, found)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(first, first + count):
        print(json.dumps({"number": number}), flush=True)
        path.write_bytes(drawn(reader, seeds, seed, number))
        start = time.perf_counter()
        try:
            said = verdict(reader, path)
        except Exception as error:
            said = (
                f"TRACEBACK {type(error).__name__}: {error}\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"
            )
        print(json.dumps({"said": said, "seconds": time.perf_counter() - start}), flush=True)


def run(reader: Reader, folder: Path, seed: int, count: int) -> tuple[Counter[str], list[tuple[int, str]], float]:
    """Counts of verdicts, what went wrong with its number, and the longest time."""
    (folder / "seeds").mkdir(parents=True, exist_ok=True)
    for old in (folder / "seeds").iterdir():
        old.unlink()
    for k, data in enumerate(reader.seeds()):
        (folder / "seeds" / f"{k:03}").write_bytes(data)
    tally: Counter[str] = Counter()
    wrong: list[tuple[int, str]] = []
    slowest, done = 0.0, 0
    while done < count:
        arguments = ["--worker", reader.name, str(folder), str(seed), str(done), str(count - done)]
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.in_processes", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert process.stdout is not None
        number, reached = done, done
        timer = _Timer(process)
        for line in process.stdout:
            timer.reset()
            event: dict[str, Any] = json.loads(line)
            if "number" in event:
                number = event["number"]
                continue
            reached = number + 1
            slowest = max(slowest, event["seconds"])
            said = event["said"]
            tally[said.partition(":")[0].partition(" ")[0]] += 1
            if said.startswith("TRACEBACK"):
                wrong.append((number, said))
        process.wait()
        timer.stop()
        if reached < count:
            assert process.stderr is not None
            end = "HANG" if timer.fired else f"CRASH {process.returncode}"
            wrong.append((number, f"{end} {process.stderr.read()[-1500:]}"))
            tally[end.split()[0]] += 1
            if reached == done and number == done and tally["CRASH"] > 200:
                break
        done = number + 1
    return tally, wrong, slowest


class _Timer:
    """Ends a process that is silent for too long."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        import threading

        self.process, self.fired, self.last, self.ended = process, False, time.monotonic() + 300, False
        threading.Thread(target=self._watch, daemon=True).start()

    def reset(self) -> None:
        self.last = time.monotonic()

    def stop(self) -> None:
        self.ended = True

    def _watch(self) -> None:
        while not self.ended and self.process.poll() is None:
            if time.monotonic() - self.last > PATIENCE:
                self.fired = True
                self.process.kill()
                return
            time.sleep(0.5)


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        name, folder, *numbers = sys.argv[2:]
        worker(name, Path(folder), *map(int, numbers))
        return 0
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("count", type=int)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--failures", type=Path, required=True)
    options.add_argument("--only", nargs="*")
    given = options.parse_args()
    chosen = [r for r in READERS if not given.only or r.name in given.only]
    failed = 0
    for reader in chosen:
        folder = given.failures / reader.name.replace(" ", "-")
        start = time.perf_counter()
        tally, wrong, slowest = run(reader, folder, given.seed, given.count)
        spent = time.perf_counter() - start
        print(f"{reader.name}: {dict(tally)}, slowest {slowest:.2f} s, {spent:.0f} s", flush=True)
        failed += len(wrong)
        seeds = [path.read_bytes() for path in sorted((folder / "seeds").iterdir())]
        sorts: Counter[str] = Counter()
        for number, said in wrong:
            sort = said[:60] + said[-200:]
            sorts[sort] += 1
            if sorts[sort] == 1:
                (folder / f"{given.seed}-{number}{reader.suffix}").write_bytes(drawn(reader, seeds, given.seed, number))
                print(f"  {number}: {said}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
