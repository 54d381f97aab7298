"""Hypergraphs: any dynamic program as flat arrays, and the sweeps over them."""

from certus.hypergraph.automata import Automaton, intersect
from certus.hypergraph.builder import HypergraphBuilder
from certus.hypergraph.constrained import ConstrainedHyperpath
from certus.hypergraph.graph import Hypergraph
from certus.hypergraph.hyperpath import Hyperpath

__all__ = ["Automaton", "ConstrainedHyperpath", "Hypergraph", "HypergraphBuilder", "Hyperpath", "intersect"]
