# %% [markdown]
# # Two models that must agree
#
# A grammar and a tagger look at the same sentence. Each alone is easy to solve, and each makes mistakes that the other
# would not. Here they are made to agree, and the agreement is proved to be the best there is.

# %%
import certus
from certus.data import demo_grammar, demo_tagger

words = ["Red", "flies", "some", "large", "jet"]
parser = certus.Constituency(demo_grammar(), words)
tagger = demo_tagger().tagging(words)

# %% [markdown]
# The parser alone takes *jet* for a verb:

# %%
parser.decode()

# %% [markdown]
# The tagger alone knows better. Larger dots are likelier tags:

# %%
from certus import draw

best = tagger.decode()
draw.lattice(words, best.structure, tagger.tags, marginals=tagger.marginals()["tags"])

# %% [markdown]
# `Joint` asks for the pair that agrees on every tag and scores most together. No dynamic program is built for the pair:
# prices move on words and tags until both choose the same ones.

# %%
joint = certus.Joint(parser, tagger, on="tags")
result = joint.decode()
result

# %% [markdown]
# The bound came down to the score: nothing scores more. The way there, round by round:

# %%
result.trace

# %% [markdown]
# The proof can be checked by code that shares nothing with the code that found it:

# %%
print(certus.verify(joint, result))
assert result.certificate.exact
assert result.structure[0].tags == joint.problems[1].names(result.structure[1])

# %% [markdown]
# Any number of problems can be joined, each with a weight, and constraints can be added to all of it. Say that no word
# may be a proper noun:

# %%
from certus.constraints import forbid

at = tagger.tags.index("PROPN")
without = joint.subject_to(*(forbid("tags", (i, at)) for i in range(len(words))))
without.decode()

# %% [markdown]
# To look at a proof with a slider, save the result and make a page of it:
# `certus.save_result("r.json", joint, result)`, then
# `certus explain --result r.json --output page.html`. [See the proof](../drawing.md) says more.
