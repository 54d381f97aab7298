"""The English model of the package: tagger, names, filters, trees and labels, trained on UD English-EWT.

    python benchmarks/english_model.py DATA CLUSTERS OUTPUT

DATA is a folder with train.conllu.gz, dev.conllu.gz and test.conllu.gz; CLUSTERS is what certus cluster wrote for an
English text. Runs certus train parser --tagger, and writes the model card with the accuracy measured on the test part.
A run that was broken off goes on where it was; with a finished model in OUTPUT only the card is written.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from certus.cli.train_parser import parser as train_parser
from certus.io.conllu import read_conllu
from certus.models.parser import FILE, Parser
from certus.models.pipeline import TAGGER_FILE
from certus.models.tagger import Tagger
from certus.text import Sentence

CARD = """# The English model

A tagger (UPOS and XPOS), a third-order projective dependency parser and a labeller for English, loaded by
`certus.load("en")`.

- Data: the training part of UD English-EWT (web logs, newsgroups, e-mail, reviews, answers), 12544 sentences, 204577
  words; word clusters of a text that may be shipped.
- Licence: the treebank is under CC BY-SA 4.0, and so is this model. Credit: the authors of UD English-EWT,
  https://universaldependencies.org/treebanks/en_ewt/.
- The parser was trained on predicted tags and looks at forms, tags and clusters only, not at lemmas or morphology.

| test part of UD English-EWT, gold tokens | UPOS | XPOS | UAS | LAS |
|---|---|---|---|---|
{table}

All words count, punctuation too; labels are compared up to the first colon. On one core it parses {speed} words a
second with tags given, and {both} with tagging, from sentences to sentences.

Made by `certus train parser --train DATA/train.conllu.gz --dev DATA/dev.conllu.gz --clusters CLUSTERS --tagger
--seed 0 --output src/certus/models/data/en`, where DATA is the treebank and CLUSTERS what `certus cluster TEXT
--clusters 300 --min-count 5` finds in the text; this card by `benchmarks/english_model.py`.
"""


def untagged(sentence: Sentence) -> Sentence:
    return replace(sentence, tokens=[replace(t, lemma="_", feats="_", upos="_", xpos="_") for t in sentence])


def shares(gold: list[Sentence], found: list[Sentence]) -> tuple[float, float, float, float]:
    """UPOS, XPOS, UAS and LAS in percent."""
    pairs = [(a, b) for x, y in zip(gold, found, strict=True) for a, b in zip(x, y, strict=True)]
    labelled = sum(a.head == b.head and a.deprel.split(":")[0] == b.deprel.split(":")[0] for a, b in pairs)
    counts = (
        sum(a.upos == b.upos for a, b in pairs),
        sum(a.xpos == b.xpos for a, b in pairs),
        sum(a.head == b.head for a, b in pairs),
        labelled,
    )
    upos, xpos, heads, labels = (100.0 * count / len(pairs) for count in counts)
    return upos, xpos, heads, labels


def card(parser: Parser, tagger: Tagger, test: list[Sentence]) -> str:
    words = sum(map(len, test))
    list(parser.parse(tagger.tag([untagged(sentence) for sentence in test[:10]])))  # compile
    start = time.process_time()
    gold = list(parser.parse(test))
    parsed = time.process_time()
    tags = tagger.tag([untagged(sentence) for sentence in test])
    tagged = time.process_time()
    own = list(parser.parse(tags))
    rows = []
    for name, found in (("gold tags", gold), ("tags of its own", own)):
        upos, xpos, heads, labels = shares(test, found)
        rows.append(f"| {name} | {upos:.2f} | {xpos:.2f} | {heads:.2f} | {labels:.2f} |")
    speed, both = words / (parsed - start), words / (tagged - start)
    return CARD.format(table="\n".join(rows), speed=f"{speed:,.0f}", both=f"{both:,.0f}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("clusters", type=Path)
    arguments.add_argument("output", type=Path)
    options = arguments.parse_args()
    if not (options.output / FILE).exists():
        train, dev = (options.data / f"{part}.conllu.gz" for part in ("train", "dev"))
        train_parser([train], options.output, dev, clusters=options.clusters, tagger=True, seed=0, resume=True)
    parser, tagger = Parser.load(options.output / FILE), Tagger.load(options.output / TAGGER_FILE)
    (options.output / "README.md").write_text(card(parser, tagger, list(read_conllu(options.data / "test.conllu.gz"))))
    print((options.output / "README.md").read_text())


if __name__ == "__main__":
    main()
