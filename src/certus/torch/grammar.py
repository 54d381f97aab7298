"""Sums over the trees of grammars that are scored for each sentence, with derivatives of all orders.

Values and first derivatives are those of certus.structures.anchored_sums. For higher derivatives its products of
matrices are done over tensors, and differentiated by autograd: what is only there for the scale of numbers counts as
constant. Where weights lie too far apart for that, the graph of the trees is swept, if it is not too large.
"""

from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from certus.checks import Bools, Floats
from certus.structures.anchored_sums import LEAST, Far, Scores, sums
from certus.structures.part_sums import Group, PartSums


class GrammarSums(PartSums):
    """Sums of ``certus.torch.AnchoredGrammar``."""

    def sums(self, scores: Floats) -> tuple[Floats, Floats]:
        total, uses = np.full(self.items, -np.inf), np.zeros(scores.shape)
        for group in self.groups:
            for b in group.items.tolist():
                own = scores[b, group.cells]
                if np.isnan(own).any() or (own == np.inf).any():
                    total[b] = np.nan
                    continue
                span, root, rule, emission = self._arrays(group, own[None])
                n, phrases = span.shape[1] - 1, root.shape[1]
                if n < 2:
                    continue
                cell = np.where(_belongs(n, phrases, span.shape[3]), span[0], -np.inf)
                word = np.arange(n)
                cell[word, word + 1, phrases:] += emission[0]
                found = sums(Scores(root[0], rule[0], cell))
                total[b] = found.total
                tags = found.cell[word, word + 1, phrases:]
                parts = [found.cell, found.root, found.rule, tags]
                uses[b, group.cells] = np.concatenate([part.reshape(-1) for part in parts])
        return total, uses

    def _derivative(self, scores: Floats, along: tuple[Floats, ...]) -> Floats:
        out = np.zeros(scores.shape)
        try:
            for group in self.groups:
                place = np.ix_(group.items, group.cells)
                with torch.enable_grad():
                    theta = torch.from_numpy(scores[place]).requires_grad_()
                    value = _log_totals(*self._arrays(group, theta)).sum()
                    for direction in along:
                        (slope,) = torch.autograd.grad(value, theta, create_graph=True)
                        value = (slope * torch.from_numpy(direction[place])).sum()
                    out[place] = torch.autograd.grad(value, theta)[0].numpy()
        except Far:
            return super()._derivative(scores, along)
        return out

    @staticmethod
    def _arrays(group: Group, own: Any) -> list[Any]:
        """Scores (b, P) of the items of a group, arrays or tensors, as those of spans, roots, rules and tags."""
        found, start = [], 0
        for _, _, size in group.numbered.shapes:
            found.append(own[:, start : start + prod(size)].reshape(len(own), *size))
            start += prod(size)
        return found


def _belongs(n: int, phrases: int, size: int) -> Bools:
    """(n + 1, n + 1, S) which symbols spans may have: words tags, longer ones phrases."""
    width = np.arange(n + 1) - np.arange(n + 1)[:, None]
    tag = np.arange(size) >= phrases
    return np.where(tag, width[:, :, None] == 1, width[:, :, None] > 1)


def _weights(scores: Tensor) -> tuple[Tensor, Tensor]:
    """exp(scores) over their greatest along the last axis, and its log, 0 where all are -inf."""
    most = scores.detach().amax(dim=-1, keepdim=True)
    most = torch.where(most > -torch.inf, most, 0.0)
    found = torch.exp(scores - most)
    _check(found, scores > -torch.inf)
    return found, most[..., 0]


def _check(weights: Tensor, some: Tensor) -> None:
    """Raise Far if one of those that are not 0 is as good as that."""
    if ((weights < LEAST) & some).any():
        raise Far


def _log_totals(span: Tensor, root: Tensor, rule: Tensor, emission: Tensor) -> Tensor:
    """(b,) logs of the sums of exp(score) over the trees of items with one length."""
    n, phrases, size = span.shape[1] - 1, root.shape[1], span.shape[3]
    flat, most_rule = _weights(rule.flatten(1))
    flat = flat.unflatten(1, (phrases, -1)).transpose(1, 2)
    tags, most = _weights(span[:, range(n), range(1, n + 1), phrases:] + emission)
    weight = {1: torch.nn.functional.pad(tags, (phrases, 0))}
    scale = {1: torch.where((tags > 0).any(dim=2), most, -torch.inf)}  # what weights are over, as logs
    for width in range(2, n + 1):
        count, inner = n - width + 1, range(1, width)
        left = torch.stack([weight[k][:, :count] for k in inner], dim=2)
        right = torch.stack([weight[width - k][:, k : k + count] for k in inner], dim=2)
        both = torch.stack([scale[k][:, :count] + scale[width - k][:, k : k + count] for k in inner], dim=2)
        factor, top = _weights(both)
        pairs = (left * factor[..., None]).transpose(2, 3) @ right
        cell, most = _weights(span[:, range(count), range(width, n + 1), :phrases])
        found = (pairs.flatten(2) @ flat) * cell
        largest = found.detach().amax(dim=2)
        some = largest > 0
        largest = torch.where(some, largest, 1.0)
        _check(found / largest[..., None], found > 0)
        weight[width] = torch.nn.functional.pad(found / largest[..., None], (0, size - phrases))
        scale[width] = torch.where(some, top + largest.log() + most + most_rule[:, None], -torch.inf)
    tops, most = _weights(root)
    return (tops * weight[n][:, 0, :phrases]).sum(dim=1).log() + most + scale[n][:, 0]
