"""What a first use compiles: seconds of processor time for each kernel of a feature, from an empty cache."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from certus.bench.cases import Row
from certus.errors import InvalidInput

FEATURES = {
    "parse": "from certus.cli import main; main(['parse', 'Red flies some large jet'])",
    "tag": "from certus.cli import main; main(['tag', 'The dog barks.'])",
    "tagging": "p = certus.Tagging(rng.normal(size=(4, 3)), bigram=rng.normal(size=(4, 4))); p.decode(); p.marginals()",
    "crossing": "certus.Dependency(rng.normal(size=(5, 5)), projective=False).decode()",
    "crossing with siblings": "certus.Dependency(rng.normal(size=(5, 5)), sibling=rng.normal(size=(5, 5, 5))).decode()",
    "projective with siblings": (
        "certus.Dependency(rng.normal(size=(5, 5)), sibling=rng.normal(size=(5, 5, 5)), projective=True).decode()"
    ),
    "batch": "b = certus.DependencyBatch(rng.normal(size=(3, 5, 5)), projective=False); b.decode(); b.marginals()",
    "joint": (
        "from certus.data import demo_grammar, demo_tagger; w = 'Red flies some large jet'.split(); "
        "certus.Joint(certus.Constituency(demo_grammar(), w), demo_tagger().tagging(w), on='tags').decode()"
    ),
}
MEASURE = """
import sys, time
from contextlib import redirect_stdout
start = time.process_time()
import numpy as np, certus
from numba.core import event
rng, found, stack = np.random.default_rng(0), {}, []
class Listener(event.Listener):
    def on_start(self, e):
        stack.append([time.process_time(), 0.0])
    def on_end(self, e):
        began, inner = stack.pop()
        spent = time.process_time() - began
        if stack:
            stack[-1][1] += spent
        function = e.data["dispatcher"].py_func
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        count, total = found.get(name, (0, 0.0))
        found[name] = count + 1, total + spent - inner
event.register("numba:compile", Listener())
with redirect_stdout(sys.stderr):
    exec(sys.argv[1])
import json
print(json.dumps([time.process_time() - start, found]))
"""


def run(features: tuple[str, ...] = tuple(FEATURES), kernels: int = 12) -> Iterator[Row]:
    """``kernels`` is how many of the slowest kernels are listed."""
    for feature in features:
        if feature not in FEATURES:
            raise InvalidInput(f"there is no feature {feature!r}; there are {', '.join(FEATURES)}.")
        with tempfile.TemporaryDirectory() as cache:
            source = str(Path(__file__).resolve().parents[3])
            paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
            environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": paths}
            command = [sys.executable, "-c", MEASURE, FEATURES[feature]]
            done = subprocess.run(
                command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True
            )
        seconds, found = json.loads(done.stdout)
        compiled = sum(spent for _, spent in found.values())
        cells = {"seconds": seconds, "of these compiling": compiled, "kernels": len(found)}
        yield Row(feature, cells | {"signatures": sum(count for count, _ in found.values())})
        slowest = sorted(found.items(), key=lambda item: -item[1][1])[:kernels]
        for name, (count, spent) in slowest:
            yield Row(f"  {name}", {"seconds": spent, "signatures": count})
