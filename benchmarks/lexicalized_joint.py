"""A lexicalised parser joined with a dependency parser and with a tagger, on the Penn sample (LR 4.6).

Trains a lexicalised grammar, a tagger and a third-order dependency parser on the training part (trees are turned into
dependencies by the head rules, tags are jackknifed), chooses the weights of the joint models on the development part,
and prints for all test sentences of up to 40 words

- in how many rounds the relaxation proved the joint optimum, as in LR table 4.1, and what the ladder added;
- precision, recall, F1, dependency and tagging accuracy of each parser alone, of the lexicalised parser held to the
  first-best dependencies or tags, and of the joint models, as in LR tables 4.2 and 4.3;
- seconds a sentence, of each parser alone and jointly, and the largest memory.

    python benchmarks/lexicalized_joint.py DATA --work FOLDER [--plots FOLDER] [--limit N]

DATA is the folder with train.mrg.gz, dev.mrg.gz and test.mrg.gz. Models, weights and the results of each sentence are
kept in --work, and a run that was broken off goes on from there. With --plots (which needs matplotlib) the figures
LR 4-4, 4-5 and A-1 to A-5 are drawn from the same runs.
"""

import argparse
import json
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.constituency.evalb import PUNCTUATION, evaluate
from certus.constituency.lexicalize import LexicalizedTree, lexicalized, to_sentence
from certus.io.brackets import parse_tree, read_trees
from certus.io.conllu import Sentence
from certus.models.jackknife import jackknife
from certus.models.parser import Parser, Settings
from certus.models.tagger import Tagger
from certus.models.training import train_parser
from certus.relax import steps
from certus.relax.descent import Descent, descend
from certus.relax.lagrangian import Lagrangian, Subproblems
from certus.relax.run import Run
from certus.relax.system import Relaxation
from certus.result import Trace

ROUNDS = ((1, 1), (2, 2), (3, 3), (4, 4), (5, 10), (11, 20), (21, 50))
LIMIT = ROUNDS[-1][1]
WEIGHTS = {"arcs": (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), "tags": (0.005, 0.01, 0.02, 0.03, 0.1)}
LEAST = 2


# -- models ------------------------------------------------------------------------------------------------------------


def with_tags(sentence: Sentence) -> Sentence:
    """The tags of column XPOS in UPOS too, where the parser looks for coarse ones."""
    return replace(sentence, tokens=[replace(token, upos=token.xpos) for token in sentence])


class Models:
    """The grammar, the tagger and the dependency parser; trained once, then read from a folder."""

    def __init__(self, data: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        grammar, tagger, parser = (
            folder / name for name in ("grammar.json", "tagger.safetensors", "parser.safetensors")
        )
        if not parser.exists():
            trees = list(read_trees(data / "train.mrg.gz", clean=True))
            certus.LexicalizedGrammar.from_treebank(trees, least=LEAST).save(grammar)
            train = [to_sentence(lexicalized(tree)) for tree in trees]
            dev = [to_sentence(lexicalized(tree)) for tree in read_trees(data / "dev.mrg.gz", clean=True)]
            trained = Tagger.train(train, dev, column=["xpos"], epochs=8)
            trained.save(tagger)
            tagged = jackknife(train, 5, train=lambda rest: Tagger.train(rest, column=["xpos"], epochs=5))
            dependencies = train_parser(
                [with_tags(sentence) for sentence in tagged],
                [with_tags(sentence) for sentence in trained.tag(dev)],
                settings=Settings(order=3, epochs=8),
            )
            dependencies.save(parser)
        self.grammar = certus.LexicalizedGrammar.load(grammar)
        self.tagger = Tagger.load(tagger)
        self.parser = Parser.load(parser)

    def trees(self, words: list[str]) -> certus.LexicalizedConstituency:
        """The problem of the lexicalised parser."""
        return certus.LexicalizedConstituency(self.grammar, words)

    def dependencies(self, words: list[str]) -> certus.Dependency:
        """The problem of the dependency parser, on the tagger's tags."""
        (tagged,) = self.tagger.tag([Sentence.from_words(words)])
        return self.parser.problem(with_tags(tagged))

    def tags(self, words: list[str]) -> certus.Tagging:
        """The problem of the tagger."""
        return self.tagger.problem(words, "xpos")


# -- one sentence ------------------------------------------------------------------------------------------------------


def lagrangian(relaxation: Relaxation) -> Lagrangian:
    """The dual function of a relaxation."""
    subproblems = Subproblems(relaxation)
    return Lagrangian(subproblems, subproblems.initial)


def only(problem: certus.Problem[Any], view: str, used: np.ndarray) -> LexicalizedTree | None:
    """The best tree that uses the given parts of a view and no others; None if there is none."""
    try:
        return problem.solve({view: np.where(used > 0, 0.0, -np.inf)}).structure
    except certus.Infeasible:
        return None


def described(tree: LexicalizedTree) -> dict[str, Any]:
    return {"tree": str(tree.tree), "heads": list(tree.heads)}


def joined(joint: certus.Joint, started: float) -> dict[str, Any]:
    """Decode a joint problem whose making began at ``started``; then go through its rounds again for the figures."""
    result = joint.decode()
    seconds = time.process_time() - started
    c, first = result.certificate, result.structure[0]
    out = described(first if isinstance(first, LexicalizedTree) else first[0])
    out |= {"seconds": seconds, "kind": c.kind, "exact": c.exact, "nodes": result.info["nodes"], "gap": c.gap}
    if c.kind == "dual" and result.info.get("rehearsed", 0) < LIMIT:  # else the rounds will show
        out["proved"] = result.info.get("rehearsed", result.iterations) if c.exact else None
    return recorded(joint, known="proved" in out) | out


def recorded(joint: certus.Joint, *, known: bool) -> dict[str, Any]:
    """What the relaxation does in up to 50 rounds, and in how many of them it proves the optimum (None: not)."""
    whole = joint.relaxation()
    apart: list[float] = []  # for each round, the share of words the models disagree on
    best: list[LexicalizedTree | None] = []  # and the best tree so far

    def record(at: Descent) -> None:
        apart.append(float((at.residual > 0).sum()) / (len(oracle.leaves[0].heads) - 1))
        best.append(None if run.structure is None else run.structure[0])

    run: Run[Any] = Run(scale=whole.scale)
    oracle = lagrangian(whole.easier() or whole)
    origin = np.zeros(whole.n_rows)
    descent = descend(run, oracle, origin, steps.deflected(), max_iterations=LIMIT, search=record)
    rounds, trace, proved = len(run.log), run.log.trace(), descent.closed
    if proved and not known and whole.easier() is not None:  # the bound must hold over the whole subproblems too
        proved = descend(run, lagrangian(whole), descent.best_u, steps.deflected(), max_iterations=1).closed
    trees = [(k, t) for k, t in enumerate(best, 1) if t is not None]
    changes = [
        (k, described(t)) for (k, t), (_, before) in zip(trees, [(0, None), *trees], strict=False) if t is not before
    ]
    return {
        "proved": rounds if proved else None,
        "apart": apart,
        "dual": trace.dual.tolist(),
        "primal": [p if np.isfinite(p) else None for p in trace.primal.tolist()],
        "best": changes,
    }


def sentence(models: Models, words: list[str], weight: dict[str, float]) -> dict[str, Any]:
    """Everything about one sentence: each model alone, the first-best baselines, and the joint models."""
    out: dict[str, Any] = {"words": len(words)}
    clock = time.process_time
    start = clock()
    lexical = models.trees(words)
    made = clock() - start
    alone = lexical.decode().structure
    out["alone"] = described(alone) | {"seconds": clock() - start}
    start = clock()
    arcs = models.dependencies(words)
    heads = arcs.decode().structure
    out["dependencies"] = {"heads": heads.tolist(), "seconds": clock() - start}
    start = clock()
    tagging = models.tags(words)
    best_tags = tagging.decode().structure
    out["tagger"] = {"tags": tagging.names(best_tags), "seconds": clock() - start}

    for name, view, problem, best in (("first arcs", "arcs", arcs, heads), ("first tags", "tags", tagging, best_tags)):
        found = only(lexical, view, problem.indicator(best, view))
        out[name] = described(found or alone) | {"possible": found is not None}

    start = clock() - made - out["dependencies"]["seconds"]
    narrower = lexical.allowing(arcs.arc > -np.inf)
    out["arcs"] = joined(certus.Joint(narrower, arcs, on="arcs", weight=weight["arcs"]), start)
    start = clock() - made - out["tagger"]["seconds"]
    out["tags"] = joined(certus.Joint(lexical, tagging, on="tags", weight=weight["tags"]), start)
    two = certus.Joint(narrower, tagging, on="tags", weight=weight["tags"])
    out["both"] = joined(certus.Joint(two, arcs, on="arcs", weight=weight["arcs"]), clock())
    out["both"]["seconds"] += out["arcs"]["seconds"]  # the chart, its outside and the forest were made there
    return out


# -- the development part ----------------------------------------------------------------------------------------------


def chosen_weights(models: Models, data: Path, folder: Path, longest: int) -> dict[str, float]:
    """The weights that do best on development sentences: by F1 for arcs; for tags by tagging accuracy, then F1."""
    path = folder / "weights.json"
    if path.exists():
        return dict(json.loads(path.read_text()))
    dev = [t for t in read_trees(data / "dev.mrg.gz", clean=True) if len(t.leaves()) <= longest]
    found: dict[tuple[str, float], list[tuple[certus.Tree, LexicalizedTree]]] = {}
    for gold in dev:
        words = gold.leaves()
        lexical, arcs, tags = models.trees(words), models.dependencies(words), models.tags(words)
        sides: dict[str, tuple[Any, Any]] = {
            "arcs": (lexical.allowing(arcs.arc > -np.inf), arcs),
            "tags": (lexical, tags),
        }
        for on, (first, second) in sides.items():
            trees = first.easier() or first
            for weight in WEIGHTS[on]:
                joint = certus.Joint(trees, second, on=on, weight=weight)
                found.setdefault((on, weight), []).append(
                    (gold, joint.decode(max_iterations=LIMIT, exact=False).structure[0])
                )
    best = {}
    print(f"\nweights, on {len(dev)} development sentences of up to {longest} words")
    for on, weights in WEIGHTS.items():
        scores = {}
        for weight in weights:
            pairs = found[on, weight]
            row = accuracies([(gold, {"tree": str(t.tree), "heads": t.heads}) for gold, t in pairs])
            scores[weight] = (row["tags"], row["F1"]) if on == "tags" else (row["F1"], row["heads"])
            print(f"  {on} {weight:5g}: F1 {row['F1']:.2f}, dependencies {row['heads']:.2f}, tags {row['tags']:.2f}")
        best[on] = max(scores, key=lambda w: scores[w])
    path.write_text(json.dumps(best))
    return best


# -- tables ------------------------------------------------------------------------------------------------------------


def accuracies(pairs: list[tuple[certus.Tree, dict[str, Any]]]) -> dict[str, float]:
    """Percentages over (gold tree, found tree and heads); heads are counted but on punctuation, tags on all words."""
    found = [(gold, parse_tree(answer["tree"])) for gold, answer in pairs]
    s = evaluate(found)
    heads = [0, 0]
    tags = [0, 0]
    for (gold, tree), (_, answer) in zip(found, pairs, strict=True):
        right = lexicalized(gold).heads
        for k, (a, b) in enumerate(zip(gold.tags(), tree.tags(), strict=True), start=1):
            tags[a == b] += 1
            if a not in PUNCTUATION:
                heads[right[k] == answer["heads"][k]] += 1
    return {
        "P": s.precision,
        "R": s.recall,
        "F1": s.f1,
        "exact": s.exact,
        "heads": 100.0 * heads[1] / sum(heads),
        "tags": 100.0 * tags[1] / sum(tags),
    }


def head_accuracy(gold: list[certus.Tree], results: list[dict[str, Any]]) -> float:
    """Of the dependency parser alone."""
    right = words = 0
    for tree, result in zip(gold, results, strict=True):
        for k, (tag, head) in enumerate(zip(tree.tags(), lexicalized(tree).heads[1:], strict=True), start=1):
            if tag not in PUNCTUATION:
                right, words = right + (head == result["dependencies"]["heads"][k]), words + 1
    return 100.0 * right / words


JOINT = {"arcs": "constituency + dependency", "tags": "constituency + tags", "both": "all three"}


def print_tables(gold: list[certus.Tree], results: list[dict[str, Any]]) -> None:
    n = len(results)
    print(f"\nrounds until the optimum is proved, % of {n} sentences (LR table 4.1)")
    heads = [f"{a}-{b}" if a < b else f"{a}" for a, b in ROUNDS] + ["none", "ladder"]
    print(f"{'':28}{''.join(f'{h:>8}' for h in heads)}")
    for name, title in JOINT.items():
        rounds = [r[name]["proved"] for r in results]
        shares = [sum(k is not None and a <= k <= b for k in rounds) for a, b in ROUNDS]
        shares += [sum(k is None for k in rounds), sum(r[name]["exact"] for r in results)]
        print(f"{title:28}{''.join(f'{100 * x / n:8.1f}' for x in shares)}")

    print(f"\n{'(LR tables 4.2 and 4.3)':36}{'P':>8}{'R':>8}{'F1':>8}{'exact':>8}{'Dep':>8}{'Tags':>8}")
    rows = {
        "constituency alone": "alone",
        "held to the first-best dependencies": "first arcs",
        "joint with dependencies": "arcs",
        "held to the first-best tags": "first tags",
        "joint with tags": "tags",
        "joint with both": "both",
    }
    for title, name in rows.items():
        row = accuracies([(g, r[name]) for g, r in zip(gold, results, strict=True)])
        print(f"{title:36}{''.join(f'{value:8.2f}' for value in row.values())}")
    print(f"{'dependency parser alone':36}{'':32}{head_accuracy(gold, results):8.2f}")
    tags = [
        a == b for g, r in zip(gold, results, strict=True) for a, b in zip(g.tags(), r["tagger"]["tags"], strict=True)
    ]
    print(f"{'tagger alone':36}{'':40}{100.0 * sum(tags) / len(tags):8.2f}")
    for name in ("first arcs", "first tags"):
        print(
            f"  {name}: {sum(not r[name]['possible'] for r in results)} sentences have no such tree, and got the best"
        )

    print("\nseconds of one processor a sentence")
    print(f"{'':28}{'median':>9}{'mean':>9}{'largest':>9}{'median of joint / slower alone':>34}")
    for name in ("alone", "dependencies", "tagger", *JOINT):
        seconds = [r[name]["seconds"] for r in results]
        line = f"{JOINT.get(name, name):28}{statistics.median(seconds):9.3f}{statistics.mean(seconds):9.3f}"
        line += f"{max(seconds):9.3f}"
        if name in JOINT:
            alone = [max(r["alone"]["seconds"], r["dependencies"]["seconds"]) for r in results]
            line += f"{statistics.median(s / a for s, a in zip(seconds, alone, strict=True)):34.2f}"
        print(line)
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


# -- figures -----------------------------------------------------------------------------------------------------------


def best_at(result: dict[str, Any], name: str, limit: int) -> dict[str, Any]:
    """The best tree after so many rounds; that of the lexicalised parser alone before the first."""
    found = [tree for k, tree in result[name]["best"] if k <= limit]
    return dict(found[-1] if found else result["alone"])


def draw(
    folder: Path, gold: list[certus.Tree], results: list[dict[str, Any]], joint: Callable[[int], certus.Joint]
) -> None:
    from certus.report import convergence

    folder.mkdir(parents=True, exist_ok=True)
    limits = list(range(1, LIMIT + 1))
    for name, figure in (("arcs", "LR-4-4"), ("tags", "LR-A-5-tags")):
        f1, proved, same = [], [], []
        for limit in limits:
            trees = [best_at(r, name, limit) for r in results]
            f1.append(evaluate((g, parse_tree(t["tree"])) for g, t in zip(gold, trees, strict=True)).f1)
            proved.append(
                100 * statistics.mean(r[name]["proved"] is not None and r[name]["proved"] <= limit for r in results)
            )
            same.append(
                100 * statistics.mean(t["tree"] == r[name]["tree"] for t, r in zip(trees, results, strict=True))
            )
        curves = {"F1": f1, "% proved": proved, "% as at the end": same}
        convergence.plot_limits(folder / f"{figure}.svg", limits, curves, title=f"{JOINT[name]}: a limit on the rounds")
        if name == "arcs":
            convergence.plot_limits(folder / "LR-A-5.svg", limits, curves, title=f"{JOINT[name]}: early stopping")
    apart = [100 * statistics.mean([*r["arcs"]["apart"], *[0.0] * LIMIT][k - 1] for r in results) for k in limits]
    title = "words whose head differs between the two parsers"
    convergence.plot_limits(folder / "LR-4-5.svg", limits, {"% apart": apart}, title=title)

    def trace(result: dict[str, Any]) -> Trace:
        dual = np.array(result["arcs"]["dual"])
        primal = np.array([-np.inf if p is None else p for p in result["arcs"]["primal"]])
        return Trace(dual, primal, np.zeros(len(dual)), np.zeros(len(dual), dtype=np.int64))

    order = sorted(range(len(results)), key=lambda k: len(results[k]["arcs"]["dual"]))
    done = [k for k in order if results[k]["arcs"]["proved"] is not None][-1]
    hard = next((k for k in order if results[k]["arcs"]["proved"] is None), done)
    convergence.plot_values(folder / "LR-A-1.svg", trace(results[done]), title="a run that proves its optimum")
    convergence.plot_best(folder / "LR-A-2.svg", trace(results[done]))
    convergence.plot_values(folder / "LR-A-4.svg", trace(results[hard]), title="the hardest sentence")
    traces = {}
    whole = joint(done).relaxation()
    for rule in (
        steps.constant(0.05),
        steps.constant(0.5),
        steps.constant(2.0),
        steps.halving(0.5),
        steps.polyak(),
        steps.deflected(),
    ):
        run = Run[Any](scale=whole.scale)
        descend(run, lagrangian(whole.easier() or whole), np.zeros(whole.n_rows), rule, max_iterations=LIMIT)
        traces[repr(rule)] = run.log.trace()
    convergence.plot_steps(folder / "LR-A-3.svg", traces, title="step rules")
    print(f"figures: {folder}")


# -- the whole ---------------------------------------------------------------------------------------------------------


def finished(path: Path) -> Iterator[dict[str, Any]]:
    """Results of sentences that an earlier run has done; each says its number."""
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train.mrg.gz, dev.mrg.gz and test.mrg.gz")
    parser.add_argument("--work", type=Path, required=True, help="folder for models and results")
    parser.add_argument("--plots", type=Path, help="folder for the figures")
    parser.add_argument("--part", default="test", help="the part to parse (test)")
    parser.add_argument("--words", type=int, default=40, help="longest sentence (40)")
    parser.add_argument("--dev-words", type=int, default=25, help="longest sentence to choose weights on (25)")
    parser.add_argument("--limit", type=int, default=None, help="only the first N sentences")
    arguments = parser.parse_args()

    models = Models(arguments.data, arguments.work)
    weight = chosen_weights(models, arguments.data, arguments.work, arguments.dev_words)
    print(f"{models.grammar}\nweights: {weight}")
    gold = list(read_trees(arguments.data / f"{arguments.part}.mrg.gz", clean=True))
    gold = [t for t in gold if len(t.leaves()) <= arguments.words][: arguments.limit]
    store = arguments.work / f"{arguments.part}.jsonl"
    done = {result["number"]: result for result in finished(store)}
    sentence(models, ["He", "said", "so", "to", "the", "man", "."], weight)  # kernels are loaded before any clock runs
    with store.open("a") as stream:
        for k in sorted(range(len(gold)), key=lambda k: len(gold[k].leaves())):
            if k not in done:
                done[k] = {"number": k} | sentence(models, gold[k].leaves(), weight)
                print(json.dumps(done[k]), file=stream, flush=True)
    results = [done[k] for k in range(len(gold))]
    print_tables(gold, results)
    if arguments.plots is not None:

        def joint(k: int) -> certus.Joint:
            words = gold[k].leaves()
            arcs = models.dependencies(words)
            trees = models.trees(words).allowing(arcs.arc > -np.inf)
            return certus.Joint(trees, arcs, on="arcs", weight=weight["arcs"])

        draw(arguments.plots, gold, results, joint)


if __name__ == "__main__":
    main()
