"""The readers of certus, each with small files that it accepts and what is done with a file that it accepts."""

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.errors import CertusError, VerificationError
from tests.fuzz import mutate
from tests.fuzz.seeds import ARPA, CLUSTERS, CONLLU, FOREST, GRAMMAR, GRAPH, HEADS, PHRASES, RULES, TREES, WEIGHTS

WORDS = ["the", "dog", "Sees", "a", "cat", "unheard-of", "barks"]


@dataclass(frozen=True)
class Reader:
    """A kind of file: how its name ends, files that are right, what reads and uses one, and how it is damaged."""

    name: str
    suffix: str
    seeds: Callable[[], list[bytes]]
    use: Callable[[Path], object]
    mutators: list[mutate.Mutator]


def _file(write: Callable[[Path], object], suffix: str = "") -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        write(path)
        return path.read_bytes()


# -- text ------------------------------------------------------------------------------------------------------------


def conllu(path: Path) -> None:
    from certus.io.conllu import read_conllu

    for sentence in read_conllu(path):
        str(sentence)


def trees(path: Path) -> None:
    from certus.io.brackets import read_trees

    found = list(read_trees(path, clean=True))
    if found and sum(len(tree.words) for tree in found) < 200:
        certus.Grammar.from_treebank(found, fallback=None)


def phrases(path: Path) -> None:
    from certus.io.moses import read_phrase_table

    read_phrase_table(path)
    read_phrase_table(path, [["der", "hund"]], max_phrase_length=3)


def rules(path: Path) -> None:
    from certus.io.hiero import read_rules
    from certus.translation.grammar import SynchronousGrammar

    table = read_rules(path, source_words=["der", "hund", "und"])
    weights = dict.fromkeys(table.feature_names, 1.0)
    SynchronousGrammar.read(path, weights=weights).forest(["der", "hund", "und", "hund"])


def arpa(path: Path) -> None:
    lm = certus.LanguageModel.read(path, unknown=-10.0)
    lm.score(["the", "dog", "the", "unheard"])
    lm.log_probabilities([["the", "dog"], []])


def _use_forest(forest: Any) -> None:
    from certus.io.arpa import parse_arpa

    forest = forest.weighted(dict.fromkeys(forest.feature_names, 0.5))
    if forest.graph.n_edges < 200:
        certus.ForestTranslation(forest, certus.LanguageModel(parse_arpa(ARPA)), 0.5).decode(time_limit=1)


def forest(path: Path) -> None:
    _use_forest(certus.TranslationForest.read(path))


def graph(path: Path) -> None:
    from certus.hypergraph import formats

    found, weights = formats.load(path)
    if found.n_edges < 1000:
        problem = certus.Hyperpath(found, np.zeros(found.n_edges) if weights is None else weights)
        problem.decode()
        problem.log_partition()


def grammar(path: Path) -> None:
    from certus.models.loading import load_grammar

    found = load_grammar(path)
    if isinstance(found, certus.Grammar):
        certus.Constituency(found, ["the", "dog", "Sees"]).decode()
    else:
        certus.LexicalizedConstituency(found, ["the", "dog", "barks"]).decode()


def heads(path: Path) -> None:
    from certus.constituency import HeadRules

    HeadRules.load(path).head("NP", ["DT", "NN"])


def clusters(path: Path) -> None:
    from certus.features.brown import Clusters

    Clusters.load(path).prefix("dog", 4)


def weights(path: Path) -> None:
    from certus.io.hiero import read_weights

    read_weights(path)


def translations(path: Path) -> None:
    from certus.io.translations import read_translations

    read_translations(path)


# -- JSON ------------------------------------------------------------------------------------------------------------


def hmm(path: Path) -> None:
    from certus.tagging import HMM

    HMM.load(path).tag(WORDS)


def _hmm() -> list[bytes]:
    from certus.tagging import HMM

    corpus = [[("the", "D"), ("dog", "N"), ("barks", "V")], [("cats", "N"), ("meow", "V")]]
    return [_file(HMM.estimate(corpus).save)]


def _grammars() -> list[bytes]:
    from certus.io.brackets import parse_trees

    parsed = list(parse_trees(TREES.replace("(-NONE- *)", "").splitlines()))
    listed = certus.Grammar.from_text(GRAMMAR)
    counted = certus.Grammar.from_treebank(parsed)
    lexicalised = certus.LexicalizedGrammar.from_treebank(parsed)
    return [_file(made.save) for made in (listed, counted, lexicalised)]


def _forests() -> list[bytes]:
    return [json.dumps(certus.TranslationForest.from_text(FOREST).to_json()).encode()]


def _graphs() -> list[bytes]:
    from certus.hypergraph import formats

    return [json.dumps(formats.to_json(*formats.from_text(GRAPH))).encode()]


@cache
def problems() -> dict[str, Any]:
    """A small problem of each kind that can be saved."""
    from certus import constraints as C
    from certus.hypergraph import formats
    from certus.io.arpa import parse_arpa
    from certus.io.brackets import parse_trees
    from certus.relax.constrained_hyperpath import ConstrainedHyperpath
    from certus.translation import PhraseOption

    rng = np.random.default_rng(1)

    def scores(*shape: int) -> Any:
        return rng.integers(-5, 6, size=shape).astype(np.float64)

    found, weight = formats.from_text(GRAPH)
    lm = certus.LanguageModel(parse_arpa(ARPA))
    parsed = list(parse_trees(TREES.replace("(-NONE- *)", "").splitlines()))
    tagging = certus.Tagging(scores(3, 2), bigram=scores(2, 2), tags=("D", "N"))
    arc = scores(4, 4)
    listed = certus.Dependency.from_parts(
        3,
        ([0, 0, 1, 1, 2], [1, 2, 2, 3, 3], scores(5)),
        sibling=([1, 1, 0], [1, 2, 0], [2, 3, 1], scores(3)),
        unlisted=0.0,
    )
    options = [PhraseOption(0, 0, ("the",), 1.0), PhraseOption(1, 1, ("dog",), 0.5), PhraseOption(0, 1, ("dog",), -1.0)]
    made = {
        "hyperpath": certus.Hyperpath(found, weight),
        "constrained hyperpath": ConstrainedHyperpath(
            found, np.array([1.0, 2, 3, 4]), np.array([[0.0, 1, 0, 0]]), [1.0]
        ),
        "tagging": tagging,
        "trigram tagging": certus.Tagging(scores(3, 2), trigram=scores(2, 2, 2)),
        "constituency": certus.Constituency(certus.Grammar.from_text(GRAMMAR), ["the", "dog", "Sees"]),
        "lexicalized constituency": certus.LexicalizedConstituency(
            certus.LexicalizedGrammar.from_treebank(parsed), ["the", "dog", "barks"]
        ),
        "dependency": certus.Dependency(arc, sibling=scores(4, 4, 4), projective=True),
        "crossing dependency": certus.Dependency(scores(4, 4), sibling=scores(4, 4, 4), grandparent=scores(4, 4, 4)),
        "listed dependency": listed,
        "labelled dependency": certus.Dependency(arc).labelled(scores(4, 4, 2)),
        "phrase translation": certus.PhraseTranslation(options, lm, source=["der", "hund"]),
        "forest translation": certus.ForestTranslation(certus.TranslationForest.from_text(FOREST), lm, 0.5),
        "accepted phrase translation": certus.PhraseTranslation(options, lm, source=["der", "hund"]).subject_to(
            C.contains(["dog"])
        ),
        "accepted forest translation": certus.ForestTranslation(
            certus.TranslationForest.from_text(FOREST), lm, 0.5
        ).subject_to(C.length(1, 9)),
        "joint": certus.Joint(tagging, certus.Tagging(scores(3, 2), bigram=scores(3, 3)), on="tags"),
        "constrained": tagging.subject_to(C.at_most(1, "tags", [(0, 1), (1, 1), (2, 1)])),
        "masked": tagging.subject_to(C.forbid("tags", (0, 1))),
        "soft": tagging.subject_to(C.at_most(1, "tags", [(0, 1), (1, 1), (2, 1)], penalty=0.5)),
        "accepted": tagging.subject_to(C.contains([1, 0])),
        "joint of many": certus.Joint(tagging, tagging, certus.Tagging(scores(3, 2)), on=["tags"], weights=(1, 2, 0.5)),
    }
    return made


def _results() -> list[bytes]:
    out = []
    for problem in problems().values():
        result = problem.decode()
        out.append(_file(lambda path, p=problem, r=result: certus.save_result(path, p, r)))
    return out


def result(path: Path) -> None:
    problem, found = certus.load_result(path)
    if _size(problem) < 500:
        with suppress(VerificationError):
            certus.verify(problem, found)
        problem.decode(**({"time_limit": 1.0} if _limited(problem) else {}))


def _size(problem: Any) -> int:
    return sum(int(np.prod(shape)) for shape in problem.views.values())


def _limited(problem: Any) -> bool:
    from inspect import signature

    return "time_limit" in signature(problem.decode).parameters


# -- models ----------------------------------------------------------------------------------------------------------


def _corpus() -> list[Any]:
    from certus.text import Sentence, Token

    rows = [
        [("the", "DET", 2, "det"), ("dog", "NOUN", 3, "nsubj"), ("barks", "VERB", 0, "root")],
        [
            ("cats", "NOUN", 2, "nsubj"),
            ("see", "VERB", 0, "root"),
            ("dogs", "NOUN", 2, "obj"),
            ("too", "ADV", 2, "advmod"),
        ],
        [("a", "DET", 2, "det"), ("cat", "NOUN", 3, "nsubj"), ("sees", "VERB", 0, "root"), ("dogs", "NOUN", 3, "obj")],
    ]
    sentences = [
        Sentence([Token(i, w, upos=t, xpos=t[:2], head=h, deprel=r) for i, (w, t, h, r) in enumerate(row, 1)])
        for row in rows
    ]
    return sentences * 4


@cache
def _taggers() -> list[bytes]:
    from certus.models.tagger import Tagger

    clusters = {"dog": "00", "cat": "00", "sees": "10"}
    plain = Tagger.train(_corpus(), column="upos", epochs=1, bits=8)
    rich = Tagger.train(_corpus(), column=["upos+xpos"], epochs=1, bits=9, clusters=clusters)
    return [_file(tagger.save) for tagger in (plain, rich)]


@cache
def _parsers() -> list[bytes]:
    from certus.models.parser import Settings
    from certus.models.training import train_parser

    small = Settings(order=1, epochs=1, label_epochs=1, bits=10, label_bits=10)
    kinds = [
        small,
        replace(small, order=1, projective=False),
        replace(small, order=2),
        replace(small, order=3, trisiblings=True),
        replace(small, order=2, projective=False),
    ]
    clusters = {"dog": "00", "cat": "00", "sees": "10"}
    return [_file(train_parser(_corpus(), settings=kind, clusters=clusters).save) for kind in kinds]


def tagger(path: Path) -> None:
    from certus.models.tagger import Tagger
    from certus.text import Sentence

    found = Tagger.load(path)
    for sentence in found.tag([Sentence.from_words(WORDS), Sentence.from_words(WORDS[:1]), Sentence.from_words([])]):
        str(sentence)
    if len(found.models[0].tags) < 20:
        found.problem(WORDS, found.models[0].column).decode()


def parser(path: Path) -> None:
    from certus.models.parser import Parser
    from certus.text import Sentence, Token

    found = Parser.load(path)
    tags = ["DET", "NOUN", "VERB", "DET", "NOUN", "X", "VERB"]
    tokens = [Token(i, word, upos=tag) for i, (word, tag) in enumerate(zip(WORDS, tags, strict=True), start=1)]
    for sentence in found.parse([Sentence(tokens), Sentence(tokens[:1]), Sentence([])]):
        str(sentence)


@cache
def _tagger_checkpoint() -> list[bytes]:
    from certus.models.tagger import Tagger

    return [
        _file(lambda path: Tagger.train(_corpus(), _corpus()[:2], column="upos", epochs=2, bits=8, checkpoint=path))
    ]


def tagger_checkpoint(path: Path) -> None:
    from certus.models.tagger import Tagger

    Tagger.train(_corpus(), _corpus()[:2], column="upos", epochs=2, bits=8, checkpoint=path, resume=True)


@cache
def _parser_checkpoint() -> list[bytes]:
    from certus.models.training import train_parser

    kept: list[bytes] = []

    def write(path: Path) -> None:
        def stop(epoch: Any) -> None:
            if epoch.stage in ("labels", "trees"):
                kept.append(path.read_bytes())

        train_parser(_corpus(), settings=_checkpointed(), checkpoint=path, progress=stop)
        path.write_bytes(b"")

    _file(write)
    return kept


def _checkpointed() -> Any:
    from certus.models.parser import Settings

    return Settings(order=1, epochs=2, label_epochs=1, bits=10, label_bits=10, learner="log-linear-eg")


def parser_checkpoint(path: Path) -> None:
    from certus.models.training import train_parser

    train_parser(_corpus(), settings=_checkpointed(), checkpoint=path, resume=True)


def _text(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in texts]


READERS = [
    Reader("conllu", ".conllu", _text(CONLLU), conllu, mutate.TEXT),
    Reader("brackets", ".mrg", _text(TREES), trees, mutate.TEXT),
    Reader("phrase table", ".txt", _text(PHRASES), phrases, mutate.TEXT),
    Reader("rules", ".txt", _text(RULES), rules, mutate.TEXT),
    Reader("arpa", ".arpa", _text(ARPA), arpa, mutate.TEXT),
    Reader("forest text", ".txt", _text(FOREST), forest, mutate.TEXT),
    Reader("hypergraph text", ".txt", _text(GRAPH), graph, mutate.TEXT),
    Reader("grammar text", ".txt", _text(GRAMMAR), grammar, mutate.TEXT),
    Reader("head rules", ".heads", _text(HEADS), heads, mutate.TEXT),
    Reader("clusters", ".txt", _text(CLUSTERS), clusters, mutate.TEXT),
    Reader("weights", ".txt", _text(WEIGHTS), weights, mutate.TEXT),
    Reader(
        "weights json", ".json", _text('{"hiero": {"weights": {"p": 0.5, "LM": 1}}}', '{"p": 1}'), weights, mutate.JSON
    ),
    Reader(
        "translations", ".json", _text('{"sentences": [{"translation": "a b", "score": -1.5}, {"model_score": 2}]}'),
        translations, mutate.JSON,
    ),
    Reader("forest json", ".json", _forests, forest, mutate.JSON),
    Reader("hypergraph json", ".json", _graphs, graph, mutate.JSON),
    Reader("grammar json", ".json", _grammars, grammar, mutate.JSON),
    Reader("hmm", ".json", _hmm, hmm, mutate.JSON),
    Reader("result", ".json", _results, result, mutate.JSON),
    Reader("tagger", ".safetensors", _taggers, tagger, mutate.MODEL),
    Reader("parser", ".safetensors", _parsers, parser, mutate.MODEL),
    Reader("tagger checkpoint", ".safetensors", _tagger_checkpoint, tagger_checkpoint, mutate.MODEL),
    Reader("parser checkpoint", ".safetensors", _parser_checkpoint, parser_checkpoint, mutate.MODEL),
]  # fmt: skip


def verdict(reader: Reader, path: Path) -> str:
    """ "accepted", or the error that certus raised on purpose; anything else is raised on."""
    try:
        reader.use(path)
    except CertusError as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"
