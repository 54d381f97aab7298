"""What importing certus costs, and what its parts may depend on."""

import subprocess
import sys


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_import_certus_is_light():
    run("import sys, certus; assert not {'numba', 'scipy', 'typer', 'rich'} & set(sys.modules)")


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
