"""Tables of kernels that grow while they are filled: what was put in is still found afterwards."""

import numpy as np

from certus.kernels import eisner, forest_exact, phrase_search
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


def test_tables_of_forest_search_grow_with_all_items_in_them():
    n = 40
    item = np.random.default_rng(0).integers(0, 5, size=(n, forest_exact.WAY + 1)).astype(np.int64)
    item[:, forest_exact.PIECE] = np.arange(n)  # no two alike
    slots = forest_exact._more_slots(np.full(16, -1, dtype=np.int64), item, n)
    assert len(slots) == 64
    assert sorted(slots[slots >= 0].tolist()) == list(range(n))
    for k in range(n):
        assert (
            slots[forest_exact._slot(slots, item, item[k, forest_exact.PIECE], forest_exact._signature(item, k))] == k
        )


def test_tables_of_phrase_search_grow_with_all_hypotheses_in_them():
    n = 40
    hypotheses = np.arange(6 * n, dtype=np.int32).reshape(n, 6)
    table = phrase_search._more_slots(64, hypotheses, np.arange(n, dtype=np.uint64), n)
    assert sorted(table[table >= 0].tolist()) == list(range(1, n))


def test_the_largest_score_of_sentences_of_one_word():
    arc = np.array([[[9.0, -3.0], [9.0, 9.0]], [[9.0, 2.0], [9.0, 9.0]], [[9.0, 7.0], [9.0, 9.0]]])
    assert eisner.survey(arc, np.array([1, 1, 0])) == (3.0, -1)
    arc[1, 0, 1] = np.nan
    assert eisner.survey(arc, np.array([1, 1, 0]))[1] == 1
