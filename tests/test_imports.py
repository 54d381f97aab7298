"""What importing certus costs, and what its parts may depend on."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import certus


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_import_certus_is_light():
    run("import sys, certus; assert not {'numba', 'scipy', 'numpy', 'rich'} & set(sys.modules)")


def test_names_are_those_that_type_checkers_see():
    """What a package imports for types is what it finds at run time, in the same modules."""
    assert set(certus.__all__) <= set(dir(certus))
    for package in ("certus", "certus.evaluate"):
        module = import_module(package)
        path = Path(module.__file__)
        (block,) = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.If))
        seen = {}
        for node in block.body:
            assert isinstance(node, ast.ImportFrom)
            seen |= {alias.name: node.module for alias in node.names}
        assert set(seen) == set(module.__all__)
        for name, home in seen.items():
            assert getattr(module, name) is getattr(import_module(home), name), name


def test_a_module_of_the_same_name_does_not_hide_a_function():
    run(
        "import certus.verify, certus.decode_all, certus\n"
        "assert callable(certus.verify) and callable(certus.decode_all)\n"
        "from certus import verify\nassert callable(verify)"
    )


def test_modules_are_found_by_name_and_others_are_not():
    assert certus.text.Sentence is certus.models.pipeline.Sentence
    for name in ("nowhere", "_private"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(certus, name)


def test_saved_problems_of_kinds_that_were_not_imported_are_read(tmp_path):
    """A program that only loads a result has not used the name of its kind."""
    certus.save_problem(tmp_path / "p.json", certus.SpanTrees([[0.0, 1.0], [0.0, 0.0]]))
    run(f"import certus; assert certus.load_problem({str(tmp_path / 'p.json')!r})[0].decode().score == 1.0")
    run("from certus.tagging import Tagging; assert len(Tagging([[0, 1], [1, 0]]).max_marginal_bounds()) == 2")


@pytest.mark.slow
def test_a_loaded_kernel_needs_no_more_of_numba_than_loading():
    code = "import sys, certus; certus.Tagging([[0.0, 1.0]]).decode(); print(*sys.modules)"
    run(code)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "compiling" not in done.stderr
    assert not {"scipy.linalg", "numba.np.arrayobj", "numba.cpython.unicode"} & set(done.stdout.split())


def test_help_is_light():
    run(
        "import sys\nfrom certus.cli import main\n"
        "for command in '', 'parse', 'constituents', 'tag', 'verify', 'evaluate', 'train', 'train grammar':\n"
        "    assert main([*command.split(), '--help']) == 0\n"
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
