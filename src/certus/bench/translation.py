"""What the suites on translation share: models, sentences and the outputs of peers in the data folder."""

import gzip
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Row
from certus.constraints import contains
from certus.io.hiero import read_weights
from certus.io.lattices import WordLattice
from certus.translation.kneser_ney import estimate_kneser_ney

LONG_WORD, MOST_TERMS = 3, 50


def language_model(folder: Path, order: int) -> certus.LanguageModel:
    """A model of the folder or, of an order that it lacks, one estimated from its text as by ``certus train lm``."""
    path = folder / f"lm.en.{order}gram.arpa.gz"
    if path.exists():
        return certus.LanguageModel.read(path)
    text = gzip.decompress((folder / "train.en.gz").read_bytes()).decode("utf-8")
    return certus.LanguageModel(estimate_kneser_ney([s.split() for s in text.splitlines()], order).arpa)


class Hiero:
    """A synchronous grammar and language models, the first test sentences and their forests."""

    def __init__(self, folder: Path, sentences: int) -> None:
        self.folder = folder
        self.sentences = [s.split() for s in (folder / "test.de").read_text(encoding="utf-8").splitlines()[:sentences]]
        self.weights = read_weights(folder / "weights.json")

    @cached_property
    def grammar(self) -> certus.SynchronousGrammar:
        words = {word for sentence in self.sentences for word in sentence}
        rules, glue = self.folder / "hiero.de-en.gz", self.folder / "hiero.glue.txt"
        return certus.SynchronousGrammar.read(rules, glue=glue, weights=self.weights, source_words=words)

    @cached_property
    def forests(self) -> list[certus.TranslationForest]:
        return [self.grammar.forest(sentence) for sentence in self.sentences]

    def lm(self, order: int) -> certus.LanguageModel:
        return language_model(self.folder, order)

    def problems(self, lm: certus.LanguageModel) -> list[certus.ForestTranslation]:
        return [certus.ForestTranslation(forest, lm, self.weights["LM"]) for forest in self.forests]

    def cdec(self, order: int, pops: int | str = "*") -> list[list[Mapping[str, Any]]]:
        """What cube pruning found: for each run, the sentences."""
        found = []
        for path in sorted((self.folder / "peers").glob(f"cdec.{order}gram.cube{pops}.json")):
            found.append(json.loads(path.read_text(encoding="utf-8"))["sentences"][: len(self.sentences)])
        return found


class Phrases:
    """A phrase table and language models, and the test sentences."""

    def __init__(self, folder: Path, sentences: int) -> None:
        self.folder = folder
        self.sources = [line.split() for line in (folder / "test.de").read_text(encoding="utf-8").splitlines()]
        self.first = self.sources[:sentences]
        self.weights = read_weights(folder / "weights.json", "phrase_based")
        self._models: dict[int, certus.PhraseModel] = {}

    def model(
        self, order: int = 3, limit: int | None = 6, *, weights: Mapping[str, float] | None = None
    ) -> certus.PhraseModel:
        if order not in self._models:
            lm = language_model(self.folder, order)
            table = self.folder / "phrase-table.de-en.gz"
            self._models[order] = certus.PhraseModel.read(table, lm, self.weights, sentences=self.sources)
        read = self._models[order]
        changed = {**self.weights, **(weights or {})}
        return certus.PhraseModel(read.table, read.lm, changed, distortion_limit=limit)

    def moses(self, prefix: str) -> dict[str, dict[int, Mapping[str, Any]]]:
        """Runs of Moses of one model: name -> sentences by number."""
        runs = {}
        for path in sorted((self.folder / "peers").glob(f"{prefix}stack*.json")):
            data = json.loads(path.read_text(encoding="utf-8"))
            runs[path.stem.removeprefix(prefix)] = {s["id"]: s for s in data["sentences"]}
        return runs


def best_rules(forest: certus.TranslationForest, keep: int) -> certus.TranslationForest:
    """The forest with the best rules of each vertex only."""
    graph = forest.graph
    chosen = []
    for v in range(graph.n_vertices):
        edges = np.arange(graph.in_ptr[v], graph.in_ptr[v + 1])
        chosen.append(np.sort(edges[np.argsort(-forest.weights[edges], kind="stable")[:keep]]))
    edges = np.concatenate(chosen)
    tails = [graph.tail_of(e) for e in edges]
    sides = [forest.token[forest.token_ptr[e] : forest.token_ptr[e + 1]] for e in edges]
    in_ptr, tail_ptr, token_ptr = (np.cumsum([0, *map(len, lists)]) for lists in (chosen, tails, sides))
    small = certus.Hypergraph(in_ptr, tail_ptr, np.concatenate(tails), graph.root)
    return certus.TranslationForest(small, token_ptr, np.concatenate(sides), forest.words, forest.weights[edges])


def confusions(words: Sequence[str], others: Sequence[str]) -> WordLattice:
    """A confusion network: every third word may be another, that of ``others`` at its place."""
    columns: list[list[list[Any]]] = [[[word, 0.7, 1]] for word in words]
    for i in range(1, min(len(words), len(others)), 3):
        if others[i] != words[i]:
            columns[i].append([others[i], 0.3, 1])
    return WordLattice.of(columns)


def known_words(problem: Any) -> set[str]:
    """Words of the target language that a problem may yield."""
    if isinstance(problem, certus.ForestTranslation):
        return set(problem.translation_forest.words)
    return {word for option in problem.options for word in option.target}


def lacking(problem: Any, best: Any, reference: str) -> str | None:
    """The first word of a reference, of those known and not short, that the best translation lacks."""
    others = known_words(problem) - set(problem.words(best.structure))
    return next((w for w in reference.split() if w in others and len(w) > LONG_WORD), None)


def with_terms(name: str, makers: Iterable[Callable[[], Any]], folder: Path) -> Row:
    """A word of the reference that the best translation lacks must stand in the output.

    Seconds of the processor are those to make a problem and decode it, with the term and without.
    """
    references = (folder / "test.en").read_text(encoding="utf-8").splitlines()
    proved, held, free, bound = 0, 0, list[float](), list[float]()
    for make, reference in zip(makers, references, strict=False):
        problem, best, seconds = _decoded(make)
        term = lacking(problem, best, reference)
        if term is None or len(bound) == MOST_TERMS:
            continue

        def restricted(make: Callable[[], Any] = make, term: str = term) -> Any:
            return make().subject_to(contains([term]))

        if not bound:
            _decoded(restricted)  # compiles
            _, _, seconds = _decoded(make)
        problem, best, under = _decoded(restricted)
        free.append(seconds)
        bound.append(under)
        proved += best.certificate.exact
        held += term in problem.words(best.structure)
    ratio = {"with over without": sum(bound) / sum(free), "median": float(np.median(np.divide(bound, free)))}
    values = {"sentences": len(bound), "proved": proved, "with the term": held}
    return Row(f"{name}, a term", values | {"s without": float(np.mean(free)), "s with": float(np.mean(bound))} | ratio)


def _decoded(make: Callable[[], Any]) -> tuple[Any, Any, float]:
    """A problem, its best, and the seconds of both."""
    start = process_time()
    problem = make()
    result = problem.decode()
    return problem, result, process_time() - start
