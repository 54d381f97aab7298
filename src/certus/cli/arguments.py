"""Options and arguments of commands: declared in the annotations of a function, parsed and explained here.

    def tag(inputs: Annotated[list[str] | None, Argument(help="...")] = None,
            time_limit: Annotated[float | None, Option(min=0, help="Seconds")] = None,
            json: Annotated[bool, Option("--json", help="...")] = False) -> None:

An option is named after its parameter (``--time-limit``) unless it says otherwise; a flag that does not has a
``--no-...`` beside it. What has no default must be given. Types are str, int, float, Path, bool, a StrEnum, or a list
of these: an option that may be repeated, an argument that takes what is left. Settings, which few need, are given
by one option, ``--set NAME=VALUE``.

A parameter whose type is a dataclass is a group: its fields are options, each with a default, and the command gets one
object of them.
"""

import inspect
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cached_property
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from certus.errors import CertusError

REQUIRED = inspect.Parameter.empty
HELP = ("-h", "--help")


class UsageError(CertusError):
    """A command was called with arguments that it does not take."""


@dataclass(frozen=True)
class Declared:
    """What an annotation says of an option (or an argument, which has no flags and no ``option``)."""

    flags: tuple[str, ...]
    option: bool
    help: str
    min: float | None = None
    max: float | None = None
    metavar: str | None = None
    show_default: str | None = None
    setting: bool = False  # one of --set


def Option(
    *flags: str,
    help: str,
    min: float | None = None,
    max: float | None = None,
    metavar: str | None = None,
    show_default: str | None = None,
) -> Declared:
    """An option; ``show_default`` is for one whose default is not what its parameter has."""
    return Declared(flags, True, help, min, max, metavar, show_default)


def Argument(*, help: str, metavar: str | None = None) -> Declared:
    """An argument, by its place."""
    return Declared((), False, help, metavar=metavar)


def Setting(*, help: str, min: float | None = None, max: float | None = None) -> Declared:
    """A setting, given by ``--set NAME=VALUE``."""
    return Declared((), True, help, min, max, setting=True)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a command, or one field of a group."""

    name: str
    type: Any  # of one value
    many: bool
    default: Any
    declared: Declared
    group: str | None = None

    @property
    def flag(self) -> bool:
        """Whether it takes no value."""
        return self.type is bool

    @cached_property
    def flags(self) -> dict[str, bool]:
        """The names of an option; of a flag, with what each sets it to. Settings have none of their own."""
        if self.declared.setting:
            return {}
        plain = "--" + self.name.replace("_", "-")
        own = self.declared.flags or (plain,)
        off = {plain.replace("--", "--no-", 1): False} if self.flag and not self.declared.flags else {}
        return dict.fromkeys(own, True) | off

    @property
    def shown(self) -> str:
        """As messages and help name it."""
        if self.declared.setting:
            return f"--set {self.name}"
        if self.declared.option:
            return " / ".join(self.flags)
        return self.declared.metavar or self.name.upper() + ("..." if self.many else "")

    def value(self, text: str) -> Any:
        """What a text means; UsageError if nothing."""
        try:
            value = self.type(text)
        except ValueError:
            kinds = {int: "a whole number", float: "a number"}
            expected = kinds.get(self.type) or f"one of {', '.join(self.type)}"
            raise self._bad(text, expected) from None
        low, high = self.declared.min, self.declared.max
        if not ((low is None or value >= low) and (high is None or value <= high)):
            raise self._bad(text, self.range)
        return value

    @property
    def range(self) -> str:
        """The numbers that it takes, in words."""
        low, high = self.declared.min, self.declared.max
        if low is None:
            return "" if high is None else f"at most {high}"
        return f"at least {low}" if high is None else f"{low} to {high}"

    def _bad(self, text: str, expected: str) -> UsageError:
        return UsageError(f"{self.shown} is {text!r}; expected {expected}.")

    @property
    def explained(self) -> tuple[str, str]:
        """Its name and what it is for."""
        named, notes = self.name if self.declared.setting else self.shown, []
        if self.declared.setting:
            named += f"=<{self.type.__name__.lower()}>"
        elif self.declared.option and not self.flag:
            kind = "|".join(self.type) if issubclass(self.type, StrEnum) else self.type.__name__.lower()
            named += f" {self.declared.metavar or f'<{kind}>'}"
        default = self.declared.show_default or (None if self.default in (REQUIRED, None, False) else self.default)
        if self.flag and not self.declared.flags:
            default = next(name for name, on in self.flags.items() if on == self.default)
        if self.range:
            notes.append(self.range)
        if default is not None:
            notes.append(f"default: {default}")
        if self.declared.option and self.default is REQUIRED:
            notes.append("required")
        return named, self.declared.help + (f"  [{'; '.join(notes)}]" if notes else "")


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a command, and the fields of its groups, each with an annotation that declares it."""
    hints = get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            own = get_type_hints(hints[name], include_extras=True)
            found += [_parameter(f.name, own[f.name], f.default, name) for f in fields(hints[name])]
        else:
            found.append(_parameter(name, hints[name], parameter.default))
    return found


def _parameter(name: str, hint: Any, default: Any, group: str | None = None) -> Parameter:
    type_, declared = get_args(hint)
    if get_origin(type_) in (Union, UnionType):
        (type_,) = (t for t in get_args(type_) if t is not type(None))
    many = get_origin(type_) is list
    return Parameter(name, get_args(type_)[0] if many else type_, many, default, declared, group)


@dataclass
class Command:
    """A function as a command: takes the words of the command line."""

    name: str
    function: Callable[..., Any]

    @cached_property
    def parameters(self) -> list[Parameter]:
        """What it takes."""
        return parameters_of(self.function)

    @property
    def options(self) -> dict[str, Parameter]:
        """Options by each of their names."""
        return {flag: p for p in self.parameters if p.declared.option for flag in p.flags}

    @property
    def settings(self) -> dict[str, Parameter]:
        """What --set takes, by name."""
        return {p.name: p for p in self.parameters if p.declared.setting}

    def run(self, words: Sequence[str]) -> int:
        """Call the function; returns its exit code. Prints help if that is asked for."""
        options = list(words[: words.index("--")] if "--" in words else words)
        if any(word in HELP for word in options):
            print(self.help)
            return 0
        return int(self.function(**self.parsed(words)) or 0)

    def parsed(self, words: Sequence[str]) -> dict[str, Any]:
        """The arguments of the function; UsageError if the words do not give them."""
        given = self._given(words)
        groups: dict[str, dict[str, Any]] = {p.group: {} for p in self.parameters if p.group}
        for p in self.parameters:
            if p.group and p.name in given:
                groups[p.group][p.name] = given.pop(p.name)
        made = get_type_hints(self.function) if groups else {}
        return given | {name: made[name](**own) for name, own in groups.items()}

    def _given(self, words: Sequence[str]) -> dict[str, Any]:
        """Values by the names of parameters."""
        given: dict[str, Any] = {}
        places: list[str] = []
        options, stream = self.options, iter(words)
        for word in stream:
            if word == "--":
                places += stream
            elif word.startswith("-") and word != "-":
                self._take(given, options, word, stream)
            else:
                places.append(word)
        self._place(given, places)
        for p in self.parameters:
            if p.default is REQUIRED and p.name not in given:
                kind = "option" if p.declared.option else "argument"
                raise UsageError(f"Missing {kind} {p.shown}; certus {self.name} --help says what it is.")
        return given

    def _take(self, given: dict[str, Any], options: dict[str, Parameter], word: str, stream: Iterator[str]) -> None:
        """One option, with its value if it has one."""
        name, equals, value = word.partition("=")
        if name == "--set" and self.settings:
            self._set(given, value if equals else next(stream, ""))
            return
        if name not in options:
            raise UsageError(f"No such option: {name}{_alike(name, options)}; certus {self.name} --help lists all.")
        p = options[name]
        if p.flag:
            if equals:
                raise UsageError(f"{name} takes no value; {value!r} was given.")
            given[p.name] = p.flags[name]
            return
        if not equals and (value := next(stream, "\0")) == "\0":
            raise UsageError(f"{name} needs a value after it; certus {self.name} --help says which.")
        if p.many:
            given.setdefault(p.name, []).append(p.value(value))
        else:
            given[p.name] = p.value(value)

    def _set(self, given: dict[str, Any], text: str) -> None:
        """One setting."""
        name, equals, value = text.partition("=")
        if not equals or name not in self.settings:
            guess = "" if name in self.settings else _alike(name, self.settings)
            raise UsageError(f"--set {text}{guess}: expected NAME=VALUE of {', '.join(self.settings)}.")
        given[name] = self.settings[name].value(value)

    def _place(self, given: dict[str, Any], words: list[str]) -> None:
        """Arguments, in their order."""
        for p in self.parameters:
            if p.declared.option or not words:
                continue
            given[p.name] = [p.value(word) for word in words] if p.many else p.value(words[0])
            words = [] if p.many else words[1:]
        if words:
            raise UsageError(f"Got unexpected extra arguments: {' '.join(words)}; certus {self.name} --help says why.")

    @property
    def help(self) -> str:
        """Usage, what the command does, its arguments and options."""
        places = [p for p in self.parameters if not p.declared.option]
        options = [p.explained for p in self.parameters if p.flags and p.declared.option]
        settings = [p.explained for p in self.settings.values()]
        if settings:
            options.append(("--set NAME=VALUE", "One of the settings below; may be repeated"))
        usage = f"Usage: certus {self.name} [OPTIONS] {' '.join(p.shown for p in places)}".rstrip()
        parts = [usage, filled(inspect.getdoc(self.function) or "")]
        if places:
            parts.append("Arguments:\n" + columns([p.explained for p in places]))
        parts.append("Options:\n" + columns([*options, ("-h, --help", "Show this message and exit.")]))
        if settings:
            parts.append("Settings:\n" + columns(settings))
        return "\n\n".join(parts)


def _alike(name: str, known: Any) -> str:
    """A guess at what was meant."""
    close = get_close_matches(name, known)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def no_such_command(name: str, known: Any, group: str = "") -> UsageError:
    """Nothing is called so."""
    return UsageError(f"No such command: {name}{_alike(name, known)}; certus {group}--help lists all.")


def _width() -> int:
    return min(shutil.get_terminal_size().columns, 100) - 2


def filled(text: str) -> str:
    """Paragraphs, as wide as the terminal."""
    return "\n\n".join(
        textwrap.fill(p, _width(), initial_indent="  ", subsequent_indent="  ") for p in text.split("\n\n")
    )


def columns(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns, the second as wide as the terminal leaves it."""
    edge = min(max(len(name) for name, _ in rows), 30) + 4
    lines = []
    for name, text in rows:
        folded = textwrap.wrap(text, max(_width() - edge, 20)) or [""]
        if len(name) + 4 > edge:
            lines.append(f"  {name}")
        else:
            lines.append(f"  {name:{edge - 2}}{folded.pop(0)}".rstrip())
        lines += [" " * edge + line for line in folded]
    return "\n".join(lines)
