"""The bundled English model on the test part of UD English-EWT, with gold tags and with its own: what its card says."""

from collections.abc import Iterator
from dataclasses import replace

import certus
from certus.bench.cases import Case, Row, data_folder
from certus.io.conllu import read_conllu
from certus.text import Sentence


def run(data: str = "", model: str = "en") -> Iterator[Case | Row]:
    """``model`` is a name or folder for certus.load."""
    test = list(read_conllu(data_folder(data, "ud", "en_ewt") / "test.conllu.gz"))
    bare = [replace(s, tokens=[replace(t, lemma="_", feats="_", upos="_", xpos="_") for t in s]) for s in test]
    pipeline = certus.load(model)
    for name, given in (("gold tags", test), ("tags of its own", bare)):
        yield Row(name, _shares(test, list(pipeline.parse(given))))
        yield Case(
            f"{name}, sentences to sentences",
            lambda g=given: [str(s) for s in pipeline.parse(g, workers=1)],
            items=sum(map(len, test)),
            unit="word",
        )


def _shares(gold: list[Sentence], found: list[Sentence]) -> dict[str, float]:
    """Percentages of all words; labels are compared up to the first colon."""
    pairs = [(a, b) for x, y in zip(gold, found, strict=True) for a, b in zip(x, y, strict=True)]
    right = {
        "UPOS": sum(a.upos == b.upos for a, b in pairs),
        "XPOS": sum(a.xpos == b.xpos for a, b in pairs),
        "UAS": sum(a.head == b.head for a, b in pairs),
        "LAS": sum(a.head == b.head and a.deprel.split(":")[0] == b.deprel.split(":")[0] for a, b in pairs),
    }
    return {name: 100.0 * count / len(pairs) for name, count in right.items()}
