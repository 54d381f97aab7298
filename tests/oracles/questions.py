"""Questions that have an answer only where there is a structure."""

import pytest

from certus import Infeasible


def answer(structures, question, *given, **options):
    """The answer to a question about some structures; if there are none it must be refused, and None is returned."""
    if structures:
        return question(*given, **options)
    with pytest.raises(Infeasible):
        question(*given, **options)
    return None
