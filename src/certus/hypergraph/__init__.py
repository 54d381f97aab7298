"""Hypergraphs: any dynamic program as flat arrays, and the sweeps over them."""

from certus.hypergraph.graph import Hypergraph, HypergraphBuilder

__all__ = ["Hypergraph", "HypergraphBuilder"]
