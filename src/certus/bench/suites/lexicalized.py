"""A lexicalised parser joined with a dependency parser and a tagger on the Penn sample (LR 4.6).

Trains a lexicalised grammar, a tagger and a third-order dependency parser on the training part (trees are turned into
dependencies by the head rules, tags are jackknifed), and parses test sentences: rounds until the joint optimum is
proved as in LR table 4.1, accuracies as in tables 4.2 and 4.3, seconds. Models are kept in ``work``, if given. With
``plots``, a folder, the figures of LR 4.6 and A.3 are drawn, which needs matplotlib.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Row, data_folder
from certus.constituency.lexicalize import LexicalizedTree, lexicalized, to_sentence
from certus.evaluate.evalb import PUNCTUATION, BracketScores
from certus.io.brackets import read_trees
from certus.models.jackknife import jackknife
from certus.models.parser import Parser, Settings
from certus.models.tagger import Tagger
from certus.models.training import train_parser
from certus.relax import steps
from certus.report import convergence
from certus.text.sentence import Sentence

ROUNDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 10), (11, 20), (21, 50))
LIMIT = ROUNDS[-1][1]
LEAST = 2  # training trees that a word must be in to count as known


def run(
    data: str = "",
    sentences: int = 40,
    words: int = 40,
    arcs: float = 1.0,
    tags: float = 0.02,
    work: str = "",
    plots: str = "",
) -> Iterator[Row]:
    """``arcs`` and ``tags`` are the weights of the dependency parser and of the tagger."""
    folder = data_folder(data, "ptb-sample")
    with TemporaryDirectory() as scratch:
        models = Models(folder, Path(work or scratch))
    gold = [t for t in read_trees(folder / "test.mrg.gz", clean=True) if len(t.words) <= words][:sentences]
    weight = {"arcs": arcs, "tags": tags}
    models.joint("both", ["He", "said", "so", "to", "the", "man", "."], weight).decode()  # compiles
    alone = _timed([models.trees(t.words) for t in gold], lambda p: p.decode())
    yield Row("lexicalised alone", _accuracies(gold, [r.structure for r, _ in alone]) | _seconds(alone))
    yield Row("first-best dependencies", _accuracies(gold, [models.held_to_arcs(t.words) for t in gold]))
    yield Row("first-best tags", _accuracies(gold, [models.held_to_tags(t.words) for t in gold]))
    for kind in ("arcs", "tags", "both"):
        found = _timed([models.joint(kind, t.words, weight) for t in gold], lambda p: p.decode())
        trees = [_tree(r.structure) for r, _ in found]
        yield Row(f"joint with {kind}", _accuracies(gold, trees) | _seconds(found))
        yield _rounds(kind, [r for r, _ in found])
    if plots:
        _draw(Path(plots), gold, lambda t: models.joint("arcs", t.words, weight))


class Models:
    """The grammar, the tagger and the dependency parser; trained, or read from a folder."""

    def __init__(self, data: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        grammar, tagger, parser = (folder / name for name in ("grammar.json", "tagger.model", "parser.model"))
        if not parser.exists():
            trees = list(read_trees(data / "train.mrg.gz", clean=True))
            certus.LexicalizedGrammar.from_treebank(trees, least=LEAST).save(grammar)
            train = [to_sentence(lexicalized(tree)) for tree in trees]
            dev = [to_sentence(lexicalized(tree)) for tree in read_trees(data / "dev.mrg.gz", clean=True)]
            trained = Tagger.train(train, dev, column=["xpos"], epochs=8)
            trained.save(tagger)
            tagged = jackknife(train, 5, train=lambda rest: Tagger.train(rest, column=["xpos"], epochs=5))
            held = [_coarse(sentence) for sentence in trained.tag(dev)]
            train_parser([_coarse(s) for s in tagged], held, settings=Settings(order=3, epochs=8)).save(parser)
        self.grammar = certus.LexicalizedGrammar.load(grammar)
        self.tagger, self.parser = Tagger.load(tagger), Parser.load(parser)

    def trees(self, words: list[str]) -> certus.LexicalizedConstituency:
        return certus.LexicalizedConstituency(self.grammar, words)

    def dependencies(self, words: list[str]) -> Any:
        (tagged,) = self.tagger.tag([Sentence.from_words(words)])
        return self.parser.problem(_coarse(tagged))

    def tags(self, words: list[str]) -> certus.Tagging:
        return self.tagger.problem(words, "xpos")

    def joint(self, kind: str, words: list[str], weight: dict[str, float]) -> Any:
        trees = self.trees(words)
        if kind == "tags":
            return certus.Joint(trees, self.tags(words), on="tags", weight=weight["tags"])
        arcs = self.dependencies(words)
        first: Any = trees.allowing(arcs.arc > -np.inf)
        if kind == "both":
            first = certus.Joint(first, self.tags(words), on="tags", weight=weight["tags"])
        return certus.Joint(first, arcs, on="arcs", weight=weight["arcs"])

    def held_to_arcs(self, words: list[str]) -> LexicalizedTree:
        arcs = self.dependencies(words)
        return self._held_to(words, "arcs", arcs.indicator(arcs.decode().structure, "arcs"))

    def held_to_tags(self, words: list[str]) -> LexicalizedTree:
        tags = self.tags(words)
        return self._held_to(words, "tags", tags.indicator(tags.decode().structure, "tags"))

    def _held_to(self, words: list[str], view: str, used: Any) -> LexicalizedTree:
        """The best tree that uses these parts of a view and no others; the best of all if there is none."""
        trees = self.trees(words)
        try:
            return trees.solve({view: np.where(used > 0, 0.0, -np.inf)}).structure
        except certus.Infeasible:
            return trees.decode().structure


def _coarse(sentence: Sentence) -> Sentence:
    """The tags of column XPOS in UPOS too, where the parser looks for coarse ones."""
    return replace(sentence, tokens=[replace(token, upos=token.xpos) for token in sentence])


def _tree(structure: Any) -> LexicalizedTree:
    """The lexicalised tree of a joint structure."""
    while not isinstance(structure, LexicalizedTree):
        structure = structure[0]
    return structure


def _timed(problems: list[Any], ask: Callable[[Any], Any]) -> list[tuple[Any, float]]:
    found = []
    for problem in problems:
        start = time.process_time()
        found.append((ask(problem), time.process_time() - start))
    return found


def _seconds(found: list[tuple[Any, float]]) -> dict[str, float]:
    seconds = [spent for _, spent in found]
    return {"median s": float(np.median(seconds)), "most s": max(seconds)}


def _accuracies(gold: list[certus.Tree], found: list[LexicalizedTree]) -> dict[str, float]:
    """Percentages; heads are counted but on punctuation, tags on all words."""
    s = BracketScores.of([(g, t.tree) for g, t in zip(gold, found, strict=True)])
    heads, tags = [0, 0], [0, 0]
    for g, t in zip(gold, found, strict=True):
        right = lexicalized(g).heads
        for k, (a, b) in enumerate(zip(g.tags, t.tree.tags, strict=True), start=1):
            tags[a == b] += 1
            if a not in PUNCTUATION:
                heads[right[k] == t.heads[k]] += 1
    shares = {"heads": 100.0 * heads[1] / sum(heads), "tags": 100.0 * tags[1] / sum(tags)}
    return {"P": s.precision, "R": s.recall, "F1": s.f1, **shares}


def _rounds(kind: str, results: list[Any]) -> Row:
    """In how many rounds the relaxation alone proved the optimum, and what is proved in all."""
    rounds = [r.info.get("rehearsed", r.iterations) if r.certificate.kind == "dual" else None for r in results]
    cells = {f"{a}-{b}": 100 * sum(k is not None and a <= k <= b for k in rounds) / len(rounds) for a, b in ROUNDS}
    exact = 100 * sum(r.certificate.exact for r in results) / len(results)
    return Row(f"% proved in rounds, {kind}", cells | {"in all": exact})


def _draw(folder: Path, gold: list[certus.Tree], joint: Callable[[certus.Tree], Any]) -> None:
    """F1 and share proved under a limit on the rounds (LR 4-4), the longest run (A-1, A-2), step rules (A-3)."""
    folder.mkdir(parents=True, exist_ok=True)
    problems = [joint(tree) for tree in gold]
    limits = [1, 2, 3, 5, 7, 10, 15, 20, 30, LIMIT]
    f1, proved = [], []
    for limit in limits:
        results = [p.decode(max_iterations=limit, exact=False) for p in problems]
        f1.append(BracketScores.of([(g, _tree(r.structure).tree) for g, r in zip(gold, results, strict=True)]).f1)
        proved.append(100 * float(np.mean([r.certificate.exact for r in results])))
    curves = {"F1": f1, "% proved": proved}
    convergence.plot_limits(folder / "LR-4-4.svg", limits, curves, title="a limit on the rounds")
    longest = max(range(len(results)), key=lambda k: results[k].iterations)
    convergence.plot_values(folder / "LR-A-1.svg", results[longest].trace, title="the longest run")
    convergence.plot_best(folder / "LR-A-2.svg", results[longest].trace)
    rules = (steps.constant(0.05), steps.constant(0.5), steps.halving(0.5), steps.polyak(), steps.deflected())
    traces = {
        repr(rule): problems[longest].decode(max_iterations=LIMIT, exact=False, step=rule).trace for rule in rules
    }
    convergence.plot_steps(folder / "LR-A-3.svg", traces, title="step rules")
