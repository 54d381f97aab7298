"""Binary language models of KenLM, through its own library (the extra ``kenlm``).

The library answers queries but does not list its n-grams, so they are asked for: every n-gram over the words wanted
whose last n - 1 words are an n-gram too, order by order. The cost grows with the square of the number of words: seconds
for a thousand, minutes for ten thousand. Values are KenLM's, in single precision.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from certus.errors import FormatError, InvalidInput
from certus.io.arpa import BEGIN, END, UNKNOWN, Arpa, Ngrams
from certus.io.files import opened, text_lines

MAGIC = b"mmap lm http://kheafield.com"


def is_kenlm(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a binary model of KenLM."""
    with opened(path) as stream:
        return stream.read(len(MAGIC)) == MAGIC


def target_words(table: str | os.PathLike[str], field: int) -> Iterator[str]:
    """The words in a field of a table of rules or phrases, counted from 0: those that a model may be asked for."""
    for line in text_lines(table):
        sides = line.split("|||")
        if len(sides) > field:
            yield from sides[field].split()


def read_kenlm(path: str | os.PathLike[str], words: Iterable[str]) -> Arpa:
    """The part of a KenLM model that speaks of ``words``; others are unknown to it.

    Raises
    ------
    InvalidInput : the package kenlm is not installed.
    FormatError : it cannot read the file.
    """
    try:
        import kenlm
    except ImportError:
        raise InvalidInput(
            f"{path} is a binary file of KenLM; install its library with: pip install 'certus[kenlm]', "
            "or give the ARPA file it was made from."
        ) from None
    try:
        model = kenlm.Model(os.fspath(path))
    except OSError as error:
        raise FormatError(path, None, f"KenLM cannot read it: {error}.") from None
    known = sorted({word for word in words if word in model} - {UNKNOWN, BEGIN, END})
    return _listed(kenlm, model, [UNKNOWN, BEGIN, END, *known])


def _listed(kenlm: Any, model: Any, words: Sequence[str]) -> Arpa:
    def asked(state: Any, word: int) -> tuple[float, int, Any]:
        after = kenlm.State()
        answer = model.BaseFullScore(state, words[word], after)
        return answer.log_prob, answer.ngram_length, after

    empty, begin = kenlm.State(), kenlm.State()
    model.NullContextWrite(empty)
    model.BeginSentenceWrite(begin)
    first = {w: asked(empty, w) for w in range(len(words))}
    unigrams: dict[tuple[int, ...], float] = {
        (w,): (0.0 if words[w] == BEGIN else value) for w, (value, _, _) in first.items()
    }
    state: dict[tuple[int, ...], Any] = {(w,): begin if words[w] == BEGIN else s for w, (_, _, s) in first.items()}
    state[()] = empty
    followers: dict[tuple[int, ...], list[int]] = {(): [w for w, word in enumerate(words) if word != BEGIN]}
    tables = [unigrams]
    back_offs: list[dict[tuple[int, ...], float]] = []
    for n in range(2, model.order + 1):
        grams: dict[tuple[int, ...], float] = {}
        back_off: dict[tuple[int, ...], float] = {}
        for context in tables[-1]:
            if words[context[-1]] == END:
                continue
            held = followers.setdefault(context, [])
            for w in followers[context[1:]]:
                value, length, after = asked(state[context], w)
                if length == n:
                    grams[(*context, w)] = value
                    state[(*context, w)] = after
                    held.append(w)
            present = set(held)
            other = next((w for w in followers[()] if w not in present), None)
            if other is not None:
                back_off[context] = asked(state[context], other)[0] - asked(state[context[1:]], other)[0]
        tables.append(grams)
        back_offs.append(back_off)
    back_offs.append({})
    orders = [
        Ngrams(
            np.array(list(table), dtype=np.int32).reshape(len(table), n),
            np.array(list(table.values())),
            np.array([back_off.get(gram, 0.0) for gram in table]),
        )
        for n, (table, back_off) in enumerate(zip(tables, back_offs, strict=True), start=1)
    ]
    return Arpa(list(words), orders)
