# %% [markdown]
# # A translation that is proved to be the best
#
# Phrases say what some words of the source may become; a language model scores what comes out. Decoders keep a beam of
# partial translations and hope. Here the best translation is found and proved.

# %%
import certus
from certus.translation.kneser_ney import estimate_kneser_ney

text = [
    "we must take this criticism seriously",
    "this criticism is serious",
    "we must see this",
    "take this seriously",
    "we take it seriously",
]
lm = certus.LanguageModel(estimate_kneser_ney([line.split() for line in text], order=3).arpa)

# %% [markdown]
# A source sentence, and the phrases that cover it, each with a score. The verb is dear, other words are cheap: without
# prices it pays to translate a cheap word twice and to leave the verb out.

# %%
source = ["wir", "müssen", "diese", "kritik", "ernst", "nehmen"]
options = [
    certus.PhraseOption(0, 1, ("we", "must"), -0.5),  # source words 0 to 1, both included
    certus.PhraseOption(2, 3, ("this", "criticism"), 0.1),
    certus.PhraseOption(2, 2, ("this",), 0.5),
    certus.PhraseOption(3, 3, ("criticism",), 0.3),
    certus.PhraseOption(4, 4, ("seriously",), -0.7),
    certus.PhraseOption(4, 4, ("serious",), -0.3),
    certus.PhraseOption(5, 5, ("take",), -6.0),
    certus.PhraseOption(5, 5, ("see",), -5.5),
]
problem = certus.PhraseTranslation(options, lm, source=source, distortion=0.1, distortion_limit=6)
result = problem.decode()
problem.picture(result.structure)

# %%
print(" ".join(problem.words(result.structure)))
print(result.caption())
assert result.certificate.exact

# %% [markdown]
# The next best ones, each proved to have its rank:

# %%
for other in problem.kbest(5):
    print(f"{other.score:8.3f}", " ".join(problem.words(other.structure)))

# %% [markdown]
# ## How it is proved
#
# Let every source word be translated as often as it likes: the best path through the lattice of phrases is then a
# dynamic program. A price on each source word makes words that are translated twice dearer, and words that are left out
# cheaper. At any prices, what that path scores is a bound. Some rounds later no word is translated twice:

# %%
from certus.report.film import film

reel = film(problem)
for number, frame in enumerate(reel.frames, start=1):
    print(f"round {number}: bound {frame.dual:.3f}, {frame.said}")
reel.pictures[reel.frames[0].shown[0]]  # the first round: how often each source word is translated, where not once

# %%
from certus import draw

draw.curves({"bound": [f.dual for f in reel.frames], "best score": [f.primal for f in reel.frames]}, width=640)

# %% [markdown]
# Rules with gaps work the same way, over forests: [Translation](../translation.md). What other searches miss,
# sentence by sentence, is counted by [`certus search-errors`](../cli.md).
