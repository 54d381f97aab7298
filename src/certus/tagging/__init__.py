"""Tagging: sequences scored by single tags, pairs and triples, and the hidden Markov model that scores them."""

from certus.tagging.batch import TaggingBatch
from certus.tagging.hmm import HMM
from certus.tagging.problem import Tagging

__all__ = ["HMM", "Tagging", "TaggingBatch"]
