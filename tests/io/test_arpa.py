"""ARPA files: they round-trip, and what is wrong with one is named by its line."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings

from certus import FormatError
from certus.io.arpa import parse_arpa, read_arpa, write_arpa
from tests.translation.cases import arpas

EXAMPLE = r"""made by hand
\data\
ngram 1=4
ngram 2=2

\1-grams:
-1.0	<unk>
0	<s>	-0.5
-0.5	</s>
-0.4	dog	-0.25

\2-grams:
-0.3	<s> dog
-0.125 dog </s>

\end\
"""


def test_reads_as_documented():
    arpa = parse_arpa(EXAMPLE)
    assert arpa.words == ["<unk>", "<s>", "</s>", "dog"]
    unigrams, bigrams = arpa.orders
    assert unigrams.log_probability.tolist() == [-1.0, 0.0, -0.5, -0.4]
    assert unigrams.back_off.tolist() == [0.0, -0.5, 0.0, -0.25]
    assert bigrams.words.tolist() == [[1, 3], [3, 2]]
    assert bigrams.log_probability.tolist() == [-0.3, -0.125]


@settings(max_examples=25)
@given(arpas())
def test_round_trips(tmp_path_factory, arpa):
    for name in ("lm.arpa", "lm.arpa.gz"):
        path = tmp_path_factory.mktemp("arpa") / name
        write_arpa(path, arpa)
        again = read_arpa(path)
        assert again.words == arpa.words
        for a, b in zip(again.orders, arpa.orders, strict=True):
            assert np.array_equal(a.words, b.words)
            assert np.array_equal(a.log_probability, b.log_probability)
            assert np.array_equal(a.back_off, b.back_off)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "data", r"lm:1: no line '\\data\\'"),
        ("ngram 1=4\nngram 2=2\n", "", r"lm:2: no line 'ngram 1=COUNT'"),
        ("ngram 2=2", "ngram 3=2", "lm:4: expected the count of order 2, found order 3"),
        ("ngram 2=2", "ngram 2=two", "lm:4: expected 'ngram N=COUNT'"),
        ("ngram 1=4", "ngram 1=5", "lm:10: section 1 has 4 entries, but line 3 announces 5"),
        ("ngram 1=4", "ngram 1=3", r"lm:10: section 1 has more entries than line 3 announces \(3\)"),
        ("ngram 2=2", "ngram 2=3", "lm:14: section 2 has 2 entries, but line 4 announces 3"),
        ("\\2-grams:", "\\3-grams:", "lm:12: expected .*2-grams.*, found"),
        ("-0.4\tdog", "nan\tdog", "lm:10: log probability 'nan' is not a finite number"),
        ("-0.4\tdog", "0.4\tdog", "lm:10: log probability 0.4 is above 0"),
        ("-0.4\tdog\t-0.25", "-0.4\tdog\tx", "lm:10: back-off 'x' is not a finite number"),
        ("-0.4\tdog\t-0.25", "-0.4\tdog\t-0.25\t1", "lm:10: expected a number, 1 word and perhaps a back-off; found 4"),
        ("-0.3\t<s> dog", "-0.3\t<s> cat", "lm:13: the word 'cat' is not among the 1-grams"),
        ("-0.125 dog </s>", "-0.125 <s> dog", "lm:14: the n-gram '<s> dog' is given twice"),
        ("-0.4\tdog\t-0.25", "-0.4\t<s>\t-0.25", "lm:10: the word '<s>' is given twice"),
        ("-0.5\t</s>", "-0.5\t</S>", "lm:6: the 1-grams have no </s>"),
        ("-1.0\t<unk>", "-1.0\t<unknown>", "lm:6: the 1-grams have no <unk>"),
        ("\\end\\\n", "", r"lm:16: expected '\\end\\'; is the file cut short"),
        ("\n\\end\\\n", "-0.5\tdog dog\n", "lm:15: section 2 has more entries"),
    ],
)
def test_errors_name_the_line(old, new, message):
    assert old in EXAMPLE
    with pytest.raises(FormatError, match=message):
        parse_arpa(EXAMPLE.replace(old, new, 1), "lm")


def test_every_cut_is_noticed():
    for size in range(len(EXAMPLE) - len("\n\\end\\\n") - 1):
        with pytest.raises(FormatError, match="lm:"):
            parse_arpa(EXAMPLE[:size], "lm")


def test_a_model_without_unknown_words_can_be_given_one():
    text = EXAMPLE.replace("-1.0\t<unk>\n", "").replace("ngram 1=4", "ngram 1=3")
    arpa = parse_arpa(text, unknown=-7.0)
    assert arpa.words[-1] == "<unk>"
    assert arpa.orders[0].log_probability[-1] == -7.0


def test_damaged_gzip_and_missing_files_are_named(tmp_path):
    path = tmp_path / "lm.arpa.gz"
    path.write_bytes(gzip.compress(EXAMPLE.encode())[:-20])
    with pytest.raises(FormatError, match="gzip data is damaged or cut short"):
        read_arpa(path)
    with pytest.raises(FormatError, match="cannot be read: No such file"):
        read_arpa(tmp_path / "none")
    path = tmp_path / "lm.binary"
    path.write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
    with pytest.raises(FormatError, match="is a binary file of KenLM"):
        read_arpa(path)
