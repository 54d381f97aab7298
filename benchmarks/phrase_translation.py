"""Phrase-based translation, German to English: share certified, time, against Moses and our own stack decoding.

    python benchmarks/phrase_translation.py DATA [--sentences 100] [--parts models,methods,time,gap,growth,all]

DATA holds phrase-table.de-en.gz, lm.en.{2,3}gram.arpa.gz, weights.json, test.de and peers/moses.*.json: the outputs of
Moses on the same sentences with the same model, with the CPU seconds it took. One thread; CPU seconds, loading and
compilation left out. The tables are those of LR 7.7: methods by sentence length (table 7.1), where the time goes (7.2),
the duality gap after 0, 5 and 10 rounds (figure 7-4), and growth with length and distortion limit. Our stack decoding
is timed without the bound that comes with its result.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

from certus import LanguageModel, PhraseModel
from certus.clock import Clock
from certus.io.hiero import read_weights
from certus.translation import phrase_decoding

MODELS = {
    "trigram": (3, {}, 6, "moses.3gram."),
    "trigram, lowdist": (3, {"Distortion": 0.05}, 6, "moses.3gram.lowdist."),
    "trigram, limit 4": (3, {}, 4, "moses.3gram.dl4."),
    "bigram": (2, {}, 6, "moses.2gram."),
}
METHODS = [
    ("beam, 100", "beam", 100),
    ("beam, 1000", "beam", 1000),
    ("stack, 100", "stack", 100),
    ("stack, 1000", "stack", 1000),
    ("A*", "astar", 1),
    ("tight", "tight", 1),
    ("staged", "staged", 1),
    ("alternating", "alternating", 1),
    ("optimal beam", "optimal beam", 1),
]
GROUPS = [(1, 10), (11, 15), (16, 20), (21, 99), (1, 99)]


class Data:
    """The files, each read once."""

    def __init__(self, folder, sentences):
        self.folder = Path(folder)
        self.sources = [line.split() for line in (self.folder / "test.de").read_text(encoding="utf-8").splitlines()]
        self.first = self.sources[:sentences]
        self.weights = read_weights(self.folder / "weights.json", "phrase_based")
        self.lms, self.tables = {}, {}

    def model(self, order=3, limit=6, window=True, **changed):
        if order not in self.lms:
            self.lms[order] = LanguageModel.read(self.folder / f"lm.en.{order}gram.arpa.gz")
        if not self.tables:
            table = PhraseModel.read(
                self.folder / "phrase-table.de-en.gz", self.lms[order], self.weights, sentences=self.sources
            ).table
            self.tables["phrases"] = table
        return PhraseModel(
            self.tables["phrases"],
            self.lms[order],
            {**self.weights, **changed},
            distortion_limit=limit,
            window=window,
        )

    def peers(self, prefix):
        """Runs of Moses of one model: name -> sentences by id."""
        runs = {}
        for path in sorted((self.folder / "peers").glob(f"{prefix}stack*.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            runs[path.stem.removeprefix(prefix)] = {s["id"]: s for s in data["sentences"]}
        return runs


def timed(model, source, **options):
    """Result and seconds of decoding a sentence, from the words to the translation."""
    started = time.process_time()
    result = model.problem(source).decode(**{"time_limit": 60.0, **options})
    return result, time.process_time() - started


def stack(model, source, width):
    """Stack decoding alone: (score, seconds), from the words to the translation."""
    started = time.process_time()
    search = phrase_decoding.Run(model.problem(source).sentence, Clock())
    phrase_decoding.stack(search, width)
    return search.score, time.process_time() - started


def models(data):
    print(
        f"\n{'model':<18}{'certified':>10}{'below':>7}{'above':>7}{'sum':>12}{'mean s':>9}{'max s':>8}"
        f"{'stack 1000':>12}{'ratio':>7}{'Moses 1000':>12}{'scores differ':>15}"
    )
    for name, (order, changed, limit, prefix) in MODELS.items():
        model = data.model(order, limit, **changed)
        peers = data.peers(prefix)
        certified, below, above, total, seconds, stacks, differ = 0, 0, 0, 0.0, [], [], 0.0
        for k, source in enumerate(data.first):
            result, spent = timed(model, source)
            seconds.append(spent)
            stacks.append(stack(model, source, 1000)[1])
            known = [run[k]["model_score"] for run in peers.values() if k in run]
            certified += result.certificate.exact
            total += result.score
            below += result.score < max(known) - 1e-3
            above += result.score > max(known) + 1e-3
            problem = model.problem(source)
            options = {(o.start, o.end, o.target): i for i, o in enumerate(problem.options)}
            for run in peers.values():
                phrases = run[k]["phrases"]
                chosen = [options[(*p["source_span"], tuple(p["target"].split()))] for p in phrases]
                differ = max(differ, abs(problem.score(chosen) - run[k]["model_score"]))
        moses = np.mean([s["cpu_seconds"] for s in peers["stack1000"].values()])
        print(
            f"{name:<18}{certified:>6}/{len(data.first):<3}{below:>7}{above:>7}{total:>12.3f}{np.mean(seconds):>9.4f}"
            f"{max(seconds):>8.3f}{np.mean(stacks):>12.4f}{np.mean(stacks) / np.mean(seconds):>7.2f}{moses:>12.3f}"
            f"{differ:>15.5f}",
            flush=True,
        )
    print("below, above: sentences whose score differs from the best of Moses' runs by more than 0.001")
    print("ratio: our stack decoding, 1000 wide, to certified decoding, in this run")


def methods(data):
    model = data.model()
    optimum = [model.problem(s).decode().score for s in data.first]
    lengths = np.array([len(s) for s in data.first])
    heads = [f"{a}-{b}" if b < 99 else ("all" if a == 1 else f"{a}+") for a, b in GROUPS]
    print("\nseconds, % certified, % exact, by words of the sentence (LR table 7.1)")
    counts = [int(((lengths >= a) & (lengths <= b)).sum()) for a, b in GROUPS]
    print(f"{'':<14}" + "".join(f"{f'{h} ({c})':>24}" for h, c in zip(heads, counts, strict=True)))
    for name, method, width in METHODS:
        rows = []
        for k, source in enumerate(data.first):
            if method == "stack":
                score, spent = stack(model, source, width)
                rows.append((spent, False, score > optimum[k] - 1e-6))
                continue
            result, spent = timed(model, source, method=method, width=width)
            rows.append((spent, result.certificate.exact, result.score > optimum[k] - 1e-6))
        table = np.array(rows, dtype=float)
        cells = []
        for a, b in GROUPS:
            those = table[(lengths >= a) & (lengths <= b)]
            mean = those.mean(axis=0) if len(those) else np.zeros(3)
            cells.append(f"{mean[0]:>12.4f}{100 * mean[1]:>6.0f}{100 * mean[2]:>6.0f}")
        print(f"{name:<14}" + "".join(cells), flush=True)


def where(data):
    model = data.model()
    print("\nwhere the time goes, % (LR table 7.2)")
    print(f"{'':<14}{'':<12}{'lattice':>10}{'relaxation':>12}{'search':>9}")
    for method in ("alternating", "optimal beam"):
        parts = []
        for source in data.first:
            info = model.problem(source).decode(method=method).info
            parts.append([info.get(f"{k} seconds", 0.0) for k in ("lattice", "relaxation", "search")])
        table = np.array(parts)
        long = np.array([len(s) >= 20 for s in data.first])
        for words, rows in (("20 or more", table[long]), ("all", table)):
            if not len(rows):
                continue
            share = 100 * rows.sum(axis=0) / rows.sum()
            print(f"{method:<14}{words:<12}{share[0]:>10.1f}{share[1]:>12.1f}{share[2]:>9.1f}")


def gap(data):
    model = data.model()
    print("\nduality gap after rounds of subgradient descent (LR figure 7-4)")
    print(f"{'rounds':<8}{'mean':>9}{'median':>9}{'90%':>9}{'largest':>9}{'closed %':>10}")
    traces = []
    for source in data.first:
        result = model.problem(source).decode(method="staged")
        traces.append(np.minimum.accumulate(result.trace.dual) - result.score)
    for rounds in (0, 5, 10):
        left = np.array([t[min(rounds, len(t) - 1)] for t in traces])
        print(
            f"{rounds:<8}{left.mean():>9.3f}{np.median(left):>9.3f}{np.quantile(left, 0.9):>9.3f}{left.max():>9.3f}"
            f"{100 * (left < 1e-9).mean():>10.0f}"
        )


def growth(data):
    print("\ngrowth with the sentence, limit 6")
    print(f"{'words':<8}{'sentences':>10}{'mean s':>10}{'max s':>9}{'certified':>11}")
    model = data.model()
    by_length = {}
    for source in data.sources:
        by_length.setdefault(len(source) // 5 * 5, []).append(source)
    groups = {f"{k}-{k + 4}": v[:20] for k, v in sorted(by_length.items())}
    for size in (40, 50, 60, 80):
        joined = []
        at = 0
        while len(joined) < 5:
            words = []
            while len(words) < size:
                words += data.sources[at]
                at += 1
            joined.append(words[:size])
        groups[f"{size}"] = joined
    for name, sources in groups.items():
        runs = [timed(model, s) for s in sources]
        spent = [seconds for _, seconds in runs]
        proved = sum(r.certificate.exact for r, _ in runs)
        print(
            f"{name:<8}{len(sources):>10}{np.mean(spent):>10.4f}{max(spent):>9.3f}{proved:>8}/{len(runs)}", flush=True
        )
    print("\ngrowth with the distortion limit, every fifth sentence")
    print(f"{'limit':<22}{'mean s':>10}{'max s':>9}{'certified':>11}{'sum':>12}")
    limits = [(k, True) for k in (0, 2, 4, 6, 8, 10, 12)] + [(6, False), (None, False)]
    for limit, window in limits:
        model = data.model(limit=limit, window=window)
        runs = [timed(model, s) for s in data.first[::5]]
        spent = [seconds for _, seconds in runs]
        proved = sum(r.certificate.exact for r, _ in runs)
        name = "none" if limit is None else f"{limit}" + ("" if window else ", first condition")
        total = sum(r.score for r, _ in runs)
        print(f"{name:<22}{np.mean(spent):>10.4f}{max(spent):>9.3f}{proved:>8}/{len(runs)}{total:>12.3f}", flush=True)


def everything(data):
    model = data.model()
    runs = [timed(model, s) for s in data.sources]
    spent = np.array([seconds for _, seconds in runs])
    proved = sum(r.certificate.exact for r, _ in runs)
    print(f"\nall {len(runs)} sentences, trigram, limit 6, at most 60 s each: {proved} certified,")
    rare = np.quantile(spent, 0.99)
    print(f"mean {spent.mean():.4f} s, median {np.median(spent):.4f}, 99% {rare:.4f}, max {spent.max():.3f}")


PARTS = {"models": models, "methods": methods, "time": where, "gap": gap, "growth": growth, "all": everything}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--parts", default=",".join(PARTS))
    arguments = parser.parse_args()
    data = Data(arguments.data, arguments.sentences)
    for _, method, width in METHODS:
        data.model().problem(data.first[0]).decode(method=method, width=width)  # compile
    for part in arguments.parts.split(","):
        PARTS[part](data)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\npeak memory {peak:.2f} GB, models and tables included")


if __name__ == "__main__":
    main()
