"""Saved results, true and tampered with: certus.verify accepts the true ones and no false one."""

import copy
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import certus
from certus.certificates import standalone
from certus.problem import PROBLEMS, problem_to_json
from certus.proof_file import proof_to_json
from certus.result import KINDS as CERTIFICATES
from tests.fuzz import cases, large
from tests.fuzz.cases import KINDS, Case
from tests.fuzz.claims import Claim, about
from tests.fuzz.runner import Finding, Tally
from tests.fuzz.scores import MASKS, Rng
from tests.oracles.exact import Exact, units

EACH = 2  # forgeries of a result
FINE = ("a tolerance above 1e-9 of the parts", "two scores")  # wrong of a decoder to say, but no false result
COMPOUND = "joint of many", "soft"  # kinds of cases that are kinds of problems by other names
LARGE, SHARE = "large", 1.5  # and how often they are drawn, beside the others
DIFFERENT = "the two checkers differ"
Json = dict[str, Any]
Loaded = tuple[Any, Any]  # a problem and a result


class Tamper:
    """One case is one result: saved, loaded and verified, then changed in several ways."""

    name = "tamper"

    def __init__(self, kinds: tuple[str, ...] = ()) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "result.json"
        self.kinds = [kind for kind in KINDS if kind in kinds or (not kinds and kind in saved_kinds())]
        self.kinds += [LARGE] if LARGE in kinds or not kinds else []

    def one(self, rng: Rng, tally: Tally) -> Iterator[Finding]:
        shares = np.array([SHARE if kind == LARGE else KINDS[kind].share for kind in self.kinds])
        kind = str(rng.choice(self.kinds, p=shares / shares.sum()))
        case = large.draw(rng) if kind == LARGE else cases.drawn(rng, kind, str(rng.choice(KINDS[kind].regimes)))
        if kind == "factor graph":
            case["whole"] = True  # files do not say that a small graph was taken to pieces
        try:
            problem = made(case)
            table = listed(case, problem)
            results = problem.kbest(2) if rng.random() < 0.3 else [problem.decode()]
        except certus.CertusError:
            return
        result = results[int(rng.integers(len(results)))]
        certus.save_result(self.path, problem, result)
        saved = json.loads(self.path.read_text())
        if kind == LARGE:
            size = large.nodes(certus.load_result(self.path)[1].certificate.witness)
            tally[f"large: proofs of {'1 node' if size < 2 else f'{10 ** len(str(size - 1))} nodes at most'}"] += 1
        if any(claim.claim not in FINE for claim in false(table, result)):
            tally["results that are false already"] += 1  # which the target "problems" is about
        else:
            tally["true results"] += 1
            tally[f"{kind}: true results"] += 1
            verdict, loaded = self.verdict(saved)
            tally[f"true results: {verdict.partition(':')[0]}"] += 1
            if verdict not in ("accepted", "not supported"):
                yield Finding(kind, "a true result refused", verdict, partial(kept, case, saved))
            alone = self.alone("true results", verdict, loaded, tally)
            if alone and not verdict.startswith(alone):
                yield Finding(kind, DIFFERENT, f"{verdict}; standalone: {alone}", partial(kept, case, saved))
        if not len(table):
            return
        for _ in range(EACH):
            way, forged, changed = tampered(rng, case, problem, table, saved)
            tally["tampered"] += 1
            tally[f"{kind}: tampered"] += 1
            verdict, loaded = self.verdict(forged)
            tally[f"tampered: {verdict.partition(':')[0]}"] += 1
            alone = self.alone("tampered", verdict, loaded, tally)
            if alone and not verdict.startswith(alone):
                detail = f"{way}: {verdict}; standalone: {alone}"
                yield Finding(kind, DIFFERENT, detail, partial(kept, changed, forged, forged=True))
            if verdict.startswith("bare"):
                yield Finding(
                    kind, verdict.partition(",")[0], f"{way}: {verdict}", partial(kept, changed, forged, forged=True)
                )
            elif "accepted" in (verdict, alone):
                for name, detail in judged(changed, loaded, table if changed is case else None):
                    yield Finding(
                        kind, f"accepted: {name}", f"{way}: {detail}", partial(kept, changed, forged, forged=True)
                    )

    def alone(self, what: str, verdict: str, loaded: Loaded, tally: Tally) -> str:
        """What the standalone checker makes of what was loaded, if certus.verify had something to say of it."""
        if not verdict.startswith(("accepted", "refused")):
            return ""
        try:
            data = json.loads(json.dumps(proof_to_json(*loaded)))
        except (certus.NotSupported, certus.FormatError):
            tally[f"{what}: not for the standalone checker"] += 1
            return ""
        except certus.CertusError:
            said = "refused"
        else:
            try:
                standalone.check(data)
                said = "accepted"
            except standalone.Refused:
                said = "refused"
        tally[f"{what}, standalone: {said}"] += 1
        tally[f"{what}, standalone: another verdict"] += not verdict.startswith(said)
        return said

    def verdict(self, data: Json) -> tuple[str, Loaded]:
        """What comes of loading and verifying a saved result, and what was loaded."""
        self.path.write_text(json.dumps(data))
        loaded: Loaded = (None, None)
        try:
            loaded = certus.load_result(self.path)
            certus.verify(*loaded)
        except certus.NotSupported:
            return "not supported", loaded
        except certus.FormatError as error:
            return f"not loaded: {error}", loaded
        except certus.VerificationError as error:
            return f"refused: {error}", loaded
        except Exception as error:  # LimitReached too: nobody set a limit
            return f"bare {type(error).__name__}, {error}", loaded
        return "accepted", loaded

    def replay(self, data: Any) -> list[Claim]:
        case = cases.from_json(data["case"])
        verdict, loaded = self.verdict(data["saved"])
        alone = self.alone("", verdict, loaded, Tally())
        claims = [] if loaded[1] is None else judged(case, loaded)
        if alone and not verdict.startswith(alone):
            return [Claim(DIFFERENT, f"{verdict}; standalone: {alone}")]
        if verdict.startswith("bare"):
            return [Claim(verdict, "")]
        if verdict == "accepted":
            return claims
        return (
            []
            if claims or verdict == "not supported" or data.get("forged")
            else [Claim("a true result refused", verdict)]
        )


def judged(case: Case, loaded: Loaded, table: Exact | None = None) -> list[Claim]:
    """What is false about a result that was loaded, which is one of this case's problem, of these structures."""
    problem, result = loaded
    try:
        table = listed(case, problem) if table is None else table
    except certus.Infeasible:
        return [Claim("there is no structure", "")]
    return [claim for claim in false(table, result) if claim.claim not in FINE]


def made(case: Case) -> Any:
    return large.make(case) if case["kind"] == LARGE else cases.made(case)


def listed(case: Case, problem: Any) -> Exact:
    """The structures of a problem, or the best of them; Infeasible if there are none of a large problem."""
    return large.Ranked(problem) if case["kind"] == LARGE else Exact(cases.listed(case, problem))


def saved_kinds() -> list[str]:
    """Of problems that files hold, but for the large ones."""
    return [kind for kind in KINDS if kind in (*PROBLEMS, *COMPOUND) and kind != "lexicalized constituency"]


def kept(case: Case, saved: Json, *, forged: bool = False) -> Json:
    """What is tried again; what was forged need not be accepted, be it true or false by less than rounding hides."""
    return {"case": cases.to_json(case), "saved": saved, "forged": forged}


def false(table: Exact, result: certus.Result[Any]) -> list[Claim]:
    """What is false about a result of any rank."""
    rank = result.certificate.rank
    if rank > len(table):
        return [Claim("a rank beyond the last", f"{rank} of {len(table)}")]
    best = table.order[rank - 1]
    place = table.at(result.structure)
    claims = list(about(table, result, best=best))
    room = units(1e-9 if result.certificate.exact else 1e-9 + result.certificate.tolerance)  # ranks that rounding hides
    if place is not None and rank > 1 and table.value[place] - table.value[best] > room + table.size[place] // 10**9:
        claims.append(Claim("a rank that is too low", f"{rank}"))
    return claims


# -- ways to tamper: they change the saved data in place, or give another case for the problem ------------------------

Way = Callable[[Rng, Case, Any, Exact, Json], Case | None]


def tampered(rng: Rng, case: Case, problem: Any, table: Exact, saved: Json) -> tuple[str, Json, Case]:
    """(how, the data, the case of its problem) after one change or two."""
    forged, changed, names = copy.deepcopy(saved), case, []
    for _ in range(int(rng.choice([1, 1, 2]))):
        way = WAYS[int(rng.integers(len(WAYS)))]
        names.append(way.__name__)
        changed = way(rng, changed, problem, table, forged) or changed
    return " and ".join(names), forged, changed


def structure(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    """Another structure, and nothing else."""
    data["structure"] = problem.structure_to_json(table.structures[int(rng.integers(len(table)))])


def worse(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    """Another structure with its own score, claimed to be the best."""
    other = table.structures[int(rng.integers(len(table)))]
    data["structure"] = problem.structure_to_json(other)
    score = problem.score(other)
    data["score"] = data["certificate"]["score"] = score
    if rng.random() < 0.5:
        data["certificate"]["bound"] = score


def disguised(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    """Another structure with the score of the best, or more."""
    structure(rng, case, problem, table, data)
    claimed = float(data["score"]) + float(rng.choice([0.0, 1.0, 123456.0]))
    data["score"] = data["certificate"]["score"] = data["certificate"]["bound"] = claimed


def score(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    """Another score, in one place or both."""
    changed = number(rng, data["score"])
    for at in ((data,), (data["certificate"],), (data, data["certificate"]))[int(rng.integers(3))]:
        at["score"] = changed


def bound(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    data["certificate"]["bound"] = number(rng, data["certificate"]["bound"])


def tolerance(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    data["certificate"]["tolerance"] = number(rng, data["certificate"]["tolerance"])


def kind(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    data["certificate"]["kind"] = str(rng.choice(CERTIFICATES))


def rank(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    data["certificate"]["rank"] = int(rng.choice([0, 1, 2, 3, 7]))


def better(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    """Other structures said to be better, as many as before or one more."""
    more = int(rng.integers(0, 2))
    chosen = [table.structures[int(rng.integers(len(table)))] for _ in range(len(data["better"]) + more)]
    data["better"] = [problem.structure_to_json(y) for y in chosen]
    data["certificate"]["rank"] = 1 + len(chosen)


def witness(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> None:
    """Multipliers and proof trees: dropped, or some number in them changed."""
    given = data["certificate"].get("witness")
    places = [] if given is None else list(numbers(given))
    if not places or rng.random() < 0.1:
        data["certificate"]["witness"] = None if given is not None else {"arrays": {}}
        return
    for _ in range(int(rng.integers(1, 4))):
        holder, at = places[int(rng.integers(len(places)))]
        holder[at] = int(rng.integers(-1, 9)) if isinstance(holder[at], int) else number(rng, holder[at])


def cell(rng: Rng, case: Case, problem: Any, table: Exact, data: Json) -> Case | None:
    """One score of the problem changed, or a mask put there."""
    changed = cases.from_json(cases.to_json(case))
    places = [array for _, array in cases.arrays(changed) if array.size]
    if not places:
        return None
    array = places[int(rng.integers(len(places)))].reshape(-1)
    k = int(rng.integers(array.size))
    array[k] = rng.choice(MASKS) if rng.random() < 0.5 else float(number(rng, array[k]))
    try:
        other = made(changed)
        data["problem"], data["digests"] = problem_to_json(other), {"problem": certus.problem_digest(other)}
    except certus.CertusError:
        return None
    return changed


WAYS: tuple[Way, ...] = (
    structure,
    worse,
    worse,
    disguised,
    disguised,
    score,
    bound,
    tolerance,
    kind,
    rank,
    better,
    witness,
    cell,
    cell,
)


def number(rng: Rng, value: Any) -> float:
    """A number near another, or far from it."""
    x = float(value)
    x = x if np.isfinite(x) else 0.0
    made = (x + 1, x - 1, x + 1e-6, x - 1e-6, -x, 0.0, x * 1.001, x * (1 - 1e-7), 1e30, -1e30, x + 123456.0)
    return float(made[int(rng.integers(len(made)))])


def numbers(data: Any) -> Iterator[tuple[Any, Any]]:
    """Where the numbers of some JSON stand."""
    for at, item in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(item, dict | list):
            yield from numbers(item)
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield data, at
