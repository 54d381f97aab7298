"""Tags as a tagger would give them, for training what comes after it on tags as imperfect as it will meet."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from certus.checks import as_positive_int
from certus.errors import InvalidInput
from certus.text import Sentence
from certus.threads import in_order, thread_count


class FillsTags(Protocol):
    """What ``train`` returns: a Tagger, or anything that tags like one."""

    def tag(self, sentences: Iterable[Sentence], /) -> Sequence[Sentence]:
        """New sentences with tags filled in."""


def jackknife(
    sentences: Iterable[Sentence],
    folds: int = 10,
    *,
    train: Callable[[list[Sentence]], FillsTags],
    progress: Callable[[int, int], None] | None = None,
    workers: int | None = 1,
) -> list[Sentence]:
    """The sentences with predicted tags, each tagged by a tagger that was trained on the other folds.

    Folds are runs of neighbouring sentences, so that a text mostly lies in one of them. ``train`` is called with the
    sentences outside each fold; ``progress`` with (folds done, folds). Folds are done by ``workers`` threads, None for
    as many as there are processors, with the same outcome.

    Examples
    --------
    ``jackknife(treebank, train=lambda rest: Tagger.train(rest, column=["upos", "xpos"], epochs=8))``
    """
    corpus = list(sentences)
    folds = as_positive_int("folds", folds)
    if not 2 <= folds <= len(corpus):
        raise InvalidInput(f"folds is {folds} for {len(corpus)} sentences; expected 2 to as many as there are.")

    def tagged_fold(k: int) -> Sequence[Sentence]:
        begin, end = k * len(corpus) // folds, (k + 1) * len(corpus) // folds
        return train(corpus[:begin] + corpus[end:]).tag(corpus[begin:end])

    tagged: list[Sentence] = []
    for done, some in enumerate(in_order(tagged_fold, range(folds), thread_count(workers)), start=1):
        tagged += some
        if progress is not None:
            progress(done, folds)
    return tagged
