"""Opening and unpacking files: damage, bombs, and the limit on them."""

import gzip
import zlib

import pytest

from certus import TranslationForest
from certus.constituency import Grammar
from certus.errors import FormatError, InvalidInput
from certus.features.brown import Clusters
from certus.hypergraph import formats
from certus.io.arpa import read_arpa
from certus.io.brackets import read_trees
from certus.io.conllu import read_conllu
from certus.io.files import LIMIT, read_bytes, text_lines, unpack_limit, unpacked, whole_number
from certus.io.hiero import read_rules, read_weights
from certus.io.moses import read_phrase_table

READERS = [
    lambda path: list(read_conllu(path)),
    lambda path: list(read_trees(path)),
    read_arpa,
    read_phrase_table,
    read_rules,
    read_weights,
    TranslationForest.read,
    Clusters.load,
]


@pytest.mark.parametrize("read", READERS)
def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch, read):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(10_000_000)))
    monkeypatch.setenv(LIMIT, "1000000")
    with pytest.raises(FormatError, match=f"bomb.gz: unpacks to more than 1000000 bytes.* {LIMIT}"):
        read(path)


@pytest.mark.parametrize("read", READERS)
def test_damaged_gzip(tmp_path, read):
    text = "\n".join(f"line {k}" for k in range(10_000)).encode()
    packed = gzip.compress(text)
    path = tmp_path / "damaged.gz"
    for data in (packed[:-5], packed[:3], packed[:50] + b"\0" * 100 + packed[150:], packed[:-8] + b"\0" * 8):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"damaged.gz"):
            read(path)


def test_the_limit_grows_with_the_file(monkeypatch):
    monkeypatch.delenv(LIMIT, raising=False)
    assert unpack_limit(1000) == 1 << 28
    assert unpack_limit(1 << 30) == 20 << 30
    monkeypatch.setenv(LIMIT, "12")
    assert unpack_limit(1 << 30) == 12
    for bad in ("", "1e9", "-1", "²", "9" * 5000):
        monkeypatch.setenv(LIMIT, bad)
        with pytest.raises(InvalidInput, match=LIMIT):
            unpack_limit(1)


def test_zlib_within_a_file(monkeypatch):
    packed = zlib.compress(b"abc" * 1000)
    assert unpacked("m", "lexicon", packed) == b"abc" * 1000
    with pytest.raises(FormatError, match="m: lexicon is damaged: its data end too soon"):
        unpacked("m", "lexicon", packed[:-5])
    with pytest.raises(FormatError, match="m: lexicon is damaged"):
        unpacked("m", "lexicon", b"x" + packed)
    monkeypatch.setenv(LIMIT, "2999")
    with pytest.raises(FormatError, match=f"more than 2999 bytes.*{LIMIT}"):
        unpacked("m", "lexicon", packed)


def test_content_says_whether_a_file_is_packed(tmp_path):
    (tmp_path / "plain").write_bytes(gzip.compress(b"\xef\xbb\xbfa\nb"))
    assert list(text_lines(tmp_path / "plain")) == ["a\n", "b"]
    (tmp_path / "text.gz").write_bytes(b"a\n")
    with pytest.raises(FormatError, match="not a gzip file, though its name ends in"):
        read_bytes(tmp_path / "text.gz")
    (tmp_path / "bad").write_bytes(b"a\nb\xff\n")
    with pytest.raises(FormatError, match="bad:2: not UTF-8 text"):
        list(text_lines(tmp_path / "bad"))
    with pytest.raises(FormatError, match="NUL in its name"):
        read_bytes("a\0b")
    with pytest.raises(FormatError, match="cannot be read: Is a directory"):
        read_bytes(tmp_path)


def test_endless_digits(tmp_path):
    assert whole_number("0012", "f", 1) == 12
    for digits in ("9" * 5000, str(2**31)):
        with pytest.raises(FormatError, match=r"f:3: the number \d+(\.\.\.)? is more than 2147483647"):
            whole_number(digits, "f", 3)
    path = tmp_path / "file"
    many = "1" * 5000
    row = "\t".join(["1", "a", "_", "_", "_", "_", many, "_", "_", "_"])
    for read, text in (
        (lambda path: list(read_conllu(path)), f"{row}\n\n"),
        (lambda path: list(read_conllu(path)), f"{many}-{many}{row[1:]}\n\n"),
        (read_arpa, f"\\data\\\nngram 1={many}\n"),
        (read_rules, f"[X] ||| a [X,{many}] ||| [1] ||| p=1\n"),
        (TranslationForest.read, f"{many} 1\n"),
        (TranslationForest.read, f"1 1\n{many}\n"),
        (Clusters.load, f"0\ta\t{many}\n"),
    ):
        path.write_text(text)
        with pytest.raises(FormatError, match=r"file:\d"):
            read(path)


def grammar(path):
    return Grammar.from_text(path.read_text(), path=path)


def test_messages_are_short(tmp_path):
    path = tmp_path / "file"
    path.write_text("x" * 1_000_000)
    for read in (grammar, formats.load, read_phrase_table, lambda path: list(read_trees(path))):
        with pytest.raises(FormatError) as caught:
            read(path)
        assert len(str(caught.value)) < 1000


def test_sizes_that_a_file_only_announces(tmp_path):
    path = tmp_path / "file"
    for read, text, message in (
        (formats.load, "certus hypergraph 1\nvertices 999999999 edges 0 root 0\n", "too short for so many"),
        (TranslationForest.read, "999999999 999999999\n0\n", "expected the number of edges into node 1"),
        (TranslationForest.read, "1 1\n999999999\na ||| p=1\n", "the file ends before the last"),
        (read_arpa, "\\data\\\nngram 1=999999999\n\n\\1-grams:\n-1 a\n", "is the file cut short"),
        (read_arpa, "\\data\\\n" + "".join(f"ngram {k}=0\n" for k in range(1, 99)), "n-grams of more than 32 words"),
        (grammar, "S ->" + " a" * 5000, "5000 symbols on the right-hand side"),
        (grammar, "".join(f"A{k} -> A{k + 1}\n" for k in range(5000)), "a chain of more than 100 unary rules"),
    ):
        path.write_text(text)
        with pytest.raises(FormatError, match=message):
            read(path)
