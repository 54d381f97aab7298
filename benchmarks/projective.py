"""Speed of projective parsing: against torch-struct and supar, and growth with the length of the sentence.

    python benchmarks/projective.py [peers] [growth] [memory]

One thread; CPU time, so that other work on the machine counts little; medians over 64 different random
sentences, ours and the peer in turns. The peers are the extra `bench`; what is not installed is left out, with a word.
"""

import resource
import sys
import time
import types
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import certus

SENTENCES = 64


def seconds(run, *arguments):
    """CPU seconds of one call."""
    started = time.process_time()
    run(*arguments)
    return time.process_time() - started


def alternate(ours, theirs, inputs, rounds=3):
    """Median CPU seconds per input of two functions, each round calling one after the other on every input."""
    for run in (ours, theirs):
        run(inputs[0])
    times = np.array([[(seconds(ours, x), seconds(theirs, x)) for x in inputs] for _ in range(rounds)])
    return np.median(times.min(axis=0), axis=0)


def report(name, n, ours, theirs, peer, wanted):
    times = f"ours {1e6 * ours:9.1f} us   {peer:12} {1e6 * theirs:9.1f} us"
    print(f"{name:24} n={n:<4} {times}   ratio {theirs / ours:6.2f}   (wanted {wanted})", flush=True)


# -- peers -----------------------------------------------------------------------------------------------------------


def supar_structs():
    """supar.structs without the rest of supar, which imports a whole parser."""
    spec = find_spec("supar")
    if spec is None:
        return None
    for name in ("supar", "supar.utils"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(spec.submodule_search_locations[0], *name.split(".")[1:]))]
        sys.modules[name] = package
    import supar.structs

    return supar.structs


def against_peers(batch=32):
    if find_spec("torch") is None:
        print("torch is not installed: no comparison with torch-struct and supar.")
        return
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    structs = supar_structs()
    for n in (25, 40):
        size = n + 1
        inputs = [
            (rng.normal(size=(batch, size, size)), rng.normal(size=(batch, size, size, size)))
            for _ in range(SENTENCES // batch)
        ]

        def first(x):
            return certus.DependencyBatch(x[0], projective=True, workers=1)

        def second(x):
            return certus.DependencyBatch(x[0], x[1], projective=True, workers=1)

        if find_spec("torch_struct") is not None:
            import torch_struct

            def crf(x):
                # torch-struct keeps the root's scores on the diagonal
                arc = torch.tensor(x[0][:, 1:, 1:])
                arc = arc + torch.diag_embed(torch.tensor(x[0][:, 0, 1:]) - torch.diagonal(arc, dim1=1, dim2=2))
                # its marginals write in place, which autograd allows only below the leaves
                return torch_struct.DependencyCRF(arc.requires_grad_() * 1.0, multiroot=False)

            x = inputs[0]
            ours = first(x).marginals()["arcs"]
            theirs = crf(x).marginals.detach().numpy()
            np.testing.assert_allclose(ours[:, 0, 1:], np.diagonal(theirs, axis1=1, axis2=2), atol=1e-5)
            np.testing.assert_allclose(first(x).log_partition(), crf(x).partition.detach().numpy(), atol=1e-5)
            pair = alternate(lambda x: first(x).decode(), lambda x: crf(x).argmax, inputs, 15)
            report("first order, argmax", n, *(pair / batch), "torch-struct", ">= 60")
            pair = alternate(lambda x: first(x).marginals(), lambda x: crf(x).marginals, inputs, 15)
            report("first order, marginals", n, *(pair / batch), "torch-struct", ">= 10")
        if structs is not None:
            lengths = torch.full((batch,), n)

            def crf1(x, lengths=lengths):
                scores = torch.tensor(x[0]).transpose(1, 2).contiguous()  # supar: modifier, then head
                return structs.DependencyCRF(scores, lengths)

            def crf2(x, lengths=lengths):
                scores = torch.tensor(x[0]).transpose(1, 2).contiguous()
                pairs = torch.tensor(x[1]).permute(0, 3, 1, 2).contiguous()  # modifier, head, sibling
                return structs.Dependency2oCRF((scores, pairs), lengths)

            np.testing.assert_allclose(first(x).log_partition(), crf1(x).log_partition.detach().numpy(), atol=1e-5)
            pair = alternate(lambda x: first(x).decode(), lambda x: crf1(x).argmax, inputs, 15)
            report("first order, argmax", n, *(pair / batch), "supar", ">= 60")
            pair = alternate(lambda x: first(x).marginals(), lambda x: crf1(x).marginals, inputs, 15)
            report("first order, marginals", n, *(pair / batch), "supar", ">= 10")
            pair = alternate(lambda x: second(x).decode(), lambda x: crf2(x).argmax, inputs, 15)
            report("second order, argmax", n, *(pair / batch), "supar", ">= 60")
            pair = alternate(lambda x: second(x).marginals(), lambda x: crf2(x).marginals, inputs, 15)
            report("second order, marginals", n, *(pair / batch), "supar", ">= 10")


# -- growth ----------------------------------------------------------------------------------------------------------


def near_heads(rng, n, heads=4, reach=10):
    """Arc scores that leave each word a few heads, near as in treebanks; its left neighbour is always one."""
    arc = np.full((n + 1, n + 1), -np.inf)
    for m in range(1, n + 1):
        distance = rng.geometric(0.3, heads - 1).clip(1, reach) * rng.choice([-1, 1], heads - 1)
        arc[np.clip(m + distance, 0, n), m] = rng.normal(size=heads - 1)
        arc[m - 1, m] = rng.normal()
    np.fill_diagonal(arc, -np.inf)
    arc[:, 0] = -np.inf
    return arc


def pruned_model1(rng, n):
    from certus.dependency.pruning import supported

    arc = near_heads(rng, n)
    allowed = arc > -np.inf
    lists = {}
    for kind in ("sibling", "grandparent", "grandsibling"):
        index = supported(kind, allowed)
        lists[kind] = (*index, rng.normal(size=len(index[0])))
    return certus.Dependency.from_parts(n, arc=(*np.nonzero(allowed), arc[allowed]), **lists, projective=True)


def growth():
    from certus.dependency.vine import Vine

    def dense(*orders, **settings):
        kinds = {"sibling": 3, "grandparent": 3, "trisibling": 4, "grandsibling": 4}

        def make(rng, n):
            arrays = {kind: rng.normal(size=(n + 1,) * kinds[kind]) for kind in orders}
            return certus.Dependency(rng.normal(size=(n + 1, n + 1)), **arrays, projective=True, **settings)

        return make

    def vine(rng, n):
        return Vine(rng.normal(size=(n + 1, n + 1)), rng.normal(size=(n + 1, 2)), rng.normal(size=(n + 1, 2)), band=5)

    lengths = (10, 20, 40, 80, 160)
    models = {
        "vine, band 5": (vine, lengths),
        "first order": (dense(), lengths),
        "siblings": (dense("sibling"), lengths),
        "Carreras": (dense("sibling", "grandparent", grandparents="outermost"), lengths),
        "Model 0": (dense("grandparent"), lengths),
        "Model 1 (sibling + grand)": (dense("sibling", "grandparent"), lengths),
        "Model 1": (dense("sibling", "grandparent", "grandsibling"), lengths[:-1]),
        "Model 2": (dense("sibling", "grandsibling", "trisibling", grandparents="outermost"), lengths[:-1]),
        "Model 1, 4 heads a word": (pruned_model1, lengths),
    }
    rng = np.random.default_rng(0)
    for name, (make, sizes) in models.items():
        make(rng, 5).decode()
        times = []
        for n in sizes:
            problems = [make(rng, n) for _ in range(9 if n < 100 else 3)]
            times.append(min(seconds(decode_fresh, p) for p in problems))
        slope = np.polyfit(np.log(sizes[-3:]), np.log(times[-3:]), 1)[0]
        row = "  ".join(f"{n}: {1e3 * t:.3g} ms" for n, t in zip(sizes, times, strict=True))
        print(f"{name:26} exponent {slope:4.2f} over n = {sizes[-3]}..{sizes[-1]}   {row}", flush=True)


def decode_fresh(problem):
    """Decode a problem for the first time: for lists of parts this includes building the forest."""
    problem.decode()


def memory():
    rng = np.random.default_rng(0)
    pruned_model1(rng, 10).decode()  # numba and the kernels are in memory from here on
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    problem = pruned_model1(rng, 200)
    problem.decode()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    parts = sum(len(s.values) for s in problem.scores.values())
    edges = problem.forest().graph.n_edges
    print(
        f"Model 1 from pruned parts, 200 words, 4 heads each: {parts} parts, {edges} edges, "
        f"{(after - before) / 1024:.0f} MB beyond the {before / 1024:.0f} MB of the process with its kernels (< 200 MB)"
    )


if __name__ == "__main__":
    sections = {"memory": memory, "peers": against_peers, "growth": growth}
    for section in sys.argv[1:] or sections:
        sections[section]()
