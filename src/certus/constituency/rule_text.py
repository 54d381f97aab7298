"""Grammars as text: one rule a line, ``weight  X -> Y Z``."""

import math
import re

from certus.checks import of_kind
from certus.constituency.binarise import Binary, Chain, Memory, Symbol
from certus.constituency.lexicon import Listed
from certus.errors import FormatError

ANY_WORD = "<unknown>"
MAX_CHAINS = 20_000
MAX_SYMBOLS = 100  # on a right-hand side, and in a chain: each step remembers those before it

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"]+|"')
Rules = tuple[str, dict[Binary, float], dict[Chain, float], Listed]


def read_rules(text: str, root: str | None, path: object) -> Rules:
    """Root, binary rules, chains and lexicon of a grammar written as text."""
    of_kind("text", text, str, "rules as text, one a line; for a file call Grammar.read or load")
    memory = Memory()
    seen_on: dict[tuple[str, tuple[str, ...]], int] = {}
    binary: dict[Binary, float] = {}
    unary: dict[str, dict[str, float]] = {}
    words: dict[str, list[tuple[Symbol, float]]] = {}
    unknown: list[tuple[Symbol, float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        weight, parent, right = _rule(line, path, number)
        root = parent if root is None else root
        if (parent, right) in seen_on:
            earlier = seen_on[parent, right]
            raise FormatError(
                path, number, f"{parent} -> {' '.join(right)} stands on line {earlier} already; give it once."
            )
        seen_on[parent, right] = number
        if right == (ANY_WORD,):
            unknown.append((Symbol(parent), weight))
        elif len(right) == 1 and right[0].startswith('"'):
            word = re.sub(r"\\(.)", r"\1", right[0][1:-1])
            words.setdefault(word, []).append((Symbol(parent), weight))
        elif len(right) == 1:
            unary.setdefault(parent, {})[right[0]] = weight
        else:
            # The weight sits on the last step of the comb, which alone tells the whole rule.
            symbol = step_parent = Symbol(parent)
            for k in range(len(right) - 2):
                rest = memory.rest(symbol, right[: k + 1])
                binary.setdefault(Binary(step_parent, Symbol(right[k]), rest), 0.0)
                step_parent = rest
            binary[Binary(step_parent, Symbol(right[-2]), Symbol(right[-1]))] = weight
    if root is None:
        raise FormatError(path, None, "holds no rules; a grammar needs at least one.")
    lines = {(parent, right[0]): number for (parent, right), number in seen_on.items() if len(right) == 1}
    chains = _chains(unary, lines, path)
    return root, binary, chains, Listed({word: tuple(entry) for word, entry in words.items()}, tuple(unknown))


def _rule(line: str, path: object, number: int) -> tuple[float, str, tuple[str, ...]]:
    tokens = _TOKEN.findall(line)
    if '"' in tokens:
        raise FormatError(path, number, 'a double quote is not closed; words are written as "word".')
    if "->" not in tokens[1:3]:
        raise FormatError(
            path, number, f'"{line.strip()}" is not a rule; expected: weight X -> Y Z, or weight X -> "word".'
        )
    arrow = tokens.index("->", 1)
    weight = 0.0
    if arrow == 2:
        try:
            weight = float(tokens[0])
        except ValueError:
            raise FormatError(path, number, f'the weight is "{tokens[0]}"; expected a number.') from None
        if not math.isfinite(weight):
            raise FormatError(
                path, number, f"the weight is {tokens[0]}; weights are finite (leave a forbidden rule out)."
            )
    parent, right = tokens[arrow - 1], tuple(tokens[arrow + 1 :])
    if parent.startswith('"') or parent == ANY_WORD:
        raise FormatError(path, number, f"the left-hand side is {parent}; expected a symbol.")
    if not right:
        raise FormatError(path, number, f"{parent} has nothing on its right-hand side; empty rules are not allowed.")
    if len(right) > MAX_SYMBOLS:
        raise FormatError(path, number, f"{len(right)} symbols on the right-hand side; expected at most {MAX_SYMBOLS}.")
    if len(right) > 1 and any(token.startswith('"') or token == ANY_WORD for token in right):
        raise FormatError(path, number, "a word stands beside other symbols; give it a preterminal of its own.")
    if right == ('""',):
        raise FormatError(path, number, 'the word "" is empty.')
    return weight, parent, right


def _chains(unary: dict[str, dict[str, float]], lines: dict[tuple[str, str], int], path: object) -> dict[Chain, float]:
    """Every path of one or more unary rules, with the sum of its weights."""
    chains: dict[Chain, float] = {}
    for start in unary:
        stack: list[tuple[tuple[str, ...], float]] = [((start,), 0.0)]
        while stack:
            labels, total = stack.pop()
            for child, weight in unary.get(labels[-1], {}).items():
                if child in labels:
                    cycle = (*labels[labels.index(child) :], child)
                    where = lines[labels[-1], child]
                    raise FormatError(
                        path, where, f"unary rules make a cycle: {' -> '.join(cycle)}. Leave one of them out."
                    )
                longer = (*labels, child)
                if len(longer) > MAX_SYMBOLS:
                    where = lines[labels[-1], child]
                    raise FormatError(path, where, f"a chain of more than {MAX_SYMBOLS} unary rules; leave some out.")
                chains[Chain(tuple(map(Symbol, longer)))] = total + weight
                if len(chains) > MAX_CHAINS:
                    raise FormatError(
                        path, None, f"the unary rules make more than {MAX_CHAINS} chains; leave some out."
                    )
                stack.append((longer, total + weight))
    return chains
