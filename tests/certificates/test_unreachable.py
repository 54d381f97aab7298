"""Parts that no structure uses count for nothing in a bound, whatever they score."""

from math import inf

import numpy as np
import pytest

from certus.certificates.evaluate import Evaluation
from certus.certificates.normal import Graph, NormalForm


@pytest.mark.parametrize("large", [1e21, 1e290])
def test_a_large_score_out_of_reach_leaves_no_bound_undefined(large):
    # Vertex 0 is a leaf that scores much, vertex 1 has no edge but a forbidden one, the top needs both.
    graph = Graph(
        in_ptr=np.array([0, 1, 2, 3]),
        tail_ptr=np.array([0, 0, 0, 2]),
        tail=np.array([0, 1]),
        part_ptr=np.array([0, 1, 2, 3]),
        part=np.array([0, 1, 2]),
    )
    evaluation = Evaluation(NormalForm(np.array([large, -inf, 0.0]), (graph,), {}))
    assert evaluation.bound(np.empty(0), 5.0, evaluation.everything()) == -inf
    assert evaluation.bound_with(np.empty(0), 5.0, evaluation.everything(), np.array([[0]])) == -inf
