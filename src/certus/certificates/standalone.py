"""Checks a proof written by certus: one file, the standard library, exact integers. Usage: python standalone.py FILE...

docs/certificates.md specifies what is read here. A file holds a problem in normal form (parts with scores, spaces of
structures made of parts, rows that tie the uses of parts), a structure, what is claimed of it, and a proof. Exit code 0
if every claim holds, 1 if one does not, 2 if a file cannot be read.

Numbers in a file are doubles and are read as the exact numbers they are: all are multiplied by one power of two, so
that everything below is done in integers, without rounding. NEVER stands for -infinity: a forbidden part.
"""

import json
import sys
from itertools import pairwise
from math import prod

NEVER = None
EXACT, MASK = 10**9, 10**4  # a proof allows for 1 / EXACT of the scores in use, none of which counts below -MASK


class Refused(Exception):
    """The claim does not follow from the file."""


def refuse_unless(holds, reason):
    if not holds:
        raise Refused(reason)


# -- numbers -----------------------------------------------------------------------------------------------------------


def exponent(data):
    """The least k such that every number in some JSON is a whole number of 1 / 2^k."""
    if isinstance(data, float):
        refuse_unless(data - data == 0.0, f"{data} is not a number that scores can be")
        return data.as_integer_ratio()[1].bit_length() - 1
    items = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return max(map(exponent, items), default=0)


class Numbers:
    """Doubles to integers: multiples of 1 / 2^k."""

    def __init__(self, data):
        self.k = exponent(data)

    def of(self, x):
        if x == "-inf":
            return NEVER
        refuse_unless(isinstance(x, int | float) and not isinstance(x, bool), f"{x!r} is not a number")
        top, bottom = x.as_integer_ratio() if isinstance(x, float) else (x, 1)
        return (top << self.k) // bottom

    def list(self, data):
        return [self.of(x) for x in data]


def plus(*numbers):
    return NEVER if NEVER in numbers else sum(numbers)


def most(numbers):
    return max((x for x in numbers if x is not NEVER), default=NEVER)


def below(a, b):
    """a <= b, where a may be NEVER."""
    return a is NEVER or a <= b


# -- spaces ------------------------------------------------------------------------------------------------------------


class Graph:
    """Derivations of the last vertex of a hypergraph; tails of an edge are numbered below the vertex it enters."""

    def __init__(self, data):
        self.into = sliced(data["in_ptr"], list(range(len(data["tail_ptr"]) - 1)))
        self.tails = sliced(data["tail_ptr"], data["tail"])
        self.parts = sliced(data["part_ptr"], data["part"])
        for v, edges in enumerate(self.into):
            fine = all(0 <= u < v for e in edges for u in self.tails[e])
            refuse_unless(fine, f"a tail of vertex {v} is not below it")

    def all_parts(self):
        return [p for own in self.parts for p in own]

    def uses(self, edges):
        """The parts of a derivation given by its edges, heads before tails; refused if it is none."""
        pending, parts = [len(self.into) - 1], []
        for e in edges:
            refuse_unless(pending and e in self.into[pending[-1]], f"edge {e} does not go on with the derivation")
            pending.pop()
            pending += reversed(self.tails[e])
            parts += self.parts[e]
        refuse_unless(not pending, "the derivation ends too early")
        return parts

    def inside(self, scores):
        """Per edge and per vertex: the best derivation that begins there."""
        edge, chart = [NEVER] * len(self.tails), []
        for edges in self.into:
            for e in edges:
                edge[e] = plus(*(scores[p] for p in self.parts[e]), *(chart[u] for u in self.tails[e]))
            chart.append(most(edge[e] for e in edges))
        return edge, chart

    def best(self, scores, witness):
        return self.inside(scores)[1][-1]

    def best_with_any(self, scores, chosen, witness):
        """The best derivation that uses one of the parts chosen."""
        edge, chart = self.inside(scores)
        around = [NEVER] * len(chart)
        around[-1] = 0
        found = NEVER
        for v in range(len(chart) - 1, -1, -1):
            for e in self.into[v]:
                through = plus(edge[e], around[v])
                if through is not NEVER:
                    if chosen.intersection(self.parts[e]):
                        found = most((found, through))
                    for u in self.tails[e]:
                        around[u] = most((around[u], through - chart[u]))
        return found

    def best_other(self, scores, known, witness):
        """The best derivation but for those known: one that leaves each of them at some place."""
        edge, chart = self.inside(scores)
        found, agenda = NEVER, [(0, [len(chart) - 1], 0, known)]
        while agenda:
            place, pending, prefix, here = agenda.pop()
            if not pending:
                continue
            *pending, v = pending
            after = plus(prefix, *(chart[u] for u in pending))
            taken = {edges[place] for edges in here}
            found = most([found, *(plus(after, edge[e]) for e in self.into[v] if e not in taken)])
            for e in taken:
                so_far = plus(prefix, *(scores[p] for p in self.parts[e]))
                rest = [*pending, *reversed(self.tails[e])]
                agenda.append((place + 1, rest, so_far, [edges for edges in here if edges[place] == e]))
        return found

    def most_uses(self, parts):
        highest = max(self.all_parts(), default=0)
        return self.best([int(p in parts) for p in range(highest + 1)], None)


class Trees:
    """Spanning trees of nodes 0 .. n directed away from node 0; bounded by node sets that every tree must enter.

    A witness has numbers alpha[m] for the arc into m, beta >= 0 for each set of nodes without 0, which some arc enters,
    and gamma >= 0 for the single arc from node 0: a tree scores at most sum alpha - sum beta + gamma, if no arc h -> m
    scores more than alpha[m] - (beta of the sets with m, not h) + (gamma, if h is 0). Where one does, alpha is raised.
    """

    def __init__(self, data):
        self.part, self.single = data["part"], data["single"] is True

    def arcs(self):
        return [(h, m, p) for h, row in enumerate(self.part) for m, p in enumerate(row) if p >= 0 and 0 != m != h]

    def all_parts(self):
        return [p for _, _, p in self.arcs()]

    def uses(self, heads):
        n = len(self.part) - 1
        fit = len(heads) == n + 1 and heads[0] == -1 and all(0 <= h <= n for h in heads[1:])
        refuse_unless(fit, "heads do not fit the words")
        for m in range(1, n + 1):
            refuse_unless(self.part[heads[m]][m] >= 0, f"there is no arc {heads[m]} -> {m}")
            seen, v = set(), m
            while v != 0:
                refuse_unless(v not in seen, f"word {m} hangs on a cycle")
                seen.add(v)
                v = heads[v]
        refuse_unless(not self.single or n == 0 or heads[1:].count(0) == 1, "more than one word hangs on node 0")
        return [self.part[heads[m]][m] for m in range(1, n + 1)]

    def slack(self, scores, dual):
        """The bound, and for each arc how much less trees that use it score at most."""
        alpha, gamma = list(dual["alpha"]), dual["gamma"] if self.single else 0
        sets = [(set(nodes), beta) for nodes, beta in zip(dual["sets"], dual["beta"], strict=True)]
        refuse_unless(gamma >= 0 and all(b >= 0 and 0 not in s for s, b in sets), "a number of a node set is negative")
        refuse_unless(len(alpha) == len(self.part), "alpha does not fit the words")
        left = {}
        for h, m, p in self.arcs():
            if scores[p] is not NEVER:
                allowed = alpha[m] - sum(b for s, b in sets if m in s and h not in s) + (gamma if h == 0 else 0)
                left[h, m] = allowed - scores[p]
        if not self.has_tree(left):
            return NEVER, {}
        raised = {m: max(0, -min(x for (_, k), x in left.items() if k == m)) for m in range(1, len(self.part))}
        bound = sum(alpha[1:]) + sum(raised.values()) - sum(b for _, b in sets) + gamma
        return bound, {(h, m): x + raised[m] for (h, m), x in left.items()}

    def has_tree(self, arcs):
        """Whether arcs lead from node 0, or with a single root from one node below it, to all others."""
        words = set(range(1, len(self.part)))
        for start in [m for h, m in arcs if h == 0] if self.single and words else [0]:
            reached, pending = {start}, [start]
            while pending:
                v = pending.pop()
                new = {m for h, m in arcs if h == v and m not in reached}
                reached |= new
                pending += new
            if words <= reached:
                return True
        return False

    def best(self, scores, witness):
        return self.slack(scores, witness)[0]

    def best_with(self, scores, arcs, witness):
        """The best tree that has one of these arcs: by slack, or by a witness of its own, for trees with that arc."""
        bound, slack = self.slack(scores, witness)
        own = {(h, m): dual for h, m, dual in witness.get("forced", ())}
        found = NEVER
        for h, m in arcs:
            if (h, m) in slack and bound is not NEVER:
                here = bound - slack[h, m]
                if (h, m) in own:
                    only = list(scores)
                    for g, k, p in self.arcs():
                        if k == m and g != h:
                            only[p] = NEVER
                    here = self.slack(only, own[h, m])[0]
                found = most((found, here))
        return found

    def best_with_any(self, scores, chosen, witness):
        return self.best_with(scores, [(h, m) for h, m, p in self.arcs() if p in chosen], witness)

    def best_other(self, scores, known, witness):
        """Another tree has an arc that the known one lacks."""
        refuse_unless(len(known) == 1, "too many trees are known")
        (heads,) = known
        return self.best_with(scores, [(h, m) for h, m, _ in self.arcs() if heads[m] != h], witness)

    def most_uses(self, parts):
        return len({m for _, m, p in self.arcs() if p in parts})


def sliced(ptr, flat):
    refuse_unless(ptr and ptr[0] == 0 and ptr[-1] == len(flat) and sorted(ptr) == ptr, "offsets do not fit")
    return [flat[a:b] for a, b in pairwise(ptr)]


SPACES = {"graph": Graph, "trees": Trees}


# -- the proof ---------------------------------------------------------------------------------------------------------


class Problem:
    """Scores, spaces and rows; ``tied[p]`` are the parts that rows p - q = 0 keep equal to p."""

    def __init__(self, data, numbers):
        self.scores = numbers.list(data["scores"])
        self.spaces = [SPACES[space["kind"]](space) for space in data["spaces"]]
        rows = data["rows"]
        parts = {p for space in self.spaces for p in space.all_parts()}.union(rows["part"])
        refuse_unless(not parts or 0 <= min(parts) <= max(parts) < len(self.scores), "there is no such part")
        self.rows = list(zip(sliced(rows["ptr"], rows["part"]), sliced(rows["ptr"], rows["coefficient"]), strict=True))
        self.coefficients = numbers
        self.rhs, self.slack, self.equality = rows["rhs"], rows["slack"], rows["equality"]
        self.tied = {}
        for (parts, by), b, slack, equal in zip(self.rows, self.rhs, self.slack, self.equality, strict=True):
            if equal is True and len(parts) == 2 and b == slack == 0 and by[0] == -by[1] != 0:
                for p in parts:
                    self.tied.setdefault(p, set()).update(parts)

    def copies(self, part):
        """The parts that are used whenever this one is."""
        found, pending = {part}, [part]
        while pending:
            for q in self.tied.get(pending.pop(), ()):
                if q not in found:
                    found.add(q)
                    pending.append(q)
        return found

    def priced(self, u, zeros, ones, reward):
        """The scores under multipliers, and what is to be added to the sum of the best: all of it times 2^k once more.

        Products of two numbers are multiples of 1 / 4^k, so everything else is multiplied by 2^k.
        """
        k, of = self.coefficients.k, self.coefficients.of
        scores = [NEVER if s is NEVER or p in zeros else s << k for p, s in enumerate(self.scores)]
        constant = 0
        for (parts, by), b, slack, equal, multiplier in zip(
            self.rows, self.rhs, self.slack, self.equality, u, strict=True
        ):
            refuse_unless(equal is True or multiplier <= 0, "a multiplier of a <= row is positive")
            constant += abs(multiplier) * of(slack) - multiplier * of(b)
            for p, a in zip(parts, by, strict=True):
                scores[p] = plus(scores[p], multiplier * of(a))
        for p in ones:
            scores[p] = plus(scores[p], reward << k)
            constant -= reward << k
        return scores, constant

    def uses(self, structure):
        """The parts of a structure that satisfies the rows, with repeats."""
        parts = [p for space, own in zip(self.spaces, structure, strict=True) for p in space.uses(own)]
        of = self.coefficients.of
        for (row, by), b, slack, equal in zip(self.rows, self.rhs, self.slack, self.equality, strict=True):
            over = sum(of(a) * parts.count(p) for p, a in zip(row, by, strict=True)) - of(b)
            refuse_unless(over <= of(slack) and (equal is not True or -over <= of(slack)), "a row is not satisfied")
        return parts


def proved(problem, nodes, better):
    """The least number that the proof tree shows no structure to beat, but for the better ones; times 4^k."""
    bound, seen, stack = NEVER, set(), [(0, frozenset(), frozenset())]
    while stack:
        at, zeros, ones = stack.pop()
        node = nodes[at]
        refuse_unless(at not in seen, "a node of the proof tree hangs in two places")
        seen.add(at)
        if node["node"] == "split":
            copies = problem.copies(node["part"])
            stack.append((node["zero"], zeros | copies, ones))
            gone, left = set(), set(copies)
            for line in node["rivals"]:
                used = copies.intersection(line)
                refuse_unless(used and most_uses(problem, line) <= 1, "rivals of a part may be used beside it")
                gone.update(set(line) - used)
                left -= used
            stack.append((node["one"], zeros | gone, ones | left))
            continue
        refuse_unless(node["reward"] >= 0, "a reward is negative")
        scores, constant = problem.priced(node["u"], zeros, ones, node["reward"])
        asked = list(zip(problem.spaces, node["spaces"], strict=True))
        best = [space.best(scores, witness) for space, witness in asked]

        def total(i, instead, best=best, constant=constant):
            return plus(constant, instead, *best[:i], *best[i + 1 :])

        if node["node"] == "fix":
            chosen = set(node["parts"])
            found = [total(i, s.best_with_any(scores, chosen, w)) for i, (s, w) in enumerate(asked)]
            stack.append((node["rest"], zeros.union(*(problem.copies(p) for p in chosen)), ones))
        elif node["known"]:
            known = [better[k] for k in node["known"]]
            mine = [sorted({tuple(y[i]) for y in known}) for i in range(len(asked))]
            mixed = prod(map(len, mine))
            refuse_unless(mixed == len({tuple(map(tuple, y)) for y in known}), "those known may be mixed into others")
            found = [total(i, s.best_other(scores, mine[i], w)) for i, (s, w) in enumerate(asked)]
        else:
            found = [plus(constant, *best)]
        bound = most([bound, *found])
    return bound


def most_uses(problem, parts):
    """No structure uses more of these parts than this, repeats counted."""
    return sum(space.most_uses(parts) or 0 for space in problem.spaces)


# -- the claim ---------------------------------------------------------------------------------------------------------


def check(data):
    """Raise Refused unless everything claimed follows; return what to say of it."""
    refuse_unless(data["format"] == "certus proof" and data["version"] == 1, "the file is no proof of version 1")
    numbers = Numbers([data["scores"], data["spaces"], data["rows"], data["claim"], data["proof"]])
    one, claim = 1 << numbers.k, data["claim"]
    score, bound, tolerance = (numbers.of(claim[name]) for name in ("score", "bound", "tolerance"))
    problem = Problem(data, numbers)
    parts = [problem.scores[p] for p in problem.uses(data["structure"])]
    refuse_unless(NEVER not in parts, "the structure uses a forbidden part")
    off = abs(sum(parts) - score) << 52
    refuse_unless(off <= len(parts) * sum(map(abs, parts)), "the score is not that of the structure")
    better = data["better"]
    refuse_unless(claim["rank"] == 1 + len(better), "the rank does not fit the number of better structures")
    listed = [data["structure"], *better]
    refuse_unless(all(y != z for i, y in enumerate(listed) for z in listed[:i]), "a structure is listed twice")
    for y in better:
        own = [problem.scores[p] for p in problem.uses(y)]
        refuse_unless(NEVER not in own, "a better structure uses a forbidden part")
        slack = tolerance + (len(own) * sum(map(abs, own)) >> 52) + 1
        refuse_unless(sum(own) >= score - slack, "a better structure scores less")
    refuse_unless(tolerance >= 0, "the tolerance is negative")
    if claim["exact"] is True:
        refuse_unless(2 * (bound - score) <= tolerance, "bound and score are too far apart for a proof")
        counted = sum(x if x > 0 else min(-x, MASK * one) for x in parts)
        refuse_unless(tolerance * EXACT <= counted + counted // EXACT + 1, "the tolerance is too wide for a proof")
    found = proved(problem, with_integers(data["proof"], numbers), better)
    limit = (bound + tolerance) << numbers.k
    grain = greatest_divisor(x for x in problem.scores if x is not NEVER) << numbers.k
    if found is not NEVER and grain:
        found = found // grain * grain  # structures score multiples of it
    refuse_unless(below(found, limit), "the proof shows less than is claimed")
    what = "optimal" if claim["exact"] is True else "bounded"
    return f"verified, {what}, rank {claim['rank']}: score {claim['score']}, bound {claim['bound']}"


def with_integers(nodes, numbers):
    """The proof tree with its numbers as integers; node sets of trees are of prices, which are times 4^k."""

    def price(x):
        return numbers.of(x) << numbers.k

    def dual(data):
        return {
            "alpha": list(map(price, data["alpha"])),
            "sets": data["sets"],
            "beta": list(map(price, data["beta"])),
            "gamma": price(data["gamma"]),
            "forced": [(h, m, dual(own)) for h, m, own in data.get("forced", ())],
        }

    def node(data):
        if data["node"] == "split":
            return data
        spaces = [None if own is None else dual(own) for own in data["spaces"]]
        return data | {"u": numbers.list(data["u"]), "reward": numbers.of(data["reward"]), "spaces": spaces}

    return [node(data) for data in nodes]


def greatest_divisor(numbers):
    """Of all the numbers; 0 if all are 0."""
    found = 0
    for x in numbers:
        a, b = found, abs(x)
        while b:
            a, b = b, a % b
        found = a
    return found


def main(paths):
    code = 0
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                said = check(json.load(file))
        except Refused as reason:
            said, code = f"FALSE: {reason}", 1
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            said, code = f"cannot be checked: {type(error).__name__}: {error}", code or 2
        print(f"{path}: {said}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
