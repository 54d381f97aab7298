"""The commands of certus: names, and where each stands. The module of a command is imported when it is called."""

import inspect
from collections.abc import Sequence
from importlib import import_module

from certus import __version__
from certus.cli.arguments import HELP, Command, columns, filled, no_such_command

COMMANDS = (
    *("parse", "constituents", "tag", "explain", "verify", "evaluate", "calibrate", "plot", "compare"),
    *("projectivize", "cluster", "translate", "search-errors", "warmup", "bench", "train"),
)
TRAIN = ("grammar", "tagger", "parser", "lm")
ABOUT = "Find the best structure for a sentence, and prove it."
ABOUT_TRAIN = "Train a grammar, a tagger, a dependency parser or a language model."


def run(words: Sequence[str]) -> int:
    """What a command line asks for; returns its exit code."""
    first = words[0] if words else "--help"
    if first == "--version":
        print(f"certus {__version__}")
        return 0
    if first in HELP:
        versions = [("--version", "Print the version")]
        print(_help("", ABOUT, COMMANDS, versions))
        return 0
    if first == "train":
        return _train(words[1:])
    if first not in COMMANDS:
        raise no_such_command(first, COMMANDS)
    return command(first).run(words[1:])


def _train(words: Sequence[str]) -> int:
    first = words[0] if words else "--help"
    if first in HELP:
        print(_help("train ", ABOUT_TRAIN, TRAIN))
        return 0
    if first not in TRAIN:
        raise no_such_command(first, TRAIN, "train ")
    return command(f"train {first}").run(words[1:])


def command(name: str) -> Command:
    """A command by its name, such as "train parser"; its module and function are called so too."""
    module = import_module(f"certus.cli.{name.replace(' ', '_').replace('-', '_')}")
    return Command(name, getattr(module, name.rpartition(" ")[2].replace("-", "_")))


def _help(group: str, about: str, names: Sequence[str], options: Sequence[tuple[str, str]] = ()) -> str:
    rows = []
    for name in names:
        text = ABOUT_TRAIN if name == "train" else inspect.getdoc(command(group + name).function) or ""
        rows.append((name, " ".join(text.split("\n\n")[0].split())))
    shown = columns([*options, ("-h, --help", "Show this message and exit.")])
    usage = f"Usage: certus {group}COMMAND [OPTIONS] [ARGUMENTS]"
    return "\n\n".join([usage, filled(about), f"Options:\n{shown}", f"Commands:\n{columns(rows)}"])
