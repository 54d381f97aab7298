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
    with _on_terminal("Spinner", doing, "MofNComplete", "TimeElapsed", "{task.description}") as progress:
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
    with _on_terminal(doing, "Bar", "TaskProgress", "TimeRemaining") as progress:
        task = progress.add_task(doing, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def estimated(doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that says when the end is to be expected, moved on by calling it; nothing without a terminal."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    with _on_terminal(doing, "Bar", "TaskProgress", "TimeElapsed", "to go", "TimeRemaining") as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.advance(task, done)


def stop() -> None:
    """Take away what is shown, and show the cursor again: the process is about to end."""
    for progress in _shown:
        progress.stop()


@contextmanager
def _on_terminal(*columns: str) -> "Iterator[Progress]":
    """What is shown: kinds of columns by their names, and text."""
    from rich import console, progress

    kinds = [(getattr(progress, f"{column}Column", None), column) for column in columns]
    made = [progress.TextColumn(column) if kind is None else kind() for kind, column in kinds]
    shown = progress.Progress(*made, console=console.Console(file=terminal(sys.stderr)), transient=True)
    _shown.append(shown)
    try:
        with shown:
            yield shown
    finally:
        _shown.remove(shown)
