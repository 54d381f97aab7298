"""Running the command line inside the test process, and the files that commands read."""

import io
import sys
from dataclasses import dataclass

import pytest

from certus.cli import main
from certus.data import demo_tagger


@dataclass
class Ran:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on stderr of a command that was given bad input, which printed nothing half-way."""
        assert self.code == 2, self
        lines = [line for line in self.err.splitlines() if "compiling kernels" not in line]
        assert len(lines) == 1, self.err
        assert lines[0].startswith("certus: ")
        return lines[0]


class _Stdin(io.TextIOWrapper):
    def isatty(self) -> bool:
        return False


@pytest.fixture
def certus(capfd, monkeypatch):
    """Runs ``certus <arguments>``; stdin is what is given."""

    def run(*arguments: object, stdin: str | bytes = b"") -> Ran:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", _Stdin(io.BytesIO(data), encoding="utf-8"))
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "train.mrg"
    path.write_text(
        "( (S (NP-SBJ (DT the) (NN dog)) (VP (VBZ barks)) (. .)) )\n"
        "( (S (NP-SBJ (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .)) )\n"
        "( (S (NP-SBJ-1 (NN time)) (VP (VBZ flies) (NP (-NONE- *T*-1))) (. .)) )\n"
    )
    return path


@pytest.fixture
def hmm(tmp_path):
    path = tmp_path / "hmm.json"
    demo_tagger().save(path)
    return path
