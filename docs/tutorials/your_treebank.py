# %% [markdown]
# # A treebank of your own
#
# From a CoNLL-U file to a parser whose every tree is proved to be the best of its model. The treebank here is made
# on the spot, so that this page can be run; with one of yours only the first cell changes.

# %%
import itertools
from pathlib import Path

nouns = ["dog", "cat", "bird", "child", "jet"]
verbs = ["sees", "likes", "follows", "hears"]
places = ["park", "house", "river"]


def rows(subject: str, verb: str, thing: str, place: str | None) -> str:
    words = [("the", "DET", 2, "det"), (subject, "NOUN", 3, "nsubj"), (verb, "VERB", 0, "root")]
    words += [("a", "DET", 5, "det"), (thing, "NOUN", 3, "obj")]
    if place is not None:
        words += [("in", "ADP", 8, "case"), ("the", "DET", 8, "det"), (place, "NOUN", 3, "obl")]
    return "".join(f"{i}\t{w}\t_\t{t}\t_\t_\t{h}\t{d}\t_\t_\n" for i, (w, t, h, d) in enumerate(words, start=1)) + "\n"


drawn = [rows(s, v, o, p) for s, v, o, p in itertools.product(nouns, verbs, nouns, [None, *places]) if s != o]
Path("train.conllu").write_text("".join(drawn[::4]))
Path("dev.conllu").write_text("".join(drawn[1::40]))
print(len(drawn[::4]), "sentences to learn from,", len(drawn[1::40]), "to measure on")

# %% [markdown]
# Training is one command. It learns a tagger, filters that throw unlikely arcs away, a parser over groups of arcs, and
# labels; the options are in [Trained parsers](../parsers.md).

# %%
from certus.cli import main

options = ["--order", "2", "--epochs", "3", "--bits", "16", "--tagger"]
main(["train", "parser", "--train", "train.conllu", "--dev", "dev.conllu", "--output", "model", *options])

# %%
import certus
from certus.text import Sentence

parser = certus.load("model")
(tree,) = parser.parse(
    [Sentence.from_words(["the", "child", "hears", "a", "jet", "in", "the", "park"])], confidences=True
)
tree

# %% [markdown]
# Measured as the shared tasks measure:

# %%
from certus.io.conllu import read_conllu, write_conllu

write_conllu("parsed.conllu", parser.parse(read_conllu("dev.conllu")))
main(["evaluate", "dev.conllu", "parsed.conllu"])

# %% [markdown]
# Why does *park* hang on *hears*? The rivals of that head, and what speaks for and against each:

# %%
from certus.models.explain import head_choice

choice = head_choice(parser.parser, tree, 8)
print(f"rather than word {choice.instead}, by {choice.margin:.3f}")
for name, total in sorted(choice.groups.items(), key=lambda item: -abs(item[1]))[:6]:
    print(f"{total:+8.3f}  {name}")

# %% [markdown]
# The whole story, with k-best trees and the proof, is a page: `certus explain --model model "..." --output page.html`.
# Confidences that mean what they say come from [`certus calibrate`](../drawing.md).
