"""A dependency parser trained on one treebank: accuracy, speed and what each stage of the cascade leaves.

    python benchmarks/parser.py DATA [--order 3] [--clusters FILE] [--epochs 8] [--sentences N] [--non-projective]
                                [--model FILE]

DATA is a folder with train.conllu.gz, dev.conllu.gz and test.conllu.gz. Trains on train, chooses the epoch on dev, and
prints, for dev and test with the tags of the files: UAS and LAS over all words (labels up to the first colon), words a
second of processor time on one core, from sentences to sentences, and the share of sentences whose tree is proved the
best. With --model a parser saved before is measured.
"""

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from certus.features.brown import Clusters
from certus.io.conllu import Sentence, read_conllu
from certus.models.cascade import PASS, stages
from certus.models.explain import shared_weights
from certus.models.loop import Epoch
from certus.models.parser import Parser, Settings
from certus.models.training import train_parser


@dataclass(frozen=True)
class Measured:
    """A parser on sentences with known trees; percentages, and words a second of processor time."""

    heads: float
    labelled: float
    speed: float
    certified: float
    at_once: float  # certified without branching

    def __str__(self) -> str:
        return (
            f"UAS {self.heads:.2f}  LAS {self.labelled:.2f}  {self.speed:,.0f} words/s  "
            f"certified {self.certified:.2f}% of the sentences, {self.at_once:.2f}% without branching"
        )


def measured(parser: Parser, sentences: list[Sentence]) -> Measured:
    """Labels are compared up to the first colon; projective trees are always the best ones."""
    list(parser.parse(sentences[:10]))  # compile
    start = time.process_time()
    found = list(parser.parse(sentences))
    seconds = time.process_time() - start
    words = heads = labelled = 0
    for gold, guess in zip(sentences, found, strict=True):
        for a, b in zip(gold, guess, strict=True):
            words += 1
            heads += a.head == b.head
            labelled += a.head == b.head and a.deprel.split(":")[0] == b.deprel.split(":")[0]
    proved = at_once = np.ones(1)
    if not parser.model.projective and not parser.model.first_order:
        batch = parser.encoder.encode(sentences)
        proved, at_once = parser.decode(batch).exact, parser.decode(batch, search=False).exact
    shares = (heads / words, labelled / words, words / seconds / 100, proved.mean(), at_once.mean())
    return Measured(*(100 * float(share) for share in shares))


def cascade(parser: Parser, sentences: list[Sentence]) -> None:
    """Heads left per word, and the share of right heads among them, after each stage."""
    for stage in stages(parser.cascade, parser.encoder.encode(sentences), [s.heads for s in sentences]):
        print(
            f"  {stage.name:<14} {stage.heads:6.2f} heads a word, {100 * stage.pruned:.2f}% pruned, "
            f"oracle {100 * stage.oracle:.2f}, {stage.speed:,.0f} words/s"
        )
    print(f"arc features that share a weight: {100 * shared_weights(parser, sentences[:500]):.2f}%")


def unpruned(parser: Parser, sentences: list[Sentence]) -> None:
    """The same model with and without the cascade, on sentences of up to 40 words."""
    some = [sentence for sentence in sentences if len(sentence) <= 40]
    batch = parser.encoder.encode(some)
    gold = np.concatenate([sentence.heads for sentence in some])
    every = replace(parser.cascade, longest=np.full_like(parser.cascade.longest, 2000), first=PASS, second=PASS)
    seconds = []
    for name, cascade in (("with the cascade", parser.cascade), ("without", replace(every, most=10**6))):
        one = replace(parser, cascade=cascade)
        one.decode(one.encoder.encode(some[:2]))
        start = time.process_time()
        heads = one.decode(batch).heads
        seconds.append(time.process_time() - start)
        right = int(((heads == gold) & (gold >= 0)).sum())
        words = int((gold >= 0).sum())
        print(f"  {name:<18} UAS {100 * right / words:.2f}, {words / seconds[-1]:,.0f} words/s")
    print(f"  {seconds[1] / seconds[0]:.0f} times faster")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", type=Path)
    arguments.add_argument("--order", type=int, default=3)
    arguments.add_argument("--epochs", type=int, default=8)
    arguments.add_argument("--bits", type=int, default=22)
    arguments.add_argument("--clusters", type=Path)
    arguments.add_argument("--sentences", type=int, help="train on so many sentences only")
    arguments.add_argument("--non-projective", action="store_true")
    arguments.add_argument("--model", type=Path)
    arguments.add_argument("--save", type=Path)
    arguments.add_argument("--unpruned", type=int, metavar="N", help="parse N sentences of dev without the cascade too")
    options = arguments.parse_args()
    parts = {part: list(read_conllu(options.data / f"{part}.conllu.gz")) for part in ("train", "dev", "test")}
    if options.model:
        parser = Parser.load(options.model)
    else:
        settings = Settings(
            order=options.order, epochs=options.epochs, bits=options.bits, projective=not options.non_projective
        )
        paths = dict(Clusters.load(options.clusters).paths) if options.clusters else None
        start = time.perf_counter()

        def report(epoch: Epoch) -> None:
            dev = "" if epoch.score is None else f", dev UAS {100 * epoch.score:.2f}"
            done = f"{epoch.stage} {epoch.epoch}/{epoch.epochs}{dev}"
            print(f"{time.perf_counter() - start:7.1f} s  {done}", file=sys.stderr)

        train = parts["train"][: options.sentences]
        parser = train_parser(train, parts["dev"], settings=settings, clusters=paths, progress=report)
        print(f"trained in {time.perf_counter() - start:.0f} s")
    if options.save:
        parser.save(options.save)
    print(f"order {parser.settings.order}, {'projective' if parser.settings.projective else 'non-projective'}")
    for part in ("dev", "test"):
        print(f"  {part:<5} {measured(parser, parts[part])}")
    print("cascade, on dev:")
    cascade(parser, parts["dev"])
    if options.unpruned:
        unpruned(parser, parts["dev"][: options.unpruned])


if __name__ == "__main__":
    main()
