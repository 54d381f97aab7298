# %% [markdown]
# # Scores from torch
#
# A network scores arcs; certus finds the best tree, and has exact gradients of everything that is summed over all
# trees. Here a small network learns to find the head of each word from its tag, in a toy language.
#
# It needs the extra: `pip install "certus[torch]"`.

# %%
import torch

import certus.torch as ct

_ = torch.manual_seed(0)

# %% [markdown]
# Sentences are tags 0 to 3 (determiner, noun, verb, adverb) drawn by a little program that knows the tree: verbs are
# roots, nouns and adverbs hang on the verb, determiners on the next noun.

# %%
DET, NOUN, VERB, ADV = range(4)


def sentence(k: int) -> tuple[list[int], list[int]]:
    """Tags and heads: DET NOUN (ADV) VERB (DET NOUN)."""
    left = [DET, NOUN] + [ADV] * (k % 2)
    tags = [*left, VERB, *([DET, NOUN] if k % 3 else [])]
    verb = len(left) + 1
    heads = [verb if t != DET else m + 1 for m, t in enumerate(tags, start=1)]
    heads[verb - 1] = 0
    return tags, heads


corpus = [sentence(k) for k in range(32)]
longest = max(len(tags) for tags, _ in corpus)
lengths = [len(tags) for tags, _ in corpus]
tags = torch.tensor([[4, *t, *[0] * (longest - len(t))] for t, _ in corpus])  # 4 is the root
gold = torch.tensor([[-1, *h, *[-1] * (longest - len(h))] for _, h in corpus])

# %% [markdown]
# Tags and places become vectors; two layers make heads and modifiers of them; a bilinear form scores every arc.

# %%
embed, place = torch.nn.Embedding(5, 16), torch.nn.Embedding(longest + 1, 16)
head, modifier = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
parameters = [p for layer in (embed, place, head, modifier) for p in layer.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.003)


def trees() -> ct.Dependency:
    x = torch.tanh(embed(tags) + place(torch.arange(longest + 1)))
    return ct.Dependency(head(x) @ modifier(x).transpose(1, 2), lengths=lengths, projective=True)


# %% [markdown]
# The loss is the negative log probability of the gold tree under all projective trees: its gradient is exact.

# %%
losses = []
for _ in range(80):
    loss = -trees().log_prob(gold).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"loss {losses[0]:.2f} to {losses[-1]:.2f}")
assert losses[-1] < 0.2 * losses[0]

# %%
from certus import draw

draw.curves({"loss": losses}, width=640, title="Loss by step")

# %% [markdown]
# Decoding gives the best trees, each proved:

# %%
best = trees().decode()
right = (best.structure == gold) | (gold < 0)
print(f"{right.all(dim=1).float().mean():.0%} of the trees are right, {best.exact.float().mean():.0%} are proved")

# %% [markdown]
# Marginals are a layer. Here are those of the first sentence: how likely each word (column) has each head (row).

# %%
words = ["DET", "NOUN", "VERB", "ADV"]
own = [words[t] for t in corpus[1][0]]
shares = trees().marginals()["arcs"][1].detach().numpy()[: len(own) + 1, 1 : len(own) + 1]
draw.heat(shares, ["root", *own], own)
