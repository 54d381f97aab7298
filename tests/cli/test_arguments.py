"""What commands take, from the annotations of a function."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest

from certus.cli.app import COMMANDS, TRAIN, command
from certus.cli.arguments import Argument, Command, Option, Setting, UsageError


class Color(StrEnum):
    red = "red"
    blue = "blue"


def taken(
    first: Annotated[str, Argument(help="One word")],
    rest: Annotated[list[Path] | None, Argument(metavar="[FILE]...", help="Files")] = None,
    time_limit: Annotated[float | None, Option(min=0, help="Seconds")] = None,
    count: Annotated[int, Option(min=1, max=3, help="How many")] = 2,
    names: Annotated[list[str] | None, Option("--name", help="May be repeated")] = None,
    color: Annotated[Color, Option(help="Which")] = Color.red,
    plain: Annotated[bool, Option(help="As it is")] = True,
    json: Annotated[bool, Option("--json", help="JSON")] = False,
) -> int:
    """Take words.

    And do nothing with them.
    """
    return count


COMMAND = Command("taken", taken)


def test_words_become_arguments_of_their_types_in_any_order():
    words = [
        "--json",
        "a",
        "--count",
        "3",
        "b",
        "--name=x",
        "--time-limit",
        "0.5",
        "--name",
        "y",
        "--color",
        "blue",
        "--no-plain",
        "c",
    ]
    assert COMMAND.parsed(words) == {
        "first": "a",
        "rest": [Path("b"), Path("c")],
        "time_limit": 0.5,
        "count": 3,
        "names": ["x", "y"],
        "color": Color.blue,
        "plain": False,
        "json": True,
    }
    assert COMMAND.parsed(["-"]) == {"first": "-"}
    assert COMMAND.parsed(["--json", "--", "--json", "-x"]) == {"json": True, "first": "--json", "rest": [Path("-x")]}
    assert COMMAND.parsed(["a", "--name", "--json"]) == {"first": "a", "names": ["--json"]}
    assert COMMAND.parsed(["a", "--name="]) == {"first": "a", "names": [""]}
    assert COMMAND.run(["a"]) == 2


@dataclass(frozen=True)
class Group:
    depth: Annotated[int, Setting(min=1, help="How deep")] = 4
    goal: Annotated[str | None, Setting(help="Where to")] = None
    path: Annotated[Path | None, Option(help="A file")] = None


def grouped(group: Group, word: Annotated[str, Argument(help="One word")] = "") -> int:
    """Take a group."""
    return group.depth


def test_groups_come_as_one_object_and_settings_by_one_option():
    own = Command("grouped", grouped)
    assert own.parsed(["a"]) == {"group": Group(), "word": "a"}
    given = own.parsed(["--set", "depth=2", "--path", "x", "--set=goal=a=b"])
    assert given == {"group": Group(2, "a=b", Path("x"))}
    assert own.run(["--set", "depth=3"]) == 3
    assert "Settings:\n  depth=<int>" in own.help
    assert "--depth" not in own.help
    for words, message in {
        "--set depth=0": "--set depth is '0'; expected at least 1.",
        "--set dept=1": "--set dept=1 (did you mean depth?): expected NAME=VALUE of depth, goal.",
        "--set depth": "--set depth: expected NAME=VALUE of depth, goal.",
        "--set": "--set : expected NAME=VALUE of depth, goal.",
        "--depth 2": "No such option: --depth",
    }.items():
        with pytest.raises(UsageError) as raised:
            own.parsed(words.split())
        assert str(raised.value).startswith(message)
    with pytest.raises(UsageError, match="No such option: --set"):
        COMMAND.parsed(["a", "--set", "x=1"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "Missing argument FIRST; certus taken --help says what it is."),
        ("a --count 4", "--count is '4'; expected 1 to 3."),
        ("a --count x", "--count is 'x'; expected a whole number."),
        ("a --time-limit nan", "--time-limit is 'nan'; expected at least 0."),
        ("a --time-limit -1", "--time-limit is '-1'; expected at least 0."),
        ("a --color green", "--color is 'green'; expected one of red, blue."),
        ("a --coler red", "No such option: --coler (did you mean --color"),
        ("a -x", "No such option: -x; certus taken --help lists all."),
        ("a --json=1", "--json takes no value; '1' was given."),
        ("a --count", "--count needs a value after it"),
    ],
)
def test_words_that_are_not_taken_are_refused(words, message):
    with pytest.raises(UsageError) as refused:
        COMMAND.parsed(words.split())
    assert str(refused.value).startswith(message)


def test_too_many_arguments_and_missing_options_are_refused():
    def two(a: Annotated[str, Argument(help="A")], b: Annotated[str, Option(help="B")]) -> None:
        """Two."""

    with pytest.raises(UsageError, match="Got unexpected extra arguments: y z"):
        Command("two", two).parsed(["x", "y", "z", "--b", "1"])
    with pytest.raises(UsageError, match="Missing option --b"):
        Command("two", two).parsed(["x"])


def test_help_says_all(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert COMMAND.run(["a", "--nonsense", "-h"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Usage: certus taken [OPTIONS] FIRST [FILE]...\n\n  Take words.\n\n  And do nothing")
    for line in (
        "  FIRST      One word",
        "  --count <int>         How many  [1 to 3; default: 2]",
        "  --plain / --no-plain  As it is  [default: --plain]",
        "  --color <red|blue>    Which  [default: red]",
    ):
        assert line in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("name", [*(n for n in COMMANDS if n != "train"), *(f"train {n}" for n in TRAIN)])
def test_every_command_explains_itself(name):
    one = command(name)
    assert one.parameters
    assert one.help.startswith(f"Usage: certus {name} ")
