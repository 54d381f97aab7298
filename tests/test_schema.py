"""Data from files: what is refused, and that the place is named."""

import json

import numpy as np
import pytest

from certus.errors import FormatError, InvalidInput
from certus.schema import Field, parse_json


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "file:1: not valid JSON"),
        (b'{"a": 1,\n "b": }', "file:2: not valid JSON, or cut short: .* column 7"),
        (b"\xff", "not UTF-8 text"),
        (b"\xed\xa0\x80", "not UTF-8 text"),
        (b"9" * 5000, "thousands of digits"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": {"b": 1, "b": 2}}', "the key 'b' twice"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(FormatError, match=message):
        parse_json(text, "file")


def test_numbers_that_json_does_not_have_are_refused_by_their_field():
    for text in (b"[0, NaN]", b"[0, Infinity]", b"[0, -Infinity]", b"[0, 1e999]"):
        with pytest.raises(InvalidInput, match=r"scores\[1\] is -?(nan|inf); expected a finite number"):
            Field(parse_json(text), "scores").numbers((2,))


def test_json_may_begin_with_a_byte_order_mark():
    assert parse_json(b"\xef\xbb\xbf[1]") == [1]


@pytest.mark.parametrize(
    ("read", "data", "message"),
    [
        (lambda f: f["a"], [], "the data is a list of 0; expected an object"),
        (lambda f: f["a"]["b"], {"a": {}}, "a.b is missing"),
        (lambda f: f["a"].items(), {"a": {}}, "a is an object of 0; expected a list"),
        (lambda f: f["a"].items(size=2), {"a": [1]}, "a is a list of 1; expected 2 items"),
        (lambda f: f.only(["a"]), {"b": 1}, "b is unknown; expected a only"),
        (lambda f: f.format("x", 1), {"format": "y"}, "not a x"),
        (lambda f: f.format("x", 1), {"format": "x", "version": True}, "version true"),
        (lambda f: f.whole(0, 9), True, "is true; expected a whole number 0..9"),
        (lambda f: f.whole(0, 9), 3.0, "is 3.0; expected"),
        (lambda f: f.whole(0, 9), 10**4000, "is a whole number of 13288 bits; expected a whole number 0..9"),
        (lambda f: f.number(), 10**400, "a whole number of 1329 bits; expected a finite number"),
        (lambda f: f.number(), float("inf"), "is inf"),
        (lambda f: f.number(0, 1), 2, "expected a finite number 0..1"),
        (lambda f: f.score(), "inf", "expected a finite number or"),
        (lambda f: f.flag(), 1, "expected true or false"),
        (lambda f: f.text(), None, "is null; expected a string"),
        (lambda f: f.text(), "a\ud800", "expected characters only"),
        (lambda f: f.name(), "a\tb", "without tabs"),
        (lambda f: f.one_of(("a", "b")), ["a"], "expected one of 'a', 'b'"),
        (lambda f: f.names(), ["a", "b", "a"], r"\[2\] is 'a', which comes a second time"),
        (lambda f: f.wholes(0, 3), [0, 1, True], r"\[2\] is true; expected a whole number 0..3"),
        (lambda f: f.wholes(0, 3, (None, 2)), [[0, 1], [2, 4]], r"\[1\]\[1\] is 4; expected"),
        (lambda f: f.wholes(0, 3, (None, 2)), [[0, 1], [2]], r"\[1\] is a list of 1; expected a list, for .* any x 2"),
        (lambda f: f.wholes(0, 3, (1, 2)), [[0, 1], [2, 3]], "is a list of 2; expected a list, for an array of 1 x 2"),
        (lambda f: f.wholes(0, 3, (None, None)), [[0, 1], 2], r"\[1\] is 2; expected a list"),
        (lambda f: f.scores((None,)), [0, "nan"], r"\[1\] is 'nan'"),
        (lambda f: f.scores((None,)), [0, 1e999], r"\[1\] is inf"),
        (lambda f: f.scores((None,)), [0, float("nan")], r"\[1\] is nan"),
        (lambda f: f.scores((None,)), [0, 10**400], r"\[1\] is a whole number of 1329 bits"),
        (lambda f: f.scores((None,)), [0, None], r"\[1\] is null"),
        (lambda f: f.scores((None, 1)), [[0], [[]]], r"\[1\]\[0\] is a list of 0"),
        (lambda f: f.numbers((None,)), [0, "-inf"], r"\[1\] is -inf; expected a finite number"),
        (lambda f: f.shaped(), {"shape": [2**31 - 1, 2**31 - 1], "values": []}, "values is a list of 0; expected"),
        (lambda f: f.shaped(), {"shape": [1] * 70, "values": [0]}, "values is a list of 1"),
    ],
)
def test_what_a_field_refuses(read, data, message):
    with pytest.raises(InvalidInput, match=message):
        read(Field(data))


def test_a_field_that_is_nested_too_deeply():
    data: object = "the end"
    for _ in range(200):
        data = [data]

    def walk(field):
        while True:
            (field,) = field.items()

    with pytest.raises(InvalidInput, match="nested too deeply"):
        walk(Field(data))


def test_arrays():
    field = Field(json.loads('[[1, "-inf"], [2.5, -3]]'))
    np.testing.assert_array_equal(field.scores((None, None)), [[1, -np.inf], [2.5, -3]])
    assert Field([]).scores((0, 7)).shape == (0, 7)
    assert Field([[], []]).wholes(0, 9, (2, None)).shape == (2, 0)
    assert Field([]).wholes(0, 9).dtype == np.int64
