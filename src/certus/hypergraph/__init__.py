"""Hypergraphs: any dynamic program as flat arrays, and the sweeps over them."""

from certus.hypergraph.automata import Automaton, intersect
from certus.hypergraph.builder import HypergraphBuilder
from certus.hypergraph.dynamic_program import DynamicProgram, Forest
from certus.hypergraph.graph import Hypergraph
from certus.hypergraph.hyperpath import Hyperpath

__all__ = ["Automaton", "DynamicProgram", "Forest", "Hypergraph", "HypergraphBuilder", "Hyperpath", "intersect"]
