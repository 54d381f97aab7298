"""Every certificate that certus parse prints is about the tree below it, also on a busy machine; and what it costs.

    python benchmarks/certificates.py DATA [DATA ...] --work FOLDER [--orders 2 3] [--epochs 3] [--rounds 5]
    python benchmarks/certificates.py DATA [DATA ...] --model NAME

DATA is a folder with train.conllu.gz, dev.conllu.gz and test.conllu.gz. Parsers with crossing arcs are trained by
certus train parser, unless FOLDER has them already; or NAME is any model. The test sentences are parsed by certus parse
--certificates with a busy loop on every processor, and again without. From the file that was printed alone, the score
of each tree is then summed up anew over the parts of the model's problem, and the arcs that were searched and the
digests are computed again; so they are once more, still with busy loops, with all branching left to the search that is
otherwise for the hardest sentences. Prints how many sentences differ, in these or between the runs, and how much longer
parsing takes with certificates (sentences to text, one thread, processor time, the best of some rounds in turns). Exit
code 1 if anything differs.
"""

import argparse
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import certus
from certus.io.conllu import read_conllu
from certus.models import nonprojective
from certus.models.parser import FILE, Parser
from certus.models.pipeline import Pipeline
from certus.models.trees import problem_digest
from certus.text import Sentence


def run(*arguments: object, output: Path | None = None) -> None:
    """The command line, in a process of its own."""
    command = [sys.executable, "-m", "certus", *map(str, arguments)]
    with open(output or os.devnull, "wb") as stream:
        subprocess.run(command, check=True, stdout=stream)


def spin() -> None:
    while True:
        pass


@contextmanager
def load() -> Iterator[None]:
    """A busy loop on every processor."""
    busy = [multiprocessing.Process(target=spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for process in busy:
        process.start()
    try:
        yield
    finally:
        for process in busy:
            process.kill()


def differences(parser: Parser, sentences: list[Sentence]) -> Counter[str]:
    """What the comments of sentences say that is not so, by kind; and how many trees have which proof."""
    found: Counter[str] = Counter()
    for sentence in sentences:
        problem = parser.problem(sentence)
        kept = problem.arc > -np.inf
        score, bound = (float(sentence.comment(key) or "nan") for key in ("score", "bound"))
        n, proof = len(sentence), sentence.comment("certificate") or ""
        arcs = f"all {n * n} arcs" if kept.sum() == n * n else f"the {kept.sum()} arcs kept of {n * n}"
        found[proof] += 1
        found["score differs"] += score != problem.score(sentence.heads)
        found["bound differs"] += bound != score if proof.endswith(", exact") else not bound > score
        found["scope differs"] += not (sentence.comment("scope") or "").endswith(f" over {arcs}")
        digests = parser.digest, problem_digest(parser.encoder.encode([sentence]), 0, kept)
        found["digest differs"] += digests != tuple(map(sentence.comment, ("model_digest", "problem_digest")))
    return found


def searched(pipeline: Pipeline, sentences: list[Sentence]) -> list[Sentence]:
    """Parsed with busy loops, where the kernel does not branch."""
    usual, nonprojective.BRANCHINGS = nonprojective.BRANCHINGS, 0
    try:
        with load():
            return list(pipeline.parse(sentences, certificates=True))
    finally:
        nonprojective.BRANCHINGS = usual


def cost(pipeline: Pipeline, sentences: list[Sentence], rounds: int) -> tuple[float, float]:
    """Seconds without and with certificates."""
    best = [np.inf, np.inf]
    for turn in range(rounds + 1):  # the first is to warm up
        for certificates in (False, True):
            start = time.process_time()
            for sentence in pipeline.parse(sentences, certificates=certificates, workers=1):
                str(sentence)
            seconds = time.process_time() - start
            if turn:
                best[certificates] = min(best[certificates], seconds)
    return best[0], best[1]


def check(name: str, data: Path, model: str | Path, work: Path, rounds: int) -> bool:
    """Print one line; True if nothing differs."""
    test = data / "test.conllu.gz"
    busy, calm, plain = (work / f"{name}.{run}.conllu" for run in ("busy", "calm", "plain"))
    with load():
        run("parse", "--model", model, "--certificates", test, output=busy)
    run("parse", "--model", model, "--certificates", test, output=calm)
    run("parse", "--model", model, test, output=plain)
    pipeline = certus.load(model)
    gold, trees = list(read_conllu(test)), list(read_conllu(busy))
    found, again = differences(pipeline.parser, trees), searched(pipeline, gold)
    by_search = differences(pipeline.parser, again)
    found += Counter({what: count for what, count in by_search.items() if what.endswith("differs")})
    found["best scores differ"] = sum(
        a.comment("score") != b.comment("score") for a, b in zip(trees, again, strict=True)
    )
    found["busy and calm differ"] = int(busy.read_bytes() != calm.read_bytes())
    found["trees with and without certificates differ"] = int(
        [s.tokens for s in trees] != [s.tokens for s in read_conllu(plain)]
    )
    found["sentences differ"] = int([s.words for s in trees] != [s.words for s in gold])
    without, with_them = cost(pipeline, gold, rounds)
    wrong = {what: count for what, count in found.items() if what.endswith(("differ", "differs"))}
    proofs = ", ".join(f"{count} {proof}" for proof, count in sorted(found.items()) if proof not in wrong)
    print(
        f"{name}: {len(trees)} sentences ({proofs}): "
        f"{', '.join(f'{count} {what}' for what, count in wrong.items() if count) or '0 differences'}; "
        f"{without:.2f} s, with certificates {with_them:.2f} s: {with_them / without:.3f} times",
        flush=True,
    )
    return not any(wrong.values())


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("data", nargs="+", type=Path)
    arguments.add_argument("--work", type=Path, default=Path("certificates"))
    arguments.add_argument("--model", help="name or folder of a model, instead of training some")
    arguments.add_argument("--orders", nargs="+", type=int, default=[2, 3])
    arguments.add_argument("--epochs", type=int, default=3)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    right = True
    for data in options.data:
        if options.model:
            right &= check(f"{data.name}-{Path(options.model).name}", data, options.model, options.work, options.rounds)
            continue
        for order in options.orders:
            name = f"{data.name}-{order}"
            model = options.work / name
            if not (model / FILE).exists():
                files = ("--train", data / "train.conllu.gz", "--dev", data / "dev.conllu.gz", "--output", model)
                run("train", "parser", *files, "--no-projective", "--order", order, "--epochs", options.epochs)
            right &= check(name, data, model, options.work, options.rounds)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
