"""Samples of the data folder tagged, parsed and translated: for `--against`, whose column `same` is what it shows.

Only what versions of certus have had in common for long is asked for: problems made of scores and grammars that are
estimated from the files, not trained. ``model``, if given, is a name or folder for certus.load that both can read.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import certus
from certus.bench.cases import Case, data_folder, evenly
from certus.bench.suites.nonprojective import scores_for
from certus.io.brackets import read_trees
from certus.io.conllu import read_conllu
from certus.io.hiero import read_weights

LONGEST = 25


def run(
    data: str = "",
    sentences: int = 40,
    treebanks: tuple[str, ...] = ("en_ewt", "nl_cdb", "da_cdt"),
    translated: int = 10,
    model: str = "",
) -> Iterator[Case]:
    for name in treebanks:
        yield from _treebank(name, data, sentences)
    yield from _phrases(data, sentences)
    yield from _translations(data, translated)
    if model:
        pipeline, file = certus.load(model), data_folder(data, "ud", treebanks[0]) / "test.conllu.gz"
        bare = [type(s).from_words(s.words) for s in evenly(list(read_conllu(file)), 10 * sentences)]
        yield Case(f"parse, {model}", lambda: [str(s) for s in pipeline.parse(bare, workers=1)], items=len(bare))


def _treebank(name: str, data: str, sentences: int) -> Iterator[Case]:
    folder = data_folder(data, "ud", name)
    train, dev = (list(read_conllu(folder / f"{part}.conllu.gz")) for part in ("train", "dev"))
    hmm = certus.HMM.estimate([s.tagged("upos") for s in train])
    some = evenly([s for s in dev if 1 < len(s) <= LONGEST], sentences)
    yield _case(f"tags, {name}", [hmm.tagging(s.words) for s in some])
    rng = np.random.default_rng(0)
    heads = [np.array([-1, *(t.head for t in s)]) for s in some]
    for above in (("sibling",), ("sibling", "grandparent")):
        scores = [scores_for(rng, gold, above) for gold in heads]
        for projective in (False, True):
            kind = f"{'projective' if projective else 'crossing'} trees, {' and '.join(above)}s, {name}"
            yield _case(kind, [certus.Dependency(**{**given, "projective": projective}) for given in scores])


def _phrases(data: str, sentences: int) -> Iterator[Case]:
    folder = data_folder(data, "ptb-sample")
    train, dev = (list(read_trees(folder / f"{part}.mrg.gz", clean=True)) for part in ("train", "dev"))
    texts = [[word.strip("()") for word in str(tree).split() if word[0] != "("] for tree in dev]
    some = evenly([words for words in texts if 1 < len(words) <= LONGEST], sentences)
    grammar = certus.Grammar.from_treebank(train)
    yield _case("trees of phrases", [certus.Constituency(grammar, words) for words in some])
    lexicalized = certus.LexicalizedGrammar.from_treebank(train)
    yield _case("lexicalised trees", [certus.LexicalizedConstituency(lexicalized, w) for w in some[: sentences // 4]])


def _translations(data: str, sentences: int) -> Iterator[Case]:
    """Compared by their words: several derivations of these may score the same."""
    folder = data_folder(data, "mt")
    sources = [line.split() for line in (folder / "test.de").read_text(encoding="utf-8").splitlines()[:sentences]]
    words, weights = {word for source in sources for word in source}, read_weights(folder / "weights.json")
    rules, glue = folder / "hiero.de-en.gz", folder / "hiero.glue.txt"
    grammar = certus.SynchronousGrammar.read(rules, glue=glue, weights=weights, source_words=words)
    forests = [grammar.forest(source) for source in sources]
    models = {order: certus.LanguageModel.read(folder / f"lm.en.{order}gram.arpa.gz") for order in (2, 3)}
    for order, lm in models.items():
        problems: list[Any] = [certus.ForestTranslation(forest, lm, weights["LM"]) for forest in forests]
        yield _case(f"forests, {order}-grams", problems, lambda p, y: p.words(y))
    weights = read_weights(folder / "weights.json", "phrase_based")
    read = certus.PhraseModel.read(folder / "phrase-table.de-en.gz", models[3], weights, sentences=sources)
    model = certus.PhraseModel(read.table, read.lm, weights, distortion_limit=4)
    yield _case("phrases, 3-grams", [model.problem(source) for source in sources], lambda p, y: p.words(y))


def _case(
    name: str, problems: list[Any], read: Callable[[Any, Any], Any] = lambda problem, structure: structure
) -> Case:
    """Structures as ``read`` shows them, scores, and whether they are proved."""

    def answers(found: list[Any]) -> list[Any]:
        shown = [read(p, r.structure) for p, r in zip(problems, found, strict=True)]
        shown = [y.tolist() if isinstance(y, np.ndarray) else str(y) for y in shown]
        return [[y, r.score, r.certificate.exact] for y, r in zip(shown, found, strict=True)]

    return Case(name, lambda: [p.decode() for p in problems], items=len(problems), numbers=answers)
