"""certus bench: measure a claim, ours and the peers in turns."""

import json as json_
from pathlib import Path
from typing import Annotated

from certus.bench import runner
from certus.cli.arguments import Argument, Option
from certus.cli.messages import print_json
from certus.cli.options import JsonLines
from certus.errors import InvalidInput


def bench(
    suites: Annotated[list[str] | None, Argument(metavar="[SUITE]...", help="Without any, all are listed")] = None,
    data: Annotated[Path | None, Option(help="Folder with treebanks and translation models")] = None,
    against: Annotated[Path | None, Option(help="Another checkout of certus, measured in turns")] = None,
    setting: Annotated[list[str] | None, Option("--set", metavar="NAME=VALUE", help="Of the suite")] = None,
    rounds: Annotated[int, Option(min=1, help="Turns at most; the best one counts")] = 15,
    clock: Annotated[str, Option(help="cpu: processor time; wall: time gone by")] = "cpu",
    json: JsonLines = False,
) -> int:
    """Measure what a suite claims: ours and the peers that are installed take turns, and ratios are printed.

    With --against, the same calls in this version of certus and in another checkout: times, and whether answers differ.
    """
    if clock not in runner.CLOCKS:
        raise InvalidInput(f"--clock is {clock!r}; expected one of {', '.join(runner.CLOCKS)}.")
    if not suites:
        listed = [{"suite": name, "shows": runner.title(name)} for name in runner.names()]
        width = max(len(one["suite"]) for one in listed)
        print(*(json_.dumps(one) if json else f"{one['suite']:<{width}}  {one['shows']}" for one in listed), sep="\n")
        return 0
    given = dict(_pair(text) for text in setting or ())
    for name in suites:
        settings = runner.settings_of(name, given)
        if data is not None and runner.reads_data(name):
            settings["data"] = str(data)
        if against is None:
            found = runner.measured(name, settings, rounds=rounds, clock=clock)
        else:
            found = runner.compared(name, settings, against, rounds=rounds, clock=clock)
        if json:
            for row in found:
                print_json({"suite": name, **runner.as_data(row)})
        else:
            print(f"{name}: {runner.title(name)}", flush=True)
            for line in runner.as_lines(found):
                print(line, flush=True)
    return 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InvalidInput(f"--set {text}: expected NAME=VALUE.")
    return name, value
