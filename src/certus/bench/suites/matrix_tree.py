"""Marginals and log-partition functions of trees with crossing arcs: against torch-struct, supar and autograd.

torch-struct goes by one inverse and one log-determinant; the way of supar (log-determinant and its gradient) is written
out in plain torch as well. Scores are of float64, or of float32, for all: ours are read as they are, and summed up in
float64 without subtraction.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, Skipped, best_seconds, exponent, random_arcs
from certus.bench.peers import supar_structs, torch


def run(sentences: int = 32, sizes: tuple[int, ...] = (25, 40)) -> Iterator[Case | Row | Skipped]:
    peer = torch()
    if peer is None:
        yield Skipped("torch is not installed")
    for n in sizes:
        arc = random_arcs(n, sentences)
        for root in ("single", "multi"):
            yield case(arc, root)
            yield case(arc.astype(np.float32), root)
        for scale in (30.0, 300.0):
            wide = random_arcs(n, sentences, scale)
            yield Case(
                f"marginals, n = {n}, scores x {scale:g}",
                lambda a=wide: certus.DependencyBatch(a, projective=False).marginals(),
                items=sentences,
            )
    times = {}
    for n in (10, 20, 40, 80, 160):
        batch = certus.DependencyBatch(random_arcs(n, sentences), projective=False, workers=1)
        times[n] = best_seconds(batch.marginals) / sentences
    yield Row("growth", {"power of n": exponent(times), **{f"us at {n}": 1e6 * t for n, t in times.items()}})


def case(arc: Any, root: str) -> Case:
    """Marginals and log-partition functions of a batch, beside the peers that are installed."""
    peer, peers, structs = torch(), {}, supar_structs()
    if peer is not None:
        peers["autograd"] = _autograd(peer, arc, root == "single")
        struct = _torch_struct(peer, arc, root == "multi")
        peers.update({} if struct is None else {"torch-struct": struct})
        peers.update({} if structs is None else {"supar": _supar(peer, structs, arc, root == "multi")})
    return Case(
        f"crossing marginals, n = {arc.shape[1] - 1}, {root}, {arc.dtype}",
        lambda: _both(certus.DependencyBatch(arc, root=root)),
        peers,
        items=len(arc),
        agrees=_agree,
        bar="peers / ours at least 3",
    )


def _supar(torch: Any, structs: Any, arc: Any, multi: bool) -> Any:
    scores, lengths = torch.tensor(arc).transpose(1, 2).contiguous(), torch.full((len(arc),), arc.shape[1] - 1)

    def call() -> tuple[Any, Any]:
        trees = structs.MatrixTree(scores.detach(), lengths, multiroot=multi)
        return trees.marginals.detach().transpose(1, 2), trees.log_partition.detach()

    return call


def _both(batch: Any) -> tuple[Any, Any]:
    total, marginals = batch.log_partition_and_marginals()
    return marginals["arcs"], total


def _agree(ours: tuple[Any, Any], name: str, theirs: tuple[Any, Any]) -> None:
    if name == "torch-struct":  # 1e-5 is added to every weight; the root is on its diagonal
        np.testing.assert_allclose(theirs[0].numpy()[:, 0, 1:], ours[0][:, 1, 2:], atol=1e-3)
        np.testing.assert_allclose(theirs[1].numpy(), ours[1], rtol=1e-3)
    else:
        close = 1e-9 if name == "autograd" and ours[0].dtype == np.float64 else 1e-5  # supar takes float32 logarithms
        np.testing.assert_allclose(theirs[0].numpy(), ours[0], atol=close)
        np.testing.assert_allclose(theirs[1].numpy(), ours[1], rtol=close)


def _torch_struct(torch: Any, arc: Any, multi: bool, *, gradient: bool = False) -> Any:
    try:
        from torch_struct import NonProjectiveDependencyCRF
    except ImportError:
        return None
    scores = torch.tensor(arc[:, 1:, 1:])
    words = torch.arange(scores.shape[1])
    scores[:, words, words] = torch.tensor(arc[:, 0, 1:])

    def forward() -> tuple[Any, Any]:
        trees = NonProjectiveDependencyCRF(scores, multiroot=multi)
        return trees.marginals, trees.partition

    def backward() -> tuple[Any, Any]:
        wanted = scores.detach().requires_grad_()
        total = NonProjectiveDependencyCRF(wanted, multiroot=multi).partition
        return torch.autograd.grad(total.sum(), wanted)[0], total.detach()

    return backward if gradient else forward


def gradient_peers(arc: Any, root: str) -> dict[str, Any]:
    """What peers do for a log-partition function and its gradient: by autograd, all of them."""
    peers = dict(case(arc, root).peers)
    if "torch-struct" in peers:
        peers["torch-struct"] = _torch_struct(torch(), arc, root == "multi", gradient=True)
    return peers


def _autograd(torch: Any, arc: Any, single: bool) -> Any:
    given, diagonal = torch.tensor(arc), torch.eye(arc.shape[1], dtype=torch.bool)

    def call() -> tuple[Any, Any]:
        scores = given.detach().requires_grad_()
        highest = scores.detach().amax((1, 2))
        weight = (scores - highest[:, None, None]).exp().masked_fill(diagonal, 0.0)
        inner = weight[:, 1:, 1:]
        laplacian = torch.diag_embed(inner.sum(1) if single else weight[:, :, 1:].sum(1)) - inner
        if single:
            laplacian = torch.cat((weight[:, :1, 1:], laplacian[:, 1:]), 1)
        total = laplacian.slogdet()[1] + highest * (scores.shape[1] - 1)
        return torch.autograd.grad(total.sum(), scores)[0], total.detach()

    return call
