"""Translations of a system, one a sentence: lines of text, lines of JSON, or a JSON file with "sentences"."""

import os
from typing import NamedTuple

from certus.errors import FormatError
from certus.io.files import read_text
from certus.schema import Field, in_file, parse_json


class SystemOutput(NamedTuple):
    """The translation of a sentence and its score, where they are given."""

    text: str | None
    score: float | None


def read_translations(path: str | os.PathLike[str], *, scored: bool = False) -> list[SystemOutput]:
    """One entry a sentence; JSON has "translation", and "score" or "model_score". With ``scored`` all need a score."""
    text, name = read_text(path), os.fspath(path)
    if name.removesuffix(".gz").endswith(".json") and not text.startswith("[") and '"sentences"' in text[:2000]:
        with in_file(path):
            rows = [_output(row) for row in Field(parse_json(text, path))["sentences"].items()]
    elif text.startswith("{"):
        rows = []
        for number, line in enumerate(text.splitlines(), start=1):
            with in_file(f"{path}:{number}"):
                rows.append(_output(Field(parse_json(line, f"{path}:{number}"))))
    else:
        rows = [SystemOutput(line, None) for line in text.splitlines()]
    if scored and any(row.score is None and row.text for row in rows):
        raise FormatError(path, None, "holds translations without scores; with phrases these are needed.")
    return rows


def _output(row: Field) -> SystemOutput:
    text, score = row.maybe("translation"), row.maybe("score") or row.maybe("model_score")
    return SystemOutput(None if text is None else text.text(), None if score is None else score.number())
