"""CoNLL-U files parsed as bytes: what comes out is what reading, parsing and writing sentences gives."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from certus import CertusError
from certus.features import encode
from certus.io.conllu import read_conllu
from certus.models import rewriting
from certus.models.pipeline import Pipeline
from certus.models.training import train_parser
from tests.data import shared_data
from tests.io.test_conllu import TEXT
from tests.models.test_small_parsers import SMALL, two_trees

ODD = {
    "nothing": "",
    "blank lines": "\n\n\n" + TEXT + "\n\n",
    "no end": TEXT.rstrip("\n"),
    "windows": TEXT.replace("\n", "\r\n"),
    "no heads": TEXT.replace("\t4\t", "\t_\t").replace("\t0\t", "\t_\t"),
    "leading zeros": TEXT.replace("\t4\t", "\t004\t"),
    "a line of blanks": TEXT.replace("4\tgo", "  \n1\tgo"),
    "another line of blanks": TEXT.replace("\n\n", "\n\u00a0\n"),
    "a proof of before": TEXT.replace("# sent_id = 1", "# certificate = dual, exact\n# score = 1\n# bound = 1"),
    "an estimate of before": TEXT.replace("# sent_id = 1", "# confidence_estimates = chain, 1"),
    "a mark": "\ufeff" + TEXT,
    "no tags": TEXT.replace("\tPRON\t", "\t_\t"),
    "a head out of range": TEXT.replace("\t0\t", "\t9\t"),
    "a cycle": TEXT.replace("\t0\t", "\t5\t"),
    "a comment inside": TEXT.replace("5\t.", "# here\n5\t."),
    "a comment after a range": TEXT.replace("2\tdo", "# here\n2\tdo"),
    "comments only": TEXT + "# text = nothing\n\n",
    "a range too far": TEXT.replace("2-3", "2-9"),
    "a range elsewhere": TEXT.replace("2-3", "3-4"),
    "an empty node elsewhere": TEXT.replace("3.1", "2.1"),
    "an empty column": TEXT.replace("\tPART\t", "\t\t"),
    "nine columns": TEXT.replace("\tPART\t", "\t"),
    "eleven columns": TEXT.replace("\tPART\t", "\tPART\tX\t"),
    "a number too many": TEXT.replace("4\tgo", "5\tgo"),
    "a long number": TEXT.replace("\t4\t", "\t" + "4" * 30 + "\t"),
    "a NUL": TEXT.replace("go", "g\0"),
    "too many words": TEXT + "".join(f"{k}\tw\t_\tX\t_\t_\t0\t_\t_\t_\n" for k in range(1, 2002)),
}


DAMAGE = [b"", b"\n", b"\t", b" ", b"9", b"_", b"\xff", b"#", b"\r", b"\xc3\xa9"]


@pytest.fixture(scope="module")
def pipeline():
    return Pipeline(train_parser(two_trees(), settings=SMALL))


def one_by_one(pipeline, path):
    try:
        return "".join(map(str, pipeline.parse(read_conllu(path), workers=1)))
    except CertusError as error:
        return f"{type(error).__name__}: {error}"


def as_bytes(pipeline, path, workers=1):
    try:
        return "".join(piece.text for piece in pipeline.parse_file(path, workers=workers))
    except CertusError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize("kind", ODD)
def test_texts_out_of_the_ordinary(pipeline, tmp_path, kind):
    path = tmp_path / "a.conllu"
    for text in (ODD[kind], TEXT + ODD[kind], ODD[kind] + TEXT):
        path.write_text(text, newline="")
        assert as_bytes(pipeline, path) == one_by_one(pipeline, path)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_texts(pipeline, tmp_path, seed, monkeypatch):
    monkeypatch.setattr(rewriting, "BLOCK", 97)
    rng, path = random.Random(seed), tmp_path / "a.conllu"
    for _ in range(25):
        data = bytearray((TEXT * 3).encode())
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.randrange(2)] = rng.choice(DAMAGE)
        path.write_bytes(bytes(data))
        assert as_bytes(pipeline, path) == one_by_one(pipeline, path)


def test_words_are_told_apart_also_when_there_are_many(pipeline, tmp_path):
    path = tmp_path / "a.conllu"
    lines = [f"1\tw{k}\t_\t{'XY'[k % 2]}\t_\t_\t_\t_\t_\t_\n\n" for k in range(1500)]
    path.write_text("".join(lines * 2))
    assert as_bytes(pipeline, path, workers=2) == one_by_one(pipeline, path)
    pieces = list(pipeline.parse_file(path, workers=2))
    assert sum(piece.sentences for piece in pieces) == 3000
    assert not any(piece.unproved for piece in pieces)


def test_words_forgotten_in_between_are_met_again(pipeline, tmp_path, monkeypatch):
    path = tmp_path / "a.conllu"
    lines = [f"1\tw{k}\t_\t{'XY'[k % 2]}\t_\t_\t_\t_\t_\t_\n\n" for k in range(40)]
    path.write_text("".join(lines))
    expected = one_by_one(pipeline, path)
    assert as_bytes(pipeline, path) == expected
    monkeypatch.setattr(encode, "MOST_ROWS", 10)
    assert one_by_one(pipeline, path) == expected  # which forgets all words
    assert as_bytes(pipeline, path) == expected
    monkeypatch.undo()
    path.write_text("".join(reversed(lines)))
    assert as_bytes(pipeline, path) == one_by_one(pipeline, path)


def test_threads_may_ask_the_same_parser(pipeline, tmp_path):
    texts = {}
    for k in range(4):
        path = tmp_path / f"{k}.conllu"
        words = [f"1\tw{j % (300 + 100 * k)}\t_\t{'XY'[j % 2]}\t_\t_\t_\t_\t_\t_\n\n" for j in range(400)]
        path.write_text("".join(words))
        texts[path] = k
    with ThreadPoolExecutor(4) as pool:
        found = dict(zip(texts, pool.map(lambda path: as_bytes(pipeline, path), texts), strict=True))
    assert found == {path: one_by_one(pipeline, path) for path in texts}


@pytest.mark.compiled
@pytest.mark.parametrize("treebank", ["en_ewt", "da_cdt"])
def test_treebanks(pipeline, treebank):
    path = shared_data("ud", treebank, "dev.conllu.gz")
    assert as_bytes(pipeline, path, workers=2) == one_by_one(pipeline, path)
