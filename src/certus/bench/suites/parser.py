"""Words a second of trained parsers beside UDPipe 1 on the same sentences, tags given, one core; growth with length.

Without ``udpipe``, a file, a UDPipe parser with its usual settings for English is trained for one iteration on dev:
enough for its speed, not for its accuracy. All start and end with parsed objects.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import certus
from certus.bench import udpipe as peer
from certus.bench.cases import Case, Row, Skipped, best_seconds, data_folder, exponent
from certus.io.conllu import read_conllu
from certus.io.texts import read_file
from certus.models.pipeline import Pipeline
from certus.text import Sentence

SETTINGS = (
    "iterations=1;use_gold_tags=1;embedding_form=50;embedding_upostag=20;embedding_feats=20;embedding_deprel=20;"
    "hidden_layer=200;run=1"
)
LENGTHS = range(5, 60, 5)


def run(
    data: str = "",
    treebank: str = "en_ewt",
    models: tuple[str, ...] = ("en",),
    udpipe: str = "",
    system: str = "projective",
    sentences: int = 2077,
) -> Iterator[Case | Row | Skipped]:
    """``models`` are names or folders for certus.load, ``system`` that of UDPipe's transitions, such as swap."""
    folder = data_folder(data, "ud", treebank)
    path = folder / "test.conllu.gz"
    test = list(read_conllu(path))[:sentences]
    words = sum(map(len, test))
    peers: dict[str, Any] = {}
    try:
        peers = _udpipe(folder, udpipe, system, len(test))
    except ImportError:
        yield Skipped("ufal.udpipe is not installed")
    for name in models:
        pipeline = certus.load(name)
        yield Case(
            f"{name}, CoNLL-U sentences to trees",
            lambda p=pipeline: [[(t.head, t.deprel) for t in s] for s in p.parser.parse(test)],
            peers,
            items=words,
            unit="word",
        )
        yield Case(
            f"{name}, with certificates",
            lambda p=pipeline: [str(s) for s in p.parse(test, certificates=True)],
            {"without": lambda p=pipeline: [str(s) for s in p.parse(test)]},
            items=words,
            unit="word",
            bar="without / ours at least 1 / 1.2",
        )
        yield Case(
            f"{name}, CoNLL-U file to CoNLL-U",
            lambda p=pipeline: "".join(piece.text for piece in p.parse_file(path, workers=1)),
            {"sentence by sentence": lambda p=pipeline: "".join(map(str, p.parse(read_conllu(path), workers=1)))},
            items=words,
            unit="word",
            bar="byte for byte the same",
            agrees=_same,
        )
        if pipeline.tagger is not None:
            yield from _text_cases(name, pipeline, test)
        times = {}
        for least in LENGTHS:
            some = [s for s in test if least <= len(s) < least + 5][:100]
            if len(some) > 20:
                mean = sum(map(len, some)) // len(some)
                times[mean] = best_seconds(lambda p=pipeline, s=some: list(p.parser.parse(s)), 3) / len(some)
        if len(times) > 1:
            yield Row(f"{name}, growth", {"power of length": exponent(times)})


def _text_cases(name: str, pipeline: Pipeline, test: list[Sentence]) -> Iterator[Case]:
    with TemporaryDirectory() as scratch:
        plain = Path(scratch) / "text.txt"
        plain.write_text("\n\n".join(filter(None, (s.comment("text") for s in test))), encoding="utf-8")
        yield Case(
            f"{name}, text file to CoNLL-U",
            lambda: "".join(piece.text for piece in pipeline.parse_file(plain, workers=1)),
            {"sentence by sentence": lambda: "".join(map(str, pipeline.parse(read_file(plain), workers=1)))},
            items=sum(map(len, test)),
            unit="word",
            bar="byte for byte the same",
            agrees=_same,
        )
        yield Case(
            f"{name}, the same on 2 threads",
            lambda: "".join(piece.text for piece in pipeline.parse_file(plain, workers=2)),
            {"1 thread": lambda: "".join(piece.text for piece in pipeline.parse_file(plain, workers=1))},
            items=sum(map(len, test)),
            unit="word",
            bar="1 thread / ours at least 1.8 by --clock wall",
            agrees=_same,
        )


def _same(ours: str, peer: str, theirs: str) -> None:
    if ours != theirs:
        raise AssertionError(f"{peer} gives another text.")


def _udpipe(folder: Path, file: str, system: str, count: int) -> dict[str, Any]:
    import ufal.udpipe as udpipe

    with TemporaryDirectory() as scratch:
        place = Path(file or Path(scratch) / "udpipe.model")
        model = peer.model(place, folder / "dev.conllu.gz", None, "none", f"{SETTINGS};transition_system={system}")
    test, error = list(peer.sentences(folder / "test.conllu.gz"))[:count], udpipe.ProcessingError()

    def parse(beam: int) -> Any:
        return lambda: [model.parse(sentence, f"beam_search={beam}", error) for sentence in test]

    return {"UDPipe, beam 5": parse(5), "UDPipe, greedy": parse(1)}
