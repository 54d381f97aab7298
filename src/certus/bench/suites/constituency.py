"""Parsing the Penn sample with a treebank grammar: accuracy by Markovisation, and time by question and length."""

from collections.abc import Iterator

import certus
from certus.bench.cases import Case, Row, data_folder
from certus.evaluate.evalb import BracketScores
from certus.io.brackets import read_trees

QUESTIONS = ("decode", "max_marginals", "log_partition", "marginals")
LENGTHS = ((1, 10), (11, 20), (21, 30), (31, 40))


def run(
    data: str = "", limit: int = 100, settings: tuple[str, ...] = ("0-1-1", "1-1-1", "2-1-1", "0-2-2", "1-2-2", "2-2-2")
) -> Iterator[Case | Row]:
    """A setting is horizontal-vertical-vertical of tags."""
    folder = data_folder(data, "ptb-sample")
    train = list(read_trees(folder / "train.mrg.gz", clean=True))
    dev = [t for t in read_trees(folder / "dev.mrg.gz", clean=True) if len(t.words) <= LENGTHS[-1][1]][:limit]
    for setting in settings:
        horizontal, vertical, tag_vertical = map(int, setting.split("-"))
        grammar = certus.Grammar.from_treebank(
            train, horizontal=horizontal, vertical=vertical, tag_vertical=tag_vertical
        )
        pairs = []
        for gold in dev:
            try:
                pairs.append((gold, certus.Constituency(grammar, gold.words).decode().structure))
            except certus.Infeasible:
                continue
        s = BracketScores.of(pairs)
        cells = {"rules": len(grammar.binary), "P": s.precision, "R": s.recall, "F1": s.f1, "tags": s.tag_accuracy}
        yield Row(f"Markovisation {setting}", cells | {"without a tree": len(dev) - len(pairs)})
    grammar = certus.Grammar.from_treebank(train)
    for low, high in LENGTHS:
        chosen = [gold.words for gold in dev if low <= len(gold.words) <= high][:8]
        for question in QUESTIONS if chosen else ():
            yield Case(
                f"{question}, {low} to {high} words",
                lambda q=question, s=chosen: [getattr(certus.Constituency(grammar, words), q)() for words in s],
                items=len(chosen),
            )
