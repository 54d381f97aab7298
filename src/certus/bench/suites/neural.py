"""Structures of neural models in batches, with default arguments on one thread: against torch-struct and supar.

Chains of 20 tags, segments, trees of spans with 30 labels, grammars of 60 symbols, dependency trees. Peers get tensors
in the layout that they want; what takes them there is part of the call where a user has to do it each time. Gradients
are those of log-partition functions over tensors (``certus.torch``), forward and backward: what the peers do for their
marginals. Lists, samples and entropies of trees stand beside a loop over the items. SynJax is left out: what it
answers, it answers by compiling for each shape, in JAX.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Skipped
from certus.bench.peers import supar_structs, torch
from certus.bench.suites import matrix_tree, projective

TAGS, CLASSES, LONGEST, LABELS, SYMBOLS, BEST = 20, 5, 4, 30, 60, 5
Peers = dict[str, dict[str, Callable[[], Any]]]


def run(sentences: int = 32, sizes: tuple[int, ...] = (25, 40), grammars: int = 4) -> Iterator[Case | Skipped]:
    library, structs = torch(), supar_structs()
    theirs = library is not None and find_spec("torch_struct") is not None
    if not theirs:
        yield Skipped("torch-struct is not installed")
    if structs is None:
        yield Skipped("supar is not installed")
    yield Skipped("SynJax: it compiles for every shape of a batch")
    rng = np.random.default_rng(0)
    for n in sizes:
        for make in (_chains, _segments, _spans):
            yield from make(rng, sentences, n, library if theirs else None, structs)
        yield from _grammars(rng, grammars, n, library if theirs else None)
        arc = rng.normal(size=(sentences, n + 1, n + 1))
        for case in projective.batches(arc):
            yield case
            if library is not None and isinstance(case, Case) and "marginals" in case.name:
                yield _gradients(case, "Dependency", [arc], projective=True)
        for scores in (arc, arc.astype(np.float32)):
            crossing = matrix_tree.case(scores, "single")
            yield crossing
            if library is not None:
                one = _gradients(crossing, "Dependency", [_tensor(scores)])
                yield replace(one, peers=matrix_tree.gradient_peers(scores, "single"))
        yield from _questions(arc)


def _cases(name: str, kind: str, arrays: list[Any], peers: Peers, bar: str, *, compared: bool = True) -> Iterator[Case]:
    """Best structures, then log-partition and marginals, of a batch that is made for each call; then gradients."""

    def make() -> Any:
        return getattr(certus, f"{kind}Batch")(*arrays)

    items = len(arrays[0])
    yield Case(name.format("decode"), lambda: make().decode().structure, peers["argmax"], items, bar=bar)
    sums = Case(
        name.format("marginals"),
        lambda: make().log_partition_and_marginals(),
        peers["marginals"],
        items,
        agrees=_same_sums if compared else None,
        numbers=lambda ours: ours[0],
        bar=bar,
    )
    yield sums
    if torch() is not None and kind != "AnchoredGrammar":
        yield _gradients(sums, kind, arrays)


def _same_sums(ours: Any, _: str, theirs: Any) -> None:
    np.testing.assert_allclose(ours[0], theirs.detach().numpy(), rtol=1e-3)


def _gradients(sums: Case, kind: str, arrays: list[Any], **options: Any) -> Case:
    """The log-partition functions of the same problems over tensors, and their gradients. Arrays, or tensors where
    peers have theirs at hand too.
    """
    from certus import torch as tensors

    def ours() -> Any:
        given = [(a.detach() if isinstance(a, torch().Tensor) else _tensor(a)).requires_grad_() for a in arrays]
        total = getattr(tensors, kind)(*given, **options).log_partition()
        torch().autograd.grad(total.sum(), given)
        return total.detach().numpy()

    return Case(sums.name.replace("marginals", "gradients"), ours, sums.peers, sums.items, bar=sums.bar)


def _questions(arc: Any) -> Iterator[Case]:
    """What no peer is asked: lists, samples and entropies of all items at once, beside one item after the other."""
    questions: dict[str, Callable[[Any], Any]] = {
        f"{BEST} best": lambda asked: asked.kbest(BEST),
        f"{BEST} samples": lambda asked: asked.sample(BEST, seed=0),
        "entropy": lambda asked: asked.entropy(),
    }
    for projective_ in (True, False):
        for name, ask in questions.items():
            yield Case(
                f"{'projective' if projective_ else 'crossing'} trees, {name}, n = {arc.shape[1] - 1}",
                lambda ask=ask, p=projective_: ask(certus.DependencyBatch(arc, projective=p)),
                {"one by one": lambda ask=ask, p=projective_: [ask(certus.Dependency(a, projective=p)) for a in arc]},
                items=len(arc),
                numbers=lambda _: 0.0,
            )


def _asked(made: Callable[[], Any], total: str) -> dict[str, Callable[[], Any]]:
    """The two questions, asked of a distribution of a peer; of the second its log-partition is compared."""

    def sums() -> Any:
        distribution = made()
        value = distribution.log_partition if total == "log_partition" else distribution.partition
        return distribution.marginals is not None and value

    return {"argmax": lambda: made().argmax, "marginals": sums}


def _by_question(peers: dict[str, dict[str, Callable[[], Any]]]) -> Peers:
    return {question: {name: own[question] for name, own in peers.items()} for question in ("argmax", "marginals")}


def _chains(rng: Any, items: int, n: int, library: Any, structs: Any) -> Iterator[Case]:
    unary, bigram = rng.normal(size=(items, n, TAGS)), rng.normal(size=(TAGS, TAGS))
    peers = {}
    if library is not None:

        def chain() -> Any:
            own, between = library.tensor(unary), library.tensor(bigram)
            edge = own[:, 1:, :, None] + between.T  # the next tag, then the one before
            edge[:, 0] += own[:, 0, None, :]
            return _their("LinearChainCRF")(edge)

        peers["torch-struct"] = _asked(chain, "partition")
    if structs is not None:
        bounded = np.pad(bigram, (0, 1))

        def linear() -> Any:
            lengths = library.full((items,), n) if library is not None else None
            return structs.LinearChainCRF(_tensor(unary), _tensor(bounded), lengths)

        peers["supar"] = _asked(linear, "log_partition")
    name = f"chains of {TAGS} tags, {{}}, n = {n}"
    yield from _cases(name, "Tagging", [unary, bigram], _by_question(peers), "at least 5")


def _segments(rng: Any, items: int, n: int, library: Any, structs: Any) -> Iterator[Case]:
    segment, transition = rng.normal(size=(items, n, LONGEST, CLASSES)), rng.normal(size=(CLASSES, CLASSES))
    peers = {}
    if library is not None:

        def semi_markov() -> Any:
            # Its potentials are of a class, its length from 1 on, and the class before: the first has none before it.
            edge = library.full((items, n, LONGEST + 1, CLASSES, CLASSES), -1e5, dtype=library.float64)
            edge[:, :, 1:] = _tensor(segment)[..., None] + _tensor(transition).T
            edge[:, 0, :, :, 1:] = -1e5
            edge[:, 0, 1:, :, 0] = _tensor(segment)[:, 0]
            return _their("SemiMarkovCRF")(edge)

        peers["torch-struct"] = _asked(semi_markov, "partition")
    name = f"segments of up to {LONGEST} words, {CLASSES} classes, {{}}, n = {n}"
    arrays = [segment, transition]
    yield from _cases(name, "Segmentation", arrays, _by_question(peers), "at least 5", compared=False)


def _spans(rng: Any, items: int, n: int, library: Any, structs: Any) -> Iterator[Case]:
    span = rng.normal(size=(items, n + 1, n + 1, LABELS))
    peers = {}
    if library is not None:
        peers["torch-struct"] = _asked(lambda: _their("TreeCRF")(_tensor(span[:, :-1, 1:])), "partition")
    if structs is not None:
        lengths = _tensor(np.full(items, n))
        summed = _asked(lambda: structs.ConstituencyCRF(_tensor(span).logsumexp(-1), lengths), "log_partition")
        best = _asked(lambda: structs.ConstituencyCRF(_tensor(span).amax(-1), lengths), "log_partition")
        peers["supar"] = {"argmax": best["argmax"], "marginals": summed["marginals"]}
    yield from _cases(f"spans of {LABELS} labels, {{}}, n = {n}", "SpanTrees", [span], _by_question(peers), "above 1")


def _grammars(rng: Any, items: int, n: int, library: Any) -> Iterator[Case]:
    phrases = SYMBOLS // 2
    root, emission = rng.normal(size=(items, phrases)), rng.normal(size=(items, n, SYMBOLS - phrases))
    rule = rng.normal(size=(items, phrases, SYMBOLS, SYMBOLS))
    peers = {}
    if library is not None:

        def grammar() -> Any:
            terms, rules, roots = (_tensor(a).requires_grad_() for a in (emission, rule, root))
            return _their("SentCFG")((terms, rules, roots), lengths=library.full((items,), n))

        peers["torch-struct"] = _asked(grammar, "partition")
    name = f"grammars of {SYMBOLS} symbols, {{}}, n = {n}"
    yield from _cases(name, "AnchoredGrammar", [root, rule, emission], _by_question(peers), "above 1")


def _their(name: str) -> Any:
    """A class of torch-struct."""
    import torch_struct

    return getattr(torch_struct, name)


def _tensor(values: Any) -> Any:
    return torch().tensor(values)
