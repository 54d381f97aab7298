"""Cube pruning against cdec's: sums of model scores and seconds at the same pop limits.

    python benchmarks/cube_pruning.py [--data FOLDER] [--sentences N] [--orders 2 3] [--pops 50 200 1000] [--json]

Reads rules, language models, weights, test.de and peers/cdec.*.json from the folder mt of the data folder
($CERTUS_DATA, or shared/data beside the repository). The forests are those of cdec (same numbers of vertices and
edges, which is checked). Seconds are of the processor, one thread, for ours and theirs; theirs were measured elsewhere
and include parsing, so ours do too.
"""

import argparse
import json
import os
import time
from pathlib import Path

from certus import LanguageModel, SynchronousGrammar
from certus.io.hiero import read_weights
from certus.translation import cube_pruning

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("CERTUS_DATA", ROOT.parent / "shared/data")))
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--orders", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--pops", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = options.data / "mt"
    weights = read_weights(folder / "weights.json")
    sentences = [s.split() for s in (folder / "test.de").read_text(encoding="utf-8").split("\n")[: options.sentences]]
    started = time.process_time()
    grammar = SynchronousGrammar.read(folder / "hiero.de-en.gz", glue=folder / "hiero.glue.txt", weights=weights)
    reading = time.process_time() - started
    grammar.forest(sentences[0])  # compiles
    started = time.process_time()
    forests = [grammar.forest(s) for s in sentences]
    parsing = (time.process_time() - started) / len(sentences)
    rows = []
    for order in options.orders:
        lm = LanguageModel.read(folder / f"lm.en.{order}gram.arpa.gz")
        cube_pruning(forests[0], lm, weights["LM"], 1)  # compiles
        for pops in options.pops:
            peer = json.loads((folder / "peers" / f"cdec.{order}gram.cube{pops}.json").read_text())["sentences"]
            peer = peer[: options.sentences]
            for forest, theirs in zip(forests, peer, strict=True):
                size = (forest.graph.n_vertices + 1, forest.graph.n_edges + 1)  # theirs has a goal above S
                assert size == (theirs["forest_nodes"], theirs["forest_edges"]), (size, theirs["id"])
            started = time.process_time()
            found = [cube_pruning(forest, lm, weights["LM"], pops) for forest in forests]
            seconds = (time.process_time() - started) / len(sentences) + parsing
            pairs = [(f.score, t["model_score"]) for f, t in zip(found, peer, strict=True)]
            theirs_seconds = sum(t["cpu_seconds"] for t in peer) / len(peer)
            rows.append(
                {
                    "order": order,
                    "pops": pops,
                    "sum": sum(a for a, _ in pairs),
                    "sum of cdec": sum(b for _, b in pairs),
                    "better": sum(a > b + 1e-3 for a, b in pairs),
                    "worse": sum(a < b - 1e-3 for a, b in pairs),
                    "seconds": seconds,
                    "seconds of cdec": theirs_seconds,
                    "ratio": seconds / theirs_seconds,
                }
            )
    if options.json:
        print(json.dumps({"seconds to read the grammar": reading, "seconds to parse": parsing, "runs": rows}))
        return
    print(f"{len(grammar)} rules read in {reading:.2f} s; a forest in {1000 * parsing:.1f} ms")
    print("order   pops        sum       cdec  better  worse  seconds    cdec  ratio")
    for r in rows:
        print(
            f"{r['order']:>5}{r['pops']:>7}{r['sum']:>11.3f}{r['sum of cdec']:>11.3f}{r['better']:>8}{r['worse']:>7}"
            f"{r['seconds']:>9.4f}{r['seconds of cdec']:>8.4f}{r['ratio']:>7.2f}"
        )


if __name__ == "__main__":
    main()
