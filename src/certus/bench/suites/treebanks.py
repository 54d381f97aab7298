"""Parsers of orders 1 to 3, projective and with crossing arcs, on many treebanks: accuracy, share proved, speed.

Each is trained on train with the tags of the files, the epoch chosen on dev, and measured on test: UAS and LAS over all
words (labels up to the first colon), the share of sentences whose tree is proved the best and of those without
branching, and words a second of processor time. Parsers are kept in ``work``, if given, and not trained again.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from certus.bench.cases import Row, data_folder
from certus.io.conllu import read_conllu
from certus.models.parser import Parser, Settings
from certus.models.training import train_parser
from certus.text.sentence import Sentence


def run(
    data: str = "",
    treebanks: tuple[str, ...] = ("sl_sst", "tr_imst", "da_cdt", "nl_cdb"),
    orders: tuple[int, ...] = (1, 2, 3),
    crossing: tuple[int, ...] = (0, 1),
    epochs: int = 6,
    work: str = "",
) -> Iterator[Row]:
    with TemporaryDirectory() as scratch:
        for name in treebanks:
            folder = data_folder(data, "ud", name)
            train, dev, test = (list(read_conllu(folder / f"{part}.conllu.gz")) for part in ("train", "dev", "test"))
            for arcs in crossing:
                for order in orders:
                    title = f"{name}, order {order}{', crossing' if arcs else ''}"
                    file = Path(work or scratch) / f"{name}-{order}{'x' if arcs else ''}.model"
                    if not file.exists():
                        settings = Settings(order=order, epochs=epochs, projective=not arcs)
                        train_parser(train, dev, settings=settings).save(file)
                    yield Row(title, _measured(Parser.load(file), test))


def _measured(parser: Parser, sentences: list[Sentence]) -> dict[str, float]:
    list(parser.parse(sentences[:10]))  # compiles
    start = time.process_time()
    found = list(parser.parse(sentences))
    seconds = time.process_time() - start
    pairs = [(a, b) for gold, guess in zip(sentences, found, strict=True) for a, b in zip(gold, guess, strict=True)]
    heads = sum(a.head == b.head for a, b in pairs)
    labels = sum(a.head == b.head and a.deprel.split(":")[0] == b.deprel.split(":")[0] for a, b in pairs)
    proved = at_once = np.ones(1, dtype=bool)
    if not parser.model.projective and not parser.model.first_order:
        batch = parser.encoder.encode(sentences)
        proved, at_once = parser.decode(batch).exact, parser.decode(batch, search=False).exact
    return {
        "UAS": 100 * heads / len(pairs),
        "LAS": 100 * labels / len(pairs),
        "% proved": 100 * float(proved.mean()),
        "% without branching": 100 * float(at_once.mean()),
        "words a second": len(pairs) / seconds,
    }
