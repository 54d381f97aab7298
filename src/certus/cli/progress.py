"""A count of sentences on stderr, while results go to a file or a pipe; nothing when nobody watches."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from certus.cli.streams import terminal

if TYPE_CHECKING:
    from rich.progress import Progress

Item = TypeVar("Item")
_shown: "list[Progress]" = []


def watched(items: Iterable[Item], doing: str, note: Callable[[], str] | None = None) -> Iterator[Item]:
    """The items, with a running count if stderr is a terminal that stdout does not share; ``note`` says more."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    told = TextColumn("{task.description}")
    columns = (SpinnerColumn(), TextColumn(doing), MofNCompleteColumn(), TimeElapsedColumn(), told)
    with _on_terminal(Progress(*columns, console=Console(file=terminal(sys.stderr)), transient=True)) as progress:
        task = progress.add_task("", total=None)
        for item in items:
            yield item
            progress.update(task, advance=1, description=note() if note else "")


@contextmanager
def counted(doing: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr that is moved by calling it with (done, all); nothing when stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with _on_terminal(Progress(console=Console(file=terminal(sys.stderr)), transient=True)) as progress:
        task = progress.add_task(doing, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def estimated(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that says when the end is to be expected, moved on by calling it; nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("to go"), TimeRemainingColumn()
    columns = (TextColumn(doing), *bar)
    with _on_terminal(Progress(*columns, console=Console(file=terminal(sys.stderr)), transient=True)) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.advance(task, done)


def stop() -> None:
    """Take away what is shown, and show the cursor again: the process is about to end."""
    for progress in _shown:
        progress.stop()


@contextmanager
def _on_terminal(progress: "Progress") -> "Iterator[Progress]":
    _shown.append(progress)
    try:
        with progress:
            yield progress
    finally:
        _shown.remove(progress)
