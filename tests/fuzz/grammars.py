"""Trees of weighted grammars, plain and lexicalised."""

from typing import Any
from zlib import crc32

import numpy as np

import certus
from tests.constituency import spines
from tests.fuzz.cases import Case, Kind, Listed
from tests.fuzz.scores import Rng, Scores
from tests.oracles import cfg

SYMBOLS, WORDS = ("S", "A", "B", "C"), ("a", "b")


def rules_of(case: Case) -> list[cfg.Rule]:
    """The rules that are not forbidden."""
    weights = case["weights"].tolist()
    pairs = zip(case["rules"], weights, strict=True)
    return [cfg.Rule(w, parent, tuple(children), word) for (parent, children, word), w in pairs if w > -np.inf]


class Grammars(Kind):
    """certus.Constituency: unary rules, long rules, and at times scores of the words in place of the grammar's."""

    name = "constituency"

    def draw(self, rng: Rng, scores: Scores) -> Case:
        rules: list[list[Any]] = [["S", ["S", "C"], None]]
        for p, parent in enumerate(SYMBOLS):
            rules += [[parent, [], word] for word in WORDS if rng.random() < (0.5 if parent == "S" else 0.7)]
            rules += [[parent, [child], None] for child in SYMBOLS[p + 1 :] if rng.random() < 0.25]
        for _ in range(int(rng.integers(1, 6))):
            right = rng.choice(SYMBOLS, int(rng.choice([2, 2, 3, 4]))).tolist()
            rule = [str(rng.choice(list("SSAB"))), right, None]
            if rule not in rules:
                rules.append(rule)
        n = int(rng.integers(1, 5))
        case = {"rules": rules, "weights": scores(len(rules))}
        if not np.isfinite(case["weights"]).any():
            case["weights"][0] = 0.0  # a grammar has a rule
        case["words"] = rng.choice([*WORDS, *WORDS, *WORDS, "unseen"], n).tolist()
        if rng.random() < 0.3:
            case["lexical"] = scores(n, len({rule.parent for rule in rules_of(case) if rule.word}))
        return case

    def make(self, case: Case) -> certus.Constituency:
        lines = []
        for rule in rules_of(case):
            right = f'"{rule.word}"' if rule.word is not None else " ".join(rule.children)
            lines.append(f"{rule.weight!r} {rule.parent} -> {right}")
        grammar = certus.Grammar.from_text("\n".join(lines), root="S")
        return certus.Constituency(grammar, case["words"], lexical=case.get("lexical"))

    def listed(self, case: Case, problem: Any) -> Listed:
        weight = {(r.parent, r.children if r.word is None else r.word): r.weight for r in rules_of(case)}
        tags = sorted({r.parent for r in rules_of(case) if r.word is not None})
        rules = [r._replace(weight=0.0) for r in rules_of(case)]
        if "lexical" in case:  # any tag over any word: the scores say which
            rules = [r for r in rules if r.word is None] + [
                cfg.Rule(0.0, tag, word=word) for tag in tags for word in sorted(set(case["words"]))
            ]
        for tree, _ in cfg.trees(rules, "S", case["words"]):
            yield tree, self.parts(tree, weight, case.get("lexical"), tags)

    def parts(self, tree: Any, weight: dict[Any, float], lexical: Any, tags: list[str]) -> list[float]:
        out, stack, i = [], [tree], 0
        while stack:
            node = stack.pop()
            if isinstance(node.children[0], str):
                word = weight.get((node.label, node.children[0]), 0.0)
                out.append(word if lexical is None else float(lexical[i, tags.index(node.label)]))
                i += 1
            else:
                out.append(weight[node.label, tuple(child.label for child in node.children)])
                stack += reversed(node.children)
        return out


class KeyedSpines(spines.RandomSpines):
    """Scores of a regime that depend on the seed and the question alone, not on the order of the questions."""

    def __init__(self, seed: int, regime: str) -> None:
        super().__init__(seed)
        self.seed, self.regime = seed, regime
        self.made = self.spines_of, self.contexts, self.outcomes  # drawn now, in this order

    def known(self, key: Any, *shape: int) -> np.ndarray:
        if key not in self.rows:
            rng = np.random.default_rng([self.seed, crc32(repr(key).encode())])
            scores = Scores(rng, self.regime)
            scores.share = 0.05
            self.rows[key] = np.asarray(scores(*shape))
        return self.rows[key]


class Spines(Kind):
    """certus.LexicalizedConstituency over a random grammar, which its seed stands for."""

    name = "lexicalized constituency"
    share = 0.3

    def draw(self, rng: Rng, scores: Scores) -> Case:
        words = rng.choice(list("aabbc,"), size=int(rng.choice([1, 2, 3], p=[0.3, 0.6, 0.1]))).tolist()
        case = {"seed": int(rng.integers(2**31)), "words": words, "scores": scores.regime}
        return {**case, "within": True} if rng.random() < 0.1 else case

    def make(self, case: Case) -> certus.LexicalizedConstituency:
        problem = certus.LexicalizedConstituency(KeyedSpines(case["seed"], case["scores"]), case["words"])
        return problem.within(np.inf) if "within" in case else problem

    def listed(self, case: Case, problem: Any) -> Listed:
        return spines.tree_parts(KeyedSpines(case["seed"], case["scores"]), case["words"])
