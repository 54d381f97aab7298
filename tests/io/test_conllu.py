"""CoNLL-U: what is read is written again, and what is wrong is named with its line."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus import FormatError, InvalidInput
from certus.io.conllu import find_cycle, parse_conllu, read_conllu, write_conllu
from certus.text import Sentence, Token
from tests.data import shared_data

TEXT = """\
# sent_id = 1
# text = They don't go.
1\tThey\tthey\tPRON\tPRP\tCase=Nom\t4\tnsubj\t_\t_
2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdo\tdo\tAUX\tVBP\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
3.1\tever\tever\tADV\tRB\t_\t_\t_\t4:advmod\t_
4\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
1.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

"""


def row(identifier, head="0", columns=10):
    return "\t".join([str(identifier), "w", "_", "_", "_", "_", str(head), "_", "_", "_"][:columns])


def test_reads_words_comments_and_heads():
    first, second = parse_conllu(TEXT.splitlines())
    assert first.words == ["They", "do", "n't", "go", "."]
    assert first.tagged("xpos")[:2] == [("They", "PRP"), ("do", "VBP")]
    assert first.heads.tolist() == [-1, 4, 4, 4, 0, 4]
    assert (first.comment("sent_id"), first.comment("text"), first.comment("newdoc")) == ("1", "They don't go.", None)
    assert [token.id for token in first] == [1, 2, 3, 4, 5]
    assert second.tokens[0] == Token(1, "Yes", "yes", "INTJ", "UH", "_", 0, "root")


def test_writing_gives_back_what_was_read():
    assert "".join(map(str, parse_conllu(TEXT.splitlines()))) == TEXT


def test_files_plain_compressed_windows_and_without_a_last_blank_line(tmp_path):
    forms = {
        "plain.conllu": TEXT.encode(),
        "windows.conllu": TEXT.replace("\n", "\r\n").encode(),
        "marked.conllu": b"\xef\xbb\xbf" + TEXT.encode(),
        "unended.conllu": TEXT.rstrip("\n").encode(),
        "blanks.conllu": ("\n\n" + TEXT + " \n\n").encode(),
        "packed.conllu.gz": gzip.compress(TEXT.encode()),
    }
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        assert "".join(map(str, read_conllu(tmp_path / name))) == TEXT, name
    write_conllu(tmp_path / "out.conllu", read_conllu(tmp_path / "plain.conllu"))
    assert (tmp_path / "out.conllu").read_bytes() == TEXT.encode()
    with pytest.raises(InvalidInput, match="plain text"):
        write_conllu(tmp_path / "out.gz", [])


def test_a_reader_streams():
    def lines():
        yield from TEXT.splitlines()[:11]
        raise AssertionError("read too far")

    assert len(next(parse_conllu(lines()))) == 5


def test_words_alone_and_missing_heads():
    sentence = Sentence.from_words(["a", "b"])
    assert str(sentence) == "1\ta" + "\t_" * 8 + "\n2\tb" + "\t_" * 8 + "\n\n"
    (again,) = parse_conllu(str(sentence).splitlines())
    assert again == sentence
    with pytest.raises(InvalidInput, match=r'word 1 \("a"\) has no head'):
        _ = again.heads
    with pytest.raises(InvalidInput, match="column is 'form'"):
        again.tagged("form")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([row(1), row(2, columns=9)], "f:2: 9 columns; expected 10."),
        (["1 w _ _ _ _ 0 _ _ _"], "f:1: 1 column; expected 10. Columns are separated by tabs, not blanks."),
        ([row(1).replace("w", "")], r'f:1: column 2 \(FORM\) is empty; write "_"'),
        ([row(1), row(3)], r'f:2: column 1 \(ID\) is "3"; expected 2, a range 2-k or an empty node 1.k'),
        ([row("x")], r'f:1: column 1 \(ID\) is "x"'),
        ([row("2-3")], r'f:1: column 1 \(ID\) is "2-3"; expected 1'),
        ([row("1-4"), row(1)], "f:1: a multiword token ends at word 4; the sentence has 1 word."),
        (["# c", row(1), row(2, 3)], r"f:3: column 7 \(HEAD\) is 3; expected 0..2"),
        ([row(1, -1)], r'f:1: column 7 \(HEAD\) is "-1"; expected the number of a word'),
        ([row(1, "1.5")], r'f:1: column 7 \(HEAD\) is "1.5"'),
        ([row(1, "²")], r'f:1: column 7 \(HEAD\) is "²"'),
        ([row(1), row(2, 3), row(3, 4), row(4, 2)], "f:2: heads form a cycle: 2 -> 3 -> 4 -> 2."),
        ([row(1, 1)], "f:1: heads form a cycle: 1 -> 1."),
        ([row(1), "# late"], "f:2: a comment inside a sentence"),
        (["# alone", "", row(1)], "f:2: a sentence without words"),
        (["# alone"], "f:1: a sentence without words"),
        ([row(1, "_")], r'f:1: column 7 \(HEAD\) is "_"'),
        ([b"1\t\xff"], "f:1: not UTF-8 text: invalid start byte at byte 2"),
    ],
)
def test_errors_name_file_line_and_column(lines, message):
    with pytest.raises(FormatError, match=message):
        list(parse_conllu(lines, path="f", require_heads=True))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        list(read_conllu(tmp_path / "none.conllu"))
    packed = gzip.compress(TEXT.encode() * 50)
    for name, data in (
        ("short.gz", packed[:-20]),
        ("plain.gz", TEXT.encode()),
        ("broken.gz", packed[:30] + b"\0" * 40),
    ):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match=r"gzip data is damaged or cut short|not a gzip file"):
            list(read_conllu(tmp_path / name))


@given(st.lists(st.integers(0, 6), max_size=6))
def test_cycles_are_found_iff_some_word_does_not_reach_the_root(heads):
    heads = [None, *(min(head, len(heads)) for head in heads)]

    def reaches_root(m):
        for _ in range(len(heads)):
            if m == 0:
                return True
            m = heads[m]
        return m == 0

    cycle = find_cycle(heads)
    assert bool(cycle) == (not all(reaches_root(m) for m in range(1, len(heads))))
    for k, m in enumerate(cycle):
        assert heads[m] == cycle[(k + 1) % len(cycle)]


def test_a_treebank_round_trips():
    path = shared_data("ud", "en_ewt", "dev.conllu.gz")
    sentences = list(read_conllu(path, require_heads=True))
    assert (len(sentences), sum(map(len, sentences))) == (2001, 25147)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        assert "".join(map(str, sentences)) == stream.read()
    assert all(np.count_nonzero(sentence.heads == 0) == 1 for sentence in sentences)
