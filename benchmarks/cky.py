"""Parsing the Penn sample with a treebank grammar: accuracy by Markovisation, and time by question.

    python benchmarks/cky.py DATA [--limit N] [--settings 1,2,2 0,1,1 ...]

DATA is the folder with train.mrg.gz and dev.mrg.gz. A setting is horizontal,vertical,tag_vertical. Sentences of up to
40 words; accuracy in the manner of evalb, without gold tags. Times are means over different sentences.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import certus
from certus.evaluate.evalb import BracketScores
from certus.io.brackets import read_trees

SETTINGS = ("0,1,1", "1,1,1", "2,1,1", "0,2,2", "1,2,1", "1,2,2", "2,2,2", "1,3,2", "2,3,2")
QUESTIONS: dict[str, Callable[[certus.Constituency], object]] = {
    "decode": lambda problem: problem.decode(),
    "max_marginals": lambda problem: problem.max_marginals(),
    "log_partition": lambda problem: problem.log_partition(),
    "marginals": lambda problem: problem.marginals(),
    "reference_maximum": lambda problem: problem.reference_maximum(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train.mrg.gz and dev.mrg.gz")
    parser.add_argument("--limit", type=int, default=None, help="only the first N development sentences")
    parser.add_argument("--settings", nargs="+", default=SETTINGS, help="horizontal,vertical,tag_vertical")
    arguments = parser.parse_args()
    train = list(read_trees(arguments.data / "train.mrg.gz", clean=True))
    dev = [t for t in read_trees(arguments.data / "dev.mrg.gz", clean=True) if len(t.words) <= 40][: arguments.limit]
    print(f"{len(train)} training trees, {len(dev)} development sentences of up to 40 words")
    columns = ("h,v,tag", "rules", "symbols", "P", "R", "F1", "tags", "none", "s/sentence")
    print("".join(f"{name:>11}" for name in columns))
    for setting in arguments.settings:
        horizontal, vertical, tag_vertical = map(int, setting.split(","))
        grammar = certus.Grammar.from_treebank(
            train, horizontal=horizontal, vertical=vertical, tag_vertical=tag_vertical
        )
        certus.Constituency(grammar, dev[0].words).decode()
        pairs, failed = [], 0
        start = time.perf_counter()
        for gold in dev:
            try:
                pairs.append((gold, certus.Constituency(grammar, gold.words).decode().structure))
            except certus.Infeasible:
                failed += 1
        seconds = (time.perf_counter() - start) / len(dev)
        s = BracketScores.of(pairs)
        row = (setting, len(grammar.binary), len(grammar.symbols), f"{s.precision:.2f}", f"{s.recall:.2f}")
        row += (f"{s.f1:.2f}", f"{s.tag_accuracy:.2f}", failed, f"{seconds:.4f}")
        print("".join(f"{value:>11}" for value in row), flush=True)

    grammar = certus.Grammar.from_treebank(train)
    print(f"\nseconds a question, {grammar}")
    print(f"{'words':>8}{'sentences':>11}" + "".join(f"{name:>19}" for name in QUESTIONS))
    for low, high in ((1, 10), (11, 20), (21, 30), (31, 40)):
        chosen = [gold.words for gold in dev if low <= len(gold.words) <= high][:8]
        row = []
        for ask in QUESTIONS.values():
            if chosen:
                ask(certus.Constituency(grammar, chosen[0]))
                start = time.perf_counter()
                for words in chosen:
                    ask(certus.Constituency(grammar, words))
                row.append((time.perf_counter() - start) / len(chosen))
        print(f"{f'{low}-{high}':>8}{len(chosen):>11}" + "".join(f"{value:19.4f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
