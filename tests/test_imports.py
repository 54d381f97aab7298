"""What importing certus costs, and what its parts may depend on."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import certus


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_import_certus_is_light():
    run("import sys, certus; assert not {'numba', 'scipy', 'typer', 'rich'} & set(sys.modules)")


def test_help_is_light():
    run(
        "import sys\nfrom certus.cli import main\n"
        "for command in [], ['parse'], ['tag'], ['verify'], ['evaluate'], ['train'], ['train', 'grammar']:\n"
        "    assert main([*command, '--help']) == 0\n"
        "assert not {'numba', 'scipy'} & set(sys.modules)"
    )


def test_verify_needs_no_numba():
    run(
        "import sys\nsys.modules['numba'] = None\nimport numpy as np\nimport certus\n"
        "p = certus.Tagging([[0, 1], [1, 0]], bigram=[[0, 2], [0, 0]])\n"
        "y = np.array([0, 1])\n"
        "r = p.proved(y, 2.0, kind='dynamic program')\n"
        "certus.verify(p, r)\n"
    )


PACKAGES = ["problem", "result", "certificates", "hypergraph", "relax", "saved", "joint", "verify"]
PACKAGES += ["dependency", "tagging", "constituency"]


def imported(path: Path) -> set[str]:
    """The packages of certus that a file imports, in functions too, but not only for type checking."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            found.update(name.split(".")[1] for name in names if name.startswith("certus."))
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[1] for alias in node.names if alias.name.startswith("certus."))
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


def test_problems_relaxation_and_results_do_not_import_each_other_in_circles():
    root = Path(certus.__file__).parent
    edges = {}
    for package in PACKAGES:
        files = (
            [root / f"{package}.py"] if (root / f"{package}.py").exists() else sorted((root / package).rglob("*.py"))
        )
        assert files
        edges[package] = {other for file in files for other in imported(file)} & set(PACKAGES) - {package}
    order = list(TopologicalSorter(edges).static_order())  # raises CycleError, which names the circle
    assert len(order) == len(PACKAGES)
