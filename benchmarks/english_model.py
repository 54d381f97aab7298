"""The English model of the package: tagger, names, filters, trees and labels, trained on UD English-EWT.

    python benchmarks/english_model.py DATA CLUSTERS OUTPUT [--epochs 10]

DATA is a folder with train.conllu.gz, dev.conllu.gz and test.conllu.gz; CLUSTERS is what certus cluster wrote for an
English text. The tagger is trained on the words alone; the parser on tags that taggers gave which had not seen the
sentence, without lemmas and morphology, so that it meets in use what it was trained on. Writes tagger, parser and the
model card with its measured accuracy. What is finished in OUTPUT is kept: a run that was broken off goes on.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

from certus.features.brown import Clusters
from certus.io.conllu import Sentence, read_conllu, write_conllu
from certus.models.jackknife import jackknife
from certus.models.parser import FILE, Parser, Settings
from certus.models.pipeline import TAGGER_FILE
from certus.models.tagger import Tagger
from certus.models.training import train_parser

COLUMNS = ("upos", "xpos")
FOLDS, FOLD_EPOCHS, TAGGER_EPOCHS = 4, 4, 8
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

Made by `python benchmarks/english_model.py DATA CLUSTERS src/certus/models/data/en`, where DATA is the treebank and
CLUSTERS what `certus cluster TEXT --clusters 300 --min-count 5` finds in the text.
"""


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def bare(sentence: Sentence) -> Sentence:
    """The sentence as a tagger leaves it: no lemmas, no morphology."""
    return replace(sentence, tokens=[replace(token, lemma="_", feats="_") for token in sentence])


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
    arguments.add_argument("--epochs", type=int, default=10)
    options = arguments.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    train, dev, test = (list(read_conllu(options.data / f"{part}.conllu.gz")) for part in ("train", "dev", "test"))
    paths = dict(Clusters.load(options.clusters).paths)

    def progress(stage: str, epoch: int, epochs: int, errors: float, score: float | None, *_: object) -> None:
        say(f"{stage} {epoch}/{epochs}" + ("" if score is None else f", dev UAS {100 * score:.2f}"))

    tagger_file = options.output / TAGGER_FILE
    if not tagger_file.exists():
        Tagger.train(
            train, dev, column=COLUMNS, clusters=paths, epochs=TAGGER_EPOCHS, progress=lambda e: say(str(e))
        ).save(tagger_file)
    tagger = Tagger.load(tagger_file)
    predicted = options.output / "jackknifed.conllu"
    if not predicted.exists():
        tagged = jackknife(
            train,
            FOLDS,
            train=lambda rest: Tagger.train(rest, column=COLUMNS, clusters=paths, epochs=FOLD_EPOCHS),
            progress=lambda done, folds: say(f"tags of fold {done}/{folds}"),
        )
        write_conllu(predicted, tagged)
    trees = [bare(sentence) for sentence in read_conllu(predicted)]
    held_out = [bare(sentence) for sentence in tagger.tag([untagged(sentence) for sentence in dev])]
    parser_file = options.output / FILE
    if not parser_file.exists():
        train_parser(
            trees,
            held_out,
            settings=Settings(order=3, epochs=options.epochs),
            clusters=paths,
            progress=progress,
            checkpoint=options.output / "checkpoint.safetensors",
            resume=True,
        ).save(parser_file)
    (options.output / "README.md").write_text(card(Parser.load(parser_file), tagger, test))
    predicted.unlink()
    print((options.output / "README.md").read_text())


if __name__ == "__main__":
    main()
