"""Structures over tensors in the company they keep: no gradients, compilers, workers, threads, wrong arguments."""

import copy
from threading import Thread

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import certus  # noqa: E402
import certus.torch as ct  # noqa: E402

pytestmark = pytest.mark.torch
UNARY = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0))
ARC = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0))
NAN = UNARY.clone()
NAN[1, 3, 0] = float("nan")
SPAN = torch.zeros(2, 4, 4, 2)
SPAN[1, 0, 3, 1] = float("nan")


def test_without_gradients():
    expected = ct.Tagging(UNARY).entropy()
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            structure = ct.Tagging(UNARY.clone())
            assert not structure.marginals()["tags"].requires_grad
            assert torch.equal(structure.entropy(), expected)
            assert structure.decode().exact.all()
    assert not ct.Tagging(UNARY).log_partition().requires_grad


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_what_is_asked_without_gradients_leaves_those_of_later_answers(context):
    unary, bigram = UNARY.clone().requires_grad_(), torch.randn(2, 2, requires_grad=True)
    gold = torch.tensor([[0, 1, 1, 0]] * 3)
    structure = ct.Tagging(unary, bigram)
    with context():
        structure.decode()
        structure.marginals()
        structure.entropy()
    for ask in (lambda s: s.log_prob(gold), lambda s: s.entropy(), lambda s: s.hinge(gold), lambda s: s.decode().score):
        ours = torch.autograd.grad(ask(structure).sum(), (unary, bigram))
        fresh = torch.autograd.grad(ask(ct.Tagging(unary, bigram)).sum(), (unary, bigram))
        assert all(torch.equal(a, b) for a, b in zip(ours, fresh, strict=True))


def test_structures_are_copied_with_what_holds_them():
    arc = ARC.clone()
    for structure in (
        ct.Dependency(arc),
        ct.Dependency(arc, projective=True),
        ct.Tagging(UNARY),
        ct.SpanTrees(SPAN[:1]),
    ):
        again = copy.deepcopy(structure)
        assert torch.equal(again.log_partition(), structure.log_partition())


def test_a_graph_that_is_kept_gives_its_gradient_again():
    arc = ARC.double().requires_grad_()
    total = ct.Dependency(arc).log_partition()
    first = torch.autograd.grad(total.sum(), arc, retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(2 * total.sum(), arc)[0], 2 * first)
    assert torch.equal(first, ct.Dependency(arc).marginals()["arcs"])


def test_a_table_of_all_items_has_its_gradient_with_or_without_the_others():
    unary, bigram = UNARY.double(), torch.randn(UNARY.shape[2], UNARY.shape[2], dtype=torch.float64)
    weight = torch.arange(1.0, len(unary) + 1, dtype=torch.float64)
    both = [unary.clone().requires_grad_(), bigram.clone().requires_grad_()]
    expected = torch.autograd.grad(ct.Tagging(*both).log_partition() @ weight, both)
    for k, given in enumerate(both):
        arrays = [given if k == j else other.detach() for j, other in enumerate(both)]
        total = ct.Tagging(*arrays).log_partition() @ weight
        assert torch.equal(torch.autograd.grad(total, given, retain_graph=True)[0], expected[k])
        torch.testing.assert_close(torch.autograd.grad(total, given)[0], expected[k])
    one_by_one = torch.stack(
        [
            torch.autograd.grad(ct.Tagging(both[0][b : b + 1], both[1]).log_partition().sum(), both[1])[0]
            for b in range(len(unary))
        ]
    )
    torch.testing.assert_close((weight[:, None, None] * one_by_one).sum(dim=0), expected[1])


def test_layouts_of_memory_do_not_matter():
    turned = UNARY.transpose(0, 1).contiguous().transpose(0, 1)
    assert not turned.is_contiguous()
    assert torch.equal(ct.Tagging(turned).log_partition(), ct.Tagging(UNARY).log_partition())


def test_compiled_networks_call_it():
    net = torch.nn.Linear(5, 2)

    def loss(x):
        structure = ct.Tagging(torch.tanh(net(x)), lengths=torch.tensor([4, 2, 3]))
        return structure.log_partition().sum() + (structure.marginals()["tags"] ** 2).sum()

    x = torch.randn(3, 4, 5)
    gradients = []
    for function in (loss, torch.compile(loss, backend="aot_eager")):
        net.zero_grad()
        function(x).backward()
        gradients.append(net.weight.grad.clone())
    assert torch.allclose(*gradients)


class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, k):
        structure = ct.Dependency(ARC[:1] + k, projective=True)
        return structure.log_partition()[0], structure.decode().structure[0]


def test_workers_of_data_loaders():
    alone = [Sentences()[k] for k in range(4)]
    loaded = list(torch.utils.data.DataLoader(Sentences(), batch_size=None, num_workers=2))
    assert [a[0].item() for a in loaded] == [a[0].item() for a in alone]
    assert all(torch.equal(a[1], b[1]) for a, b in zip(alone, loaded, strict=True))


def test_two_threads_at_a_time():
    found = {}

    def work(k):
        given = (ARC * (k + 1)).requires_grad_()
        for _ in range(10):
            ct.Dependency(given, ARC[..., None].expand(-1, -1, -1, 4), projective=True).entropy().sum().backward()
        found[k] = given.grad

    threads = [Thread(target=work, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(found)
    for k in (0, 1):
        work(k)
        assert torch.equal(found[k], together[k])


GRADIENT = "requires grad.*ask certus.torch"
WRONG = [
    (lambda: certus.Tagging(UNARY[0].clone().requires_grad_()), f"unary .*{GRADIENT}"),
    (lambda: certus.TaggingBatch(UNARY.clone().requires_grad_()), f"unary .*{GRADIENT}"),
    (lambda: certus.TaggingBatch(UNARY, torch.zeros(2, 2, requires_grad=True)), f"bigram .*{GRADIENT}"),
    (lambda: certus.Dependency(ARC[0].clone().requires_grad_()), f"arc .*{GRADIENT}"),
    (lambda: certus.DependencyBatch(ARC.clone().requires_grad_()), f"arc .*{GRADIENT}"),
    (lambda: certus.LabelledDependency(torch.zeros(2, 2, 1, requires_grad=True)), f"label .*{GRADIENT}"),
    (lambda: certus.SpanTrees(torch.zeros(2, 2, requires_grad=True)), f"span .*{GRADIENT}"),
    (lambda: certus.SpanTreesBatch(torch.zeros(1, 2, 2).bfloat16()), r"span is of type bfloat16.*give span.float\(\)"),
    (lambda: certus.Assignment(torch.zeros(2, 2).bfloat16()), r"score is of type bfloat16.*give score.float\(\)"),
    (lambda: ct.Tagging(UNARY.numpy()), r"unary is ndarray.*torch.as_tensor"),
    (lambda: ct.Tagging(UNARY.int()), r"unary is torch.int32.*unary.float\(\)"),
    (lambda: ct.Tagging(UNARY, torch.zeros(2, 2).double()), r"bigram is torch.float64 on cpu.*bigram.to\(unary\)"),
    (lambda: ct.Tagging(UNARY, mask=torch.ones(4, 3, dtype=torch.bool)), r"mask has shape \(4, 3\).*expected \(3, 4\)"),
    (lambda: ct.Tagging(UNARY, lengths=[5, 1, 1]), r"lengths\[0\] is 5; expected 0..4"),
    (lambda: ct.Tagging(UNARY.transpose(0, 1), lengths=[4, 2, 1]), "lengths has shape .3,.*expected 4 whole numbers"),
    (lambda: ct.Tagging(UNARY, UNARY), r"bigram has shape \(3, 4, 2\).*expected \(2, 2\)"),
    (lambda: ct.Tagging(NAN), r"unary\[1, 3, 0\] is nan"),
    (lambda: ct.SpanTrees(SPAN).log_partition(), r"item 1 of the batch: span\[0, 3, 1\] is nan"),
    (lambda: ct.Dependency(ARC[:, 1:]), r"arc has shape \(3, 3, 4\)"),
    (lambda: ct.Dependency(ARC, grandparent=ARC), r"grandparent has shape \(3, 4, 4\); expected \(3, 4, 4, 4\)"),
    (lambda: ct.SpanningTree(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])), r"edge\[0, 1\] is 1.0 and .*symmetric"),
    (lambda: ct.Tagging(UNARY).log_prob(torch.zeros(3, 4)), "type float32; expected whole numbers of shape"),
    (lambda: ct.Tagging(UNARY).log_prob(torch.full((3, 4), 7)), r"item 0 of the batch: structure\[0\] is 7"),
    (lambda: ct.Tagging(UNARY).hinge(torch.zeros(3, 4, dtype=int), torch.zeros(3, 4)), "cost has shape .3, 4."),
    (lambda: ct.Tagging(UNARY).hinge(torch.zeros(3, 4, dtype=int), 1.0), "cost is 1.0; expected a tensor"),
    (lambda: ct.Tagging(UNARY).risk(lambda found: 1.0), "cost of the structures is 1.0; expected a tensor"),
    (lambda: ct.Tagging(UNARY).kl(ct.Tagging(UNARY, lengths=[1, 1, 1])), "different structures"),
    (lambda: ct.Tagging(UNARY).sparsemap("arcs"), "view is 'arcs'; expected one of 'tags'"),
    (lambda: ct.Tagging(UNARY).kl(None), "the other is None; expected Tagging"),
    (lambda: ct.Dependency(ARC).kl(ct.Dependency(ARC, projective=True)), "have different structures"),
    (lambda: ct.Dependency(ARC, root="multi").cross_entropy(ct.Dependency(ARC)), "have different structures"),
    (lambda: ct.CTC(UNARY, [[1]] * 3).kl(ct.CTC(UNARY, [[1, 1]] * 3)), "have different structures"),
    (lambda: ct.Dependency(), "arc is None; expected a tensor"),
    (lambda: ct.Dependency(None, ARC[..., None]), "arc is None; expected a tensor"),
    (lambda: ct.SpanTrees(None), "span is None; expected a tensor"),
    (lambda: ct.Tagging(UNARY.to("meta")), "has no numbers at hand: it is sparse, of the device meta"),
    (lambda: ct.Tagging(UNARY.to_sparse()), "has no numbers at hand"),
    (lambda: ct.Tagging(UNARY, lengths=torch.zeros(3, dtype=int, device="meta")), "has no numbers at hand"),
    (lambda: torch.func.grad(lambda u: ct.Tagging(u).log_partition().sum())(UNARY), "ask torch.autograd.grad"),
    (lambda: torch.func.vmap(lambda u: ct.Tagging(u[None]).log_partition()[0])(UNARY), "ask torch.autograd.grad"),
    (lambda: ct.Dependency(ARC, axes="xy"), "axes is .*expected"),
    (lambda: ct.Dependency(ARC, label=ARC), r"label has shape \(3, 4, 4\); expected \(items, words"),
    (lambda: ct.Dependency(ARC, label=torch.zeros(3, 3, 3, 2)), r"arc has shape \(3, 4, 4\); expected \(3, 3, 3\)"),
    (lambda: ct.Dependency(ARC, label=torch.zeros(3, 4, 4, 2).double()), r"label is torch.float64.*label.to\(arc\)"),
    (lambda: ct.Dependency(ARC, label=np.zeros((3, 4, 4, 2))), "label is ndarray"),
    (lambda: ct.SpanningTree(ARC[:, 1:]), r"edge has shape \(3, 3, 4\)"),
    (lambda: ct.AnchoredGrammar([0.0], ARC, ARC), "root is list"),
    (
        lambda: ct.AnchoredGrammar(torch.zeros(2), torch.zeros(3, 5, 5), torch.zeros(1, 2, 2)),
        r"rule has shape \(3, 5, 5\); expected \(2, 4, 4\)",
    ),
    (lambda: ct.Tagging(UNARY).perturbed(temperature=-1.0), "temperature is -1.0; expected a positive number"),
    (lambda: ct.Tagging(UNARY).risk(None), "cost is None; expected a function"),
    (lambda: ct.sparsemap([], UNARY, "tags"), "there are 0 problems"),
    (lambda: ct.sparsemap([certus.Tagging(UNARY[0])], UNARY[:1].int(), "tags"), "scores is torch.int32"),
    (lambda: ct.sparsemap([certus.Tagging(UNARY[0])], UNARY[:1] * np.inf, "tags"), "some of the scores are not finite"),
]


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_wrong_arguments_say_what_to_do(k):
    ask, message = WRONG[k]
    with pytest.raises(certus.InvalidInput, match=message) as raised:
        ask()
    assert "\n" not in str(raised.value)


def test_padding_may_hold_anything_where_labels_are_differentiated_twice():
    label = torch.zeros(2, 3, 3, 2, dtype=torch.float64)
    label[1, :, 2] = label[1, 2] = float("nan")
    given = label.requires_grad_()
    structure = ct.Dependency(label=given, lengths=[2, 1])
    (gradient,) = torch.autograd.grad((structure.marginals()["labels"] ** 2).sum() + structure.entropy().sum(), given)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("value", [float("nan"), -np.inf, np.inf])
def test_costs_of_what_no_tree_has_may_be_anything(value):
    arc, cost = torch.randn(1, 3, 3, dtype=torch.float64), torch.ones(1, 3, 3, dtype=torch.float64)
    gold = torch.tensor([[-1, 0, -1]])
    expected = ct.Dependency(arc, lengths=[1]).hinge(gold, cost)
    cost[0, :, 2] = value
    assert torch.equal(ct.Dependency(arc, lengths=[1]).hinge(gold, cost), expected)


def test_modifiers_first():
    turned = ARC.transpose(1, 2).contiguous().requires_grad_()
    structure = ct.Dependency(turned, axes="mh")
    assert torch.equal(structure.marginals()["arcs"], ct.Dependency(ARC).marginals()["arcs"])
    (gradient,) = torch.autograd.grad(structure.log_partition().sum(), turned)
    assert torch.allclose(gradient.transpose(1, 2), structure.marginals()["arcs"])


def test_padding_may_hold_anything():
    assert torch.isfinite(ct.Tagging(NAN, lengths=[4, 3, 4]).entropy()).all()
    assert torch.isfinite(ct.SpanTrees(SPAN, lengths=[3, 2]).entropy()).all()
    given = NAN.clone().requires_grad_()
    ct.Tagging(given, lengths=[4, 3, 4]).entropy().sum().backward()
    assert torch.isfinite(given.grad).all()


def test_no_structure_at_all():
    with pytest.raises(certus.Infeasible, match="item 1 of the batch"):
        ct.SpanTrees(torch.stack((torch.zeros(3, 3), torch.full((3, 3), -np.inf)))).marginals()
