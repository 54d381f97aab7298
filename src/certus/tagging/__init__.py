"""Tagging: sequences scored by single tags, pairs and triples, and the hidden Markov model that scores them."""

from typing import TYPE_CHECKING

from certus.lazy import lazy

if TYPE_CHECKING:
    from certus.tagging.batch import TaggingBatch
    from certus.tagging.hmm import HMM
    from certus.tagging.problem import Tagging

__all__ = ["HMM", "Tagging", "TaggingBatch"]

__getattr__ = lazy(
    __name__,
    {
        "certus.tagging.batch": "TaggingBatch",
        "certus.tagging.hmm": "HMM",
        "certus.tagging.problem": "Tagging",
    },
)
