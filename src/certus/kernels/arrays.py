"""What kernels share: arrays of unknown length, the largest of some values, items in order of their lengths."""

import numpy as np

from certus.kernels.compiling import njit


@njit(cache=True, nogil=True)
def longer(array):
    """The same array with room for as many rows again."""
    out = np.empty((2 * array.shape[0], *array.shape[1:]), array.dtype)
    before, after = array.flat, out.flat  # one slice assigned to another takes seconds to compile
    for i in range(array.size):
        after[i] = before[i]
    return out


@njit(cache=True, nogil=True)
def largest(values, k):
    """The k-th largest of the values (n,), 1 <= k <= n, by quickselect on a copy."""
    work = values.copy()
    low, high, wanted = 0, work.shape[0] - 1, k - 1
    while low < high:
        pivot = work[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while work[i] > pivot:
                i += 1
            while work[j] < pivot:
                j -= 1
            if i <= j:
                work[i], work[j] = work[j], work[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return work[wanted]


@njit(cache=True, nogil=True)
def longest_first(lengths):
    """The items (B,) in falling order of their lengths, those of one length in their own order."""
    if lengths.shape[0] == 0:
        return lengths
    before = np.zeros(lengths.max() + 2, dtype=np.int64)  # items longer than each length
    for n in lengths:
        before[n] += 1
    for n in range(before.shape[0] - 2, -1, -1):
        before[n] += before[n + 1]
    order = np.empty_like(lengths)
    for b in range(lengths.shape[0]):
        at = lengths[b] + 1
        order[before[at]] = b
        before[at] += 1
    return order
