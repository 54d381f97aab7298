"""Normal forms of several spaces read literally: all their structures, and what a given one uses."""

from itertools import product

import numpy as np

from certus.certificates.normal import Graph, NormalForm
from tests.oracles.normal import meets, score
from tests.oracles.trees import is_tree


def uses(form: NormalForm, structure) -> np.ndarray:
    """How often each part is used by one structure of every space, which is checked to be one."""
    used = np.zeros(len(form.scores), dtype=np.int64)
    assert len(structure) == len(form.spaces)
    for space, own in zip(form.spaces, structure, strict=True):
        if not isinstance(space, Graph):
            heads, labels = (own, None) if space.labels is None else own
            assert is_tree(heads, "single" if space.single else "multi")
            words = range(1, len(heads))
            parts = [space.part[heads[m], m] for m in words]
            parts += [space.labels[heads[m], m, labels[m]] for m in words] if labels else []
            assert -1 not in parts
        else:
            pending, parts = [len(space.in_ptr) - 2], []
            for e in own:
                v = pending.pop()
                assert space.in_ptr[v] <= e < space.in_ptr[v + 1]
                pending += space.tail[space.tail_ptr[e] : space.tail_ptr[e + 1]][::-1].tolist()
                parts += space.part[space.part_ptr[e] : space.part_ptr[e + 1]].tolist()
            assert not pending
        np.add.at(used, np.array(parts, dtype=np.int64), 1)
    return used


def all_derivations(graph: Graph) -> list[list[int]]:
    """Every derivation of the last vertex: its edges, heads before tails."""
    found: list[list[list[int]]] = []
    for v in range(len(graph.in_ptr) - 1):
        here = []
        for e in range(graph.in_ptr[v], graph.in_ptr[v + 1]):
            tails = graph.tail[graph.tail_ptr[e] : graph.tail_ptr[e + 1]]
            assert (tails < v).all()
            here += [[e, *(x for below in chosen for x in below)] for chosen in product(*(found[u] for u in tails))]
        found.append(here)
    return found[-1]


def all_of_space(space) -> list[list[int]]:
    """Every structure of a space."""
    if isinstance(space, Graph):
        return all_derivations(space)
    choices = [np.flatnonzero(space.part[:, m] >= 0).tolist() for m in range(1, len(space.part))]
    trees = ([-1, *heads] for heads in product(*choices))
    found = [heads for heads in trees if is_tree(heads, "single" if space.single else "multi")]
    if space.labels is None:
        return found
    return [
        (heads, [-1, *labels])
        for heads in found
        for labels in product(*(np.flatnonzero(space.labels[h, m] >= 0) for m, h in enumerate(heads) if m))
    ]


def all_uses(form: NormalForm) -> list[np.ndarray]:
    """How often each structure of a small normal form uses each part; those that break no row."""
    out = []
    for structure in product(*map(all_of_space, form.spaces)):
        used = uses(form, structure)
        if meets(form.rows, used) and score(form.scores, used) > -np.inf:
            out.append(used)
    return out


def other_parts(space) -> list[np.ndarray]:
    return [] if isinstance(space, Graph) or space.labels is None else [space.labels]


def check_normal_form(problem) -> None:
    """The normal form of a small problem has its structures, one to one, with their scores and cells."""
    form = problem.normal_form()
    scored = [(problem.score(y), y) for y in problem.all_structures()]
    scored = [(value, y) for value, y in scored if value > -np.inf]
    assert sorted(score(form.scores, used) for used in all_uses(form)) == sorted(value for value, _ in scored)
    assert set(form.cells) == set(problem.views)
    seen = set()
    for value, y in scored:
        own = problem.normal_structure(y)
        used = uses(form, own)
        assert score(form.scores, used) == value
        seen.add(repr(own))
        for view, part in form.cells.items():
            shown = problem.indicator(y, view).reshape(-1)
            assert part.shape == shown.shape
            assert (np.where(part >= 0, used[part] if len(used) else 0, 0) == shown).all()
    assert len(seen) == len(scored)
    spaces = [part[part >= 0] for space in form.spaces for part in (space.part, *other_parts(space))]
    assert set(np.concatenate(spaces).tolist()) == set(range(len(form.scores)))  # parts that nothing has are left out
