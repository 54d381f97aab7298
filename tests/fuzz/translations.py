"""Translation forests and phrase-based translations under small language models with back-off."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

import certus
from certus.constraints import Reading, avoids, contains, count, in_order, length, starts_with
from certus.io.arpa import BEGIN, END, UNKNOWN, Arpa, Ngrams
from certus.translation.forest_problem import METHODS as FOREST_METHODS
from certus.translation.phrase_decoding import METHODS as PHRASE_METHODS
from tests.fuzz.cases import Case, Kind, Listed
from tests.fuzz.scores import Rng, Scores
from tests.fuzz.sequences import draw_graph, graph_of
from tests.oracles.exact import Part

MARKS = [UNKNOWN, BEGIN, END]
MOST = 150  # translations of a problem


def draw_model(rng: Rng, words: list[str]) -> Case:
    """An ARPA model of order 1 to 4: random n-grams, contexts missing, back-offs of both signs."""
    names, order = [*MARKS, *words], int(rng.integers(1, 5))
    grams, rows = [], [(w,) for w in range(len(names))]
    for k in range(1, order + 1):
        if k > 1:
            longer = [(*row, w) for row, w in product(rows, range(2, len(names))) if row[-1] != 2]
            share = float(rng.choice([0.1, 0.4, 0.9])) if len(longer) < 60 else 0.1
            rows = [row for row in longer if rng.random() < share]
        last = k == order
        back = [0.0 if last or rng.random() < 0.3 else round(float(rng.normal()), 3) for _ in rows]
        grams.append({"rows": [list(r) for r in rows], "value": [-3.0 * rng.random() for _ in rows], "back": back})
    return {"names": names, "orders": grams}


def model_of(data: Case) -> certus.LanguageModel:
    orders = [
        Ngrams(np.array(g["rows"], dtype=np.int32).reshape(-1, k), np.array(g["value"]), np.array(g["back"]))
        for k, g in enumerate(data["orders"], 1)
    ]
    return certus.LanguageModel(Arpa(list(data["names"]), orders))


def model_parts(lm: certus.LanguageModel, words: list[str], weight: float) -> list[Part]:
    """What a model with a weight adds to a score: a number of each word, its back-offs and log-probability in order."""
    arrays = lm.arrays
    keys = {int(arrays.slots[3 * i]): i for i in range(len(arrays.slots) // 3) if arrays.slots[3 * i] != -1}
    state, parts = lm.begin_state, []
    for word in [*(lm.word_id(w) for w in words), lm.end]:
        total = 0.0
        while state != 0 and (state << 32) | word not in keys:
            total += float(arrays.back_off[state])
            state = int(arrays.state_suffix[state])
        if state == 0:
            total += float(arrays.unigram[word])
            state = int(arrays.unigram_state[word])
        else:
            i = keys[(state << 32) | word]
            total += float(arrays.values[3 * i + 1])
            state = int(arrays.slots[3 * i + 2])
        parts.append(weight * total)
    return parts


class Forests(Kind):
    """certus.ForestTranslation, by every method."""

    name = "forest translation"
    proved = tuple({"method": m} for m in FOREST_METHODS if m in ("search", "beam", "intersection"))
    tried = tuple({"method": m} for m in FOREST_METHODS if m not in ("search", "beam", "intersection"))

    def draw(self, rng: Rng, scores: Scores) -> Case:
        words = list("abcd")[: int(rng.integers(1, 4))]
        case, total = draw_graph(rng, int(rng.integers(1, 6)))
        while not total[-1]:
            case, total = draw_graph(rng, int(rng.integers(1, 6)))
        token_ptr, token, empty = [0], [], rng.random() < 0.3
        for low, high in zip(case["tail_ptr"], case["tail_ptr"][1:], strict=False):
            side = [~j for j in range(high - low)]
            for _ in range(int(rng.integers(0 if side or (empty and rng.random() < 0.5) else 1, 3))):
                side.insert(int(rng.integers(0, len(side) + 1)), int(rng.integers(0, len(words))))
            token += side
            token_ptr.append(len(token))
        case |= {"token_ptr": token_ptr, "token": token, "words": words, "model": draw_model(rng, words[:2])}
        case["lm_weight"] = float(rng.choice([0.0, 1.0, 0.5, -1.0, 2.0]))
        return {**case, "weights": scores(len(token_ptr) - 1)}

    def make(self, case: Case) -> certus.ForestTranslation:
        arrays = (np.array(case[name], dtype=np.int32) for name in ("token_ptr", "token"))
        forest = certus.TranslationForest(graph_of(case), *arrays, case["words"], case["weights"])
        return certus.ForestTranslation(forest, model_of(case["model"]), case["lm_weight"])

    def listed(self, case: Case, problem: Any) -> Listed:
        weights, parts_of = case["weights"].tolist(), {}
        for edges in graph_of(case).hyperpaths():
            words = tuple(self.words(case, edges))
            if words not in parts_of:
                parts_of[words] = model_parts(problem.lm, list(words), case["lm_weight"])
            yield np.array(edges), [*(weights[e] for e in edges), *parts_of[words]]

    def words(self, case: Case, edges: list[int]) -> list[str]:
        """What a derivation yields: target sides from the top, each nonterminal by the next edge."""
        left = iter(edges)

        def spelt() -> list[str]:
            e = next(left)
            out: list[str] = []
            for token in case["token"][case["token_ptr"][e] : case["token_ptr"][e + 1]]:
                out += spelt() if token < 0 else [case["words"][token]]
            return out

        return spelt()


class Phrases(Kind):
    """certus.PhraseTranslation, by every method."""

    name = "phrase translation"
    proved = tuple({"method": m, "width": 3} for m in PHRASE_METHODS if m not in ("beam", "stack"))
    tried = ({"method": "beam", "width": 3}, {"method": "stack", "width": 3})

    def draw(self, rng: Rng, scores: Scores) -> Case:
        n = int(rng.integers(1, 5))
        options = []
        for i in range(n):
            for j in range(i, min(n, i + 3)):
                for _ in range(int(rng.choice([1, 1, 1, 2])) if i == j else int(rng.choice([0, 0, 0, 1]))):
                    target = rng.choice(list("abcu"), int(rng.choice([0, 1, 1, 2, 3]))).tolist()
                    options.append([i, j, target])
        if rng.random() < 0.1:
            options.pop(int(rng.integers(len(options))))
        limit = rng.choice([-1, 0, 1, 2, 3])
        return {
            "n": n,
            "options": [options[k] for k in rng.permutation(len(options))],
            "scores": scores(len(options)),
            "model": draw_model(rng, list("abc")),
            "lm_weight": float(rng.choice([1, 1, 2, 0.5, 0, -1])),
            "distortion": float(rng.choice([0, 0.5, 1, 4, -1])),
            "distortion_limit": None if limit < 0 else int(limit),
            "window": bool(rng.integers(2)),
        }

    def make(self, case: Case) -> certus.PhraseTranslation:
        options = [
            certus.PhraseOption(i, j, tuple(target), score)
            for (i, j, target), score in zip(case["options"], case["scores"].tolist(), strict=True)
        ]
        given = {name: case[name] for name in ("lm_weight", "distortion", "distortion_limit", "window")}
        return certus.PhraseTranslation(options, model_of(case["model"]), source=["w"] * case["n"], **given)

    def listed(self, case: Case, problem: Any) -> Listed:
        scores, options = case["scores"].tolist(), case["options"]
        parts_of: dict[tuple[str, ...], list[Part]] = {}
        for structure in problem.all_structures():
            words = tuple(word for k in structure for word in options[k][2])
            if words not in parts_of:
                parts_of[words] = model_parts(problem.lm, list(words), case["lm_weight"])
            last, parts = -1, [scores[k] for k in structure]
            for k in structure:
                parts.append(Fraction(-case["distortion"]) * abs(options[k][0] - last - 1))
                last = options[k][1]
            yield structure, [*parts, *parts_of[words]]


def draw_reading(rng: Rng, words: list[str]) -> list[Any]:
    """A constraint on the words of a translation: its name and what it is about."""
    phrase = rng.choice([*words, "z"], int(rng.integers(1, 4))).tolist()
    name = str(rng.choice(["contains", "avoids", "starts_with", "length", "in_order", "count"]))
    least = int(rng.integers(0, 3))
    return [name, phrase, least, least + int(rng.integers(0, 3))]


def reading_of(reading: list[Any]) -> Reading:
    """The constraint."""
    name, phrase, least, most = reading
    match name:
        case "length":
            return length(least, most)
        case "count":
            return count(sorted(set(phrase)), least, most)
        case "in_order":
            return in_order(*dict.fromkeys(phrase))
    return {"contains": contains, "avoids": avoids, "starts_with": starts_with}[name](phrase)


def satisfied(reading: list[Any], words: list[str]) -> bool:
    """What the constraint says, in plain Python."""
    name, phrase, least, most = reading
    inside = any(words[i : i + len(phrase)] == phrase for i in range(len(words) - len(phrase) + 1))
    order = list(dict.fromkeys(phrase))
    places = [order.index(word) for word in words if word in order]
    return {
        "contains": inside,
        "avoids": not inside,
        "starts_with": words[: len(phrase)] == phrase,
        "length": least <= len(words) <= most,
        "count": least <= sum(word in phrase for word in words) <= most,
        "in_order": places == sorted(places),
    }[name]


class ReadForests(Forests):
    """Forests under a constraint on the words."""

    name = "accepted forest translation"
    proved = ({"method": "search"}, {"method": "beam"})
    tried = ({"method": "cube"},)

    def draw(self, rng: Rng, scores: Scores) -> Case:
        case = super().draw(rng, scores)
        return case | {"reading": draw_reading(rng, case["words"])}

    def make(self, case: Case) -> Any:
        return super().make(case).subject_to(reading_of(case["reading"]))

    def listed(self, case: Case, problem: Any) -> Listed:
        for edges, parts in super().listed(case, problem):
            if satisfied(case["reading"], self.words(case, edges.tolist())):
                yield edges, parts


class ReadPhrases(Phrases):
    """Phrases under a constraint on the words."""

    name = "accepted phrase translation"
    proved = tuple(options for options in Phrases.proved if options["method"] != "ilp")

    def draw(self, rng: Rng, scores: Scores) -> Case:
        return super().draw(rng, scores) | {"reading": draw_reading(rng, list("abc"))}

    def make(self, case: Case) -> Any:
        return super().make(case).subject_to(reading_of(case["reading"]))

    def listed(self, case: Case, problem: Any) -> Listed:
        options = case["options"]
        for structure, parts in super().listed(case, super().make(case)):
            if satisfied(case["reading"], [word for k in structure for word in options[k][2]]):
                yield structure, parts
