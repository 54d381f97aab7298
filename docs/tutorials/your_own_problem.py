# %% [markdown]
# # A problem of your own
#
# Anything that can be maximised under prices on its parts can be a problem of certus. Four methods are enough; decoding
# with a certificate, constraints, agreement with other problems, verification and saving follow.
#
# The example: a talk of one hour is to be cut into clips that do not overlap, each with a score.

# %%
import numpy as np

import certus
from certus.constraints import at_most


class Clips(certus.Problem):
    """Stretches of a tape that do not overlap."""

    name = "clips"

    def __init__(self, stretches, scores):
        self.stretches, self.scores = [tuple(s) for s in stretches], np.asarray(scores, dtype=float)

    @property
    def views(self):
        return {"clips": self.scores.shape}

    def score(self, structure):
        return float(self.scores[list(structure)].sum())

    def solve(self, penalties=None):
        gain = self.scores + (penalties or {}).get("clips", 0.0)
        best = {0: (0.0, ())}  # by how far the tape is read
        for end in range(1, 1 + max(b for _, b in self.stretches)):
            best[end] = best[end - 1]
            for k, (a, b) in enumerate(self.stretches):
                if b == end and best[a][0] + gain[k] > best[end][0]:
                    best[end] = (best[a][0] + gain[k], (*best[a][1], k))
        return certus.Solution(best[end][1], float(best[end][0]))

    def indicator(self, structure, view):
        used = np.zeros(self.scores.shape)
        used[list(structure)] = 1.0
        return used


rng = np.random.default_rng(5)
starts = rng.integers(0, 54, 40)
clips = Clips([(int(a), int(a + n)) for a, n in zip(starts, rng.integers(2, 7, 40))], rng.integers(1, 20, 40))
free = clips.decode()
print(free)
print(len(free.structure), "clips")

# %% [markdown]
# Now a condition that the dynamic program knows nothing of: at most five clips. A price on every clip, raised until no
# more than five pay for themselves, and branching where that is not enough:

# %%
few = clips.subject_to(at_most(5, "clips", [(k,) for k in range(40)]))
result = few.decode()
print(result, result.structure)
assert result.certificate.exact
assert len(result.structure) <= 5

# %% [markdown]
# $$ L(u) = \max_{y} \Big( f(y) - u \sum_k y_k \Big) + 5 u, \qquad u \ge 0 $$
#
# is a bound at any price $u$, since a choice of at most five clips loses at most what it is given back.
#
# Verification recomputes everything; whom it had to believe, it says:

# %%
print(certus.verify(few, result))

# %% [markdown]
# Two such problems can be made to agree, or one with a tagger: [A problem of your own](../your_own_problem.md) goes on
# from here, with tours through cities and Markov random fields.
