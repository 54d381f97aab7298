"""What the suites on translation share: models, sentences and the outputs of peers in the data folder."""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.io.hiero import read_weights


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
        return certus.LanguageModel.read(self.folder / f"lm.en.{order}gram.arpa.gz")

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
            lm = certus.LanguageModel.read(self.folder / f"lm.en.{order}gram.arpa.gz")
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
