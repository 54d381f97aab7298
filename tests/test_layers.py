"""Imports point down the layers, packages form no cycle, and an import inside a function has a reason.

Everything that is imported counts, in functions too, but not what only types need (TYPE_CHECKING), unless it is what a
package offers and imports when it is used (certus.lazy).
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.house import walk

ROOT = Path(__file__).resolve().parents[1] / "src" / "certus"

# Top first. "certus" is what the package itself offers, for those above it. A package may import from its own layer.
LAYERS = [
    {"cli", "bench", "reproduce", "__main__"},
    {"report", "engines", "warmup", "shipping"},
    {"certus"},
    {"models"},
    {"learn", "features", "evaluate", "data"},
    {"torch"},
    {
        "tagging",
        "constituency",
        "dependency",
        "structures",
        "alignment",
        "factors",
        "translation",
        "joint",
        "constraints",
        "decode_all",
    },
    {"relax", "certificates", "hypergraph", "problem", "batch", "result", "verify", "saved", "proof_file"},
    {"io"},
    {"text", "draw"},
    {"errors", "checks", "clock", "schema", "serialize", "writing", "threads", "lazy"},
    {"kernels"},
]
# What takes long to import, or need not be installed: an import of these, or of a module that has one at its top, may
# wait in a function.
HEAVY = {
    "numba",
    "scipy",
    "matplotlib",
    "torch",
    "torch_struct",
    "ad3",
    "supar",
    "ufal",
    "spacy",
    "sacrebleu",
    "safetensors",
    "kenlm",
    "rich",
    "ray",
    "zstandard",
    "pyarrow",
    "multiprocessing",
}

# Two modules that need each other: the first imports the second where it calls it.
PAIRS = {
    ("models.tagger", "models.tagger_file"),
}


class Import(NamedTuple):
    """Who imports what: modules of certus without "certus.", others by the name of their package."""

    importer: str
    imported: str
    inside: bool  # a function
    line: int

    @property
    def packages(self) -> tuple[str, str]:
        return self.importer.split(".")[0], self.imported.split(".")[0]


@cache
def modules() -> dict[str, Path]:
    """Every module by its name; packages too."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "certus"] = path
    return found


def targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """What an import names, a module if it is one."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        assert node.level == 0, "imports are absolute"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        parts = name.split(".")
        if parts[0] != "certus":
            yield f"Python's {parts[0]}" if parts[0] in sys.stdlib_module_names - HEAVY else parts[0]
            continue
        while len(parts) > 1 and ".".join(parts[1:]) not in modules():
            parts.pop()
        yield ".".join(parts[1:]) or "certus"


@cache
def imports() -> list[Import]:
    return [
        Import(name, target, inside, node.lineno)
        for name, path in modules().items()
        for node, inside in walk(ast.parse(path.read_text(encoding="utf-8")), offered=path.name == "__init__.py")
        for target in targets(node)
    ]


def ours() -> list[Import]:
    """Imports of one package of certus by another."""
    return [i for i in imports() if i.imported in modules() and i.packages[0] != i.packages[1]]


@cache
def heavy() -> set[str]:
    """Modules that import a heavy package when they are imported themselves."""
    found = set(HEAVY)
    top = [i for i in imports() if not i.inside]
    while more := {i.importer for i in top if i.imported in found} - found:
        found |= more
    return found


def test_every_package_has_a_layer():
    assert {name.split(".")[0] for name in modules()} <= set().union(*LAYERS)


def test_imports_point_down():
    rank = {package: k for k, layer in enumerate(LAYERS) for package in layer}
    wrong = [f"{i.importer}:{i.line} imports {i.imported}" for i in ours() if rank[i.packages[0]] > rank[i.packages[1]]]
    assert not wrong


def test_there_is_no_cycle_of_packages():
    graph: dict[str, set[str]] = {}
    for a, b in {i.packages for i in ours()}:
        graph.setdefault(a, set()).add(b)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_imports_inside_functions_have_a_reason():
    without = {i for i in imports() if i.inside and i.imported not in heavy()}
    wrong = [f"{i.importer}:{i.line} imports {i.imported}" for i in without if (i.importer, i.imported) not in PAIRS]
    assert not wrong
    done = PAIRS - {(i.importer, i.imported) for i in without}
    assert not done, f"done, so delete them here: {done}"


def test_the_test_sees_what_it_should():
    code = (
        "import numpy\nfrom certus import kernels, Tagging\nif TYPE_CHECKING:\n    from certus.cli import main\n"
        "def f():\n    if 1:\n        from certus.io.conllu import read_conllu\n        import certus.text.tree\n"
    )
    found = [(target, inside) for node, inside in walk(ast.parse(code)) for target in targets(node)]
    assert found == [
        ("numpy", False),
        ("kernels", False),
        ("certus", False),
        ("io.conllu", True),
        ("text.tree", True),
    ]
