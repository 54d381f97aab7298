"""Words a second of trained parsers beside UDPipe 1 on the same sentences, tags given, one core; growth with length.

Without ``udpipe``, a file, a UDPipe parser with its usual settings for English is trained for one iteration on dev:
enough for its speed, not for its accuracy. All start and end with parsed objects.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import certus
from certus.bench.cases import Case, Row, Skipped, best_seconds, data_folder, exponent
from certus.io.conllu import read_conllu
from certus.io.texts import read_file

SETTINGS = (
    "iterations=1;use_gold_tags=1;embedding_form=50;embedding_upostag=20;embedding_feats=20;embedding_deprel=20;"
    "hidden_layer=200;run=1"
)
LENGTHS = range(5, 60, 5)


def run(
    data: str = "", treebank: str = "en_ewt", models: tuple[str, ...] = ("en",), udpipe: str = "", sentences: int = 2077
) -> Iterator[Case | Row | Skipped]:
    """``models`` are names or folders for certus.load."""
    folder = data_folder(data, "ud", treebank)
    path = folder / "test.conllu.gz"
    test = list(read_conllu(path))[:sentences]
    words = sum(map(len, test))
    peers: dict[str, Any] = {}
    try:
        peers = _udpipe(folder, udpipe, len(test))
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
        with TemporaryDirectory() as scratch:
            plain = Path(scratch) / "text.txt"
            plain.write_text("\n\n".join(filter(None, (s.comment("text") for s in test))), encoding="utf-8")
            yield Case(
                f"{name}, text file to CoNLL-U",
                lambda p=pipeline, t=plain: "".join(piece.text for piece in p.parse_file(t, workers=1)),
                {
                    "sentence by sentence": lambda p=pipeline, t=plain: "".join(
                        map(str, p.parse(read_file(t), workers=1))
                    )
                },
                items=words,
                unit="word",
                bar="byte for byte the same",
                agrees=_same,
            )
        times = {}
        for least in LENGTHS:
            some = [s for s in test if least <= len(s) < least + 5][:100]
            if len(some) > 20:
                mean = sum(map(len, some)) // len(some)
                times[mean] = best_seconds(lambda p=pipeline, s=some: list(p.parser.parse(s)), 3) / len(some)
        if len(times) > 1:
            yield Row(f"{name}, growth", {"power of length": exponent(times)})


def _same(ours: str, peer: str, theirs: str) -> None:
    if ours != theirs:
        raise AssertionError(f"{peer} gives another text.")


def _udpipe(folder: Path, file: str, count: int) -> dict[str, Any]:
    import ufal.udpipe as udpipe

    def read(part: str) -> Any:
        reader = udpipe.InputFormat.newConlluInputFormat()
        with gzip.open(folder / f"{part}.conllu.gz", "rt", encoding="utf-8") as stream:
            reader.setText(stream.read())
        sentences, error, sentence = udpipe.Sentences(), udpipe.ProcessingError(), udpipe.Sentence()
        while reader.nextSentence(sentence, error):
            sentences.append(sentence)
            sentence = udpipe.Sentence()
        return sentences

    error = udpipe.ProcessingError()
    with TemporaryDirectory() as scratch:
        path = Path(file or Path(scratch) / "udpipe.model")
        if not path.exists():
            nothing = udpipe.Sentences()
            made = udpipe.Trainer.train("morphodita_parsito", read("dev"), nothing, "none", "none", SETTINGS, error)
            path.write_bytes(made)
        model = udpipe.Model.load(str(path))
    test = list(read("test"))[:count]

    def parse(beam: int) -> Any:
        return lambda: [model.parse(sentence, f"beam_search={beam}", error) for sentence in test]

    return {"UDPipe, beam 5": parse(5), "UDPipe, greedy": parse(1)}
