"""certus parse --output: files into files."""

from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

from certus.cli.messages import BAD_INPUT, complain, print_json, say
from certus.cli.progress import estimated
from certus.engines.corpus import FileDone, Settings, parse, planned
from certus.errors import InvalidInput


def parse_corpus(
    inputs: list[str],
    output: Path,
    settings: dict[str, Any],
    *,
    model: str,
    engine: str,
    workers: int | None,
    address: str | None,
    again: bool,
    json: bool,
) -> int:
    """Parse files into a folder; returns the exit code. What is wrong with a file is said, and the others go on."""
    if not inputs:
        raise InvalidInput("--output is for files: name some, or a folder.")
    if settings["format"] in ("svg", "html", "ascii"):
        raise InvalidInput("--output takes CoNLL-U or Parquet; drawings go to stdout.")
    if address is not None and engine != "ray":
        raise InvalidInput("--address is that of a Ray cluster: it goes with --engine ray.")
    chosen = Settings(**settings)
    total = sum(file.size for file in planned(inputs, output, chosen))
    run = parse(
        inputs, output, model=model, engine=engine, workers=workers, address=address, settings=chosen, again=again
    )
    begun = perf_counter()
    done: list[FileDone] = []
    with estimated("parsing", total) as advance:
        for one in run:
            done.append(one)
            advance(one.size)
            if one.error:
                complain(one.error if one.source in one.error else f"{one.source}: {one.error}")
            elif one.unproved:
                say(f"certus: {one.source}: {one.unproved} of {one.sentences} trees are not proved optimal.")
            if json:
                print_json({name: value for name, value in asdict(one).items() if name != "size"})
    say(_summary(done, perf_counter() - begun))
    return BAD_INPUT if any(one.error for one in done) else 0


def _summary(done: list[FileDone], seconds: float) -> str:
    new = [one for one in done if not (one.skipped or one.error)]
    words = sum(one.words for one in new)
    parts = [f"certus: {len(new)} files, {words} words in {seconds:.1f} s"]
    if new:
        parts.append(f" ({words / max(seconds, 1e-9):.0f} a second)")
    before, failed = sum(one.skipped for one in done), sum(bool(one.error) for one in done)
    parts += [f"; {before} were done before"] if before else []
    parts += [f"; {failed} failed"] if failed else []
    return "".join(parts) + "."
