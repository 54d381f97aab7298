"""Losses and layers by decoding: against enumeration, and gradients against differences, away from kinks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from scipy.optimize import minimize  # noqa: E402
from torch.autograd import gradcheck  # noqa: E402

import certus  # noqa: E402
import certus.torch as ct  # noqa: E402
from tests.torch.kinds import FLOAT, KINDS, WITH_SUMS, drawn, listed, tensors, unpadded  # noqa: E402

pytestmark = pytest.mark.torch


def lead(structure):
    """The view of the first array."""
    return structure._view


@pytest.mark.parametrize("name", KINDS)
def test_best_structures_and_hinge(name):
    make, given = KINDS[name].make, tensors(name, forbid=False)
    structure = make(*given)
    best, gold, view = structure.decode(), drawn(structure), lead(structure)
    cost = torch.rand(structure.first.shape, dtype=FLOAT, generator=torch.Generator().manual_seed(1))
    loss, other = structure.hinge(gold), structure.hinge(gold, cost)
    assert best.exact.all()
    for b in range(len(structure)):
        problem, found, score = listed(structure, b)
        assert best.score[b].item() == pytest.approx(score.max(), abs=1e-12)
        own = structure.batch._unpadded(gold[b].numpy(), b)
        right, price = problem.indicator(own, view), cost[b].numpy()[tuple(map(slice, problem.views[view]))]
        used = np.array([problem.indicator(y, view) for y in found])
        wrong = (used * (1.0 - right)).reshape(len(found), -1).sum(axis=1)
        assert loss[b].item() == pytest.approx((score + wrong).max() - problem.score(own), abs=1e-12)
        priced = ((used - right) * price).reshape(len(found), -1).sum(axis=1)
        assert other[b].item() == pytest.approx((score + priced).max() - problem.score(own), abs=1e-12)
    assert gradcheck(lambda *t: make(*t).hinge(gold, cost), given, fast_mode=True)
    assert gradcheck(lambda *t: make(*t).decode().score, given, fast_mode=True)


def sparse_by_enumeration(problem, view, scores=0.0):
    """Value and marginals of SparseMAP by a general solver over all structures."""
    found = list(problem.all_structures())
    parts = np.array([problem.indicator(y, view).reshape(-1) for y in found])
    score = np.array([problem.score(y) for y in found]) + parts @ np.broadcast_to(np.ravel(scores), parts.shape[1])
    size = len(found)
    done = minimize(
        lambda p: 0.5 * np.sum((p @ parts) ** 2) - p @ score,
        np.full(size, 1.0 / size),
        jac=lambda p: parts @ (p @ parts) - score,
        bounds=[(0.0, 1.0)] * size,
        constraints=[{"type": "eq", "fun": lambda p: p.sum() - 1.0, "jac": lambda p: np.ones(size)}],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return -done.fun, (done.x @ parts).reshape(problem.views[view])


@pytest.mark.parametrize("name", KINDS)
def test_sparsemap(name):
    make, given = KINDS[name].make, tensors(name, forbid=False)
    structure = make(*given)
    for view in structure.batch.views:
        found = structure.sparsemap(view)
        assert found.gap.max() < 1e-8
        assert torch.allclose(found.probability.sum(dim=1), torch.ones(len(structure), dtype=FLOAT))
        for b in range(len(structure)):
            problem = structure.batch[b]
            own = unpadded(found.marginals[view][b].detach().numpy(), problem.views[view])
            np.testing.assert_allclose(own, sparse_by_enumeration(problem, view)[1], atol=1e-5)
        assert gradcheck(lambda *t, v=view: tuple(make(*t).sparsemap(v).marginals.values()), given, fast_mode=True)


def test_sparsemap_of_joint_problems():
    rng = np.random.default_rng(0)
    tags = [certus.Tagging(rng.normal(size=(2, 2)), rng.normal(size=(2, 2))) for _ in range(4)]
    problems = [certus.Joint(tags[0], tags[1], on="tags"), certus.Joint(tags[2], tags[3], on="tags")]
    scores = torch.randn(2, 2, 2, dtype=FLOAT, generator=torch.Generator().manual_seed(0)).requires_grad_()
    found = ct.sparsemap(problems, scores, "tags")
    assert found.gap.max() < 1e-8
    for b, problem in enumerate(problems):
        expected = sparse_by_enumeration(problem, "tags", scores[b].detach().numpy())[1]
        np.testing.assert_allclose(found.marginals["tags"][b].detach().numpy(), expected, atol=1e-5)
    assert gradcheck(lambda t: ct.sparsemap(problems, t, "tags").marginals["tags"], [scores])
    with pytest.raises(certus.InvalidInput, match="scores have shape"):
        ct.sparsemap(problems, scores[:, :1], "tags")


class Careless(certus.Problem):
    """One of three choices; finds the second best, and a bound that is too high."""

    scores = np.array([1.0, 0.9, 0.8])
    views = {"choice": (3,)}  # noqa: RUF012

    def score(self, structure):
        return float(self.scores[structure])

    def indicator(self, structure, view):
        return np.eye(3)[structure]

    def all_structures(self):
        return iter(range(3))

    def solve(self, penalties=None):
        value = self.scores + (0.0 if penalties is None else penalties["choice"])
        return certus.Solution(int(np.argsort(value)[1]), float(value.max() + 0.25))


def test_a_decoder_without_proof_leaves_an_honest_gap():
    found = ct.sparsemap([Careless()], torch.zeros(1, 3, dtype=FLOAT), "choice")
    best, _ = sparse_by_enumeration(Careless(), "choice")
    mean = found.marginals["choice"][0].numpy()
    value = mean @ Careless.scores - 0.5 * mean @ mean
    assert best - value <= found.gap.item() + 1e-9
    assert found.gap.item() >= 0.25 - 1e-9


def test_iterations_that_run_out_leave_an_honest_gap():
    structure = ct.Dependency(torch.zeros(1, 4, 4, dtype=FLOAT))
    found = structure.sparsemap(max_iterations=1)
    best, _ = sparse_by_enumeration(structure.batch[0], "arcs")
    mean = found.marginals["arcs"][0]
    assert 1e-3 < best + 0.5 * (mean**2).sum().item() <= found.gap.item() + 1e-9


@pytest.mark.parametrize("name", ["bigrams", "crossing", "binary trees"])
def test_expected_cost_over_the_best_and_over_samples(name):
    make, given = KINDS[name].make, tensors(name, forbid=False)
    structure = make(*given)
    gold = drawn(structure)

    def cost(found):
        return (found != gold[:, None]).flatten(2).sum(dim=2).to(FLOAT)

    every, samples = structure.risk(cost, 200), structure.risk(cost, 300, sampled=True, seed=0)
    for b in range(len(structure)):
        _, found, score = listed(structure, b)
        chance = np.exp(score - np.logaddexp.reduce(score))
        rows = torch.from_numpy(structure.batch._padded([structure.batch._row(y) for y in found]))
        expected = chance @ (rows != gold[b]).flatten(1).sum(dim=1).numpy()
        assert every[b].item() == pytest.approx(expected, abs=1e-11)
        assert samples[b].item() == pytest.approx(expected, abs=0.1)  # those left out are rare
    assert gradcheck(lambda *t: make(*t).risk(cost, 3), given, fast_mode=True)


@pytest.mark.parametrize("name", ["bigrams", "crossing", "labelled"])
def test_samples_are_expected_to_be_the_marginals_and_so_are_their_gradients(name):
    make = KINDS[name].make
    given, again = tensors(name), tensors(name)
    samples, marginals = make(*given).relaxed_sample(2000, seed=0), make(*again).marginals()
    for view, values in samples.items():
        assert set(values.unique().tolist()) <= {0.0, 1.0}
        assert torch.allclose(values.mean(dim=1), marginals[view], atol=0.05)
        weight = torch.randn(values.shape[2:], dtype=FLOAT, generator=torch.Generator().manual_seed(0))
        ours = torch.autograd.grad((values.mean(dim=1) * weight).sum(), given, retain_graph=True)
        exact = torch.autograd.grad((marginals[view] * weight).sum(), again, retain_graph=True)
        assert all(torch.allclose(a, b) for a, b in zip(ours, exact, strict=True))


def test_perturbed_tags_are_samples():
    given = tensors("tags alone")
    structure = KINDS["tags alone"].make(*given)
    found = structure.perturbed(3000, seed=0)["tags"]
    assert torch.allclose(found.mean(dim=1), structure.marginals()["tags"], atol=0.05)
    exact = torch.autograd.grad((structure.marginals()["tags"][:, 0, 0] ** 2).sum(), given)[0]
    # the straight-through gradient is that of marginals under the same noise: of the same sign, and smaller
    ours = torch.autograd.grad(
        (2 * structure.marginals()["tags"][:, 0, 0].detach() * found[:, :, 0, 0].mean(1)).sum(), given
    )
    assert (ours[0] * exact).sum() > 0


@pytest.mark.parametrize("name", [name for name in KINDS if name not in WITH_SUMS])
def test_perturbed_scores_without_marginals_pass_gradients_on(name):
    given = tensors(name, forbid=False)
    found = KINDS[name].make(*given).perturbed(2, noise="normal", seed=0)
    for values in found.values():
        assert set(values.unique().tolist()) <= {0.0, 1.0}
        (gradient,) = torch.autograd.grad(values.sum(), given[:1])
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("name", ["bigrams", "crossing", "labelled", "segments"])
def test_lists_and_max_marginals_are_those_of_numpy(name):
    structure = KINDS[name].make(*tensors(name))
    ranked, theirs = structure.kbest(3), structure.batch.kbest(3)
    assert np.array_equal(ranked.structure.numpy(), theirs.structure)
    np.testing.assert_allclose(ranked.score.detach().numpy(), theirs.score, atol=1e-12)
    for view, values in structure.batch.max_marginals().items():
        assert np.array_equal(structure.max_marginals()[view].numpy(), values)
    assert np.array_equal(structure.sample(2, seed=1).numpy(), structure.batch.sample(2, seed=1))
