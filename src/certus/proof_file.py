"""Proofs on disk in the normal form that the standalone checker reads; docs/certificates.md specifies the format."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from typing import Any

import numpy as np

from certus.certificates import standalone
from certus.certificates.evaluate import Cell
from certus.certificates.normal import Closed, Closing, Graph, Referred, Searched, Trees
from certus.certificates.sound import whole
from certus.errors import InvalidInput, NotSupported
from certus.problem import Problem, checked_pair
from certus.relax.normal_form import RelaxedForm
from certus.relax.proof import Close, Fix, Leaf, Proof, Split, Tighter, first_multipliers
from certus.relax.proving import proof_of, witness_of
from certus.relax.questions import Proved, claimed_limit, proved_bound, questions
from certus.relax.system import Relaxation
from certus.result import Certificate, Result
from certus.serialize import floats_to_json, write_json

FORMAT, VERSION, VERSION_WITH_CUTS = "certus proof", 1, 2


def save_proof(path: str | os.PathLike[str], problem: Problem[Any], result: Result[Any]) -> None:
    """Write what a result claims, with its proof, for ``certus/certificates/standalone.py`` to check.

    The file stands for itself: the problem is in normal form, and nothing of certus is needed to read it. Nothing is
    checked on the way; a proof of something false can be written, and is refused by whoever reads it.
    """
    write_json(path, proof_to_json(problem, result))


def proof_to_json(problem: Problem[Any], result: Result[Any]) -> dict[str, Any]:
    """The content of a proof file."""
    checked_pair(problem, result)
    certificate = result.certificate
    if certificate.score != result.score:
        raise InvalidInput(f"the result scores {result.score!r} and its certificate says {certificate.score!r}.")
    if not isfinite(certificate.bound + certificate.tolerance):
        raise NotSupported("the bound is infinite: nothing is claimed that a proof could show.")
    proved = list[Proved]()
    for asked in questions(problem, certificate, result.score):
        above = claimed_limit(asked, certificate)
        proved.append(proved_bound(asked, certificate, above))
        if proved[-1].bound <= above:
            return _written(asked, result, above)
    shown = exact_proof(problem, result, proved)
    return _written(asked, result, above) if shown is None else shown


def exact_proof(problem: Problem[Any], result: Result[Any], proved: list[Proved]) -> dict[str, Any] | None:
    """A proof that holds in exact integers, where bounds of the questions with outward rounding are too high.

    None if there is none, or they are higher than rounding may have made them, and some score is not 0.
    """
    for asked, found in zip(questions(problem, result.certificate, result.score), proved, strict=True):
        above = claimed_limit(asked, result.certificate)
        if found.bound - above < found.rounding or whole(asked) == inf:  # where all scores are 0, all bounds are alike
            try:
                data = _written(asked, result, above)
                check: Any = standalone.check
                check(json.loads(json.dumps(data)))
            except (NotSupported, InvalidInput, standalone.Refused, *standalone.MALFORMED):
                continue
            return data
    return None


def _written(asked: Problem[Any], result: Result[Any], above: float) -> dict[str, Any]:
    """The proof that one of the questions about a result has no structure above this."""
    certificate = result.certificate
    claim = {
        "score": float(result.score),
        "bound": float(certificate.bound),
        "tolerance": float(certificate.tolerance),
        "rank": certificate.rank,
        "exact": bool(certificate.exact),
        **({"distinct": True} if certificate.distinct else {}),
    }
    head = {"format": FORMAT, "version": VERSION, "problem": asked.name, "claim": claim}
    relaxed, proof = _prepared(asked, certificate, above)
    if isinstance(proof, Tighter):
        relaxed, proof = relaxed.tightened(proof), proof.rest
        if relaxed.cuts:
            head |= {"version": VERSION_WITH_CUTS, "cuts": _cuts_to_json(relaxed)}
    tree = proof.rest if isinstance(proof, Close) else proof
    if not isinstance(tree, Leaf | Fix | Split):
        raise InvalidInput(f"the proof tree is {type(tree).__name__}.")
    data, elsewhere = _form_to_json(relaxed), relaxed.searched or isinstance(proof, Close)
    if relaxed.searched:
        below = float(np.nextafter(result.score - 2.0 * certificate.tolerance, -inf))  # so that structures are left
        limit = min(certificate.bound + certificate.tolerance, below)
        data, relaxed = _closed(relaxed, data | {"claim": claim}, proof, limit)
    distinct = certificate.distinct  # of strings, of which the form knows nothing
    if elsewhere and not distinct and relaxed.bound(tree, above, certificate.better) > above:  # more is here than there
        tree = proof_of(relaxed, replace(certificate, witness=None, duals=None), above)
    better, own = [relaxed.structure(y) for y in certificate.better], relaxed.structure_if_left(result.structure)
    if own is None:
        raise NotSupported(
            "the structure was left out with what cannot beat the bound when its space was closed: no proof is "
            "written for the standalone checker, but certus.verify checks the result."
        )
    shown = {
        "trusts": _trusts(relaxed),
        "structure": [_listed(y) for y in own],
        "better": [[_listed(y) for y in structure] for structure in better],
        "proof": _Nodes(relaxed, above, better).of(tree),
    }
    return data | head | shown


def _trusts(relaxed: RelaxedForm) -> list[str]:
    """What no checker of the file can know, beyond that the normal form is the problem that was meant."""
    kinds = [type(p) for p in relaxed.relaxation.subproblems]
    listed = sorted({kind.__name__ for kind in kinds if kind.normal_form is Problem.normal_form and not kind.name})
    return [f"that {name}.all_structures() lists all structures: an edge each is all that is said" for name in listed]


def _prepared(problem: Problem[Any], certificate: Certificate, above: float) -> tuple[RelaxedForm, Any]:
    """The form that is written, and its proof: that of the result, less what closes subproblems that are spelt out."""
    if problem.searched:
        relaxed = RelaxedForm.of(Relaxation.alone(problem), _is_searched)
        leaf = Leaf({}, tuple(range(len(certificate.better))))
        if not relaxed.searched:
            return relaxed, leaf
        return relaxed, Close({}, Closing((witness_of(problem, certificate, above),), ()), leaf)
    relaxed, proof = RelaxedForm.of(Relaxation.of(problem), _is_searched), witness_of(problem, certificate, above)
    if not isinstance(proof, Close):
        return relaxed, proof
    every = [p for p in relaxed.relaxation.subproblems if p.searched]
    if len(every) != len(proof.closing.witnesses):
        raise InvalidInput(f"{len(proof.closing.witnesses)} witnesses are given; {len(every)} parts are searched.")
    both = zip(every, proof.closing.witnesses, strict=True)
    return relaxed, replace(proof, closing=Closing(tuple(own for p, own in both if _is_searched(p)), ()))


def _is_searched(problem: Problem[Any]) -> bool:
    return problem.name in standalone.CLOSED


def _closed(
    relaxed: RelaxedForm, data: dict[str, Any], proof: Proof | Close, above: float
) -> tuple[dict[str, Any], RelaxedForm]:
    """How the checker closes what is searched, and the form as it will find it."""
    multipliers = proof.multipliers if isinstance(proof, Close) else first_multipliers(proof)
    closing, _ = relaxed.close(multipliers, above, proof.closing if isinstance(proof, Close) else None)
    u, cell = relaxed.multipliers(multipliers), relaxed.initial()
    shown = _with_rewards(relaxed, relaxed.evaluation.closing_spelt_out(u, above, cell, closing))
    given = zip(closing.witnesses, closing.levels, strict=True)
    spaces = list(data["spaces"])
    for i, space in enumerate(relaxed.form.spaces):
        if isinstance(space, Searched):
            witness, level = next(given)
            arrays = {name: np.asarray(array).tolist() for name, array in witness.items()}
            spaces[i] = spaces[i] | {"witness": arrays, "above": level}
    data = data | {"closing": shown, "spaces": spaces}
    read = json.loads(json.dumps(data))
    try:
        close: Any = standalone.closed
        closed = close(read)
    except (standalone.Refused, LookupError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"the witness of the bound does not fit the problem: {error}") from None
    return data, _as_found(relaxed, read, closed)


def _as_found(relaxed: RelaxedForm, given: dict[str, Any], closed: dict[str, Any]) -> RelaxedForm:
    """The form with the graphs that the checker makes of spaces that are searched."""
    spaces, left = list(relaxed.form.spaces), list[Closed]()
    problems = [p for p, _ in _searched_parts(relaxed)]
    for i, space in enumerate(relaxed.form.spaces):
        if isinstance(space, Searched):
            graph = {name: value for name, value in closed["spaces"][i].items() if name != "kind"}
            spaces[i] = Graph(**{name: np.array(value, dtype=np.int64) for name, value in graph.items()})
            cells = {p: k for k, p in enumerate(given["spaces"][i]["part"])}
            find = partial(_derivation, graph, cells, problems[len(left)])
            left.append(Closed(relaxed.form, find))
    scores = np.array(closed["scores"], dtype=np.float64)
    return replace(relaxed, form=relaxed.form._replace(scores=scores, spaces=tuple(spaces)), closed=tuple(left))


def _derivation(graph: Any, cells: dict[int, int], problem: Problem[Any], structure: Any) -> list[int] | None:
    """The edges of a graph, heads before tails, that use the cells of a structure in its order; None if there are none.

    A phrase lattice is derived from its end.
    """
    listed = problem.structure_to_json(structure)
    wanted = listed[::-1] if problem.name.endswith("phrase translation") else listed
    agenda: list[tuple[list[int], int, list[int]]] = [([len(graph["in_ptr"]) - 2], 0, [])]
    while agenda:
        pending, place, edges = agenda.pop()
        if not pending:
            if place == len(wanted):
                return edges
            continue
        *others, v = pending
        for e in range(graph["in_ptr"][v], graph["in_ptr"][v + 1]):
            uses = [cells[p] for p in graph["part"][graph["part_ptr"][e] : graph["part_ptr"][e + 1]] if p in cells]
            if uses == wanted[place : place + len(uses)]:
                tails = graph["tail"][graph["tail_ptr"][e] : graph["tail_ptr"][e + 1]]
                agenda.append(([*others, *reversed(tails)], place + len(uses), [*edges, e]))
    return None


def _with_rewards(relaxed: RelaxedForm, found: dict[str, Any]) -> dict[str, Any]:
    """What is required from the start is a row like any other."""
    for row in range(len(found["u"]) - len(relaxed.required), len(found["u"])):
        found["u"][row] = -found["reward"]
    return found


def _searched_parts(relaxed: RelaxedForm) -> Iterator[tuple[Problem[Any], float]]:
    """The subproblems that are searched, with their weights."""
    r = relaxed.relaxation
    return ((p, w) for p, w, kept in zip(r.subproblems, r.weights, relaxed.kept, strict=True) if kept)


def _form_to_json(relaxed: RelaxedForm) -> dict[str, Any]:
    form, left = relaxed.form, _searched_parts(relaxed)
    spaces = []
    for space in form.spaces:
        if isinstance(space, Searched):
            problem, weight = next(left)
            own = {"problem": problem.name, "data": problem.to_json(), "weight": weight, "part": space.part.tolist()}
            spaces.append({"kind": "searched"} | own)
        else:
            spaces.append(_space_to_json(space))
    rows = {name: value.tolist() for name, value in form.rows._asdict().items()}
    return {"scores": floats_to_json(form.scores), "spaces": spaces, "rows": rows}


def _cuts_to_json(relaxed: RelaxedForm) -> list[dict[str, Any]]:
    """Which rows follow from others, and how."""
    first, found = relaxed.relaxation.n_rows - len(relaxed.cuts), []
    for row, cut in enumerate(relaxed.cuts, first):
        parts = [[int(relaxed.part[cell]), k] for cell, k in cut.cells if relaxed.part[cell] >= 0]
        found.append(
            {"row": row, "denominator": cut.denominator, "rows": [list(own) for own in cut.rows], "parts": parts}
        )
    return found


def _space_to_json(space: Graph | Trees | Referred) -> dict[str, Any]:
    if isinstance(space, Referred):
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
            shown = self._bound(nothing, self.relaxed.initial(), parts=low[:, None])
            start = {"node": "fix", "parts": low.tolist()} | shown
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
                first = parts[np.arange(len(parts)), (parts >= 0).argmax(axis=1)]  # the others go with it
                nodes.append({"node": "fix", "parts": first.tolist()} | self._bound(node, cell, parts=parts))
                parent, slot = nodes[-1], "rest"
            stack.append((node.rest, self.relaxed.without(cell, node.removed), parent, slot))
        return nodes

    def _bound(self, node: Leaf | Fix, cell: Cell, **options: Any) -> dict[str, Any]:
        """Multipliers, rewards and duals; what is required from the start is a row like any other."""
        u = self.relaxed.multipliers(node.multipliers)
        return _with_rewards(self.relaxed, self.relaxed.evaluation.spelt_out(u, self.above, cell, **options))

    def _split(self, node: Split) -> dict[str, Any]:
        copies = self.relaxed.copies(node.view, node.index)
        lines = [line.tolist() for line in self.relaxed.rivals(node.view, node.index)]
        return {"node": "split", "part": copies[0], "rivals": lines}
