"""Every compiled loop of certus, and nothing else. Importing this package imports numba."""

import sys

from numba.core import event


class _Announcer(event.Listener):
    """Says once, on stderr, that kernels are being compiled: a cold start is slow and should not look hung."""

    def __init__(self) -> None:
        self.said = False

    def on_start(self, event: event.Event) -> None:
        if not self.said:
            self.said = True
            print("certus: compiling kernels for this machine; this happens once.", file=sys.stderr, flush=True)

    def on_end(self, event: event.Event) -> None:
        pass


event.register("numba:compile", _Announcer())
