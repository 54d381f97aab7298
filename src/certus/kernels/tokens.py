"""Plain text as bytes: what stands between blanks, its words and sentences, and both as CoNLL-U.

A text is bytes (uint8) of UTF-8 in pieces, with a NUL between two of them; no sentence goes beyond its piece. A chunk
is what stands between blanks. Which words it falls into is known by its bytes, and, if it ends in a large letter and a
full stop, by those of the next one: together they are its key. Keys are numbered; the words of key k are the
rows ptr[k] .. ptr[k + 1] - 1 of a table, each with its size in bytes and its marks (``text.tokenizer``), and lie one
behind the other without a gap.
"""

from certus.kernels.compiling import njit
from certus.kernels.conllu import copied, write_number

_TAB, _END, _STOP, _NONE = 9, 10, 46, 95
SIZE, MARKS, ROWS = range(3)  # columns of the table of words; from ROWS on, rows of the encoders of taggers
# The marks of words, as text.tokenizer has them.
_ENDS, _CLOSES, _GOES_ON, _FULL_STOP, _DOTS, _ALPHA, _ALNUM, _UPPER, _LOWER, _STARTS = [1 << k for k in range(10)]


@njit(cache=True, nogil=True)
def blank_at(text, i):
    """How many bytes the white space at i has, in UTF-8 and as Python knows it; 0 if there is none."""
    a = text[i]
    if a < 0xC2:
        return 1 if a == 32 or 9 <= a <= 13 or 28 <= a < 32 else 0
    if a == 0xC2:
        return 2 if text[i + 1] == 0x85 or text[i + 1] == 0xA0 else 0
    if a < 0xE1 or a > 0xE3:
        return 0
    b, c = text[i + 1], text[i + 2]
    if a == 0xE2:
        space = b == 0x80 and (0x80 <= c <= 0x8A or c == 0xA8 or c == 0xA9 or c == 0xAF)
        return 3 if space or (b == 0x81 and c == 0x9F) else 0
    return 3 if (a == 0xE1 and b == 0x9A and c == 0x80) or (a == 0xE3 and b == 0x80 and c == 0x80) else 0


@njit(cache=True, nogil=True)
def find_chunks(text, begin, end, key, last):
    """Of chunk c, its first byte and where it and its key end, and whether it is the last of its piece; how many."""
    size = text.shape[0]
    c = i = 0
    while i < size:
        if text[i] == 0:
            if c > 0:
                last[c - 1] = True
            i += 1
            continue
        blank = blank_at(text, i)
        if blank > 0:
            i += blank
            continue
        begin[c], last[c] = i, False
        while i < size and text[i] != 0 and blank_at(text, i) == 0:
            i += 1
        end[c] = i
        c += 1
    if c > 0:
        last[c - 1] = True
    for k in range(c):
        key[k] = end[k]
        if end[k] > begin[k] + 1 and not last[k]:
            a, b = text[end[k] - 2], text[end[k] - 1]
            if b == _STOP and 65 <= a <= 90:
                key[k] = end[k + 1]
    return c


@njit(cache=True, nogil=True)
def may_begin(form, following, touch):
    """Whether a sentence may begin with a word after one that may end one, by their marks."""
    if following & _GOES_ON:
        return False
    if touch and form & _FULL_STOP and following & _ALNUM:
        return following & _UPPER != 0
    if form & _ALPHA:
        return following & _STARTS != 0
    if form & _DOTS:
        return following & _UPPER != 0
    return not (following & _LOWER and (form & _CLOSES or touch))


@njit(cache=True, nogil=True)
def cut_words(chunks, keys, table, whole, words):
    """The words and sentences of a text; returns how many sentences.

    chunks is (begin, last) of find_chunks, keys the number of the key of each, table (ptr, word). words is (start, end,
    row, sentence): word w lies in text[start[w] : end[w]] and is row[w] of the table; sentence s has the words
    sentence[s] .. sentence[s + 1] - 1. With whole every piece is one sentence.
    """
    begin, last = chunks
    ptr, word = table
    start, end, row, sentence = words
    w = s = first = 0
    sentence[0] = 0
    for c in range(keys.shape[0]):
        at = begin[c]
        for k in range(ptr[keys[c]], ptr[keys[c] + 1]):
            start[w], row[w] = at, k
            at += word[k, SIZE]
            end[w] = at
            w += 1
        if last[c]:
            if not whole:
                s = cut_sentences(first, w, word, words, s)
            s += 1
            sentence[s] = first = w
    return s


@njit(cache=True, nogil=True)
def cut_sentences(first, count, word, words, s):
    """Cut words first .. count - 1, a paragraph, after each sentence but the last; returns how many there are then."""
    start, end, row, sentence = words
    k = first
    while k < count:
        last = k
        if word[row[k], MARKS] & _ENDS:
            while last + 1 < count and word[row[last + 1], MARKS] & _CLOSES and end[last] == start[last + 1]:
                last += 1
            if last + 1 < count:
                form, following = word[row[last], MARKS], word[row[last + 1], MARKS]
                if may_begin(form, following, end[last] == start[last + 1]):
                    s += 1
                    sentence[s] = last + 1
        k = last + 1
    return s


@njit(cache=True, nogil=True)
def write_words(text, words, tags, names, out):
    """out <- the sentences as CoNLL-U without trees; returns its size.

    words is (start, end, sentence) of cut_words. tags (3, W) has the numbers of the coarse tag, the fine one and the
    morphology of each word among the names, (ptr, bytes).
    """
    start, end, sentence = words
    ptr, name = names
    at = 0
    for s in range(sentence.shape[0] - 1):
        for w in range(sentence[s], sentence[s + 1]):
            at = write_number(w - sentence[s] + 1, out, at)
            out[at] = _TAB
            at = copied(text, start[w], end[w], out, at + 1)
            out[at], out[at + 1] = _TAB, _NONE
            at += 2
            for k in range(tags.shape[0]):
                out[at] = _TAB
                at = copied(name, ptr[tags[k, w]], ptr[tags[k, w] + 1], out, at + 1)
            for _ in range(4):
                out[at], out[at + 1] = _TAB, _NONE
                at += 2
            out[at] = _END
            at += 1
        out[at] = _END
        at += 1
    return at
