"""certus does without torch; certus.torch is asked for by its name."""

import subprocess
import sys


def test_certus_does_not_import_torch():
    code = "import sys, certus; assert 'torch' not in sys.modules and 'certus.torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
