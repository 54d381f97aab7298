"""Proofs edited by hand: neither checker accepts a false claim, and neither ends in a traceback."""

import copy
import dataclasses
import itertools
import json
from math import inf, nan

import numpy as np
import pytest

import certus
from certus.certificates import standalone
from certus.constraints import at_most, budget
from certus.io.arpa import Arpa, Ngrams
from certus.proof_file import proof_to_json
from tests.translation.cases import WORDS


def taggings():
    rng = np.random.default_rng(3)
    unary = rng.integers(-4, 5, (2, 4, 3)).astype(float)
    return [certus.Tagging(own, rng.integers(-3, 4, (3, 3)).astype(float)) for own in unary]


def phrases():
    grams = Ngrams(np.arange(6, dtype=np.int32).reshape(-1, 1), -np.arange(1.0, 7.0) / 4, np.zeros(6))
    pairs = Ngrams(np.array([[1, 3], [3, 4], [4, 2]], dtype=np.int32), np.array([-0.5, -0.25, -0.75]), np.zeros(3))
    made = [(0, 0, "a", 1.0), (0, 0, "b", 2.0), (1, 1, "b", 0.5), (1, 1, "c", 1.5), (0, 1, "ca", 2.0)]
    options = [certus.PhraseOption(i, j, tuple(words), score) for i, j, words, score in made]
    return certus.PhraseTranslation(options, certus.LanguageModel(Arpa(WORDS, [grams, pairs])), source=["x", "y"])


PROBLEMS = {
    "graph": lambda: taggings()[0],
    "trees": lambda: certus.Dependency([[0, 5, 1, 2], [0, 0, 4, 3], [0, 3, 0, 6], [0, 1, 5, 0]]),
    "rows": lambda: certus.Joint(*taggings(), on="tags"),
    "tree of a proof": lambda: certus.Knapsack([5, 4, 3, 6, 5, 7], [[4, 3, 2, 5, 4, 6]], [11]),
    "limits": lambda: taggings()[0].subject_to(at_most(1, "tags", [(i, 0) for i in range(4)])),
    "budget": lambda: taggings()[1].subject_to(budget("tags", np.arange(12).reshape(4, 3) % 5, 6)),
    "phrases": phrases,
}


@pytest.fixture(params=PROBLEMS, scope="module")
def problem(request):
    return PROBLEMS[request.param]()


@pytest.fixture(scope="module")
def proved(problem):
    """The proof files of ranks 1 and 2, each with what all structures score, best first."""
    values = sorted((problem.score(y) for y in problem.all_structures()), reverse=True)
    return [(json.loads(json.dumps(proof_to_json(problem, r))), values) for r in problem.kbest(2)]


def places(data, path=()):
    """Where everything in some JSON stands."""
    for at, item in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        yield (*path, at)
        yield from places(item, (*path, at))


def put(data, path, value):
    data = copy.deepcopy(data)
    holder = data
    for at in path[:-1]:
        holder = holder[at]
    holder[path[-1]] = value
    return data


def accepted(data):
    """Whether the file is accepted, as another program would read it; anything but a refusal is an error."""
    try:
        read = json.loads(json.dumps(data))
        standalone.check(read)
    except (standalone.Refused, *standalone.MALFORMED):
        return False
    return True


def is_true(claim, values):
    """Of a claim about the problem as it was."""
    best = values[claim["rank"] - 1] if 1 <= claim["rank"] <= len(values) else inf
    return best <= claim["bound"] + claim["tolerance"] and (
        not claim["exact"] or abs(claim["score"] - best) <= 1e-9 * (1 + abs(best))
    )


TRIES = 30
ODD = (nan, inf, -inf, "-inf", "nan", -1, 0, 1, True, None, 10**30, -(10**30), 10**400, 1e308, 0.5, [], {}, "x", [[]])


def test_whatever_stands_in_a_proof_is_no_traceback_and_no_false_claim(proved):
    """One thing at a time, everywhere in what claims and proves: the problem is left as it is."""
    rng = np.random.default_rng(1)
    for data, values in proved:
        own = [
            p for p in places(data) if p[0] in ("claim", "proof", "better", "closing", "structure") or "witness" in p
        ]
        for path in [own[int(k)] for k in rng.choice(len(own), min(len(own), TRIES), replace=False)]:
            for odd in [ODD[int(k)] for k in rng.choice(len(ODD), 4, replace=False)]:
                forged = put(data, path, odd)
                if accepted(forged):
                    assert is_true(forged["claim"], values), (path, odd)


def test_whatever_stands_in_a_problem_is_no_traceback(proved):
    rng = np.random.default_rng(2)
    for data, _ in proved:
        own = [p for p in places(data) if p[0] in ("scores", "spaces", "rows", "format", "version")]
        for path in [own[int(k)] for k in rng.choice(len(own), min(len(own), TRIES), replace=False)]:
            for odd in [ODD[int(k)] for k in rng.choice(len(ODD), 3, replace=False)]:
                accepted(put(data, path, odd))


def test_whatever_stands_in_a_saved_result_is_an_error_of_certus_or_true(problem, proved, tmp_path):
    rng, path = np.random.default_rng(5), tmp_path / "result.json"
    for result, (_, values) in zip(problem.kbest(2), proved, strict=True):
        certus.save_result(path, problem, result)
        data = json.loads(path.read_text())
        own = [p for p in places(data) if p[0] in ("certificate", "better", "structure", "score", "trace")]
        for at in [own[int(k)] for k in rng.choice(len(own), min(len(own), TRIES), replace=False)]:
            path.write_text(json.dumps(put(data, at, ODD[int(rng.integers(len(ODD)))])))
            try:
                again, read = certus.load_result(path)
                certus.verify(again, read)
            except certus.CertusError:
                continue
            c = read.certificate
            said = {"score": c.score, "bound": c.bound, "tolerance": c.tolerance, "rank": c.rank, "exact": c.exact}
            assert is_true(said, values), at


def test_bounds_lowered_and_tolerances_widened(proved):
    for data, values in proved:
        for bound, tolerance, exact in [
            (-1e300, 0.0, False),
            (0.0, 1e300, True),
            (-1.0, 0.0, True),
            (-1e-6, 0.0, False),
        ]:
            claim = data["claim"] | {"tolerance": tolerance, "exact": exact}
            claim["bound"] += bound
            if accepted(data | {"claim": claim}):
                assert is_true(claim, values), claim
        claim = data["claim"] | {"tolerance": 1e300, "exact": False}
        assert accepted(data | {"claim": claim})  # true, and worth nothing


def test_ranks_cannot_be_raised_by_naming_a_structure_again(proved):
    (first, values), *others = proved
    for data, _ in others:
        for better in ([data["structure"]], data["better"] * 2, [], [data["better"][0], data["structure"]]):
            forged = data | {"better": better, "claim": data["claim"] | {"rank": 1 + len(better)}}
            assert not accepted(forged) or is_true(forged["claim"], values)
    again = first | {"better": [first["structure"]], "claim": first["claim"] | {"rank": 2}}
    assert not accepted(again)


def test_nodes_reordered_doubled_and_cut(proved):
    rng = np.random.default_rng(4)
    for data, values in proved:
        for _ in range(6):
            nodes = copy.deepcopy(data["proof"])
            forged = data | {"proof": [nodes[int(k)] for k in rng.integers(0, len(nodes), rng.integers(0, 4))]}
            claim = data["claim"] | {"bound": data["claim"]["bound"] - 1.0, "exact": False}
            assert not accepted(forged | {"claim": claim}) or is_true(claim, values)
        for node in data["proof"]:
            for name in {"rest", "zero", "one"} & set(node):
                for at in (0, -1, len(data["proof"])):
                    looped = data | {"proof": [n | ({name: at} if n is node else {}) for n in data["proof"]]}
                    assert not accepted(looped) or is_true(data["claim"], values)


def test_a_proof_of_another_problem(proved):
    """Scores raised under a proof, one by one: what the structure then lacks is not hidden by the old claim."""
    for data, _ in proved:
        for p in [p for p, score in enumerate(data["scores"]) if score != "-inf"][::3]:
            forged = put(data, ("scores", p), data["scores"][p] + 100.0)
            assert not accepted(forged) or not reaches(forged)


def reaches(data):
    """Whether some structure scores more than is claimed: all of them, one by one."""
    problem = standalone.Problem(standalone.closed(data))
    limit = data["claim"]["bound"] + data["claim"]["tolerance"]
    known = [*data["better"], data["structure"]]
    for structure in listed(problem):
        try:
            parts = problem.uses(structure)
        except standalone.Refused:
            continue
        scores = [problem.scores[p] for p in parts]
        total = sum(scores) / 2**standalone.FINE
        if not any(map(standalone.never, scores)) and structure not in known and total > limit + 1e-9:
            return True
    return False


def listed(problem):
    """All structures of all spaces."""
    every = [[]]
    for space in problem.spaces:
        own = list(derivations(space)) if isinstance(space, standalone.Graph) else list(trees(len(space.words)))
        every = [[*before, y] for before in every for y in own]
    return every


def derivations(graph):
    def of(v):
        for e in graph.into[v]:
            ways = [[e]]
            for u in graph.tails[e]:
                ways = [[*way, *below] for way in ways for below in of(u)]
            yield from ways

    return of(len(graph.into) - 1)


def trees(n):
    return ([-1, *heads] for heads in np.ndindex(*(n + 1,) * n))


def test_deep_nesting_is_refused(tmp_path):
    path = tmp_path / "proof.json"
    path.write_text('{"format": "certus proof", "version": 1, "spaces": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert standalone.main([str(path)]) == 2
    path.write_text('{"certificate": ' * 50_000)
    assert standalone.main([str(path)]) == 2
    with pytest.raises(certus.FormatError):
        certus.load_result(path)


def test_options_beyond_the_sentence_are_refused():
    problem = phrases()
    data = json.loads(json.dumps(proof_to_json(problem, problem.decode())))
    for span in ([2, 2], [-1, 0], [1, 0], [0, 10**15]):
        forged = copy.deepcopy(data)
        forged["spaces"][0]["data"]["options"][0][:2] = span
        with pytest.raises((standalone.Refused, *standalone.MALFORMED)):
            standalone.check(forged)


def test_a_proof_within_half_a_tolerance_of_a_bound_that_is_too_low():
    """No structure may beat score + tolerance, which bound + tolerance is beyond."""
    problem = certus.Tagging(np.array([[1.0, 1.0 + 1.4e-9]]))
    best = problem.decode()
    one = dataclasses.replace(best.certificate, score=1.0, bound=1.0 + 0.49e-9, tolerance=1e-9)
    forged = dataclasses.replace(best, structure=np.array([0]), score=1.0, certificate=one)
    with pytest.raises(certus.VerificationError, match="what is proved"):
        certus.verify(problem, forged)
    assert not accepted(proof_to_json(problem, forged))
    narrow = dataclasses.replace(forged, certificate=dataclasses.replace(one, reason="rounding"))
    certus.verify(problem, narrow)


def chains(rng, words, grams):
    """A forest of one word after another, two choices each, and a model that lacks beginnings of its n-grams."""
    marks = ["<unk>", "<s>", "</s>"]
    orders = [[(w,) for w in [*marks, *words]]]
    for n in (2, 3, 4):
        every = list(itertools.product([*marks, *words], repeat=n))
        orders.append([every[int(k)] for k in rng.choice(len(every), grams, replace=False)])
    lm = [
        {
            "words": [list(gram) for gram in order],
            "log_probability": rng.integers(-6, 7, len(order)).astype(float).tolist(),
            "back_off": (rng.integers(-1, 2, len(order)) * float(n < 4)).tolist(),
        }
        for n, order in enumerate(orders, start=1)
    ]
    n = 5
    sides = [[*([~0] if v else []), int(w)] for v in range(n) for w in rng.choice(len(words), 2, replace=False)]
    tails = [[v - 1] if v else [] for v in range(n) for _ in range(2)]
    forest = {"root": n - 1, "in_ptr": list(range(0, 2 * n + 1, 2)), "weights": [0.0] * (2 * n)}
    forest |= ragged("tail", tails)
    own = {"words": words} | ragged("token", sides)
    return {"forest": forest | {"translation": own}, "lm": {"orders": lm}, "lm_weight": 1.0}, sides


def ragged(name, rows):
    return {name: list(itertools.chain(*rows)), f"{name}_ptr": [0, *itertools.accumulate(map(len, rows))]}


def test_language_models_without_beginnings_of_their_ngrams():
    """A file may hold a 4-gram whose first three words are no 3-gram: they are a context like any other."""
    rng, words = np.random.default_rng(1), ["a", "b", "c"]
    for _ in range(120):
        data, sides = chains(rng, words, 12)
        model, totals = standalone.LanguageModel(data["lm"]), []
        for choice in itertools.product(range(2), repeat=5):
            context, total = ("<s>",), 0.0
            for w in [*(words[sides[2 * v + c][-1]] for v, c in enumerate(choice)), "</s>"]:
                total += model.advance(context[-3:], w)[0]
                context = (*context, w)
            totals.append(total)
        limit = standalone.exact(max(totals) - 0.5)
        scores, graph = standalone.closed_forest(data, 1.0, [0] * 10, {"pairs": []}, limit)
        found = standalone.Graph(graph).best([standalone.exact(x) for x in scores], None)
        assert found == standalone.exact(max(totals))


def test_forests_that_do_not_say_what_their_tails_yield():
    data, _ = chains(np.random.default_rng(2), ["a", "b", "c"], 12)
    for token in (0, ~1):  # a tail that yields nothing, and one that there is not
        forged = copy.deepcopy(data)
        forged["forest"]["translation"]["token"][2] = token
        with pytest.raises(standalone.Refused, match="each of its tails once"):
            standalone.closed_forest(forged, 1.0, [0] * 10, {"pairs": []}, 0)


@pytest.mark.parametrize("value", ["-inf", -inf, 1e308, -1e308])
def test_multipliers_that_are_as_low_as_what_forbids(value):
    """A multiplier moves what one space scores to another; it must not make an arc of every tree a forbidden one."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        trees = [certus.Dependency(rng.integers(-4, 5, (3, 3)), projective=crossing) for crossing in (False, True)]
        problem = certus.Joint(*trees, on="arcs")
        data = json.loads(json.dumps(proof_to_json(problem, problem.decode())))
        claim = data["claim"] | {"bound": data["claim"]["score"] - 1.0, "tolerance": 0.0, "exact": False}
        for path in [p for p in places(data) if p[0] == "proof" and p[2:3] == ("u",) and len(p) == 4]:
            assert not accepted(put(data, path, value) | {"claim": claim}), path
