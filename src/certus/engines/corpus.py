"""Corpora: files in, files out, on any engine; written whole or not at all, and not done again once they are done.

Beside the output, in a folder ``.certus``, stands a record of every file that is done: digests of what went in, of the
model and of the settings. A run over the same files goes on where the last one ended; a file whose input, model or
settings changed is done again. It does not matter how often, or by how many, a file is parsed: the output is the same.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from certus.engines.engine import engine_of
from certus.engines.tables import FORMATS
from certus.errors import CertusError, InvalidInput
from certus.io.texts import found_files, read_file, stem
from certus.models.pipeline import Pipeline, load, model_digest
from certus.schema import parse_json
from certus.text import Sentence
from certus.writing import write_atomically, written_whole

RECORDS = ".certus"
COUNTS = ("sentences", "words", "unproved")


@dataclass(frozen=True)
class Settings:
    """How files are parsed and written; what their output depends on, beside the model."""

    format: str = "conllu"  # of FORMATS
    tokenised: bool = False
    lines: bool = False
    confidences: bool = False
    certificates: bool = False
    time_limit: float | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise InvalidInput(f"format is {self.format!r}; expected one of {', '.join(FORMATS)}.")


@dataclass(frozen=True)
class File:
    """A file to be parsed."""

    source: str
    target: str
    record: str
    size: int

    def __str__(self) -> str:
        return self.source


@dataclass(frozen=True)
class FileDone:
    """What became of a file: ``error`` says what is wrong with it, if something is."""

    source: str
    target: str
    sentences: int = 0
    words: int = 0
    unproved: int = 0
    seconds: float = 0.0
    skipped: bool = False  # it was done before
    error: str = ""
    size: int = field(default=0, compare=False)


class Corpus:
    """The task: parses one file into another."""

    def __init__(self, model: str, settings: Settings, *, again: bool = False) -> None:
        self.model, self.settings, self.again = model, settings, again
        self.threads, self.digest = 1, ""
        self.pipeline: Pipeline | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"pipeline": None}  # each worker loads its own

    def start(self, threads: int) -> None:
        """Load the model."""
        self.threads = threads
        self.pipeline, self.digest = load(self.model), model_digest(self.model)

    def __call__(self, item: File) -> FileDone:
        """Parse a file, unless it is done already."""
        assert self.pipeline is not None
        begun = perf_counter()
        key = {"input": digest(item.source), "model": self.digest, "settings": asdict(self.settings)}
        known = None if self.again else _known(item, key)
        if known is not None:
            return replace(
                FileDone(item.source, item.target, *(known[n] for n in COUNTS)), skipped=True, size=item.size
            )
        counts = self._written(item)
        size = os.path.getsize(item.target)
        write_atomically(item.record, json.dumps(key | counts | {"bytes": size}).encode())
        done = FileDone(item.source, item.target, counts["sentences"], counts["words"], counts["unproved"])
        return replace(done, seconds=perf_counter() - begun, size=item.size)

    def _written(self, file: File) -> dict[str, int]:
        """Sentences, words, and sentences whose tree is not proved."""
        counts = dict.fromkeys(COUNTS, 0)

        def parsed() -> Iterator[Sentence]:
            assert self.pipeline is not None
            s = self.settings
            sentences = read_file(file.source, tokenised=s.tokenised, lines=s.lines)
            options: dict[str, Any] = {"confidences": s.confidences, "certificates": s.certificates}
            found = self.pipeline.results(sentences, **options, time_limit=s.time_limit, workers=self.threads)
            for one in found:
                counts["sentences"] += 1
                counts["words"] += len(one.sentence)
                counts["unproved"] += not one.certificate.exact
                yield one.annotated()

        s = self.settings
        if s.format == "conllu" and not (s.confidences or s.certificates):
            return self._rewritten(file)
        with written_whole(file.target) as stream:
            FORMATS[self.settings.format].write(stream, parsed())
        return counts

    def _rewritten(self, file: File) -> dict[str, int]:
        """The same to CoNLL-U, as bytes."""
        assert self.pipeline is not None
        counts, s = dict.fromkeys(COUNTS, 0), self.settings
        reading: dict[str, Any] = {"tokenised": s.tokenised, "lines": s.lines}
        with written_whole(file.target) as stream:
            for piece in self.pipeline.parse_file(
                file.source, **reading, time_limit=s.time_limit, workers=self.threads
            ):
                stream.write(piece.text.encode())
                for name, count in zip(COUNTS, (piece.sentences, piece.words, len(piece.unproved)), strict=True):
                    counts[name] += count
        return counts


def digest(path: str | os.PathLike[str]) -> str:
    """Of the bytes of a file."""
    with open(path, "rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _known(file: File, key: dict[str, Any]) -> dict[str, Any] | None:
    """The record of a file, if it is about this input, model and settings, and its output is there."""
    try:
        with open(file.record, "rb") as stream:
            record = parse_json(stream.read(), file.record)
        if isinstance(record, dict) and all(record.get(name) == value for name, value in key.items()):
            whole = os.path.getsize(file.target) == record["bytes"] and all(type(record[n]) is int for n in COUNTS)
            return record if whole else None
    except (OSError, CertusError, KeyError):
        pass
    return None


def planned(inputs: Sequence[str], output: Path, settings: Settings) -> list[File]:
    """The files that inputs stand for, folders and patterns among them, with the place of the output of each.

    InvalidInput if two would be written to the same place, or one over its own input.
    """
    ending = FORMATS[settings.format].ending
    places: dict[Path, Path] = {}
    files = []
    for given in inputs:
        found = found_files(given)
        if found is None:
            raise InvalidInput(f"{given}: no such file or folder, and nothing matches it as a pattern.")
        for path, name in found:
            bare = Path(stem(name) or str(name))
            target = output / bare.with_name(bare.name + ending)
            if target in places:
                both = f"{places[target]} and {path}"
                raise InvalidInput(f"{both} would both be written to {target}; give them in two runs, to two folders.")
            if target.exists() and os.path.samefile(target, path):
                raise InvalidInput(f"{target}: the output would replace the input; give --output another folder.")
            places[target] = path
            record = output / RECORDS / bare.with_name(bare.name + ending + ".json")
            files.append(File(str(path), str(target), str(record), path.stat().st_size))
    return files


def parse(
    inputs: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = "en",
    engine: str = "threads",
    workers: int | None = None,
    address: str | None = None,
    settings: Settings | None = None,
    again: bool = False,
) -> Iterator[FileDone]:
    """Parse files into files: texts and CoNLL-U, plain or packed, folders of them, or patterns such as ``a/**/*.txt``.

    Parameters
    ----------
    inputs : paths
        Of files and folders, or patterns.
    output : path
        The folder for the output; files of a folder keep their places below it. With Ray, one that all machines share.
    model : str or path
        Name or folder of a trained parser.
    engine : "threads", "processes" or "ray"
        Threads parse one file after the other, the others as many as there are workers. Output is the same for all.
    workers : int, optional
        How many; by default one for each processor.
    address : str, optional
        Of a Ray cluster; without it Ray is started on this machine.
    settings : Settings, optional
        Format of the output, and options of the parser.
    again : bool
        Parse files too that are done already.

    Yields
    ------
    FileDone
        For each file, as it is done. An error of one file does not stop the others.
    """
    settings = settings or Settings()
    folder = Path(output)
    runner = engine_of(engine, workers, address)
    files = planned([os.fspath(given) for given in inputs], folder, settings)
    name = os.fspath(model)
    name = os.path.abspath(name) if os.path.isdir(name) else name
    load(name)  # what is wrong with it is said here, not by a worker
    for parent in {Path(path).parent for file in files for path in (file.target, file.record)}:
        parent.mkdir(parents=True, exist_ok=True)
    with closing(runner.run(Corpus(name, settings, again=again), files)) as run:
        for file, answer in run:
            if isinstance(answer, CertusError | OSError | UnicodeError):
                yield FileDone(file.source, file.target, error=str(answer), size=file.size)
            elif isinstance(answer, Exception):
                raise answer
            else:
                yield answer
