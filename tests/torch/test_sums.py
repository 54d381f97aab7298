"""What is summed over all structures: values against enumeration, gradients of all orders against differences."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

import certus  # noqa: E402
import certus.torch as ct  # noqa: E402
from tests.torch.kinds import KINDS, WITH_SUMS, drawn, listed, tensors, unpadded  # noqa: E402

pytestmark = pytest.mark.torch
FEW = 30  # cells, up to which derivatives are compared one by one, and not along random directions


@pytest.mark.parametrize("name", WITH_SUMS)
def test_values_equal_enumeration(name):
    make = KINDS[name].make
    structure, other = make(*tensors(name)), make(*tensors(name, 1))
    gold = drawn(structure)
    total, entropy, marginals = structure.log_partition(), structure.entropy(), structure.marginals()
    log_prob, cross, divergence = structure.log_prob(gold), structure.cross_entropy(other), structure.kl(other)
    for b in range(len(structure)):
        problem, found, score = listed(structure, b)
        expected = np.logaddexp.reduce(score)
        chance = np.exp(score - expected)
        used = chance > 0
        assert total[b].item() == pytest.approx(expected, abs=1e-12)
        assert entropy[b].item() == pytest.approx(-chance[used] @ np.log(chance[used]), abs=1e-12)
        assert log_prob[b].item() == pytest.approx(
            problem.score(structure.batch._unpadded(gold[b].numpy(), b)) - expected, abs=1e-12
        )
        theirs = np.array([other.batch[b].score(y) for y in found])
        theirs -= other.log_partition()[b].item()
        assert cross[b].item() == pytest.approx(-chance[used] @ theirs[used], abs=1e-11)
        assert divergence[b].item() == pytest.approx(chance[used] @ (np.log(chance[used]) - theirs[used]), abs=1e-11)
        for view, shape in problem.views.items():
            mean = sum(p * problem.indicator(y, view) for p, y in zip(chance, found, strict=True))
            np.testing.assert_allclose(unpadded(marginals[view][b].detach().numpy(), shape), mean, atol=1e-12)


@pytest.mark.parametrize("name", WITH_SUMS)
def test_gradients(name):
    make, given, others = KINDS[name].make, tensors(name), tensors(name, 1)
    gold, k = drawn(make(*given)), len(given)
    fast = sum(t.numel() for t in given) > FEW
    assert gradcheck(lambda *t: make(*t).log_partition(), given, fast_mode=fast)
    assert gradcheck(lambda *t: make(*t).entropy(), given, fast_mode=fast)
    assert gradcheck(lambda *t: tuple(make(*t).marginals().values()), given, fast_mode=fast)
    assert gradcheck(lambda *t: make(*t).log_prob(gold), given, fast_mode=fast)
    assert gradcheck(lambda *t: make(*t[:k]).cross_entropy(make(*t[k:])), (*given, *others), fast_mode=fast)
    assert gradcheck(lambda *t: make(*t[:k]).kl(make(*t[k:])), (*given, *others), fast_mode=fast)


@pytest.mark.parametrize("name", WITH_SUMS)
def test_gradients_of_gradients(name):
    make, given, others = KINDS[name].make, tensors(name), tensors(name, 1)
    gold, k = drawn(make(*given)), len(given)
    fast = sum(t.numel() for t in given) > FEW
    assert gradgradcheck(lambda *t: make(*t).log_partition(), given, fast_mode=fast)
    assert gradgradcheck(lambda *t: make(*t).log_prob(gold), given, fast_mode=fast)
    assert gradgradcheck(lambda *t: make(*t).entropy(), given, fast_mode=fast)
    assert gradgradcheck(lambda *t: make(*t[:k]).cross_entropy(make(*t[k:])), (*given, *others), fast_mode=fast)


def test_large_scores_have_gradients():
    arc = 300.0 * torch.randn(2, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for projective in (True, False):
        given = arc.clone().requires_grad_()
        found = ct.Dependency(given, projective=projective)
        (found.marginals()["arcs"] ** 2).sum().backward()
        assert torch.isfinite(given.grad).all()
        assert given.grad.abs().max() < 1e-3


def test_grammars_with_weights_far_apart_have_second_derivatives():
    """Products of matrices would lose some of them: the graph of the trees is swept instead."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(1, 3, 2), (2,), (2, 4, 4)]
    emission, root, rule = (torch.randn(s, dtype=torch.float64, generator=generator) for s in shapes)
    given = [tensor.detach().requires_grad_() for tensor in (emission, root, rule - 400.0 * (rule > 1.0))]
    assert gradgradcheck(lambda e, o, r: ct.AnchoredGrammar(o, r, e).log_partition(), given, fast_mode=True)


@pytest.mark.parametrize("name", ["crossing", "crossing, roots", "labelled"])
def test_gradients_where_words_prefer_each_other(name):
    """Words 1 and 2 head each other far better than anything else: no matrix of such weights can be inverted."""
    make, given = KINDS[name].make, tensors(name, forbid=False)
    with torch.no_grad():
        given[0][0, 1, 2] += 45.0
        given[0][0, 2, 1] += 45.0
    assert gradcheck(lambda *t: tuple(make(*t).marginals().values()), given)
    assert gradgradcheck(lambda *t: make(*t).entropy(), given)


def test_mass_where_the_other_has_none_is_infinitely_far():
    unary = torch.zeros(1, 1, 2, dtype=torch.float64)
    other = torch.tensor([[[0.0, -np.inf]]], dtype=torch.float64)
    assert ct.Tagging(unary).kl(ct.Tagging(other)).tolist() == [np.inf]
    assert ct.Tagging(other).kl(ct.Tagging(unary)).item() == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("name", [name for name in KINDS if name not in WITH_SUMS])
def test_what_has_no_sums_says_so(name):
    with pytest.raises(certus.NotSupported, match="no tractable answer"):
        KINDS[name].make(*tensors(name)).log_partition()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_answers_have_the_type_of_the_scores(dtype):
    arc = torch.randn(2, 4, 4, dtype=torch.float64).to(dtype).requires_grad_()
    structure = ct.Dependency(arc, projective=True)
    answers = [structure.log_partition(), structure.entropy(), structure.marginals()["arcs"], structure.decode().score]
    answers += [structure.hinge(structure.decode().structure), structure.sparsemap().marginals["arcs"]]
    assert {answer.dtype for answer in answers} == {dtype}
    exact = ct.Dependency(arc.detach().double(), projective=True).marginals()["arcs"]
    assert torch.allclose(answers[2].double(), exact, atol=1e-2)
    answers[1].sum().backward()
    assert arc.grad.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("far", [100.0, 1000.0])
def test_all_is_computed_in_float64_whatever_the_type(dtype, far):
    """Scores far from 0 cancel: answers are those for the same numbers in float64, rounded once."""
    arc = (torch.randn(2, 9, 9, generator=torch.Generator().manual_seed(0)) + far).to(dtype)
    ours, exact = ct.Dependency(arc, projective=True), ct.Dependency(arc.double(), projective=True)
    gold = exact.sample(1, seed=0)[:, 0]
    asked = (
        lambda s: s.log_partition(),
        lambda s: s.entropy(),
        lambda s: s.log_prob(gold),
        lambda s: s.hinge(gold),
        lambda s: s.kl(type(s)(s.first * 0.0, projective=True)),
        lambda s: s.marginals()["arcs"],
        lambda s: s.sparsemap().probability,
        lambda s: s.sparsemap().marginals["arcs"],
    )
    for ask in asked:
        found = ask(ours)
        assert found.dtype == dtype
        torch.testing.assert_close(found, ask(exact).to(dtype), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["bigrams", "crossing", "projective"])
def test_derivatives_that_are_not_there_are_refused(name):
    """And not taken for 0."""
    given = tensors(name)
    direction = [torch.randn_like(tensor) for tensor in given]

    def along(value):
        slopes = torch.autograd.grad(value, given, create_graph=True)
        return sum((slope * u).sum() for slope, u in zip(slopes, direction, strict=True))

    third = along(along(along(KINDS[name].make(*given).log_partition().sum())))
    assert torch.isfinite(third)
    with pytest.raises(certus.NotSupported, match="derivatives up to the third"):
        along(third)


def test_no_items_and_no_words():
    assert ct.Tagging(torch.zeros(0, 3, 2)).log_partition().shape == (0,)
    assert ct.Dependency(torch.zeros(2, 1, 1), projective=True).entropy().tolist() == [0.0, 0.0]
    assert ct.SpanTrees(torch.zeros(2, 1, 1)).marginals()["spans"].shape == (2, 1, 1)
