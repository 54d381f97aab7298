"""Shell snippets of the pages: the commands of each block, what the page shows of their output, and which are not run.

A block that is not run has a comment before it that says why: ``<!-- not run: needs the network -->``. An indented
block right after one shows what its last command prints; a line of three dots in it stands for any lines.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(
    r"(?:^<!-- not run: ([^\n]*) -->\n)?^```sh\n(.*?)^```$(?:\n+((?:^ {4}[^\n]*(?:\n|\Z)|^\n(?= {4}))+))?", re.M | re.S
)
REASONS = ("needs the network", "trains for minutes", "needs data", "measures for minutes", "builds the project itself")


class Command(NamedTuple):
    """The line of a command, its words, and the files that its streams are."""

    line: str
    words: list[str]
    stdin: str | None
    stdout: str | None


class Block(NamedTuple):
    """A block of a page: where, its commands, what is shown of their output, and why it is not run, if it is not."""

    line: int
    commands: list[Command]
    shown: list[str] | None
    reason: str | None


def blocks(page: Path) -> list[Block]:
    """The shell blocks of a page."""
    text = page.read_text(encoding="utf-8")
    out = []
    for found in BLOCK.finditer(text):
        shown = None if found[3] is None else [line[4:].rstrip() for line in found[3].rstrip().split("\n")]
        reason = found[1]
        commands = [] if reason is not None else parsed(found[2])
        out.append(Block(text.count("\n", 0, found.start(2)) + 1, commands, shown, reason))
    return out


def parsed(source: str) -> list[Command]:
    """The commands of a block; lines may go on, be joined by && and redirect stdin and stdout."""
    out = []
    for line in source.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&<>|;")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, "&&"]:
            if word != "&&":
                words.append(word)
            elif words:
                out.append(_command(line, words))
                words = []
    return out


def _command(line: str, words: list[str]) -> Command:
    files: dict[str, str | None] = {">": None, "<": None}
    plain: list[str] = []
    source = iter(words)
    for word in source:
        if word in files:
            files[word] = next(source)
        else:
            assert not set(word) <= set("&<>|;"), f"{word} in {words}: snippets use && and redirections only"
            plain.append(word)
    return Command(line, plain, files["<"], files[">"])


def fits(printed: list[str], shown: list[str]) -> bool:
    """Whether lines are those that are shown, where ``...`` is any number of them."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(fits(printed[k:], shown[1:]) for k in range(len(printed) + 1))
    return bool(printed) and printed[0].rstrip() == shown[0] and fits(printed[1:], shown[1:])
