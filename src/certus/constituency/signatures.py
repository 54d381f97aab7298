"""Classes of words by their looks: what an unknown word still tells of its tag."""

from collections.abc import Iterator

_SUFFIXES = (
    "able", "tion", "ment", "ness", "less", "ous", "ing", "ion", "est", "ity", "ive", "ful", "ist",
    "ate", "ize", "ers", "ies", "ed", "er", "ly", "al", "ic", "en", "or", "an", "'s", "ss", "us", "is", "s", "y",
)  # fmt: skip


def classes(word: str) -> Iterator[str]:
    """Class names of a word, the most telling first, ending with the class of all words.

    >>> list(classes("Re-elected"))
    ['<capital,hyphen,ed>', '<capital,hyphen>', '<unknown>']
    """
    shape = []
    if any(c.isdigit() for c in word):
        shape.append("digit" if any(c.isalpha() for c in word) else "number")
    if word[:1].isupper():
        shape.append("capitals" if len(word) > 1 and word.isupper() else "capital")
    if "-" in word:
        shape.append("hyphen")
    if not any(c.isalnum() for c in word):
        shape.append("symbol")
    lower = word.lower()
    suffix = next((s for s in _SUFFIXES if len(word) > len(s) + 2 and lower.endswith(s)), None)
    if suffix is not None and "number" not in shape:
        yield f"<{','.join([*shape, suffix])}>"
    yield f"<{','.join(shape) or 'lower'}>"
    yield "<unknown>"
