"""Every shell block in the README and the docs runs, in order, and prints what the page shows."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from certus.cli import main
from tests.cli.conftest import _Stdin
from tests.docs.shell import REASONS, blocks, fits

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
pytestmark = pytest.mark.compiled  # the bundled parser

TREES = """( (S (NP-SBJ (DT the) (NN dog)) (VP (VBZ barks)) (. .)) )
( (S (NP-SBJ (DT the) (NN cat)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .)) )
( (S (NP-SBJ (DT a) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat))) (. .)) )
"""
CONLLU = """1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2\tdog\tdog\tNOUN\tNN\t_\t3\tnsubj\t_\t_
3\tbarks\tbark\tVERB\tVBZ\t_\t0\troot\t_\t_

"""
RULES = """[X] ||| le chien ||| the dog ||| p=-0.5
[X] ||| aboie ||| barks ||| p=-0.1
"""
TABLE = """le chien ||| the dog ||| 0.5 0.5 0.5 0.5 ||| 0-0 1-1 ||| 1 1 1
aboie ||| barks ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1
"""
TEXT = "the dog barks .\nthe cat sees a dog .\na dog sees the cat .\n"
FEATURES = ("PhraseFE", "LexFE", "PhraseEF", "LexEF", "Words", "Phrases", "Distortion")
LOG = "trees 1/2: 3 sentences, dev UAS 80.00\ntrees 2/2: 3 sentences, dev UAS 90.00\n"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The files that snippets read, as small as they can be."""
    folder = tmp_path_factory.mktemp("inputs")
    many = {
        TREES: ("train.mrg", "gold.mrg", "system.mrg"),
        CONLLU * 3: ("train.conllu", "dev.conllu", "test.conllu"),
        CONLLU * 8: ("new.conllu", "gold.conllu", "system.conllu"),
        TEXT * 5: ("text.txt",),
        TEXT: ("sentences.txt", "reference.en", "translated.en"),
        "le chien aboie\n": ("input.txt", "input.de"),
        "the dog barks\n": ("output.en",),
        "[S] ||| [X,1] ||| [1]\n[S] ||| [S,1] [X,2] ||| [1] [2]\n": ("glue.txt",),
        json.dumps(dict.fromkeys([*FEATURES, "LM", "p"], 1.0)): ("weights.json",),
        LOG: ("train.log",),
        "le chien\tthe dog\n": ("terms.tsv",),
    }
    for text, names in many.items():
        for name in names:
            (folder / name).write_text(text, encoding="utf-8")
    (folder / "texts").mkdir()
    (folder / "texts" / "one.txt").write_text("The dog barks.\n", encoding="utf-8")
    packed = {RULES: ("rules.gz", "hiero.gz"), TABLE: ("phrases.gz",), TEXT * 5: ("text.txt.gz", "train.en.gz")}
    packed |= {TREES: ("train.mrg.gz",), CONLLU * 3: ("train.conllu.gz",)}
    for text, names in packed.items():
        for name in names:
            (folder / name).write_bytes(gzip.compress(text.encode()))
    ran(folder, ["train", "grammar", "--treebank", "train.mrg", "--output", "grammar.json"])
    ran(folder, ["train", "tagger", "--hmm", "--train", "train.mrg", "--output", "tagger.json"])
    small = ("--order", "1", "--epochs", "1", "--bits", "12", "--tagger")
    ran(folder, ["train", "parser", "--train", "train.conllu", "--output", "model", *small])
    ran(folder, ["train", "lm", "--text", "text.txt", "--order", "2", "--output", "lm.arpa"])
    (folder / "lm.arpa.gz").write_bytes(gzip.compress((folder / "lm.arpa").read_bytes()))
    ran(folder, ["constituents", "--save-result", "result.json", "Red flies some large jet"])
    for name in ("r.json", "mine.json"):
        shutil.copy(folder / "result.json", folder / name)
    ran(folder, ["parse", "--confidences", "gold.conllu"], folder / "parsed.conllu")
    ran(folder, ["verify", "--proof", "proof.json", "result.json"])
    (folder / "paths").write_text("00\tdog\t3\n01\tthe\t3\n", encoding="utf-8")
    return folder


def ran(folder: Path, arguments: list[str], output: Path | None = None, stdin: bytes = b"") -> tuple[int, str, str]:
    """Runs a command of certus in this process; exit code, stdout, stderr."""
    before = sys.stdout, sys.stderr, sys.stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        sys.stdout, sys.stderr, sys.stdin = out, err, _Stdin(io.BytesIO(stdin), encoding="utf-8")
        try:
            code = main(arguments)
        finally:
            sys.stdout, sys.stderr, sys.stdin = before
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]
    if output is not None:
        output.write_text(texts[0], encoding="utf-8")
    return code, texts[0], texts[1]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_shell_snippets_run_and_print_what_they_show(page, inputs, tmp_path):
    folder = tmp_path / "here"
    shutil.copytree(inputs, folder)
    for block in blocks(page):
        assert block.reason in (None, *REASONS), f"{page.name}:{block.line}: say why it is not run: {REASONS}"
        printed = ""
        for command in block.commands:
            where = f"{page.name}:{block.line}: {' '.join(command.words)}"
            if command.words[0] == "certus":
                stdin = b"" if command.stdin is None else (folder / command.stdin).read_bytes()
                to = None if command.stdout is None else folder / command.stdout
                if "plot" in command.words:
                    pytest.importorskip("matplotlib")
                if "--bleu" in command.words:
                    pytest.importorskip("sacrebleu")
                code, printed, said = ran(folder, command.words[1:], to, stdin)
            else:
                path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
                shell = {"cwd": folder, "env": os.environ | {"PATH": path}, "capture_output": True, "text": True}
                done = subprocess.run(["sh", "-c", command.line], **shell)
                code, printed, said = done.returncode, done.stdout, done.stderr
            assert code == 0, f"{where}\n{said}"
        if block.shown is not None and block.reason is None:
            assert fits(printed.rstrip().splitlines(), block.shown), f"{page.name}:{block.line} prints\n{printed}"


def test_what_is_not_run_is_a_short_list():
    left_out = {f"{page.name}: {block.reason}" for page in PAGES for block in blocks(page) if block.reason}
    assert left_out == {
        "README.md: builds the project itself",
        "install.md: needs the network",
        "install.md: builds the project itself",
        "benchmarks.md: needs the network",
        "benchmarks.md: measures for minutes",
        "cli.md: measures for minutes",
        "cli.md: trains for minutes",
        "corpora.md: needs data",
        "lexicalized.md: trains for minutes",
        "parsers.md: trains for minutes",
    }


def test_blocks_are_read_as_a_shell_would(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\ncertus tag 'a b' --x \\\n    > out.txt   # why\ncertus a && certus b < in\n```\n"
        "\n    one\n\n    two\n\nx\n"
        "<!-- not run: needs data -->\n```sh\nrm -r /\n```\n"
    )
    first, second = blocks(page)
    assert [c.words for c in first.commands] == [["certus", "tag", "a b", "--x"], ["certus", "a"], ["certus", "b"]]
    assert (first.commands[0].stdout, first.commands[2].stdin) == ("out.txt", "in")
    assert first.shown == ["one", "", "two"]
    assert (second.commands, second.reason) == ([], "needs data")
    assert fits(["a", "b", "c"], ["a", "..."])
    assert not fits(["a", "b"], ["a"])
