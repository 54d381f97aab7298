"""The house in numbers: python -m tests.house [FOLDER ...] prints them for this repository, or for others beside it.

Lines of each package, functions that are long or take many arguments by place, imports inside functions, cycles of
packages, and how many files a new thing of each sort touches, as CONTRIBUTING.md has it (tests/test_house.py holds that
table to files that exist).
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LONG = 60  # lines of a function
MANY = 8  # arguments by place

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Found(NamedTuple):
    """A function, and how many lines or arguments it has."""

    where: str
    count: int


class House:
    """The sources of certus in a folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.source = root, root / "src" / "certus"
        paths = sorted(self.source.rglob("*.py"))
        self.texts = {path.relative_to(self.source).as_posix(): path.read_text(encoding="utf-8") for path in paths}
        self.trees = {name: ast.parse(text) for name, text in self.texts.items()}

    def lines(self) -> Counter[str]:
        """Lines of each package; modules beside the packages together."""
        found: Counter[str] = Counter()
        for name, text in self.texts.items():
            found[name.split("/")[0] if "/" in name else "certus"] += len(text.splitlines())
        return found

    def functions(self) -> Iterator[tuple[str, Function]]:
        for name, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, Function):
                    yield f"{name}:{node.lineno} {node.name}", node

    def long(self) -> list[Found]:
        """Functions of more than LONG lines, docstrings included; longest first."""
        counted = (Found(where, (node.end_lineno or 0) - node.lineno + 1) for where, node in self.functions())
        return sorted((f for f in counted if f.count > LONG), key=lambda f: -f.count)

    def wide(self) -> list[Found]:
        """Functions with more than MANY arguments by place, but for commands, whose arguments are options."""
        found = []
        for where, node in self.functions():
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args) if a.arg not in ("self", "cls")]
            if len(names) > MANY and not where.startswith("cli/"):
                found.append(Found(where, len(names)))
        return found

    def imports(self) -> Iterator[tuple[str, str, bool]]:
        """(file, module or package, whether in a function) of all that is imported for more than types."""
        for name, tree in self.trees.items():
            for node, inside in walk(tree):
                for target in _targets(node):
                    yield name, target, inside

    def inside(self) -> int:
        """How many import statements stand in functions."""
        return sum(inside for tree in self.trees.values() for _, inside in walk(tree))

    def cycle(self) -> list[str]:
        """A cycle of packages, if there is one."""
        graph: dict[str, set[str]] = {}
        for name, target, _ in self.imports():
            importer, parts = name.removesuffix(".py").split("/")[0], target.split(".")
            if parts[0] == "certus" and len(parts) > 1 and importer not in ("__init__", parts[1]):
                graph.setdefault(importer, set()).add(parts[1])
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def touched(self) -> dict[str, str]:
        """What a new thing of each sort touches: the second column of the table in CONTRIBUTING.md."""
        page = (self.root / "CONTRIBUTING.md").read_text(encoding="utf-8")
        table = page.partition("## What a new ... touches")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", table, re.MULTILINE)
        return {name: files for name, files in rows if name not in ("new", "---")}

    def rows(self) -> dict[str, str | int]:
        """The whole table, a line each."""
        lines = self.lines()
        found: dict[str, str | int] = {"lines of src": lines.total()}
        found |= {f"  {package}": count for package, count in lines.most_common()}
        found[f"functions over {LONG} lines"] = len(self.long())
        found[f"functions with over {MANY} arguments by place"] = len(self.wide())
        found["imports inside functions"] = self.inside()
        found["cycles of packages"] = " -> ".join(self.cycle()) or 0
        for name, files in self.touched().items():
            found[f"files of a new {name}"] = ", ".join(re.findall(r"\b\d+\b", re.sub(r"`[^`]*`", "", files))) or "?"
        return found


def walk(
    node: ast.AST, inside: bool = False, offered: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The imports below a node, and whether each stands in a function; ``offered``: those for types count too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        elif not offered and isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from walk(other, inside)
        else:
            within = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, within, offered)


def _targets(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [f"{node.module}.{alias.name}" for alias in node.names]


def main(folders: list[str]) -> None:
    houses = [House(Path(folder).resolve()) for folder in folders] or [House(ROOT)]
    tables = [house.rows() for house in houses]
    for name in dict.fromkeys(name for table in tables for name in table):
        print(f"{name:<48}" + "".join(f"{table.get(name, '-'):>14}" for table in tables))
    for what, found in (("long", houses[-1].long()), ("wide", houses[-1].wide())):
        for function in found:
            print(f"  {what}: {function.where} {function.count}")


if __name__ == "__main__":
    main(sys.argv[1:])
