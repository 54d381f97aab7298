"""Readers written in Python, with files that coverage leads to: atheris keeps and changes those that reach new code.

Needs the extra "fuzz". One case is one reader for a few seconds, in a process of its own, since atheris never returns.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.claims import Claim
from tests.fuzz.files import READERS
from tests.fuzz.mutants import Mutants, kept
from tests.fuzz.runner import Finding, Tally
from tests.fuzz.scores import Rng

SECONDS = 10  # for one case
WIDEST = 4096  # bytes of a file
GUIDED = (
    "conllu", "brackets", "phrase table", "rules", "arpa", "forest text", "hypergraph text", "grammar text",
    "head rules", "clusters", "weights", "forest json", "hypergraph json", "translations",
)  # fmt: skip


class Guided:
    """One case is one reader for a few seconds."""

    name = "guided"

    def __init__(self) -> None:
        if not installed():
            raise ValueError("the target guided needs atheris: python -m pip install -e '.[fuzz]'.")
        self.readers = [reader for reader in READERS if reader.name in GUIDED]
        self.corpus = tempfile.TemporaryDirectory()

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        reader = self.readers[int(rng.integers(len(self.readers)))]
        corpus = Path(self.corpus.name) / reader.name.replace(" ", "-")
        found = corpus.with_name(f"{corpus.name}-found")
        if not corpus.exists():
            corpus.mkdir()
            found.mkdir()
            for k, data in enumerate(reader.seeds()):
                (corpus / f"seed{k}").write_bytes(data)
        command = [sys.executable, "-m", "tests.fuzz.instrumented", reader.name, str(corpus)]
        limits = [f"-max_total_time={SECONDS}", f"-seed={int(rng.integers(1, 2**31))}", f"-max_len={WIDEST}"]
        ended = subprocess.run(
            [*command, *limits, "-timeout=20", "-rss_limit_mb=2048", f"-artifact_prefix={found}/"],
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        done = [line for line in ended.stderr.splitlines() if line.startswith("Done ")]
        tally[f"{reader.name}: files"] += int(done[-1].split()[1]) if done else 0
        tally[f"{reader.name}: corpus"] = len(list(corpus.iterdir()))
        for path in sorted(found.iterdir()):
            data, sort = path.read_bytes(), path.name.partition("-")[0]
            path.unlink()
            if sort in ("crash", "timeout", "oom"):
                yield Finding(reader.name, f"{sort} of a reader", ended.stderr[-1500:], partial(kept, reader, data))

    def replay(self, data: Any) -> list[Claim]:
        return Mutants().replay(data)


def installed() -> bool:
    """Whether atheris can be imported."""
    return importlib.util.find_spec("atheris") is not None
