"""Words a second of a trained parser and of UDPipe 1 on the same sentences, tags given, one core, in one run.

    python benchmarks/parser_speed.py DATA MODEL [MODEL ...] [--udpipe FILE]

DATA is a folder with dev.conllu.gz and test.conllu.gz, MODEL a folder or name for certus.load. Needs ufal.udpipe.
Without --udpipe a UDPipe parser with its usual settings for English is trained for one iteration on dev: enough for its
speed, not for its accuracy. The parsers take turns, and the best of three rounds counts; all start and end with parsed
objects. Also prints how our time grows with the length of sentences: the exponent of a fit over 5 to 60 words.
"""

import argparse
import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.io.conllu import read_conllu
from certus.text import Sentence

PARSER = (
    "iterations=1;use_gold_tags=1;embedding_form=50;embedding_upostag=20;embedding_feats=20;embedding_deprel=20;"
    "hidden_layer=200;run=1"
)


def udpipe_sentences(path: Path):  # type: ignore[no-untyped-def]
    import ufal.udpipe as udpipe

    reader = udpipe.InputFormat.newConlluInputFormat()
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        reader.setText(stream.read())
    sentences, error, sentence = udpipe.Sentences(), udpipe.ProcessingError(), udpipe.Sentence()
    while reader.nextSentence(sentence, error):
        sentences.append(sentence)
        sentence = udpipe.Sentence()
    return sentences


def udpipe_model(data: Path, path: Path):  # type: ignore[no-untyped-def]
    import ufal.udpipe as udpipe

    if not path.exists():
        error = udpipe.ProcessingError()
        trees = udpipe_sentences(data / "dev.conllu.gz")
        model = udpipe.Trainer.train("morphodita_parsito", trees, udpipe.Sentences(), "none", "none", PARSER, error)
        if error.occurred():
            raise SystemExit(error.message)
        path.write_bytes(model)
    return udpipe.Model.load(str(path))


def growth(
    parse: Callable[[Any], object], sentences: list[Sentence], prepare: Callable[[list[Sentence]], object] = list
) -> float:
    """Exponent of time against length, over sentences of 5 to 60 words; what is prepared is not timed."""
    lengths, seconds = [], []
    for least in range(5, 60, 5):
        some = [s for s in sentences if least <= len(s) < least + 5]
        some = (some * 20)[:200] if some else []
        if not some:
            continue
        best, ready = np.inf, prepare(some)
        for _ in range(3):
            start = time.process_time()
            parse(ready)
            best = min(best, time.process_time() - start)
        lengths.append(np.mean([len(s) for s in some]))
        seconds.append(best / len(some))
    return float(np.polyfit(np.log(lengths), np.log(seconds), 1)[0])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("data", type=Path)
    arguments.add_argument("models", nargs="+")
    arguments.add_argument("--udpipe", type=Path, default=Path("udpipe.model"))
    given = arguments.parse_args()
    sentences = list(read_conllu(given.data / "test.conllu.gz"))
    words = sum(len(s) for s in sentences)
    udpipe = udpipe_model(given.data, given.udpipe)
    theirs = udpipe_sentences(given.data / "test.conllu.gz")
    from ufal.udpipe import ProcessingError

    error = ProcessingError()
    runs: dict[str, Callable[[], object]] = {
        "UDPipe, beam 5": lambda: [udpipe.parse(s, "beam_search=5", error) for s in theirs],
        "UDPipe, greedy": lambda: [udpipe.parse(s, "beam_search=1", error) for s in theirs],
    }
    parsers = {name: certus.load(name).parser for name in given.models}
    for name, parser in parsers.items():
        list(parser.parse(sentences[:10]))  # compile
        runs[f"certus {name}"] = lambda parser=parser: list(parser.parse(sentences))  # type: ignore[misc]
    best = dict.fromkeys(runs, np.inf)
    for _ in range(3):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    for name, seconds in best.items():
        ratio = best["UDPipe, beam 5"] / seconds
        print(f"{name:<30} {words / seconds:>10,.0f} words/s   {ratio:6.1f} times UDPipe with beam 5")
    for name, parser in parsers.items():
        exponent = growth(lambda some, parser=parser: list(parser.parse(some)), sentences)  # type: ignore[misc]
        print(f"{name}: time grows as length to the power {exponent:.2f}")


if __name__ == "__main__":
    main()
