"""Joint parsing and tagging of the Penn sample: a PCFG and a trigram HMM that must agree on every tag (LR 4.2.1).

Grammar and tagger are estimated from the training part. For development sentences of up to 40 words this prints

- in how many rounds the relaxation proved the joint optimum, as in LR table 4.1, and what was left to the ladder;
- bracket scores and tagging accuracy of the parser alone, of the tagger first and the parser on its tags, and of both
  jointly;
- for short sentences, the time of the exact Bar-Hillel intersection against joint decoding, whose optima must agree.

    python benchmarks/penn_joint.py DATA [--limit N] [--exact-words 10] [--weight 1.0]

DATA is the folder with train.mrg.gz and dev.mrg.gz.
"""

import argparse
import statistics
import time
from collections import Counter
from pathlib import Path

import numpy as np

import certus
from certus.evaluate.evalb import BracketScores
from certus.hypergraph import sweeps
from certus.hypergraph.automata import trigram_automaton
from certus.io.brackets import read_trees

ROUNDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 10), (11, 20), (21, 50))
MOST_ROUNDS = ROUNDS[-1][1]


def models(trees: list[certus.Tree]) -> tuple[certus.Grammar, certus.HMM]:
    """The grammar and the tagger of a treebank, over the same tags."""
    grammar = certus.Grammar.from_treebank(trees)
    tagged = [list(zip(tree.words, tree.tags, strict=True)) for tree in trees]
    return grammar, certus.HMM.estimate(tagged, tags=grammar.tags)


def on_tags(problem: certus.Constituency, tags: list[int]) -> certus.Tree:
    """The best tree with the given tags; the best of all where the grammar has none with them."""
    penalty = np.full(problem.views["tags"], -np.inf)
    penalty[np.arange(problem.n), tags] = 0.0
    try:
        return problem.solve({"tags": penalty}).structure
    except certus.Infeasible:
        return problem.solve().structure


def by_intersection(problem: certus.Constituency, tagging: certus.Tagging) -> tuple[float, int]:
    """Best joint score by intersecting the parser's hypergraph with the tagger's automaton, and the edges it took."""
    forest = problem.forest()
    size = len(problem.tags)
    trigram = tagging.trigram
    assert trigram is not None
    automaton = trigram_automaton(trigram[:, :, :size], stop=trigram[:, :, size], shortest=1)
    cells = forest.parts["tags"]
    weights = forest.penalised({"tags": tagging.unary})
    symbols = np.where(cells >= 0, cells % size, -1)
    graph, both, _ = certus.intersect(forest.graph, weights, automaton, symbols.tolist())
    return sweeps.best(graph, both)[0], graph.n_edges


def accuracy(pairs: list[tuple[certus.Tree, list[str]]]) -> float:
    """Share of all words with the right tag, in percent."""
    right = sum(a == b for gold, tags in pairs for a, b in zip(gold.tags, tags, strict=True))
    return 100.0 * right / sum(len(tags) for _, tags in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train.mrg.gz and dev.mrg.gz")
    parser.add_argument("--limit", type=int, default=None, help="only the first N development sentences")
    parser.add_argument("--words", type=int, default=40, help="longest sentence (40)")
    parser.add_argument("--exact-words", type=int, default=10, help="longest sentence for the exact intersection (10)")
    parser.add_argument("--weight", type=float, default=1.0, help="weight of the tagger in the joint score (1.0)")
    arguments = parser.parse_args()

    grammar, hmm = models(list(read_trees(arguments.data / "train.mrg.gz", clean=True)))
    dev = [t for t in read_trees(arguments.data / "dev.mrg.gz", clean=True) if len(t.words) <= arguments.words]
    dev = dev[: arguments.limit]
    print(f"{grammar}\n{hmm}\n{len(dev)} sentences of up to {arguments.words} words")

    rounds: Counter[int] = Counter()
    trees: dict[str, list[tuple[certus.Tree, certus.Tree]]] = {
        "parser alone": [],
        "tagger, then parser": [],
        "joint": [],
    }
    tags: dict[str, list[tuple[certus.Tree, list[str]]]] = {name: [] for name in trees}
    seconds: dict[str, float] = dict.fromkeys((*trees, "ladder"), 0.0)
    proved = nodes = 0
    warm(grammar, hmm)
    for gold in dev:
        words = gold.words
        problem, tagging = certus.Constituency(grammar, words), hmm.tagging(words)
        start = time.perf_counter()
        alone = problem.solve().structure
        seconds["parser alone"] += time.perf_counter() - start
        start = time.perf_counter()
        first = tagging.solve().structure.tolist()
        then = on_tags(problem, first)
        seconds["tagger, then parser"] += time.perf_counter() - start
        joint = certus.Joint(problem, tagging, on="tags", weight=arguments.weight)
        start = time.perf_counter()
        result = joint.decode(max_iterations=MOST_ROUNDS, exact=False)
        seconds["joint"] += time.perf_counter() - start
        rounds[result.iterations if result.certificate.exact else MOST_ROUNDS + 1] += 1
        if not result.certificate.exact:
            start = time.perf_counter()
            result = joint.decode()
            seconds["ladder"] += time.perf_counter() - start
            nodes = max(nodes, int(result.info.get("nodes", 1)))
        proved += result.certificate.exact
        for name, tree in zip(trees, (alone, then, result.structure[0]), strict=True):
            trees[name].append((gold, tree))
            tags[name].append((gold, tree.tags))
    tagged = [(gold, hmm.tag(gold.words)) for gold in dev]

    print("\nrounds until proved, share of sentences (LR table 4.1)")
    for low, high in ROUNDS:
        share = 100.0 * sum(rounds[k] for k in range(low, high + 1)) / len(dev)
        print(f"  {low if low == high else f'{low}-{high}':>7}  {share:5.1f}%")
    print(f"      not  {100.0 * rounds[MOST_ROUNDS + 1] / len(dev):5.1f}%")
    print(f"proved by relaxation alone: {100 * (1 - rounds[MOST_ROUNDS + 1] / len(dev)):.1f}%")
    climbed = f"at most {nodes} nodes, {seconds['ladder']:.1f} s"
    print(f"proved after the ladder:    {100 * proved / len(dev):.1f}%  ({climbed})")

    print(f"\n{'':22}{'P':>7}{'R':>7}{'F1':>7}{'exact':>7}{'tags':>7}{'s/sentence':>12}")
    for name in trees:
        s = BracketScores.of(trees[name])
        row = (s.precision, s.recall, s.f1, s.exact, accuracy(tags[name]))
        print(f"{name:22}{''.join(f'{x:7.2f}' for x in row)}{seconds[name] / len(dev):12.4f}")
    print(f"{'tagger alone':22}{'':28}{accuracy(tagged):7.2f}")

    short = [gold.words for gold in dev if len(gold.words) <= arguments.exact_words]
    against_intersection(grammar, hmm, short)


def warm(grammar: certus.Grammar, hmm: certus.HMM) -> None:
    """Compile or load the kernels before any clock runs."""
    words = ["He", "said", "so", "."]
    problem, tagging = certus.Constituency(grammar, words), hmm.tagging(words)
    certus.Joint(problem, tagging, on="tags").decode()
    problem.max_marginals()
    by_intersection(problem, tagging)


def against_intersection(grammar: certus.Grammar, hmm: certus.HMM, sentences: list[list[str]]) -> None:
    """Times and optima of joint decoding and of the exact intersection."""
    print(f"\nexact intersection against joint decoding, {len(sentences)} sentences")
    print(f"{'words':>5}{'edges':>12}{'intersection s':>16}{'joint s':>10}{'ratio':>8}  same optimum")
    ratios = []
    times = np.zeros(2)
    for words in sorted(sentences, key=len):
        tagging = hmm.tagging(words)
        start = time.perf_counter()
        value, edges = by_intersection(certus.Constituency(grammar, words), tagging)
        middle = time.perf_counter()
        result = certus.Joint(certus.Constituency(grammar, words), tagging, on="tags").decode()
        end = time.perf_counter()
        times += middle - start, end - middle
        ratios.append((middle - start) / (end - middle))
        same = abs(value - result.score) <= 1e-9 * abs(value) and result.certificate.exact
        print(
            f"{len(words):5}{edges:12}{middle - start:16.3f}{end - middle:10.4f}{ratios[-1]:8.0f}  {same}", flush=True
        )
        if not same:
            raise SystemExit(f"the optima differ: {value} by intersection, {result.score} jointly")
    if ratios:
        print(f"ratio of times: {times[0] / times[1]:.0f} in all, median {statistics.median(ratios):.0f}")


if __name__ == "__main__":
    main()
