"""A grid Markov random field, split into its rows and its columns (LR 3.4, fig. 3-2).

Every pixel of a grid takes a label; neighbours like to be alike. The whole grid has cycles and is hard, but its rows
are chains, and so are its columns. Each half is solved by Viterbi, with half of every pixel's own scores; multipliers
bring the two to give every pixel the same label.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import certus
from certus.certificates.normal import NormalForm
from certus.certificates.rounding import Extent


class Chains(certus.Problem[np.ndarray]):
    """Labels for n pixels, coupled along chains: the sequence ``order``, cut wherever ``joined`` is False.

    Structures are arrays of n labels in pixel order. The view is "labels" (n, K).
    """

    name = "chains"
    exclusive = {"labels": 1}  # noqa: RUF012
    told_apart_by = ("labels",)

    def __init__(self, unary: np.ndarray, pairwise: np.ndarray, order: np.ndarray, joined: np.ndarray) -> None:
        n, k = unary.shape
        self.order, self.n, self.k = order, n, k
        bigram = np.where(joined[:, None, None], pairwise[None], np.zeros((1, k, k)))
        self.tagging = certus.Tagging(unary[order], bigram=bigram)

    @property
    def views(self) -> Mapping[str, tuple[int, ...]]:
        return {"labels": (self.n, self.k)}

    def _along(self, penalties: Any) -> dict[str, np.ndarray] | None:
        return {"tags": penalties["labels"][self.order]} if penalties else None

    def _back(self, values: np.ndarray) -> np.ndarray:
        out = np.empty_like(values)
        out[self.order] = values
        return out

    def terms(self, structure: np.ndarray) -> list[float]:
        return self.tagging.terms(np.asarray(structure)[self.order])

    def solve(self, penalties: Any = None) -> certus.Solution[np.ndarray]:
        found = self.tagging.solve(self._along(penalties))
        return certus.Solution(self._back(found.structure), found.value)

    def indicator(self, structure: np.ndarray, view: str) -> np.ndarray:
        return self._back(self.tagging.indicator(structure[self.order], "tags"))

    def max_marginals(self, penalties: Any = None) -> dict[str, np.ndarray]:
        return {"labels": self._back(self.tagging.max_marginals(self._along(penalties))["tags"])}

    def normal_form(self) -> NormalForm:
        form = self.tagging.normal_form()
        return form._replace(cells={"labels": self._back(form.cells["tags"].reshape(self.n, self.k)).ravel()})

    def normal_structure(self, structure: np.ndarray) -> tuple[Any, ...]:
        return self.tagging.normal_structure(np.asarray(structure)[self.order])

    def extent(self) -> Extent:
        return self.tagging.extent()

    def all_structures(self) -> Iterator[np.ndarray]:
        return (self._back(y) for y in self.tagging.all_structures())

    def decode(self, **limits: Any) -> certus.Result[np.ndarray]:
        found = self.tagging.decode()
        return certus.Result(self._back(found.structure), found.score, found.certificate)


def grid(unary: np.ndarray, pairwise: np.ndarray) -> certus.Joint:
    """Rows and columns of a grid with unary (R, C, K) and pairwise (K, K) scores, agreeing on every label."""
    rows, columns, k = unary.shape
    pixels = np.arange(rows * columns).reshape(rows, columns)
    half = unary.reshape(-1, k) / 2
    along_rows = Chains(half, pairwise, pixels.ravel(), np.arange(pixels.size) % columns > 0)
    along_columns = Chains(half, pairwise, pixels.T.ravel(), np.arange(pixels.size) % rows > 0)
    return certus.Joint(along_rows, along_columns, on="labels")


def main() -> None:
    rng = np.random.default_rng(7)
    truth = np.zeros((14, 28), dtype=int)
    truth[3:11, 4:12], truth[5:13, 16:26] = 1, 2
    unary = rng.normal(0.0, 1.0, (*truth.shape, 3)) + 1.4 * (truth[:, :, None] == np.arange(3))
    problem = grid(unary, np.where(np.eye(3, dtype=bool), 0.0, -0.9))
    result = problem.decode(time_limit=60.0)
    certus.verify(problem, result)
    labels = result.structure[0].reshape(truth.shape)
    for row in labels:
        print("  " + "".join(".#o"[label] for label in row))
    certificate = result.certificate
    status = "optimal" if certificate.exact else f"gap {certificate.gap:.3g}"
    print(f"score {result.score:.6f}, bound {certificate.bound:.6f}: {status}")
    print(f"{certificate.kind}, {result.info['iterations']} iterations, {result.info['nodes']} nodes")
    alone = np.mean(unary.argmax(2) == truth)
    print(f"pixels as before the noise: {np.mean(labels == truth):.1%}, without neighbours {alone:.1%}")


if __name__ == "__main__":
    main()
