"""One page that holds two parses of the same sentences against each other: what differs, counted and drawn."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from certus.draw.svg import clean
from certus.errors import InvalidInput
from certus.report.page import bare, page
from certus.text import Sentence, Token

KINDS = ("head", "label", "tag")
MOST_ROWS = 12  # of a table


class Difference(NamedTuple):
    """A word on which two parses differ: its head, its label alone, or its tag alone."""

    word: int
    form: str
    tag: str
    kind: str
    first: str
    second: str


def differences(a: Sentence, b: Sentence) -> list[Difference]:
    """Where two parses of a sentence differ; InvalidInput if they are of different words."""
    if a.words != b.words:
        name = a.comment("sent_id")
        raise InvalidInput(
            f"sentence {name or repr(' '.join(a.words[:5]))} has other words in the second file: "
            f"{len(a)} and {len(b)} of them. Compare parses of the same words."
        )
    out = []
    for x, y in zip(a, b, strict=True):
        for kind, first, second in _sides(a, b, x, y):
            if first != second:
                out.append(Difference(x.id, x.form, x.upos, kind, first, second))
                break
    return out


def _sides(a: Sentence, b: Sentence, x: Token, y: Token) -> tuple[tuple[str, str, str], ...]:
    return (
        ("head", _head(a, x), _head(b, y)),
        ("label", x.deprel, y.deprel),
        ("tag", x.upos, y.upos),
    )


def _head(sentence: Sentence, token: Token) -> str:
    if not token.head:
        return "the root" if token.head == 0 else "none"
    return f"{token.head} {sentence.tokens[token.head - 1].form}"


def compare_parses(
    pairs: Iterable[tuple[Sentence, Sentence]], names: tuple[str, str] = ("first", "second"), *, most: int = 100
) -> str:
    """The page for pairs of parses, with pictures of at most so many sentences that differ."""
    sentences, words, differing = 0, 0, 0
    count: Counter[str] = Counter()
    labels: Counter[tuple[str, str]] = Counter()
    tags: Counter[str] = Counter()
    shown: list[dict[str, Any]] = []
    for number, (a, b) in enumerate(pairs, start=1):
        found = differences(a, b)
        sentences, words = sentences + 1, words + len(a)
        if not found:
            continue
        differing += 1
        count.update(d.kind for d in found)
        tags.update(d.tag for d in found if d.kind != "tag")
        at = {d.word for d in found if d.kind != "tag"}
        labels.update((x.deprel, y.deprel) for x, y in zip(a, b, strict=True) if x.id in at)
        if len(shown) < most:
            shown.append(
                {
                    "name": a.comment("sent_id") or f"sentence {number}",
                    "svg": bare(a.picture(other=b)),
                    "differences": [d._asdict() for d in found],
                }
            )
    if not sentences:
        raise InvalidInput("there is no sentence to compare.")
    heads, both = words - count["head"], words - count["head"] - count["label"]
    facts = [
        ("sentences", f"{sentences}, of which {differing} differ"),
        ("words", str(words)),
        ("same head", f"{heads} ({heads / max(words, 1):.2%})"),
        ("same head and label", f"{both} ({both / max(words, 1):.2%})"),
    ]
    tables = [
        _table("Differences by tag of the word", [(tag, n) for tag, n in tags.most_common(MOST_ROWS)]),
        _table("By the two labels", [(f"{x} / {y}", n) for (x, y), n in labels.most_common(MOST_ROWS)]),
    ]
    data = {"sentences": shown, "names": names}
    return page(
        f"{names[0]} and {names[1]}", _body(names, facts, tables, shown, differing), data=data, script="compare.js"
    )


def _table(title: str, rows: list[tuple[str, int]]) -> str:
    cells = "".join(f"<tr><td>{clean(name)}</td><td>{n}</td></tr>" for name, n in rows)
    return f"<div><h3>{clean(title)}</h3><div class='scroll'><table>{cells}</table></div></div>" if rows else ""


def _body(
    names: tuple[str, str],
    facts: list[tuple[str, str]],
    tables: list[str],
    shown: list[dict[str, Any]],
    differing: int,
) -> str:
    listed = "".join(f"<dt>{clean(k)}</dt><dd>{clean(v)}</dd>" for k, v in facts)
    options = {
        "kind": [("", "any difference"), *((kind, f"another {kind}") for kind in KINDS)],
        "tag": [("", "any tag"), *((t, t) for t in sorted({d["tag"] for s in shown for d in s["differences"]}))],
    }
    selects = "".join(
        f'<label>{name} <select id="{name}">'
        + "".join(f'<option value="{clean(value)}">{clean(text)}</option>' for value, text in choices)
        + "</select></label>"
        for name, choices in options.items()
    )
    left = f" The first {len(shown)} of the {differing} that differ are drawn." if differing > len(shown) else ""
    return (
        f'<main><p class="lead">certus compare</p><h1>{clean(names[0])} and {clean(names[1])}</h1>'
        f'<dl class="facts">{listed}</dl><div class="rivals">{"".join(tables)}</div>'
        '<h2>Sentences</h2><p class="note">Arcs that only the first has are blue above the words, those that only the '
        f'second has are dashed below them.{left}</p><div class="controls">{selects}'
        '<label>word <input id="form" type="search" size="12"></label><span id="found" class="note"></span></div>'
        '<div id="list"></div><button id="more" hidden>Show more</button></main>'
    )
