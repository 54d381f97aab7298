"""Sibling and grandparent + sibling parsing with crossing arcs on treebank sentences: share proved, time, the ILP.

    python benchmarks/nonprojective.py [--data FOLDER] [--models FOLDER] [--sentences 400] [--ilp 40] [--json]

Sentences are taken evenly from the development parts of Dutch (nl_cdb) and Danish (da_cdt), up to 60 words. With
--models the scores are those of trained parsers of order 2 with crossing arcs, nl_cdb.parser and da_cdt.parser in that
folder (benchmarks/parser.py DATA --order 2 --non-projective --save FILE), over the arcs that their cascades leave; for
siblings alone, a model of arcs and siblings is trained on the same treebank, behind the same cascade, for three epochs.

Without --models the scores stand in for a trained model. Every arc gets normal noise of deviation 1 and arcs of the
gold tree 3.2 more, which puts the first-order tree at 87% of the heads right; every higher-order part gets noise of
deviation 0.5 and parts of the gold tree 1 more. Each word keeps its 15 best heads and that of the first-order tree. One
thread.
"""

import argparse
import json
import os
import time
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np

import certus
from certus.dependency import flow, nonprojective
from certus.dependency.arborescence import best_heads
from certus.dependency.parts import attachments
from certus.io.conllu import read_conllu
from certus.learn.learners import TreeTask, new_trainer
from certus.learn.weights import Weights
from certus.models.cascade import with_tree
from certus.models.parser import Parser

TREEBANKS = ("nl_cdb", "da_cdt")
MODELS = {"siblings": ("sibling",), "grandparents + siblings": ("sibling", "grandparent")}
KEPT = 15  # heads per word
GOLD_ARC, GOLD_PART, PART_NOISE = 3.2, 1.0, 0.5
LONGEST = 60
SIBLING_EPOCHS = 3
TURN = 5  # sentences that one decoder gets before it is the other's turn


def sentences_of(folder, count):
    """``count`` sentences, half from each treebank, spread over the file: {treebank: sentences}."""
    found = {}
    for name in TREEBANKS:
        read = [s for s in read_conllu(folder / "ud" / name / "dev.conllu.gz") if 1 <= len(s) <= LONGEST]
        every = max(1, len(read) // (count // len(TREEBANKS)))
        found[name] = read[::every][: count // len(TREEBANKS)]
    return found


def trained(parser, sentences):
    """A problem for each sentence, scored by the parser, and the first-order tree of its arcs."""
    problems = [parser.problem(sentence) for sentence in sentences]
    return [(p, best_heads(p.arc, p.root)[0]) for p in problems]


def sibling_parser(parser, sentences):
    """A parser with the same cascade that scores arcs and siblings only."""
    model = replace(parser.model, templates=parser.model.templates[:2])
    batch = parser.encoder.encode(sentences)
    trees = [s.heads for s in sentences]
    allowed = [with_tree(parser.cascade.survivors(batch, k), tree) for k, tree in enumerate(trees)]
    weights = Weights(parser.settings.bits)
    trainer = new_trainer("mira", TreeTask(model, batch, trees, allowed.__getitem__, weights, 1))
    for epoch in range(SIBLING_EPOCHS):
        for _ in trainer.epoch(epoch):
            pass
    return replace(parser, model=model, weight=weights.averaged())


def scored(rng, heads, kinds):
    """A problem that favours the tree ``heads``, and the first-order tree of its arcs."""
    n = len(heads) - 1
    arc = rng.normal(size=(n + 1, n + 1))
    arc[heads[1:], np.arange(1, n + 1)] += GOLD_ARC
    np.fill_diagonal(arc, -np.inf)
    arc[:, 0] = -np.inf
    first_order, _ = best_heads(arc, "single")
    for m in range(1, n + 1):
        pruned = np.argsort(-arc[:, m], kind="stable")[KEPT:]
        arc[pruned[pruned != first_order[m]], m] = -np.inf
    parts = {kind: PART_NOISE * rng.normal(size=(n + 1,) * 3) for kind in kinds}
    g, h, _, s, m, _ = attachments(heads.tolist())
    parts["sibling"][h, s, m] += GOLD_PART
    if "grandparent" in parts:
        parts["grandparent"][g[g >= 0], h[g >= 0], m[g >= 0]] += GOLD_PART
    return certus.Dependency(arc, **parts), first_order


def timed(decode, *arguments, **settings):
    started = time.perf_counter()
    result = decode(*arguments, **settings)
    return result, time.perf_counter() - started


def fresh(problem):
    """The same problem without what it has remembered."""
    other = copy(problem)
    other.__dict__.pop("_extent", None)
    return other


def problems_of(model, sentences, arguments):
    """Problems and first-order trees of all sentences, by a trained parser or by random scores."""
    kinds = MODELS[model]
    if arguments.models is None:
        rng = np.random.default_rng(0)
        return [scored(rng, s.heads, kinds) for some in sentences.values() for s in some]
    found = []
    for name, some in sentences.items():
        parser = Parser.load(arguments.models / f"{name}.parser")
        if kinds == ("sibling",):
            parser = sibling_parser(parser, list(read_conllu(arguments.data / "ud" / name / "train.conllu.gz")))
        found += trained(parser, some)
    return found


def measure(model, sentences, arguments):
    ilp_count, ilp_seconds = arguments.ilp, arguments.ilp_seconds
    trees = [s.heads for some in sentences.values() for s in some]
    problems, first_order = zip(*problems_of(model, sentences, arguments), strict=True)
    nonprojective.decode(problems[0])  # compiles the kernels
    nonprojective.decode(problems[0], lazy=False)
    runs = [timed(nonprojective.decode, p) for p in problems]
    eager = [timed(nonprojective.decode, p, lazy=False)[1] for p in problems]
    results = [r for r, _ in runs]
    seconds = np.array([s for _, s in runs])
    iterations = np.array([r.info["iterations"] for r in results])
    words = sum(len(h) - 1 for h in trees)
    report = {
        "model": model,
        "sentences": len(trees),
        "median words": float(np.median([len(h) - 1 for h in trees])),
        "first-order heads right": sum(int((f[1:] == h[1:]).sum()) for f, h in zip(first_order, trees, strict=True))
        / words,
        "heads right": sum(int((r.structure[1:] == h[1:]).sum()) for r, h in zip(results, trees, strict=True)) / words,
        "certified": sum(r.certificate.exact for r in results) / len(results),
        "certified by relaxation alone": sum(r.certificate.kind == "dual" for r in results) / len(results),
        "median ms": 1e3 * float(np.median(seconds)),
        "mean ms": 1e3 * float(seconds.mean()),
        "longest ms": 1e3 * float(seconds.max()),
        "median ms, not lazy": 1e3 * float(np.median(eager)),
        "mean ms, not lazy": 1e3 * float(np.mean(eager)),
        "share of automata decoded per iteration": float(np.mean([r.info["decoded"] for r in results])),
        "iterations (10, 25, 50, 75, 90, 99, 100%)": np.quantile(iterations, [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0])
        .astype(int)
        .tolist(),
        "most nodes": max(r.info["nodes"] for r in results),
    }
    if ilp_count:
        chosen = list(range(0, len(trees), max(1, len(trees) // ilp_count)))[:ilp_count]
        ours, theirs, same, stopped = [], [], 0, 0
        for start in range(0, len(chosen), TURN):
            turn = chosen[start : start + TURN]
            ours += [timed(nonprojective.decode, fresh(problems[k]))[1] for k in turn]
            for k in turn:
                try:
                    reference, spent = timed(flow.ilp, fresh(problems[k]), time_limit=ilp_seconds)
                    same += abs(reference.score - results[k].score) <= 1e-6
                    stopped += not reference.certificate.exact
                except certus.LimitReached:
                    spent, stopped = ilp_seconds, stopped + 1
                theirs.append(spent)
        report |= {
            "ILP sentences": len(chosen),
            "ILP median ms": 1e3 * float(np.median(theirs)),
            "our median ms, same sentences": 1e3 * float(np.median(ours)),
            "ILP ended by its limit": stopped,
            "same score as the ILP": same,
            "ILP median / ours": float(np.median(theirs) / np.median(ours)),
            "median of ILP / ours": float(np.median(np.array(theirs) / np.array(ours))),
        }
    return report


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CERTUS_DATA", beside)))
    parser.add_argument("--models", type=Path, help="trained parsers, TREEBANK.parser, of order 2 with crossing arcs")
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--ilp", type=int, default=40, help="how many of them the ILP also solves; 0 for none")
    parser.add_argument("--ilp-seconds", type=float, default=60.0, help="limit for one ILP")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sentences = sentences_of(arguments.data, arguments.sentences)
    reports = [measure(model, sentences, arguments) for model in MODELS]
    if arguments.json:
        print(json.dumps(reports, indent=1))
        return
    for report in reports:
        print()
        for name, value in report.items():
            print(f"{name:45} {value:.4g}" if isinstance(value, float) else f"{name:45} {value}")


if __name__ == "__main__":
    main()
