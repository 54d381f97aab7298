"""Every certificate that certus parse prints is about the tree below it, also on a busy machine.

Parsers with crossing arcs are trained, unless ``work`` has them. The test sentences are parsed by the command line with
a busy loop on every processor, and again without. From the file that was printed alone, the score of each tree is
summed up anew over the parts of the model's problem, and the digests are computed again.
"""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Row, data_folder
from certus.io.conllu import read_conllu
from certus.models.parser import FILE
from certus.models.tree_parser import TreeParser
from certus.models.trees import problem_digest
from certus.text.sentence import Sentence


def run(
    data: str = "",
    treebanks: tuple[str, ...] = ("nl_cdb", "da_cdt"),
    orders: tuple[int, ...] = (2, 3),
    epochs: int = 3,
    work: str = "",
) -> Iterator[Row]:
    with TemporaryDirectory() as scratch:
        for name in treebanks:
            folder = data_folder(data, "ud", name)
            for order in orders:
                model = Path(work or scratch) / f"{name}-{order}"
                if not (model / FILE).exists():
                    files = ("--train", folder / "train.conllu.gz", "--dev", folder / "dev.conllu.gz")
                    settings = ("--no-projective", "--order", order, "--epochs", epochs, "--output", model)
                    _command("train", "parser", *files, *settings)
                yield _checked(f"{name}, order {order}", folder / "test.conllu.gz", model)


def _command(*arguments: object, output: Path | None = None) -> None:
    """The command line, in a process of its own."""
    with open(output or os.devnull, "wb") as stream:
        subprocess.run([sys.executable, "-m", "certus", *map(str, arguments)], check=True, stdout=stream)


def _spin() -> None:
    while True:
        pass


@contextmanager
def _load() -> Iterator[None]:
    """A busy loop on every processor."""
    busy = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in busy:
        process.start()
    try:
        yield
    finally:
        for process in busy:
            process.kill()


def _checked(name: str, test: Path, model: Path) -> Row:
    busy, calm, plain = (model / f"{run}.conllu" for run in ("busy", "calm", "plain"))
    with _load():
        _command("parse", "--model", model, "--certificates", test, output=busy)
    _command("parse", "--model", model, "--certificates", test, output=calm)
    _command("parse", "--model", model, test, output=plain)
    trees = list(read_conllu(busy))
    cells: dict[str, float] = {"sentences": len(trees)}
    cells |= _differences(certus.load(model).parser, trees)
    cells["busy and calm differ"] = int(busy.read_bytes() != calm.read_bytes())
    cells["trees without certificates differ"] = int(
        [s.tokens for s in trees] != [s.tokens for s in read_conllu(plain)]
    )
    return Row(name, cells)


def _differences(parser: TreeParser[Any], sentences: list[Sentence]) -> dict[str, int]:
    """How many comments say what is not so."""
    found = dict.fromkeys(("proved", "scores differ", "bounds differ", "digests differ"), 0)
    for sentence in sentences:
        problem = parser.problem(sentence)
        score, bound = (float(sentence.comment(key) or "nan") for key in ("score", "bound"))
        exact = (sentence.comment("certificate") or "").endswith(", exact")
        found["proved"] += exact
        found["scores differ"] += score != problem.score(sentence.heads)
        found["bounds differ"] += bound != score if exact else not bound > score
        digests = parser.digest, problem_digest(parser.seen(parser.encode([sentence]), 0), problem.arc > -np.inf)
        found["digests differ"] += digests != tuple(map(sentence.comment, ("model_digest", "problem_digest")))
    return found
