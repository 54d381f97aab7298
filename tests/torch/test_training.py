"""Layers of structures train: attention over trees, by marginals and by SparseMAP, finds what tells the answer."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import certus.torch as ct  # noqa: E402

pytestmark = pytest.mark.torch
WORDS, SIZE = 5, 6


def examples():
    """Each word is one of SIZE; the answer for a word is the symbol after it in the alphabet, if it is there."""
    generator = torch.Generator().manual_seed(0)
    return torch.stack([torch.randperm(SIZE, generator=generator)[:WORDS] for _ in range(64)])


@pytest.mark.parametrize("attention", ["marginals", "sparsemap"])
def test_attention_over_trees_trains(attention):
    """The head of a word is to be the one whose symbol is next: a table of pairs of symbols learns which."""
    words = examples()
    table = torch.zeros(SIZE, SIZE, requires_grad=True)
    roots = torch.zeros(SIZE, requires_grad=True)
    optimizer = torch.optim.Adam([table, roots], lr=0.3)
    answer = (words + 1) % SIZE
    known = (answer[:, :, None] == words[:, None]).any(dim=2)
    value = torch.nn.functional.one_hot(words, SIZE).float()
    losses = []
    for _ in range(25):
        arc = torch.zeros(len(words), WORDS + 1, WORDS + 1)
        arc[:, 1:, 1:] = table[words[:, :, None], words[:, None, :]]
        arc[:, 0, 1:] = roots[words]
        trees = ct.Dependency(arc, root="multi")
        heads = trees.marginals() if attention == "marginals" else trees.sparsemap().marginals
        read = torch.einsum("bhm,bhv->bmv", heads["arcs"][:, 1:, 1:], value)  # what is known of the head
        found = read.gather(2, answer[:, :, None])[:, :, 0]
        loss = (1.0 - found)[known].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 0.7
    assert losses[-1] < 0.25
