"""Damage for files: pure functions from bytes and a generator of random numbers to other bytes."""

import copy
import gzip
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

Rng = np.random.Generator
Mutator = Callable[[bytes, Rng], bytes]

# What breaks readers: signs, limits of types, endless digits, no numbers, no characters, brackets and separators.
PIECES = [
    *b"-1 0 1 2147483647 2147483648 -2147483649 9223372036854775808 18446744073709551615 1e999 -1e999 1e308".split(),
    *b"NaN nan Infinity -inf inf 0x10 1_000 null true [] {} [[ ]] (( )) ||| <s> </s> <unk> \\end\\ \\data\\".split(),
    *(
        b"1" * 5000,
        b"[" * 2000,
        b"(" * 2000,
        b"\0",
        b"\xff\xfe",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
    ),
    *(b"\t", b"\n", b"\r\n", b" ", b"\n\n", b",", b":", b"=", b"-", b'"', b'""', b"\\", b"\x0b", b"\x85"),
    *("\u00b2".encode(), "\u0663".encode()),  # digits that are not 0 to 9
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 3, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, -(2**31) - 1, 2**62, 2**63, 2**64),
    *(10**400, -(10**400), 0.5, -0.5, 1e-320, 1e308, -1e308, 1e20),
    *("", "x", "-inf", "inf", "nan", "NaN", "\0", "\n", "a\tb", "\ud800", "\u00e9", "(", "1" * 50),
    *([], {}, [[]], [0], [-1], ["x"], [None], [1, 2, 3], [[0, 0]], [[1.0, "-inf"]]),
    *({"": 0}, {"shape": [2**40], "values": []}),
]


def _place(size: int, rng: Rng) -> int:
    return int(rng.integers(size + 1))


def flip(data: bytes, rng: Rng) -> bytes:
    """Some bytes become others."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if out else 0):
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
    return bytes(out)


def truncate(data: bytes, rng: Rng) -> bytes:
    """The end is missing."""
    return data[: _place(len(data), rng)]


def remove(data: bytes, rng: Rng) -> bytes:
    """A piece is missing."""
    at = _place(len(data), rng)
    return data[:at] + data[at + int(rng.integers(1, 64)) :]


def repeat(data: bytes, rng: Rng) -> bytes:
    """A piece stands twice, or many times, perhaps elsewhere."""
    first = _place(len(data), rng)
    piece = data[first : first + int(rng.integers(1, 200))]
    at = first if rng.random() < 0.5 else _place(len(data), rng)
    return data[:at] + piece * int(rng.choice([1, 1, 1, 2, 50])) + data[at:]


def insert(data: bytes, rng: Rng) -> bytes:
    """Something that breaks readers stands somewhere."""
    at = _place(len(data), rng)
    return data[:at] + PIECES[int(rng.integers(len(PIECES)))] + data[at:]


def replace_word(data: bytes, rng: Rng) -> bytes:
    """A word or number becomes something that breaks readers."""
    words = data.split()
    if not words:
        return insert(data, rng)
    word = words[int(rng.integers(len(words)))]
    places = [i for i in range(len(data)) if data.startswith(word, i)] if len(data) < 10_000 else [data.index(word)]
    at = places[int(rng.integers(len(places)))]
    return data[:at] + PIECES[int(rng.integers(len(PIECES)))] + data[at + len(word) :]


def swap_lines(data: bytes, rng: Rng) -> bytes:
    """Two lines change places, or one stands twice or not at all."""
    lines = data.split(b"\n")
    i, j = (int(k) for k in rng.integers(len(lines), size=2))
    if rng.random() < 0.4:
        lines[i], lines[j] = lines[j], lines[i]
    elif rng.random() < 0.5:
        lines.insert(i, lines[j])
    else:
        del lines[i]
    return b"\n".join(lines)


def pack(data: bytes, rng: Rng) -> bytes:
    """Gzip, often damaged."""
    packed = gzip.compress(data, 6, mtime=0)
    return packed if rng.random() < 0.3 else BYTES[int(rng.integers(len(BYTES)))](packed, rng)


BYTES: list[Mutator] = [flip, truncate, remove, repeat, insert]
TEXT: list[Mutator] = [*BYTES, replace_word, swap_lines, pack]


# -- JSON ------------------------------------------------------------------------------------------------------------


def changed(data: Any, rng: Rng) -> Any:
    """JSON data with one place changed: another value, another type, deleted, doubled, nested."""
    places: list[tuple[Any, Any]] = []
    stack = [data]
    while stack:
        at = stack.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else []
        if len(keys) > 40:
            keys = [keys[int(k)] for k in rng.integers(len(keys), size=40)]
        for key in keys:
            places.append((at, key))
            stack.append(at[key])
    if not places:
        return copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    # Places near the top are few and those in long lists many: half of the time those are preferred.
    at, key = (
        places[int(rng.integers(len(places)))] if rng.random() < 0.5 else places[int(len(places) * rng.random() ** 4)]
    )
    how = rng.random()
    if how < 0.35:
        at[key] = copy.deepcopy(VALUES[int(rng.integers(len(VALUES)))])
    elif how < 0.6:
        if isinstance(at[key], int | float) and not isinstance(at[key], bool):
            at[key] = at[key] + int(rng.integers(-3, 4))
        elif isinstance(at[key], str):
            at[key] = at[key][1:] if rng.random() < 0.5 else at[key] + "x"
        elif isinstance(at[key], list):
            at[key] = at[key][: int(rng.integers(len(at[key]) + 1))]
    elif how < 0.7:
        del at[key]
    elif how < 0.8:
        other, name = places[int(rng.integers(len(places)))]
        with suppress(KeyError, IndexError):  # it may be gone
            at[key] = copy.deepcopy(other[name])
    elif how < 0.88 and isinstance(at, list):
        at.insert(int(key), copy.deepcopy(at[key]))
    elif how < 0.92:
        nested: Any = at[key]
        for _ in range(int(rng.choice([1, 2, 60, 150]))):
            nested = [nested]
        at[key] = nested
    elif isinstance(at, dict):
        at["unheard"] = at[key]
    return data


def mutate_json(data: bytes, rng: Rng) -> bytes:
    """A few changes to JSON data; now and then the key of an object twice."""
    found = json.loads(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4]))):
        found = changed(found, rng)
    text = json.dumps(found).encode()
    if rng.random() < 0.03 and (at := text.find(b'{"')) >= 0:
        text = text[: at + 1] + b'"format": 1, ' + text[at + 1 :]
    return text


JSON: list[Mutator] = [mutate_json, mutate_json, mutate_json, mutate_json, flip, truncate, remove, insert, replace_word]


# -- model files -----------------------------------------------------------------------------------------------------

_TYPES = {"I8": "<i1", "U8": "<u1", "I16": "<i2", "U16": "<u2", "F32": "<f4", "F64": "<f8", "BOOL": "<u1"}


def tensors(data: bytes) -> tuple[dict[str, Any], dict[str, tuple[str, list[int], bytes]]]:
    """The description, and type, shape and bytes of each array, of a safetensors file of certus."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    description = json.loads(header.pop("__metadata__")["certus"])
    body = data[8 + size :]
    return description, {n: (e["dtype"], e["shape"], body[slice(*e["data_offsets"])]) for n, e in header.items()}


def file_of(description: Any, arrays: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    """The safetensors file with these contents, whatever they are."""
    header: dict[str, Any] = {"__metadata__": {"certus": json.dumps(description)}}
    at = 0
    for name, (dtype, shape, body) in arrays.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(body)]}
        at += len(body)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(body for _, _, body in arrays.values())


def mutate_description(data: bytes, rng: Rng) -> bytes:
    """The JSON in the header is changed, the arrays are whole."""
    description, arrays = tensors(data)
    for _ in range(int(rng.choice([1, 1, 2]))):
        description["config"] = changed(description["config"], rng)
    if rng.random() < 0.05:
        description = changed(description, rng)
    return file_of(description, arrays)


def mutate_arrays(data: bytes, rng: Rng) -> bytes:
    """Some numbers in arrays become others, or arrays get another type, shape or length, or go."""
    description, arrays = tensors(data)
    names = list(arrays)
    for name in (names[int(k)] for k in rng.integers(len(names), size=int(rng.choice([1, 1, 2])))):
        if name not in arrays:
            continue
        dtype, shape, body = arrays[name]
        values = np.frombuffer(body, dtype=_TYPES[dtype]).copy()
        how = rng.random()
        if how < 0.5 and values.size:
            at = rng.integers(values.size, size=int(rng.choice([1, 3, 100])))
            if values.dtype.kind == "f":
                values[at] = float(rng.choice([0.0, -1.0, np.nan, np.inf, 1e-45, 3e38, 1.0]))
            else:
                info = np.iinfo(values.dtype)
                values[at] = rng.choice([info.min, info.max, 0, 1, values.size % (info.max + 1)])
        elif how < 0.6 and values.size:
            values[:] = values[int(rng.integers(values.size))]
        elif how < 0.7:
            values = values[: int(rng.integers(values.size + 1))]
            shape = [len(values)]
        elif how < 0.8:
            shape = shape[::-1] if rng.random() < 0.5 else [1, *shape]
        elif how < 0.9:
            dtype = str(rng.choice(list(_TYPES)))
            width = np.dtype(_TYPES[dtype]).itemsize
            body = values.tobytes()
            body = body[: len(body) // width * width]
            arrays[name] = (dtype, [len(body) // width], body)
            continue
        elif name == "lexicon":
            text = mutate_json(zlib.decompress(body), rng) if rng.random() < 0.7 else body
            values = np.frombuffer(zlib.compress(text), dtype=np.uint8)
            shape = [len(values)]
        else:
            del arrays[name]
            continue
        arrays[name] = (dtype, shape, values.tobytes())
    return file_of(description, arrays)


def mutate_header(data: bytes, rng: Rng) -> bytes:
    """The header of the file itself lies: offsets, shapes, types, its own size."""
    size = int.from_bytes(data[:8], "little")
    text = mutate_json(data[8 : 8 + size], rng)
    told = len(text) if rng.random() < 0.9 else int(rng.choice([0, 1, size, 2**31, 2**62]))
    return told.to_bytes(8, "little") + text + data[8 + size :]


MODEL: list[Mutator] = [
    *([mutate_description] * 5), *([mutate_arrays] * 4), mutate_header, flip, truncate, insert
]  # fmt: skip


def mutant(data: bytes, mutators: list[Mutator], rng: Rng) -> bytes:
    """One mutation, or a few one after the other."""
    out = data
    for _ in range(int(rng.choice([1, 1, 1, 2]))):
        try:
            out = mutators[int(rng.integers(len(mutators)))](out, rng)
        except (ValueError, KeyError, TypeError, RecursionError, AttributeError, zlib.error):
            break  # what an earlier mutation left is no longer of the kind that this one changes
    return out
