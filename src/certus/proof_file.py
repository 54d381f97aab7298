"""Proofs on disk in the normal form that the standalone checker reads; docs/certificates.md specifies the format."""

import json
import os
from math import isfinite
from typing import Any

import numpy as np

from certus.certificates import standalone
from certus.certificates.evaluate import Cell
from certus.certificates.normal import NormalForm, Referred, Searched, Space, Trees
from certus.errors import InvalidInput, NotSupported
from certus.problem import Problem
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import Fix, Leaf, Proof, Split
from certus.relax.proving import witness_of
from certus.relax.system import Relaxation
from certus.result import Result
from certus.serialize import floats_to_json, write_json
from certus.verify import claimed_limit, proved_bound, questions

FORMAT, VERSION = "certus proof", 1


def save_proof(path: str | os.PathLike[str], problem: Problem[Any], result: Result[Any]) -> None:
    """Write what a result claims, with its proof, for ``certus/certificates/standalone.py`` to check.

    The file stands for itself: the problem is in normal form, and nothing of certus is needed to read it. Nothing is
    checked on the way; a proof of something false can be written, and is refused by whoever reads it.
    """
    write_json(path, proof_to_json(problem, result))


def proof_to_json(problem: Problem[Any], result: Result[Any]) -> dict[str, Any]:
    """The content of a proof file."""
    certificate = result.certificate
    if certificate.score != result.score:
        raise InvalidInput(f"the result scores {result.score!r} and its certificate says {certificate.score!r}.")
    if not isfinite(certificate.bound + certificate.tolerance):
        raise NotSupported("the bound is infinite: nothing is claimed that a proof could show.")
    claim = {
        "score": float(result.score),
        "bound": float(certificate.bound),
        "tolerance": float(certificate.tolerance),
        "rank": certificate.rank,
        "exact": bool(certificate.exact),
    }
    head = {"format": FORMAT, "version": VERSION, "problem": problem.name, "claim": claim}
    asked = _provable(problem, result)
    above = claimed_limit(asked, certificate)
    if asked.name in standalone.CLOSED:
        return head | _searched_to_json(asked, result, witness_of(asked, certificate, above))
    alone = asked.searched and asked.relaxation() is not None
    relaxed = RelaxedForm.of(Relaxation.alone(asked) if alone else Relaxation.of(asked), whole=True)
    witness = Leaf({}) if alone else witness_of(asked, certificate, above)
    better = [relaxed.structure(y) for y in certificate.better]
    return head | {
        **_form_to_json(relaxed.form),
        "structure": [_listed(y) for y in relaxed.structure(result.structure)],
        "better": [[_listed(y) for y in structure] for structure in better],
        "proof": _Nodes(relaxed, above, better).of(Leaf({}) if asked.searched else witness),
    }


def _provable(problem: Problem[Any], result: Result[Any]) -> Problem[Any]:
    """The first of the questions that the proof answers, or else the last."""
    asked = list(questions(problem, result.certificate, result.score))
    for one in asked[:-1]:
        above = claimed_limit(one, result.certificate)
        if proved_bound(one, result.certificate, above) <= above:
            return one
    return asked[-1]


def _searched_to_json(problem: Problem[Any], result: Result[Any], witness: Any) -> dict[str, Any]:
    """The problem itself, and structures as the checker will find them in the graph that it makes of it.

    The graph is closed a little below the score, so that the structure is in it.
    """
    certificate = result.certificate
    limit = certificate.bound + certificate.tolerance
    problem.closed_form(limit, witness)  # or the witness does not fit
    above = min(limit, float(np.nextafter(result.score - certificate.tolerance, -np.inf)))
    data, given = problem.to_json(), {name: np.asarray(array).tolist() for name, array in witness.items()}
    closed: Any = standalone.CLOSED[problem.name]
    try:
        _, graph = closed(json.loads(json.dumps(data)), given, above)
    except (LookupError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"the witness of the bound does not fit the problem: {error}") from None
    own = int(next(iter(problem.views.values()))[0])
    structures = (problem.structure_to_json(y) for y in (result.structure, *certificate.better))
    first, *better = ([_derivation(graph, own, y, problem.name)] for y in structures)
    searched = {"kind": problem.name, "problem": data, "witness": given, "above": above}
    return {"searched": searched, "structure": first, "better": better}


def _derivation(graph: Any, own: int, structure: list[int], kind: str) -> list[int]:
    """The edges of a graph, heads before tails, that use the problem's own parts in the order of a structure.

    Those are the first ``own`` parts; a phrase lattice is derived from its end.
    """
    wanted = structure[::-1] if kind == "phrase translation" else structure
    agenda: list[tuple[list[int], int, list[int]]] = [([len(graph["in_ptr"]) - 2], 0, [])]
    while agenda:
        pending, place, edges = agenda.pop()
        if not pending:
            if place == len(wanted):
                return edges
            continue
        *others, v = pending
        for e in range(graph["in_ptr"][v], graph["in_ptr"][v + 1]):
            uses = [p for p in graph["part"][graph["part_ptr"][e] : graph["part_ptr"][e + 1]] if p < own]
            if uses == wanted[place : place + len(uses)]:
                tails = graph["tail"][graph["tail_ptr"][e] : graph["tail_ptr"][e + 1]]
                agenda.append(([*others, *reversed(tails)], place + len(uses), [*edges, e]))
    return []  # a structure that scores too little, which the checker will refuse


def _form_to_json(form: NormalForm) -> dict[str, Any]:
    rows = form.rows
    return {
        "scores": floats_to_json(form.scores),
        "spaces": [_space_to_json(space) for space in form.spaces],
        "rows": {name: value.tolist() for name, value in rows._asdict().items()},
    }


def _space_to_json(space: Space) -> dict[str, Any]:
    if isinstance(space, Referred | Searched):
        raise NotSupported("a problem that has no normal form cannot be written for the standalone checker.")
    if isinstance(space, Trees):
        labels = None if space.labels is None else space.labels.tolist()
        return {"kind": "trees", "part": space.part.tolist(), "single": bool(space.single), "labels": labels}
    return {"kind": "graph", **{name: value.tolist() for name, value in space._asdict().items()}}


def _listed(structure: Any) -> list[Any]:
    """Edges, or heads; of a tree with labels, heads and labels."""
    return [_listed(x) if isinstance(x, list | tuple | np.ndarray) else int(x) for x in structure]


class _Nodes:
    """A proof tree as a list of nodes over parts and rows, each before those that it leads to."""

    def __init__(self, relaxed: RelaxedForm, above: float, better: list[Any]) -> None:
        self.relaxed, self.above, self.better = relaxed, above, better

    def of(self, proof: Proof) -> list[dict[str, Any]]:
        if not isinstance(proof, Leaf | Fix | Split):
            raise InvalidInput(f"the proof tree is {type(proof).__name__}.")
        nodes: list[dict[str, Any]] = []
        start: dict[str, Any] | None = None
        low = self.relaxed.too_low(self.above)
        if len(low):
            nothing = Leaf(self.relaxed.relaxation.named(np.zeros(self.relaxed.relaxation.n_rows)))
            start = {"node": "fix", "parts": low.tolist()} | self._bound(nothing, self.relaxed.initial(), parts=low)
            nodes.append(start)
        cell = self.relaxed.hopeful(self.above)
        stack: list[tuple[Proof, Cell, dict[str, Any] | None, str]] = [(proof, cell, start, "rest")]
        while stack:
            node, cell, parent, slot = stack.pop()
            if parent is not None:
                parent[slot] = len(nodes)
            if isinstance(node, Split):
                if not self.relaxed.copies(node.view, node.index):  # nothing uses the part
                    stack.append((node.zero, cell, parent, slot))
                    continue
                required = set(self.relaxed.fixed(cell, node.view, node.index, 1).ones).difference(cell.ones)
                nodes.append(self._split(node) | {"required": sorted(required)})
                for value, child in ((0, node.zero), (1, node.one)):
                    narrower = self.relaxed.fixed(cell, node.view, node.index, value)
                    stack.append((child, narrower, nodes[-1], ("zero", "one")[value]))
                continue
            if isinstance(node, Leaf):
                known = self.relaxed.known(node, self.better)
                u = self.relaxed.multipliers(node.multipliers)
                if known and self.relaxed.evaluation.bound(u, self.above, cell) <= self.above:
                    known = []  # the bound holds for them too
                at = [k for k, y in enumerate(self.better) if any(y is one for one in known)]
                nodes.append({"node": "leaf", "known": at} | self._bound(node, cell, known=known))
                continue
            for part in node.removed:
                parts = self.relaxed.parts_of(part)
                if parent is not None:
                    parent[slot] = len(nodes)
                nodes.append({"node": "fix", "parts": parts.tolist()} | self._bound(node, cell, parts=parts))
                parent, slot = nodes[-1], "rest"
            stack.append((node.rest, self.relaxed.without(cell, node.removed), parent, slot))
        return nodes

    def _bound(self, node: Leaf | Fix, cell: Cell, **options: Any) -> dict[str, Any]:
        """Multipliers, rewards and duals; what is required from the start is a row like any other."""
        u = self.relaxed.multipliers(node.multipliers)
        found = self.relaxed.evaluation.spelt_out(u, self.above, cell, **options)
        for row in range(len(u) - len(self.relaxed.required), len(u)):
            found["u"][row] = -found["reward"]
        return found

    def _split(self, node: Split) -> dict[str, Any]:
        copies = self.relaxed.copies(node.view, node.index)
        lines = [line.tolist() for line in self.relaxed.rivals(node.view, node.index)]
        return {"node": "split", "part": copies[0], "rivals": lines}
