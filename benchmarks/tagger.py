"""Accuracy and speed of the trained tagger, beside the hidden Markov model, and how well plain text is tokenised.

    python benchmarks/tagger.py --data DIR [--treebanks en_ewt da_cdt] [--clusters FILE] [--save FILE]

DIR holds folders of treebanks with train, dev and test.conllu.gz. Clusters (a ``paths`` file) serve en_ewt only. Speed
is the processor time of tagging all columns of the test part, from words to sentences with tags, on one core.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from certus import HMM
from certus.features.brown import Clusters
from certus.io.conllu import Sentence, read_conllu
from certus.models.loop import Epoch
from certus.models.tagger import Tagger
from certus.models.tokenizer import tokenize

COLUMNS = ("upos", "xpos", "feats")


def accuracy(gold: Sequence[Sentence], found: Sequence[Sentence], column: str) -> float:
    """Share of words with the right tag, in percent."""
    pairs = [
        (getattr(a, column), getattr(b, column))
        for s, t in zip(gold, found, strict=True)
        for a, b in zip(s, t, strict=True)
    ]
    return 100.0 * sum(a == b for a, b in pairs) / len(pairs)


def hmm_accuracy(train: Sequence[Sentence], parts: dict[str, list[Sentence]], column: str) -> dict[str, float]:
    model = HMM.estimate([s.tagged(column) for s in train])
    right = {}
    for name, sentences in parts.items():
        pairs = [(a, b) for s in sentences for a, (_, b) in zip(model.tag(s.words), s.tagged(column), strict=True)]
        right[name] = 100.0 * sum(a == b for a, b in pairs) / len(pairs)
    return right


def spans(sentences: Iterable[Sequence[str]]) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Words and sentences as spans of the characters that are not white space."""
    words, whole = set(), set()
    at = 0
    for sentence in sentences:
        begin = at
        for word in sentence:
            size = len("".join(word.split()))
            words.add((at, at + size))
            at += size
        whole.add((begin, at))
    return words, whole


def tokenising(sentences: Iterable[Sentence]) -> tuple[float, float]:
    """F1 of words and of sentences over documents, whose texts are joined by blanks."""
    counts = [[0, 0, 0], [0, 0, 0]]
    for _, group in groupby(sentences, key=lambda s: (s.comment("sent_id") or "").rsplit("-", 1)[0]):
        document = list(group)
        gold = spans(s.words for s in document)
        found = spans(tokenize(" ".join(s.comment("text") or " ".join(s.words) for s in document)))
        for k in range(2):
            for j, number in enumerate((len(gold[k] & found[k]), len(gold[k]), len(found[k]))):
                counts[k][j] += number
    word, sentence = (200.0 * both / (gold + found) for both, gold, found in counts)
    return word, sentence


def report(epoch: Epoch) -> None:
    dev = "" if epoch.score is None else f", dev {100 * epoch.score:.2f}"
    print(f"  {epoch.stage} epoch {epoch.epoch}: loss {epoch.loss:.4f}, wrong {epoch.wrong:.0f}{dev}", file=sys.stderr)


def measure(folder: Path, clusters: Clusters | None, target: Path | None) -> None:
    train, dev, test = (list(read_conllu(folder / f"{part}.conllu.gz")) for part in ("train", "dev", "test"))
    columns = [c for c in COLUMNS if any(getattr(t, c) != "_" for s in train for t in s)]
    started = time.process_time()
    tagger = Tagger.train(train, dev, column=columns, clusters=clusters, progress=report)
    trained = time.process_time() - started
    with tempfile.TemporaryDirectory() as scratch:
        path = target or Path(scratch) / "tagger"
        tagger.save(path)
        size = path.stat().st_size
        tagger = Tagger.load(path)
    bare = [Sentence.from_words(s.words) for s in test]
    tagger.tag(bare[:1])
    started = time.process_time()
    tagger.tag(bare)
    speed = sum(map(len, test)) / (time.process_time() - started)
    print(
        f"{folder.name}: {size / 1e6:.2f} MB, trained in {trained:.0f} s, {speed:,.0f} tokens/s for {'+'.join(columns)}"
    )
    parts = {"dev": dev, "test": test}
    tagged = {name: tagger.tag(sentences) for name, sentences in parts.items()}
    for column in columns:
        hmm = {} if column == "feats" else hmm_accuracy(train, parts, column)
        for name in parts:
            beside = f"   hmm {hmm[name]:.2f}" if hmm else ""
            print(f"  {column:5} {name:4} {accuracy(parts[name], tagged[name], column):.2f}{beside}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--treebanks", nargs="+", default=["en_ewt", "da_cdt"])
    parser.add_argument("--clusters", type=Path)
    parser.add_argument("--save", type=Path, help="keep the tagger of the last treebank")
    options = parser.parse_args()
    for name in options.treebanks:
        clusters = Clusters.load(options.clusters) if options.clusters and name == "en_ewt" else None
        measure(options.data / name, clusters, options.save)
        if name == "en_ewt":
            for part in ("dev", "test"):
                word, sentence = tokenising(read_conllu(options.data / name / f"{part}.conllu.gz"))
                print(f"  tokeniser on {part}: words F1 {word:.2f}, sentences F1 {sentence:.2f}")


if __name__ == "__main__":
    main()
