"""What a first use compiles: seconds of processor time for each kernel of a feature, from an empty cache.

Features are those of ``certus warmup``. Beside it stand the seconds of the next use and, where compiled kernels came
with certus, of a first use with these.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import certus
from certus.bench.cases import Row
from certus.warmup import chosen

MEASURE = """
import sys, time
start = time.process_time()
from certus.warmup import FEATURES
from numba.core import event
found, stack = {}, []
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
for call in FEATURES[sys.argv[1]].calls:
    call()
import json
print(json.dumps([time.process_time() - start, found]))
"""


def run(features: tuple[str, ...] = (), kernels: int = 12) -> Iterator[Row]:
    """``kernels`` is how many of the slowest kernels are listed."""
    for feature in chosen(features):
        with tempfile.TemporaryDirectory() as cache:
            seconds, found = _measured(feature, cache, shipped=False)
            again, _ = _measured(feature, cache, shipped=False)
        compiled = sum(spent for _, spent in found.values())
        cells = {"seconds": seconds, "of these compiling": compiled, "the next time": again}
        if certus.kernels.cache.manifest():
            with tempfile.TemporaryDirectory() as cache:
                cells["first, with what came along"], _ = _measured(feature, cache, shipped=True)
        cells |= {"kernels": len(found), "signatures": sum(count for count, _ in found.values())}
        yield Row(feature, cells)
        slowest = sorted(found.items(), key=lambda item: -item[1][1])[:kernels]
        for name, (count, spent) in slowest:
            yield Row(f"  {name}", {"seconds": spent, "signatures": count})


def _measured(feature: str, cache: str, *, shipped: bool) -> tuple[float, dict[str, tuple[int, float]]]:
    """Seconds of the calls of a feature in a process of its own; and of each kernel that was compiled."""
    source = str(Path(__file__).resolve().parents[3])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": paths, "CERTUS_COMPILED": str(int(shipped))}
    command = [sys.executable, "-c", MEASURE, feature]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    seconds, found = json.loads(done.stdout)
    return seconds, found
