"""Structures of neural models in batches, with default arguments on one thread: against torch-struct and supar.

Chains of 20 tags, segments, trees of spans with 30 labels, grammars of 60 symbols, dependency trees of first and second
order and with 40 labels; spanning trees beside autograd, CTC beside the loss of torch, matchings beside scipy. All have
their arrays or tensors at hand, in the layout that they want; what a network does not give (potentials of pairs of
tags, labels summed out) is made in the call. Gradients are those of log-partition functions over tensors
(``certus.torch``), forward and backward: what the peers do for their marginals, as a rule. Lists, samples and entropies
of trees stand beside a loop over the items. SynJax is left out: what it answers, it answers by compiling for each
shape, in JAX.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Skipped
from certus.bench.peers import supar_structs, torch
from certus.bench.suites import matrix_tree, projective

TAGS, CLASSES, LONGEST, LABELS, RELATIONS, SYMBOLS, BEST = 20, 5, 4, 30, 40, 60, 5
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
        sibling = rng.normal(size=(sentences, n + 1, n + 1, n + 1))
        for case in projective.batches(arc, sibling):
            yield case
            if library is not None and isinstance(case, Case) and "marginals" in case.name:
                given = [arc, sibling] if "siblings" in case.name else [arc]
                yield _gradients(case, "Dependency", given, projective=True)
        for scores in (arc, arc.astype(np.float32)):
            crossing = matrix_tree.case(scores, "single")
            yield crossing
            if library is not None:
                one = _gradients(crossing, "Dependency", [scores])
                yield replace(one, peers=matrix_tree.gradient_peers(scores, "single"))
        if library is not None:
            yield from _labelled(rng, sentences, n, library, structs)
            yield _edges(rng, sentences, n, library)
            yield _frames(rng, sentences, n, library)
        yield from _matchings(rng, sentences, n)
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
    if torch() is not None:
        yield _gradients(sums, kind, arrays)


def _same_sums(ours: Any, _: str, theirs: Any) -> None:
    np.testing.assert_allclose(ours[0], theirs.detach().numpy(), rtol=1e-3)


def _gradients(sums: Case, kind: str, arrays: Sequence[Any], **options: Any) -> Case:
    """The log-partition functions of the same problems over tensors, and their gradients."""
    name = sums.name.replace("marginals", "gradients")
    return Case(name, _ours(kind, arrays, **options), sums.peers, sums.items, bar=sums.bar)


def _ours(kind: str, arrays: Sequence[Any], *, named: str = "", **options: Any) -> Callable[[], Any]:
    """Log-partition functions through certus.torch, forward and backward; the one array may go by its name."""
    from certus import torch as tensors

    leaves = [_tensor(a) for a in arrays]

    def total(*given: Any) -> Any:
        structures = getattr(tensors, kind)
        return (structures(**{named: given[0]}, **options) if named else structures(*given, **options)).log_partition()

    return _backward(total, *leaves)


def _backward(total: Callable[..., Any], *leaves: Any) -> Callable[[], Any]:
    """The sum of what is a function of tensors, and its gradients in them."""

    def call() -> Any:
        given = [leaf.detach().requires_grad_() for leaf in leaves]
        found = total(*given)
        torch().autograd.grad(found.sum(), given)
        return found.detach().numpy()

    return call


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
        own, between = _tensor(unary), _tensor(bigram)

        def chain() -> Any:
            edge = own[:, 1:, :, None] + between.T  # the next tag, then the one before
            edge[:, 0] += own[:, 0, None, :]
            return _their("LinearChainCRF")(edge)

        peers["torch-struct"] = _asked(chain, "partition")
    if structs is not None:
        tags, bounded, lengths = _tensor(unary), _tensor(np.pad(bigram, (0, 1))), _tensor(np.full(items, n))

        def linear() -> Any:
            return structs.LinearChainCRF(tags, bounded, lengths)

        peers["supar"] = _asked(linear, "log_partition")
    name = f"chains of {TAGS} tags, {{}}, n = {n}"
    yield from _cases(name, "Tagging", [unary, bigram], _by_question(peers), "at least 5")


def _segments(rng: Any, items: int, n: int, library: Any, structs: Any) -> Iterator[Case]:
    segment, transition = rng.normal(size=(items, n, LONGEST, CLASSES)), rng.normal(size=(CLASSES, CLASSES))
    peers = {}
    if library is not None:
        own, between = _tensor(segment), _tensor(transition)

        def semi_markov() -> Any:
            # Its potentials are of a class, its length from 1 on, and the class before: the first has none before it.
            edge = library.full((items, n, LONGEST + 1, CLASSES, CLASSES), -1e5, dtype=library.float64)
            edge[:, :, 1:] = own[..., None] + between.T
            edge[:, 0, :, :, 1:] = -1e5
            edge[:, 0, 1:, :, 0] = own[:, 0]
            return _their("SemiMarkovCRF")(edge)

        peers["torch-struct"] = _asked(semi_markov, "partition")
    name = f"segments of up to {LONGEST} words, {CLASSES} classes, {{}}, n = {n}"
    arrays = [segment, transition]
    yield from _cases(name, "Segmentation", arrays, _by_question(peers), "at least 5", compared=False)


def _spans(rng: Any, items: int, n: int, library: Any, structs: Any) -> Iterator[Case]:
    span = rng.normal(size=(items, n + 1, n + 1, LABELS))
    peers = {}
    if library is not None:
        inclusive = _tensor(np.ascontiguousarray(span[:, :-1, 1:]))
        peers["torch-struct"] = _asked(lambda: _their("TreeCRF")(inclusive), "partition")
    if structs is not None:
        scores, lengths = _tensor(span), _tensor(np.full(items, n))
        summed = _asked(lambda: structs.ConstituencyCRF(scores.logsumexp(-1), lengths), "log_partition")
        best = _asked(lambda: structs.ConstituencyCRF(scores.amax(-1), lengths), "log_partition")
        peers["supar"] = {"argmax": best["argmax"], "marginals": summed["marginals"]}
    yield from _cases(f"spans of {LABELS} labels, {{}}, n = {n}", "SpanTrees", [span], _by_question(peers), "above 1")


def _grammars(rng: Any, items: int, n: int, library: Any) -> Iterator[Case]:
    phrases = SYMBOLS // 2
    root, emission = rng.normal(size=(items, phrases)), rng.normal(size=(items, n, SYMBOLS - phrases))
    rule = rng.normal(size=(items, phrases, SYMBOLS, SYMBOLS))
    peers = {}
    if library is not None:
        given = [_tensor(a) for a in (emission, rule, root)]

        def grammar() -> Any:
            terms, rules, roots = (a.detach().requires_grad_() for a in given)
            return _their("SentCFG")((terms, rules, roots), lengths=library.full((items,), n))

        peers["torch-struct"] = _asked(grammar, "partition")
    name = f"grammars of {SYMBOLS} symbols, {{}}, n = {n}"
    yield from _cases(name, "AnchoredGrammar", [root, rule, emission], _by_question(peers), "above 1")


def _labelled(rng: Any, items: int, n: int, library: Any, structs: Any) -> Iterator[Case]:
    """Trees with labels: peers have none, so that these are folded into the arcs before, and their argmax has none;
    torch-struct has no argmax of crossing trees."""
    label = rng.normal(size=(items, n + 1, n + 1, RELATIONS))
    scores, lengths = _tensor(label), _tensor(np.full(items, n))
    for name, projective_, struct, kind in (
        ("crossing", False, "NonProjectiveDependencyCRF", "MatrixTree"),
        ("projective", True, "DependencyCRF", "DependencyCRF"),
    ):
        made: dict[str, Callable[[Any], Any]] = {}
        if find_spec("torch_struct") is not None:

            def inner(arc: Any, struct: str = struct) -> Any:
                words = library.diag_embed(arc[:, 0, 1:]) + arc[:, 1:, 1:] * (1.0 - library.eye(n, dtype=arc.dtype))
                return _their(struct)(words, multiroot=False)

            made["torch-struct"] = inner
        if structs is not None:

            def turned(arc: Any, kind: str = kind) -> Any:
                return getattr(structs, kind)(arc.transpose(1, 2).contiguous(), lengths)

            made["supar"] = turned
        best = {peer: _best_of(make, scores) for peer, make in made.items() if projective_ or peer == "supar"}
        yield Case(
            f"{name}, {RELATIONS} labels, decode, n = {n}",
            lambda p=projective_: certus.LabelledDependencyBatch(label, projective=p).decode().structure,
            best,
            items,
            bar="above 1",
        )
        sums = {peer: _backward(_sums_of(make), scores) for peer, make in made.items()}
        ours = _ours("Dependency", [label], named="label", arc=None, projective=projective_)
        yield Case(f"{name}, {RELATIONS} labels, gradients, n = {n}", ours, sums, items, agrees=_same, bar="above 1")


def _best_of(make: Callable[[Any], Any], scores: Any) -> Callable[[], Any]:
    """The argmax of a peer under the best labels; torch-struct writes into what it is given, but not into leaves."""
    return lambda: make(scores.detach().requires_grad_().amax(-1)).argmax


def _sums_of(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The log-partition function of a peer with the labels summed out."""

    def total(scores: Any) -> Any:
        distribution = make(scores.logsumexp(-1))
        return distribution.partition if hasattr(distribution, "partition") else distribution.log_partition

    return total


def _same(ours: Any, _: str, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


def _edges(rng: Any, items: int, n: int, library: Any) -> Case:
    """Undirected spanning trees: the Laplacian by autograd."""
    edge = rng.normal(size=(items, n, n))
    edge += edge.transpose(0, 2, 1)

    def laplacian(x: Any) -> Any:
        weight = x.exp() * (1.0 - library.eye(n, dtype=x.dtype))
        return (library.diag_embed(weight.sum(1)) - weight)[:, 1:, 1:].slogdet()[1]

    theirs = {"autograd": _backward(laplacian, _tensor(edge))}
    ours = _ours("SpanningTree", [edge])
    return Case(f"spanning trees, gradients, n = {n}", ours, theirs, items, agrees=_same, bar="above 1")


def _frames(rng: Any, items: int, n: int, library: Any) -> Case:
    """CTC, two frames for each of n / 2 labels of 30: the loss that torch has."""
    frame = rng.normal(size=(items, 2 * n, LABELS))
    target = rng.integers(1, LABELS, (items, n // 2))
    scores, labels = _tensor(frame).log_softmax(-1), _tensor(target)
    sizes = _tensor(np.full(items, 2 * n)), _tensor(np.full(items, n // 2))

    def loss(x: Any) -> Any:
        return -library.nn.functional.ctc_loss(x.transpose(0, 1), labels, *sizes, reduction="none")

    ours = _ours("CTC", [scores.numpy()], target=labels)
    return Case(
        f"CTC of {LABELS} labels, gradients, n = {2 * n}", ours, {"torch": _backward(loss, scores)}, items, agrees=_same
    )


def _matchings(rng: Any, items: int, n: int) -> Iterator[Case]:
    """One-to-one alignments: scipy has no proof, and takes one after the other."""
    from scipy.optimize import linear_sum_assignment

    score = rng.normal(size=(items, n, n)) + 10.0  # so that all are matched, as scipy does in any case
    yield Case(
        f"matchings, decode, n = {n}",
        lambda: certus.AssignmentBatch(score).decode().structure,
        {"scipy": lambda: np.stack([linear_sum_assignment(own, maximize=True)[1] for own in score])},
        items,
        agrees=lambda ours, _, theirs: np.testing.assert_array_equal(ours, theirs),
    )


def _their(name: str) -> Any:
    """A class of torch-struct."""
    import torch_struct

    return getattr(torch_struct, name)


def _tensor(values: Any) -> Any:
    return torch().tensor(values)
