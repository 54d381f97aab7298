"""Matrix-tree marginals and log-partition on one thread, in batches of 32, against torch-struct.

    python benchmarks/matrix_tree.py [--sentences 32] [--json]

Target: marginals and log-partition together 3 times faster at n = 25, 40, for either kind of root. Torch-struct runs in
its own float32, by one inverse and one log-determinant; the way of supar (log-determinant and its gradient, float64) is
written out in plain torch. Ours is float64, without subtraction. Marginals agree to what float32 and the 1e-5 that
torch-struct adds to every weight allow, and to 1e-9 with autograd. The times by range of the scores (large ones take
logarithms) and the fitted growth for n = 10..160 follow. All sentences differ.
"""

import sys
from collections.abc import Callable

import numpy as np
from turns import Rows, best_seconds, exponent, random_batch, report

from certus.dependency.matrix_tree import log_partition_batch, marginals_batch


def milliseconds(runs: dict[str, Callable[[], object]], rounds: int = 25) -> dict[str, float]:
    return {name: 1e3 * value for name, value in best_seconds(runs, rounds).items()}


def against_torch_struct(batch: int) -> Rows:
    try:
        import torch
        from torch_struct.deptree import deptree_nonproj, deptree_part
    except ImportError:
        print("torch-struct is not installed: left out", file=sys.stderr)
        return {}
    torch.set_num_threads(1)
    rows = {}
    for n in (25, 40):
        arc, lengths = random_batch(n, batch)
        theirs = torch.tensor(arc[:, 1:, 1:], dtype=torch.float32)
        words = torch.arange(n)
        theirs[:, words, words] = torch.tensor(arc[:, 0, 1:], dtype=torch.float32)  # root scores on the diagonal
        for root in ("single", "multi"):

            def peer(scores: "torch.Tensor" = theirs, multi: bool = root == "multi") -> tuple[object, object]:
                return deptree_nonproj(scores, multi), deptree_part(scores, multi)

            ours, totals = marginals_batch(arc, lengths, root)
            found, logs = peer()
            np.testing.assert_allclose(found.numpy()[:, 0, 1:], ours[:, 1, 2:], atol=1e-3)
            np.testing.assert_allclose(logs.numpy(), totals, rtol=1e-3)
            times = milliseconds(
                {"ours": lambda a=arc, s=lengths, r=root: marginals_batch(a, s, r), "torch-struct": peer}
            )
            rows[f"n={n} {root}"] = {**times, "ratio": times["torch-struct"] / times["ours"]}
    return rows


def against_autograd(batch: int) -> Rows:
    """The way of supar, in plain torch: log-determinant of the Laplacian in float64, marginals as its gradient."""
    try:
        import torch
    except ImportError:
        print("torch is not installed: left out", file=sys.stderr)
        return {}
    torch.set_num_threads(1)
    rows = {}
    for n in (25, 40):
        arc, lengths = random_batch(n, batch)
        given, diagonal = torch.tensor(arc), torch.eye(n + 1, dtype=torch.bool)

        def peer(
            single: bool, given: "torch.Tensor" = given, diagonal: "torch.Tensor" = diagonal
        ) -> tuple["torch.Tensor", "torch.Tensor"]:
            scores = given.detach().requires_grad_()
            most = scores.detach().amax((1, 2))
            weight = (scores - most[:, None, None]).exp().masked_fill(diagonal, 0.0)
            inner = weight[:, 1:, 1:]
            degree = inner.sum(1) if single else weight[:, :, 1:].sum(1)
            laplacian = torch.diag_embed(degree) - inner
            if single:
                laplacian = torch.cat((weight[:, :1, 1:], laplacian[:, 1:]), 1)
            total = laplacian.slogdet()[1] + most * (scores.shape[1] - 1)
            return torch.autograd.grad(total.sum(), scores)[0], total.detach()

        for root in ("single", "multi"):
            ours, totals = marginals_batch(arc, lengths, root)
            found, logs = peer(single=root == "single")
            np.testing.assert_allclose(found.numpy(), ours, atol=1e-9)
            np.testing.assert_allclose(logs.numpy(), totals, rtol=1e-9)
            times = milliseconds(
                {
                    "ours": lambda a=arc, s=lengths, r=root: marginals_batch(a, s, r),
                    "autograd": lambda f=peer, one=root == "single": f(single=one),
                }
            )
            rows[f"n={n} {root}"] = {**times, "ratio": times["autograd"] / times["ours"]}
    return rows


def alone(batch: int) -> Rows:
    """Milliseconds per batch by the range of the scores."""
    rows = {}
    for n in (25, 40):
        for scale in (1.0, 30.0, 300.0):
            arc, lengths = random_batch(n, batch, scale)
            rows[f"n={n} x{scale:g}"] = milliseconds(
                {
                    "marginals": lambda a=arc, s=lengths: marginals_batch(a, s, "single"),
                    "log-partition": lambda a=arc, s=lengths: log_partition_batch(a, s, "single"),
                },
                rounds=3,
            )
    return rows


def growth(batch: int) -> Rows:
    """Milliseconds per batch by n, and the fitted exponent."""
    sizes = (10, 20, 40, 80, 160)
    rows = {}
    for name, question in {"marginals": marginals_batch, "log-partition": log_partition_batch}.items():
        times = {}
        for n in sizes:
            arc, lengths = random_batch(n, batch)
            times[n] = milliseconds({"t": lambda a=arc, s=lengths, q=question: q(a, s, "single")}, 3)["t"]
        rows[name] = {**{f"n={n}": t for n, t in times.items()}, "exponent": exponent(times)}
    return rows


if __name__ == "__main__":
    sections = {"torch-struct": against_torch_struct, "autograd": against_autograd, "by range": alone, "growth": growth}
    report(__doc__, sections, 32, "milliseconds per batch")
