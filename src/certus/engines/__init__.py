"""Work on many files or problems: on threads, on processes of this machine, or on those of a Ray cluster.

An engine runs a ``Task`` over items: it is started once by each worker, where it loads a model, say, and then called
for one item after the other. Items are drawn only as fast as they are done. A worker that dies is replaced, and what it
was at is done again, three times at most.
"""

from certus.engines.corpus import Corpus, FileDone, Settings, parse
from certus.engines.engine import ENGINES, Engine, Task, WorkerLost, engine_of

__all__ = ["ENGINES", "Corpus", "Engine", "FileDone", "Settings", "Task", "WorkerLost", "engine_of", "parse"]
