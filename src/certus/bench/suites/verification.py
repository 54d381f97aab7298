"""What checking a certificate costs beside finding it: ``certus.verify``, the standalone checker, saved results.

Ratios are of processor time, verify over decode, witnesses made in between included; for lists, over ``kbest(3)``, of
which the last is checked. The bar: at most 10 where decoding takes more than 10 ms, else at most 0.1 s; none above 60
s, nor above 2 GB: the most that the process held while it checked, with the problem and all that came before.
"""

import json
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import certus
from certus.bench.cases import Row, Skipped, data_folder, evenly
from certus.bench.suites.lexicalized import Models
from certus.bench.translation import Hiero, Phrases, confusions, lacking
from certus.certificates import standalone
from certus.io.brackets import read_trees
from certus.io.conllu import read_conllu
from certus.proof_file import proof_to_json
from certus.saved import result_to_json

QUICK, TIMES, SOON = 0.01, 10.0, 0.1
SHARES = 0.5, 0.3, 0.2  # of the time of a kind: best structures, lists, the standalone checker

Make = Callable[[], Any]  # a problem, made anew so that it finds nothing that another question left
Kinds = dict[str, Callable[[], list[Make]]]  # problems of each kind, read when they are asked for


class _Checks(NamedTuple):
    """Seconds of decoding and of checking, and whether the results claim to be exact."""

    decoding: list[float]
    checking: list[float]
    exact: list[bool]
    gigabytes: list[float]

    def cells(self) -> dict[str, float]:
        """What is printed."""
        both = list(zip(self.decoding, self.checking, strict=True))
        if not both:
            return {"results": 0, "exact": 0, "median": 0.0, "worst": 0.0, "slowest, s": 0.0, "over": 0, "GB": 0.0}
        over = [c > (TIMES * d if d > QUICK else SOON) or c > 60.0 for d, c in both]
        ratios = [c / max(d, 1e-9) for d, c in both]
        worst = max((c / d for d, c in both if d > QUICK), default=0.0)  # where the bar is about ratios
        return {
            "results": len(both),
            "exact": sum(self.exact),
            "median": float(np.median(ratios)),
            "worst": worst,
            "slowest, s": max(self.checking),
            "over": sum(over),
            "GB": max(self.gigabytes),
        }


def run(
    *,
    data: str = "",
    model: str = "",
    penn: str = "",
    sentences: int = 100,
    ranks: int = 10,
    alone: int = 2,
    seconds: float = 400.0,
    only: str = "",
    orders: tuple[int, ...] = (3,),
) -> Iterator[Row | Skipped]:
    """``model`` is the folder of a parser of trees with crossing arcs, for test sentences of nl_cdb, twice as many;
    ``penn`` that of the models which the suite "lexicalized" keeps in ``work``, for half as many of the Penn sample.

    Lists of the three best are checked for ``ranks`` problems of a kind, the ``alone`` shortest ones by the standalone
    checker. After so many ``seconds`` of a kind no other problem is begun; "results" says how many there were. With
    ``only``, kinds whose names begin with it: "Hiero", "phrases", "joint", "crossing". ``orders`` are those of the
    language models of Hiero translations; all else has the first of them.
    """
    kinds = (
        _translations(data, sentences, orders)
        | _joint(data, penn, sentences // 2)
        | _crossing(data, model, 2 * sentences)
    )
    for name in [name for name in kinds if name.startswith(only)]:
        problems = kinds[name]()
        first = problems[0]()
        certus.verify(first, first.decode())  # compiles
        _measured(problems[:1], seconds, lambda p: p.kbest(3)[-1])
        best, many, few = (seconds * share for share in SHARES)
        found = _measured(_spread(problems, sentences), best, lambda p: p.decode()).cells()
        ranked = _measured(_spread(problems, ranks), many, lambda p: p.kbest(3)[-1]).cells()
        cells = found | {f"rank 3: {key}": value for key, value in ranked.items()}
        if name.startswith(("Hiero", "phrases")) and "tied" not in name:
            few = few / 2
            listed = _measured(_spread(problems, ranks), few, lambda p: p.kbest(3, distinct=True)[-1]).cells()
            cells |= {f"distinct 3: {key}": value for key, value in listed.items()}
        yield Row(name, cells | _by_itself(problems[:alone], few))
    yield Row("standalone checker", {"lines": len(Path(standalone.__file__).read_text(encoding="utf-8").splitlines())})
    if not penn:
        yield Skipped("joint lexicalised parses: give the folder of trained models with --set penn=FOLDER")
    if not model:
        yield Skipped("crossing parses: give the folder of a trained parser with --set model=FOLDER")


# -- problems, the shortest first ------------------------------------------------------------------------------------


def _translations(data: str, sentences: int, orders: tuple[int, ...]) -> Kinds:
    folder = data_folder(data, "mt")
    hiero, phrases = Hiero(folder, sentences), Phrases(folder, sentences)
    targets = (folder / "test.en").read_text(encoding="utf-8").splitlines()
    by_length = sorted(zip(hiero.sentences, targets, strict=False), key=lambda pair: len(pair[0]))
    sources, references = [source for source, _ in by_length], [target for _, target in by_length]
    networks = [confusions(words, others) for words, others in zip(sources, sources[1:] + sources[:1], strict=True)]
    lm = cache(hiero.lm)

    def forests(given: Sequence[Any], order: int = orders[0]) -> list[Make]:
        made = map(hiero.grammar.forest, given)
        return [partial(certus.ForestTranslation, forest, lm(order), hiero.weights["LM"]) for forest in made]

    def by_phrases(given: Sequence[Any], limit: int | None = 6) -> list[Make]:
        return [partial(phrases.model(orders[0], limit).problem, source) for source in given]

    def terms(makers: list[Make]) -> list[Make]:
        return [made for made in map(_with_term, makers, references) if made]

    def tied() -> list[Make]:
        return [made for made in map(_constrained, forests(sources[: max(1, sentences // 5)])) if made]

    return {f"Hiero, {order}-grams": partial(forests, sources, order) for order in orders} | {
        "Hiero, an edge forbidden and two tied": tied,
        "Hiero, a term": lambda: terms(forests(sources)),
        "Hiero, confusion networks": partial(forests, networks),
        "phrases, limit 6": partial(by_phrases, sources),
        "phrases, limit none": partial(by_phrases, sources, None),
        "phrases, a term": lambda: terms(by_phrases(sources)),
        "phrases, confusion networks": partial(by_phrases, networks),
    }


def _with_term(make: Make, reference: str) -> Make | None:
    """With a word of the reference that the best translation lacks; None if there is none."""
    problem = make()
    term = lacking(problem, problem.decode(), reference)
    return None if term is None else lambda: make().subject_to(certus.constraints.contains([term]))


def _constrained(make: Make) -> Make | None:
    """Without an edge of the best derivation, and with at most one of two others; None if nothing is left."""
    edges = make().decode().structure.tolist()
    made = [certus.constraints.forbid("edges", (edges[-1],))]
    made.append(certus.constraints.at_most(1, "edges", [(edges[0],), (edges[len(edges) // 2],)]))
    try:
        make().subject_to(*made).decode()
    except certus.Infeasible:
        return None
    return lambda: make().subject_to(*made)


def _joint(data: str, penn: str, sentences: int) -> Kinds:
    """Lexicalised trees with the tagger, and with tagger and dependency parser."""
    if not penn:
        return {}
    folder = data_folder(data, "ptb-sample")
    models, weight = cache(lambda: Models(folder, Path(penn))), {"arcs": 1.0, "tags": 0.02}

    def made(kind: str) -> list[Make]:
        words = [t.words for t in read_trees(folder / "test.mrg.gz", clean=True) if len(t.words) <= 40][:sentences]
        return [partial(models().joint, kind, given, weight) for given in sorted(words, key=len)]

    return {f"joint lexicalised, {kind}": partial(made, kind) for kind in ("tags", "both")}


def _crossing(data: str, model: str, sentences: int) -> Kinds:
    def made() -> list[Make]:
        parser = certus.load(model).parser
        trees = evenly(list(read_conllu(data_folder(data, "ud") / "nl_cdb" / "test.conllu.gz")), sentences)
        return [partial(parser.problem, sentence) for sentence in sorted(trees, key=len)]

    return {"crossing parses": made} if model else {}


# -- what is measured ------------------------------------------------------------------------------------------------


def _spread(problems: list[Make], count: int) -> list[Make]:
    """At least so many of the problems if there are, in an order in which whatever comes first is spread over all."""
    chosen = problems if count >= 100 else evenly(problems, count)
    return [make for start in range(7) for make in chosen[start::7]]


def _most_held(*, forget: bool = False) -> float:
    """The most memory that the process held, in GB; on Linux, since it was last asked to forget what came before."""
    try:
        if forget:
            Path("/proc/self/clear_refs").write_text("5")
        held = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
        return int(held.split()[1]) / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def _timed(call: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    begun = time.process_time()
    return call(*given), time.process_time() - begun


def _measured(problems: list[Make], seconds: float, asked: Callable[[Any], Any]) -> _Checks:
    found, begun = _Checks([], [], [], []), time.process_time()
    for make in problems:
        if time.process_time() - begun > seconds:
            break
        problem = make()
        try:
            result, decoding = _timed(asked, problem)
        except certus.NotSupported:
            continue
        _most_held(forget=True)
        _, checking = _timed(certus.verify, problem, result)
        found.gigabytes.append(_most_held())
        found.decoding.append(decoding)
        found.checking.append(checking)
        found.exact.append(bool(result.certificate.exact))
    return found


def _by_itself(problems: list[Make], limit: float) -> dict[str, float]:
    """Seconds of the standalone checker on some problems, and the size of what is saved."""
    sizes, seconds, begun = list[float](), list[float](), time.process_time()
    check: Any = standalone.check
    for make in problems:
        if time.process_time() - begun > limit:
            break
        problem = make()
        result = problem.decode()
        saved = result_to_json(problem, result)
        sizes.append(len(json.dumps(saved)) / len(json.dumps(saved["problem"])))
        try:
            written = json.loads(json.dumps(proof_to_json(problem, result)))
        except certus.NotSupported:
            continue
        seconds.append(_timed(check, written)[1])
    return {
        "standalone, s": max(seconds, default=float("nan")),
        "saved / problem": float(np.median(sizes)) if sizes else float("nan"),
    }
