"""Tables of kernels that grow while they are filled: what was put in is still found afterwards."""

import numpy as np

from certus.kernels.intersection import _rehashed, _slot
from certus.kernels.phrase_contexts import more_slots, slot


def test_a_table_of_states_keeps_its_entries_as_it_grows():
    rng = np.random.default_rng(1)
    keys, values = np.full(8, -1, dtype=np.int64), np.empty(8, dtype=np.int32)
    entries = {int(key): k for k, key in enumerate(rng.integers(0, 1 << 40, 60))}
    for count, (key, value) in enumerate(entries.items(), start=1):
        at = slot(keys, key)
        assert keys[at] == -1
        keys[at], values[at] = key, value
        if 2 * count > len(keys):
            keys, values = more_slots(keys, values)
    assert len(keys) == 128
    assert {key: int(values[slot(keys, key)]) for key in entries} == entries


def test_a_table_of_pairs_keeps_its_entries_as_it_grows():
    n_states = 7
    keys, values = np.full(8, -1, dtype=np.int64), np.empty(8, dtype=np.int32)
    pairs = [(v, q) for v in range(10) for q in range(n_states)]
    for count, (v, q) in enumerate(pairs, start=1):
        at = _slot(keys, v, q, n_states)
        assert keys[at] == -1
        keys[at], values[at] = v * n_states + q, count
        if 2 * count > len(keys):
            keys, values = _rehashed(keys, values, n_states)
    assert [int(values[_slot(keys, v, q, n_states)]) for v, q in pairs] == list(range(1, len(pairs) + 1))
