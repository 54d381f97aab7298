"""Joint parsing and tagging of the Penn sample, a PCFG and a trigram HMM: rounds, accuracy, against exact intersection.

Rounds until the relaxation proves the joint optimum are those of LR table 4.1. The intersection (Bar-Hillel) spells out
the product of the two models, for short sentences; the optima must agree.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, Row, data_folder
from certus.evaluate.evalb import BracketScores
from certus.hypergraph import sweeps
from certus.hypergraph.automata import trigram_automaton
from certus.io.brackets import read_trees

ROUNDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 10), (11, 20), (21, 50))


def run(data: str = "", limit: int = 100, words: int = 40, short: int = 8) -> Iterator[Case | Row]:
    """``short`` is the length of sentences up to which the intersection is spelt out."""
    folder = data_folder(data, "ptb-sample")
    trees = list(read_trees(folder / "train.mrg.gz", clean=True))
    grammar = certus.Grammar.from_treebank(trees)
    tagged = [list(zip(tree.words, tree.tags, strict=True)) for tree in trees]
    hmm = certus.HMM.estimate(tagged, tags=grammar.tags)
    dev = [t for t in read_trees(folder / "dev.mrg.gz", clean=True) if len(t.words) <= words][:limit]
    sentences = [gold.words for gold in dev]
    yield from _rounds(grammar, hmm, sentences)
    alone = [certus.Constituency(grammar, s).decode().structure for s in sentences]
    first = [_on_tags(certus.Constituency(grammar, s), hmm.tagging(s).decode().structure.tolist()) for s in sentences]
    both = [_joint(grammar, hmm, s).decode().structure[0] for s in sentences]
    for name, found in (("parser alone", alone), ("tagger, then parser", first), ("joint", both)):
        s = BracketScores.of(list(zip(dev, found, strict=True)))
        yield Row(name, {"P": s.precision, "R": s.recall, "F1": s.f1, "tags": s.tag_accuracy})
    yield Case(
        "Joint.decode", lambda: [_joint(grammar, hmm, s).decode() for s in sentences], items=len(dev), numbers=_scores
    )
    some = [s for s in sentences if len(s) <= short]
    if not some:
        return
    yield Case(
        f"Joint.decode, up to {short} words",
        lambda: [_joint(grammar, hmm, s).decode() for s in some],
        {"intersection": lambda: [_intersection(grammar, hmm, s) for s in some]},
        items=len(some),
        agrees=lambda ours, _, theirs: np.testing.assert_allclose(_scores(ours), theirs, rtol=1e-9),
    )


def _joint(grammar: certus.Grammar, hmm: certus.HMM, words: list[str]) -> Any:
    return certus.Joint(certus.Constituency(grammar, words), hmm.tagging(words), on="tags")


def _scores(results: list[Any]) -> list[float]:
    return [r.score for r in results]


def _rounds(grammar: certus.Grammar, hmm: certus.HMM, sentences: list[list[str]]) -> Iterator[Row]:
    most = ROUNDS[-1][1]
    needed: Counter[int] = Counter()
    proved = 0
    for words in sentences:
        joint = _joint(grammar, hmm, words)
        result = joint.decode(max_iterations=most, exact=False)
        needed[result.iterations if result.certificate.exact else most + 1] += 1
        proved += result.certificate.exact or joint.decode().certificate.exact
    share = {f"{a}-{b}": 100 * sum(needed[k] for k in range(a, b + 1)) / len(sentences) for a, b in ROUNDS}
    yield Row("% proved in so many rounds", share)
    yield Row("% proved in all", {"with the ladder": 100 * proved / len(sentences)})


def _on_tags(problem: certus.Constituency, tags: list[int]) -> Any:
    """The best tree with the given tags; the best of all where the grammar has none with them."""
    penalty = np.full(problem.views["tags"], -np.inf)
    penalty[np.arange(len(tags)), tags] = 0.0
    try:
        return problem.solve({"tags": penalty}).structure
    except certus.Infeasible:
        return problem.solve().structure


def _intersection(grammar: certus.Grammar, hmm: certus.HMM, words: list[str]) -> float:
    """Best joint score by intersecting the parser's hypergraph with the tagger's automaton."""
    problem, tagging = certus.Constituency(grammar, words), hmm.tagging(words)
    forest, size, trigram = problem.forest(), len(problem.tags), tagging.trigram
    assert trigram is not None
    automaton = trigram_automaton(trigram[:, :, :size], stop=trigram[:, :, size], shortest=1)
    cells = forest.parts["tags"]
    weights = forest.penalised({"tags": tagging.unary})
    symbols = np.where(cells >= 0, cells % size, -1)
    graph, both, _ = certus.intersect(forest.graph, weights, automaton, symbols.tolist())
    return float(sweeps.best(graph, both)[0])
