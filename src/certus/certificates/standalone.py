"""Checks a proof written by certus: one file, the standard library, exact integers. Usage: python standalone.py FILE...

docs/certificates.md specifies what is read here. A file holds a problem in normal form (parts with scores, spaces of
structures made of parts, rows that tie the uses of parts), a structure, what is claimed of it, and a proof. A space of
translations is given as what it is made of, from which follows a graph of all that may score more than is claimed. Exit
code 0 if every claim holds, 1 if one does not, 2 if a file cannot be read.

Numbers in a file are doubles, and are read as the exact numbers they are: scores as whole numbers of 2^-2148, of which
the product of any two doubles is a multiple. Nothing below is rounded. NEVER, the score of a forbidden part, is so low
that no sum makes up for it: what adds it up is not above any bound.
"""

import json
import sys
from functools import cache, lru_cache
from itertools import accumulate, chain, pairwise, product
from math import gcd, prod

FINE = 2148
NEVER = -(1 << 4500)
EXACT, MASK = 10**9, 10**4  # a proof allows for 1 / EXACT of the scores in use, none of which counts below -MASK
MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError)


class Refused(Exception):
    """The claim does not follow from the file."""


def refuse_unless(holds, reason):
    if not holds:
        raise Refused(reason)


@lru_cache(None, typed=True)
def exact(x, unit=FINE):
    """A double as a whole number of 2^-unit."""
    if x in ("-inf", float("-inf")):
        return NEVER
    number = isinstance(x, int | float) and not isinstance(x, bool) and abs(x) < 1 << 1024
    refuse_unless(number, f"{x!r} is not a number that scores can be")
    top, bottom = x.as_integer_ratio()
    return (top << unit) // bottom


def never(x):
    return x < NEVER // 2


def finite(x, unit=FINE):
    """The same, of what forbids nothing."""
    found = exact(x, unit)
    refuse_unless(not never(found), f"{x!r} is expected to be finite")
    return found


def best_of(numbers):
    return max(numbers, default=NEVER)


def raised(table, key, value):
    if key not in table or value > table[key]:
        table[key] = value


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
        self.used = set(data["part"])

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
                edge[e] = sum(scores[p] for p in self.parts[e]) + sum(chart[u] for u in self.tails[e])
            chart.append(max([NEVER, *(edge[e] for e in edges)]))
        return edge, chart

    def best(self, scores, witness):
        return self.inside(scores)[1][-1]

    def best_with(self, scores, chosen, witness):
        """For each of the parts chosen the best derivation that uses it."""
        edge, chart = self.inside(scores)
        around, found = [NEVER] * len(chart), dict.fromkeys(chosen, NEVER)
        around[-1] = 0
        for v in range(len(chart) - 1, -1, -1):
            for e in self.into[v]:
                through = edge[e] + around[v]
                for p in chosen.intersection(self.parts[e]):
                    raised(found, p, through)
                for u in self.tails[e]:
                    around[u] = max(around[u], through - chart[u])
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
            after = prefix + sum(chart[u] for u in pending)
            taken = {edges[place] for edges in here}
            found = max([found, *(after + edge[e] for e in self.into[v] if e not in taken)])
            for e in taken:
                so_far = prefix + sum(scores[p] for p in self.parts[e])
                rest = [*pending, *reversed(self.tails[e])]
                agenda.append((place + 1, rest, so_far, [edges for edges in here if edges[place] == e]))
        return found

    def most_uses(self, parts):
        return self.best([int(p in parts) for p in range(max(self.used, default=0) + 1)], None)


class Strings(Graph):
    """Derivations that are told apart by the words they yield; ``sides``, by edge, of words and None for each tail."""

    def __init__(self, data, sides):
        super().__init__(data)
        self.sides = sides

    def told(self, edges):
        pending = []
        for e in reversed(edges):
            pending.append([w for t in self.sides[e] for w in ([t] if t is not None else pending.pop())])
        return tuple(pending[0])

    def best_other(self, scores, known, witness):
        """The best derivation of none of the strings known; all that is no part of these is one and the same, None."""
        strings = set(map(self.told, known))
        inner = {s[i:j] for s in strings for j in range(len(s) + 1) for i in range(j + 1)}
        tables = []
        for edges in self.into:
            tables.append({})
            for e in edges:
                tails, made = iter(self.tails[e]), {(): sum(scores[p] for p in self.parts[e])}
                for t in self.sides[e]:
                    before, made = made, {}
                    after = {(t,): 0} if t is not None else tables[next(tails)]
                    for (a, x), (b, y) in product(before.items(), after.items()):
                        both = None if a is None or b is None else a + b
                        raised(made, both if both in inner else None, x + y)
                for words, value in made.items():
                    raised(tables[-1], words, max(value, NEVER))
        return best_of(value for words, value in tables[-1].items() if words not in strings)


class Trees:
    """Spanning trees of nodes 0 .. n directed away from node 0; bounded by node sets that every tree must enter.

    A witness has numbers alpha[m] for the arc into m, beta >= 0 for each set of nodes without 0, which some arc enters,
    and gamma >= 0 for the single arc from node 0: a tree scores at most sum alpha - sum beta + gamma, if no arc h -> m
    scores more than alpha[m] - (beta of the sets with m, not h) + (gamma, if h is 0). Where one does, alpha is raised.
    With labels every arc also uses one of its label parts, the best one where only the best matters.
    """

    def __init__(self, data):
        self.single, labels = data["single"] is True, data.get("labels")
        self.labelled, self.words = labels is not None, range(1, len(data["part"]))
        self.arcs, self.labels = {}, {}  # the part of each arc, and those of its labels
        for (h, row), m in product(enumerate(data["part"]), self.words):
            if row[m] >= 0 and m != h:
                own = labels[h][m] if self.labelled else ()
                self.arcs[h, m], self.labels[h, m] = row[m], {k: p for k, p in enumerate(own) if p >= 0}
        self.used = set(self.arcs.values()).union(*(own.values() for own in self.labels.values()))

    def uses(self, tree):
        heads, labels = tree if self.labelled else (tree, [-1])
        n = len(self.words)
        fit = len(heads) == n + 1 and heads[0] == -1 and all((heads[m], m) in self.arcs for m in self.words)
        refuse_unless(fit, "heads do not fit the words")
        refuse_unless(self.has_tree({(heads[m], m) for m in self.words}), "the arcs are no tree")
        refuse_unless(not self.single or n == 0 or heads[1:].count(0) == 1, "more than one word hangs on node 0")
        refuse_unless(labels[0] == -1 and len(labels) == (n + 1 if self.labelled else 1), "labels do not fit the words")
        both = [(self.labels[heads[m], m], labels[m]) for m in self.words] if self.labelled else []
        refuse_unless(all(label in own for own, label in both), "labels do not fit the arcs")
        return [self.arcs[heads[m], m] for m in self.words] + [own[label] for own, label in both]

    def score(self, scores, arc, but=None):
        """Of an arc with its best label, other than one."""
        own = [scores[q] for label, q in self.labels[arc].items() if label != but]
        return scores[self.arcs[arc]] + (best_of(own) if self.labelled else 0 if but is None else NEVER)

    def slack(self, arc_scores, dual):
        """The bound, and for each arc how much less trees that use it score at most."""
        alpha, gamma = [exact(x) for x in dual["alpha"]], exact(dual["gamma"]) if self.single else 0
        sets = [(set(nodes), exact(beta)) for nodes, beta in zip(dual["sets"], dual["beta"], strict=True)]
        refuse_unless(gamma >= 0 and all(b >= 0 and 0 not in s for s, b in sets), "a number of a node set is negative")
        refuse_unless(len(alpha) == len(self.words) + 1 and not any(map(never, alpha)), "alpha does not fit the words")
        left = {}
        for (h, m), score in arc_scores.items():
            if not never(score):
                allowed = alpha[m] - sum(b for s, b in sets if m in s and h not in s) + (gamma if h == 0 else 0)
                left[h, m] = allowed - score
        if not self.has_tree(left):
            return NEVER, {}
        over = {m: max(0, -min(x for (_, k), x in left.items() if k == m)) for m in self.words}
        bound = sum(alpha[1:]) + sum(over.values()) - sum(b for _, b in sets) + gamma
        return bound, {(h, m): x + over[m] for (h, m), x in left.items()}

    def has_tree(self, arcs):
        """Whether arcs lead from node 0, or with a single root from one node below it, to all others."""
        below = {}
        for h, m in arcs:
            below.setdefault(h, []).append(m)
        for start in below.get(0, ()) if self.single and self.words else [0]:
            reached, pending = {start}, [start]
            while pending:
                new = {m for m in below.get(pending.pop(), ()) if m not in reached}
                reached |= new
                pending += new
            if reached.issuperset(self.words):
                return True
        return False

    def best(self, scores, witness):
        return self.slack({arc: self.score(scores, arc) for arc in self.arcs}, witness)[0]

    def best_by_arc(self, scores, asked, witness):
        """Of (arc, its score, a key): per key the best tree with such an arc, by slack or by a witness of its own."""
        full = {arc: self.score(scores, arc) for arc in self.arcs}
        bound, slack = self.slack(full, witness)
        own = {(h, m): dual for h, m, dual in witness.get("forced", ())}
        found = {}
        for arc, score, key in asked if not never(bound) else ():
            if arc in slack and not never(score):
                here, less = bound, slack[arc] + full[arc] - score
                if arc in own:
                    only = {a: (score if a == arc else x) for a, x in full.items() if a[1] != arc[1] or a == arc}
                    here, slack_here = self.slack(only, own[arc])
                    less = slack_here.get(arc, 0)
                raised(found, key, here - less)
        return found

    def best_with(self, scores, chosen, witness):
        """For each of the parts chosen the best tree that uses it."""
        asked = [(arc, self.score(scores, arc), p) for arc, p in self.arcs.items() if p in chosen]
        for arc, own in self.labels.items():
            asked += [(arc, scores[self.arcs[arc]] + scores[q], q) for q in own.values() if q in chosen]
        return dict.fromkeys(chosen, NEVER) | self.best_by_arc(scores, asked, witness)

    def best_other(self, scores, known, witness):
        """Another tree has an arc that the known one lacks, or the same with another label."""
        refuse_unless(len(known) == 1, "too many trees are known")
        heads, labels = known[0] if self.labelled else (known[0], known[0])
        same = {arc: labels[arc[1]] for arc in self.arcs if heads[arc[1]] == arc[0]}
        asked = [(arc, self.score(scores, arc, same.get(arc)), None) for arc in self.arcs]
        return self.best_by_arc(scores, asked, witness).get(None, NEVER)

    def most_uses(self, parts):
        """Words whose arc, and words whose label, may be one of these parts."""
        arcs = {m for (_, m), p in self.arcs.items() if p in parts}
        return len(arcs) + len({m for (_, m), own in self.labels.items() if not parts.isdisjoint(own.values())})


def sliced(ptr, flat):
    refuse_unless(ptr and ptr[0] == 0 and ptr[-1] == len(flat) and sorted(ptr) == ptr, "offsets do not fit")
    return [flat[a:b] for a, b in pairwise(ptr)]


# -- the proof ---------------------------------------------------------------------------------------------------------


class Problem:
    """Scores, spaces and rows; ``tied[p]`` are the parts that rows p - q = 0 keep equal to p."""

    def __init__(self, data):
        self.scores = [exact(x) for x in data["scores"]]
        self.spaces = [{"graph": Graph, "trees": Trees}[space["kind"]](space) for space in data["spaces"]]
        if data.get("sides"):
            self.spaces = [Strings(*both) for both in zip(data["spaces"], data["sides"], strict=True)]
        rows = data["rows"]
        parts = set(rows["part"]).union(*(space.used for space in self.spaces))
        refuse_unless(not parts or 0 <= min(parts) <= max(parts) < len(self.scores), "there is no such part")
        numbers = [*rows["coefficient"], *rows["rhs"], *rows["slack"]]
        self.unit = max((x.as_integer_ratio()[1].bit_length() - 1 for x in numbers), default=0)
        by, rhs, slack = ([exact(x, self.unit) for x in rows[name]] for name in ("coefficient", "rhs", "slack"))
        self.rows = list(
            zip(sliced(rows["ptr"], rows["part"]), sliced(rows["ptr"], by), rhs, slack, rows["equality"], strict=True)
        )
        for cut in data.get("cuts", ()):
            self.check_cut(cut, {other["row"] for other in data["cuts"]})
        self.tied = {}
        for parts, by, b, slack, equal in self.rows:
            if equal is True and len(parts) == 2 and b == slack == 0 and by[0] == -by[1] != 0:
                for p in parts:
                    self.tied.setdefault(p, set()).update(parts)

    def check_cut(self, cut, others):
        """Refuse a row that is no sum of rows, divided by a number and rounded down; uses are whole numbers >= 0."""
        times = [*cut["rows"], *cut["parts"], [0, cut["denominator"]], [0, cut["row"]]]
        refuse_unless(all(type(x) is int for pair in times for x in pair), "a number of a cut is not whole")
        refuse_unless(cut["denominator"] > 0 and cut["row"] >= 0, "a cut divides by a number below 1")
        unit, left, right = cut["denominator"] << self.unit, {}, 0
        for row, k in cut["rows"]:
            refuse_unless(row >= 0 and row not in others, "a cut is made of a cut")
            parts, by, b, slack, equal = self.rows[row]
            refuse_unless(equal is True or k >= 0, "a cut takes a <= row less than 0 times")
            right += k * b + abs(k) * slack
            for p, a in zip(parts, by, strict=True):
                left[p] = left.get(p, 0) + k * a
        for p, k in cut["parts"]:
            refuse_unless(k >= 0 and self.most_uses({p}) <= 1, "a part of a cut may be used more than once")
            left[p] = left.get(p, 0) + (k << self.unit)
            right += k << self.unit
        parts, by, b, slack, equal = self.rows[cut["row"]]
        stated = {}
        for p, a in zip(parts, by, strict=True):
            stated[p] = stated.get(p, 0) + a
        fine = all(a <= (left.get(p, 0) // unit) << self.unit for p, a in stated.items())
        fine = fine and all(p in stated or x >= 0 for p, x in left.items())
        holds = equal is not True and slack >= 0 and b + slack >= (right // unit) << self.unit
        refuse_unless(fine and holds, f"row {cut['row']} does not follow from the rows that it is made of")

    def copies(self, part):
        """The parts that are used whenever this one is."""
        found, pending = {part}, [part]
        while pending:
            new = self.tied.get(pending.pop(), found) - found
            found |= new
            pending += new
        return found

    def priced(self, node, zeros=frozenset(), ones=()):
        """The scores under the multipliers of a node, and what is to be added to the sum of the best."""
        reward = exact(node["reward"])
        refuse_unless(reward >= 0, "a reward is negative")
        scores = [NEVER if p in zeros else s for p, s in enumerate(self.scores)]
        constant = -reward * len(ones)
        for (parts, by, b, slack, equal), u in zip(self.rows, node["u"], strict=True):
            multiplier = finite(u, FINE - self.unit)
            refuse_unless(equal is True or multiplier <= 0, "a multiplier of a <= row is positive")
            if multiplier:
                constant += abs(multiplier) * slack - multiplier * b
                for p, a in zip(parts, by, strict=True):
                    scores[p] += multiplier * a
        for p in ones:
            scores[p] += reward
        return scores, constant

    def uses(self, structure):
        """The parts of a structure that satisfies the rows, with repeats."""
        used = [p for space, own in zip(self.spaces, structure, strict=True) for p in space.uses(own)]
        for parts, by, b, slack, equal in self.rows:
            over = sum(a * used.count(p) for p, a in zip(parts, by, strict=True)) - b
            refuse_unless(over <= slack and (equal is not True or -over <= slack), "a row is not satisfied")
        return used

    def told(self, structure):
        """What structures that are to be different differ in."""
        both = zip(self.spaces, structure, strict=True)
        return [space.told(own) if isinstance(space, Strings) else own for space, own in both]

    def most_uses(self, parts):
        """No structure uses more of these parts than this, repeats counted."""
        return sum(max(space.most_uses(parts), 0) for space in self.spaces)


def proved(problem, nodes, better):
    """The least number that the proof tree shows no structure to beat, but for the better ones."""
    bound, seen, stack = NEVER, set(), [(0, frozenset(), frozenset())]
    while stack:
        at, zeros, ones = stack.pop()
        node = nodes[at]
        refuse_unless(at not in seen, "a node of the proof tree hangs in two places")
        seen.add(at)
        if node["node"] == "split":
            copies = problem.copies(node["part"])
            stack.append((node["zero"], zeros | copies, ones))
            gone, required = set(), set(node["required"])
            refuse_unless(required <= copies, "a part is required that need not be used")
            for line in map(set, node["rivals"]):
                fine = not copies.isdisjoint(line) and problem.most_uses(line) <= 1
                refuse_unless(fine, "rivals of a part may be used beside it")
                gone |= line - copies
            stack.append((node["one"], zeros | gone, ones | required))
            continue
        scores, constant = problem.priced(node, zeros, ones)
        asked = list(zip(problem.spaces, node["spaces"], strict=True))
        best = [space.best(scores, witness) for space, witness in asked]
        for i, space in enumerate(problem.spaces):  # a reward does not see that a part is used twice in place of two
            through = space.used.intersection(node.get("through", ()))
            refuse_unless(through <= ones and (not through or isinstance(space, Graph)), "a part need not be used")
            best[i] = min([best[i], *(space.best_with(scores, through, None).values() if through else ())])
        total = constant + sum(best)
        if node["node"] == "fix":  # what all copies of a part lose by being used adds up
            copies = {p: problem.copies(p) for p in node["parts"]}
            every = set().union(*copies.values())
            lost = {p: 0 for p, own in copies.items() if any(not own.isdisjoint(s.used) for s in problem.spaces)}
            for (space, witness), most in zip(asked, best, strict=True):
                found = space.best_with(scores, space.used & every, witness)
                for p in lost:
                    lost[p] += max([0, *(most - found[q] for q in copies[p] if q in found)])
            bound = max([bound, *(total - less for less in lost.values())])
            stack.append((node["rest"], zeros | every, ones))
        elif node["known"]:
            known = [better[k] for k in node["known"]]
            mine = [different(y[i] for y in known) for i in range(len(asked))]
            refuse_unless(prod(map(len, mine)) == len(different(known)), "those known may be mixed into others")
            for i, (space, witness) in enumerate(asked):
                bound = max(bound, total - best[i] + space.best_other(scores, mine[i], witness))
        else:
            bound = max(bound, total)
    return bound


def different(items):
    """The items, each once."""
    listed = list(items)
    return [item for k, item in enumerate(listed) if item not in listed[:k]]


# -- language models ---------------------------------------------------------------------------------------------------

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"


class LanguageModel:
    """n-grams with back-off; a context is kept as far as some n-gram or back-off begins with it."""

    def __init__(self, data):
        self.order, self.value, self.back_off, self.contexts = len(data["orders"]), {}, {}, {()}
        for grams in data["orders"]:
            rows = zip(grams["words"], grams["log_probability"], grams["back_off"], strict=True)
            for words, value, back_off in rows:
                gram = tuple(words)
                self.value[gram], self.back_off[gram] = float(value), float(back_off)
                self.contexts.update(gram[:k] for k in range(len(gram) + (float(back_off) != 0.0)))

    def kept(self, words):
        words = words[max(0, len(words) - self.order + 1) :]
        while words not in self.contexts:
            words = words[1:]
        return words

    def advance(self, context, word):
        """(ln p(word | context), the context after it)."""
        word = word if (word,) in self.value else UNKNOWN
        after, total = self.kept((*context, word)), 0.0
        while context and (*context, word) not in self.value:
            total += self.back_off.get(context, 0.0)
            context = context[1:]
        return total + self.value[*context, word], after


class Reader:
    """An automaton that translations must be accepted by: the state after a word, None where it is refused."""

    def __init__(self, data):
        words, n = data["words"], data["states"]
        refuse_unless(len(set(words)) == len(words), "an automaton has a word twice")
        refuse_unless(len(data["steps"]) == n * len(words), "the steps of an automaton do not fit its states")
        refuse_unless(all(-1 <= q < n for q in data["steps"]), "a step of an automaton leads nowhere")
        self.number, self.initial, self.finals = {w: k for k, w in enumerate(words)}, data["initial"], data["finals"]
        self.states, self.steps = range(n), [q if q >= 0 else None for q in data["steps"]]
        refuse_unless(0 <= self.initial < n, "an automaton begins nowhere")

    def step(self, q, word):
        if q is None or word not in self.number:
            return None
        return self.steps[q * len(self.number) + self.number[word]]


# -- phrase-based translations -----------------------------------------------------------------------------------------

# A translation is a sequence of options that cover every source word once. It scores what its options score, less the
# distortion times the words jumped over, plus the weighted logarithms of a language model. ``closed_phrases`` returns a
# graph of all translations that score more than a bound. Whatever the witness says, none is left out: it only names
# the source words that bounds of completions keep track of, and prices (multipliers) of the words, any numbers.
#
# All terms may be weighted, and a price is added to what each option scores (NEVER: it is forbidden). Terms are
# doubles, calculated as the definition has it, and from there on exact.


class Sentence:
    """The options of a sentence, and which of them may follow where."""

    def __init__(self, data, weight, prices):
        self.n, self.window, self.outer, self.prices = len(data["source"]), data["window"] is True, weight, prices
        refuse_unless(len(prices) == len(data["scores"]), "prices do not fit the options")
        limit = data.get("distortion_limit")
        self.limit = self.n if limit is None else min(limit, self.n)
        self.lm, self.weight, self.distortion = LanguageModel(data["lm"]), data["lm_weight"], data["distortion"]
        self.reader = Reader(data["reader"]) if "reader" in data else None
        self.begin = 0 if self.reader is None else self.reader.initial, self.lm.kept((BEGIN,))
        self.spans, self.scores = {}, [weight * float(score) for score in data["scores"]]
        for k, ((start, end, target), score) in enumerate(zip(data["options"], data["scores"], strict=True)):
            refuse_unless(0 <= start <= end < self.n, f"option {k} lies beyond the sentence")
            refuse_unless("reader" not in data or END not in target, f"option {k} has the end of a sentence inside")
            if score != "-inf" and not never(prices[k]):
                self.spans.setdefault((start, end), []).append((k, tuple(target)))
        self.scored = cache(self.scored)

    def scored(self, context, words):
        """(terms of words after a context, their sum, the context after them); q is the state of an automaton."""
        (q, own), terms = context, []
        for word in words:
            value, own = self.lm.advance(own, word)
            if self.reader is not None:
                q = self.reader.step(q, word) if word != END else q if q in self.reader.finals else None
            terms.append(float("-inf") if q is None else self.outer * (self.weight * value))
        return terms, sum(map(exact, terms)), (q, own)

    def jump(self, place, start):
        return self.outer * (-self.distortion * abs(start - place))

    def steps(self, tracked, state):
        """What may follow a state (words covered, those tracked that are, place, context): what it is, what it adds,
        and the state after it. If all words are tracked these are the translations, else they and more."""
        count, seen, place, context = state
        low = count - max(self.limit - 1, 0) if self.window else 0  # the first uncovered word lies in low .. high
        high = next((i for i in range(count) if tracked >> i & 1 and not seen >> i & 1), count)
        for (start, end), options in self.spans.items():
            length, own = end - start + 1, ((1 << end + 1) - (1 << start)) & tracked
            if count + length > self.n or seen & own or abs(start - place) > self.limit or start < place <= end + 1:
                continue
            if self.window and (start < low or (start > high and end + 1 - high > self.limit)):
                continue
            for option, words in options:
                _, gain, after = self.scored(context, words)
                gain += exact(self.scores[option]) + self.prices[option] + exact(self.jump(place, start))
                yield (option, start, words), gain, (count + length, seen | own, end + 1, after)


def closed_phrases(data, weight, prices, witness, limit):
    """(scores of parts, a graph of them): its derivations are translations, those above the limit among them.

    The first parts are the options, as they are numbered. ``data`` is what PhraseTranslation.to_json writes.
    """
    s = Sentence(data, weight, prices)
    tracked = sum(1 << i for i in set(witness["tracked"]) if 0 <= i < s.n)
    price = [finite(x) for x in witness["multipliers"]]
    refuse_unless(len(price) == s.n, "there are not as many multipliers as words")

    @cache
    def most_after(state):
        """The most that any completion adds, with the prices of what it uses, if only tracked words are kept."""
        if state[0] == s.n:
            return s.scored(state[3], (END,))[1] if state[1] == tracked else NEVER
        following = s.steps(tracked, state)
        return best_of(gain + sum(price[step[1] : then[2]]) + most_after(then) for step, gain, then in following)

    layers = [{} for _ in range(s.n + 1)]  # by words covered: state -> best score of a way there
    layers[0][0, 0, 0, s.begin] = 0
    number, vertices, scores = {}, [], list(s.scores)

    def edge(tail, terms, option=()):
        scores.extend(terms)
        return [number[tail]], [*option, *range(len(scores) - len(terms), len(scores))]

    into = {}
    for state, score in chain.from_iterable(map(dict.items, layers)):
        number[state] = len(vertices)
        vertices.append(into.get(state, [((), ())]))
        for (option, start, words), gain, then in s.steps((1 << s.n) - 1, state):
            count, covered, place, context = then
            left = sum(p for i, p in enumerate(price) if not covered >> i & 1)
            if score + gain + most_after((count, covered & tracked, place, context)) - left > limit:
                raised(layers[count], then, score + gain)
                terms = [s.jump(state[2], start), *s.scored(state[3], words)[0]]
                into.setdefault(then, []).append(edge(state, terms, [option]))
    ends = [(state, score, *s.scored(state[3], (END,))) for state, score in layers[s.n].items()]
    vertices.append([edge(state, terms) for state, score, terms, total, _ in ends if score + total > limit])
    return scores, graph_of(vertices)


def graph_of(vertices):
    """The graph whose vertices are entered by these edges, each (tails, parts), as a file has it."""

    def flat(lists):
        return [0, *accumulate(map(len, lists))], list(chain.from_iterable(lists))

    in_ptr, edges = flat(vertices)
    (tail_ptr, tail), (part_ptr, part) = flat([tails for tails, _ in edges]), flat([parts for _, parts in edges])
    own = {"tail_ptr": tail_ptr, "tail": tail, "part_ptr": part_ptr, "part": part}
    return {"kind": "graph", "in_ptr": in_ptr} | own


# -- translation forests -----------------------------------------------------------------------------------------------

# The problem is what ``ForestTranslation.to_json`` writes: a forest whose edges have target sides of words and vertices
# of their tails, the n-grams of a language model with natural logarithms, and its weight. A word scores the double
# weight * (back-offs, the longest context's first, + ln p); all doubles are then exact. Weights of the whole and prices
# of edges are as above. The witness has multipliers u of pairs of words, any numbers. Reading w after .. t v costs its
# score + u[t, v] - u[v, w], and over a sentence the u cancel: so the sum over its pairs of
#
#     q[v, w]  =  max over contexts that end in t v, t one of the words that may stand before v
#
# bounds every sentence. Tables of the best by first and last word, under q, inside and outside, bound all derivations
# of an edge; those below the limit go. What is left is spelt out with whole contexts, but for items below the limit.

ROUNDS = 4


class Model:
    """Scores of words after contexts, and q; words that the model does not know are <unk>."""

    def __init__(self, data, weight, pairs, names):
        self.lm, self.weights, self.u, self.contexts = LanguageModel(data), weight, {}, {}
        self.order, self.span = self.lm.order, max(self.lm.order - 1, 1)
        name = {-1: BEGIN, -2: END} | {i: self.word(w) for i, w in enumerate(names)}
        for v, w, value in pairs if self.order > 2 else ():
            if v in name and w in name and name[w] != END:
                self.u[name[v], name[w]] = finite(value)
        for words in self.lm.contexts:  # beginnings of n-grams that the model leaves out are among these
            if 2 <= len(words) < self.order:
                self.contexts.setdefault(words[-2:], []).append(words)
        self.term = cache(self.term)

    def word(self, w):
        return w if (w,) in self.lm.value else UNKNOWN

    def term(self, context, w):
        outer, own = self.weights
        return outer * (own * self.lm.advance(context, w)[0])

    def score(self, context, w):
        return exact(self.term(context[max(len(context) - self.order + 1, 0) :], w))

    def optimistic(self, adjacent):
        before, q = {}, {}
        for v, w in adjacent:
            before.setdefault(w, set()).add(v)
        for v, w in adjacent:
            most = [self.score((v,), w)] if v == BEGIN or self.order <= 2 else []
            for t in before.get(v, ()) if self.order > 2 else ():
                own = max(self.score(c, w) for c in [(t, v), *self.contexts.get((t, v), ())])
                most.append(own + self.u.get((t, v), 0))
            if most:
                q[v, w] = max(most) - self.u.get((v, w), 0)
        return q


class Forest:
    """Edges as (vertex, number, weight, target side of words and vertices); the top yields <s>, the root, </s>."""

    def __init__(self, data, model, prices):
        self.words, self.top, self.edges = data["translation"]["words"], data["root"] + 1, []
        self.scores = [model.weights[0] * float(x) for x in data["weights"]]
        refuse_unless(len(prices) == len(self.scores), "prices do not fit the edges")
        tails, own = sliced(data["tail_ptr"], data["tail"]), data["translation"]
        self.tokens = sliced(own["token_ptr"], own["token"])
        for v, edges in enumerate(sliced(data["in_ptr"], range(len(tails)))[: self.top]):
            for e in edges:
                refuse_unless(all(0 <= u < v for u in tails[e]), f"a tail of vertex {v} is not below it")
                stands = [~t for t in self.tokens[e] if t < 0] == list(range(len(tails[e])))
                refuse_unless(stands, f"edge {e} does not yield each of its tails once, from left to right")
                if data["weights"][e] != "-inf" and not never(prices[e]):
                    side = [model.word(self.words[t]) if t >= 0 else tails[e][~t] for t in self.tokens[e]]
                    self.edges.append((v, e, exact(self.scores[e]) + prices[e], side))
        self.edges.append((self.top, None, 0, [BEGIN, self.top - 1, END]))

    def accepted(self, reader):
        """Leave what an automaton accepts: a vertex for each function of states that derivations of one are."""
        reached, n, edges = [{} for _ in range(self.top)], 0, []  # per vertex: function -> new vertex
        read = {w: tuple(reader.step(q, w) for q in reader.states) for w in self.words}
        for v, e, weight, side in self.edges[:-1]:
            both = zip(self.tokens[e], side, strict=True)
            parts = [[(read[self.words[t]], w)] if t >= 0 else list(reached[w].items()) for t, w in both]
            for choice in product(*parts):
                f = tuple(reader.states)
                for g, _ in choice:
                    f = tuple(None if q is None else g[q] for q in f)
                if any(q is not None for q in f):
                    if f not in reached[v]:
                        reached[v][f], n = n, n + 1
                    edges.append((reached[v][f], e, weight, [w for _, w in choice]))
        ends = [x for f, x in reached[-1].items() if f[reader.initial] in reader.finals]
        self.top, self.edges = n, sorted(edges, key=lambda edge: edge[0])
        self.edges += [(n, None, 0, [BEGIN, x, END]) for x in ends]


class Tables:
    """Inside and outside by (first, last) word, or None for what yields nothing; ``through`` by edge."""

    def __init__(self, forest, model, ends):
        self.edges, self.ends = forest.edges, ends
        self.q, self.hooks = model.optimistic(self.adjacent(forest.top)), {}
        self.inside, self.outside = ([{} for _ in range(forest.top + 1)] for _ in range(2))
        stages, self.through = [], []  # what the first parts of a side yield
        for v, _, weight, side in self.edges:
            stages.append([{None: weight}])
            for part in side:
                after = {}
                for both, _, _, value, more in self.joins(stages[-1][-1], part):
                    raised(after, both, value + more)
                stages[-1].append(after)
            for key, value in stages[-1][-1].items():
                if ends is None or key in ends[v]:
                    raised(self.inside[v], key, value)
        self.outside[-1] = dict.fromkeys(self.inside[-1], 0)
        for (v, _, _, side), own in zip(reversed(self.edges), reversed(stages), strict=True):
            around = {key: self.outside[v][key] for key in own[-1] if key in self.outside[v]}
            self.through.append(best_of(around[key] + own[-1][key] for key in around))
            for part, before in zip(reversed(side), own[-2::-1], strict=True):
                around = self.around(before, part, around)
        self.through.reverse()

    def adjacent(self, top):
        first, last = ([set() for _ in range(top + 1)] for _ in range(2))
        empty, pairs = set(), set()
        for v, _, _, side in self.edges:
            before, opening = set(), True  # words that the next one may follow; whether nothing need have come yet
            for part in side:
                firsts, lasts = ({part}, {part}) if isinstance(part, str) else (first[part], last[part])
                pairs |= set(product(before, firsts))
                first[v] |= firsts if opening else set()
                passing = not isinstance(part, str) and part in empty
                before, opening = (before if passing else set()) | lasts, opening and passing
            last[v] |= before
            empty |= {v} if opening else set()
            if self.ends is not None:
                first[v] &= {key[0] for key in self.ends[v] if key}
                last[v] &= {key[1] for key in self.ends[v] if key}
        return pairs

    def table(self, part):
        return {(part, part): 0} if isinstance(part, str) else self.inside[part]

    def hook(self, word, part):
        """Per last word: the best of what part yields after a word."""
        if (word, part) not in self.hooks:
            best = self.hooks[word, part] = {}
            for key, value in self.table(part).items():
                if key and (word, key[0]) in self.q:
                    raised(best, key[1], self.q[word, key[0]] + value)
        return self.hooks[word, part]

    def joins(self, stage, part):
        """Ways on: (key of both, of the stage, (word before or None, last word or key of the part), both values)."""
        own = self.table(part)
        for key, value in stage.items():
            if key is None:
                for other, more in own.items():
                    yield other, None, (None, other), value, more
                continue
            for last, more in self.hook(key[1], part).items():
                yield (key[0], last), key, (key[1], last), value, more
            if None in own:
                yield key, key, (None, None), value, own[None]

    def around(self, stage, part, around):
        """What is around a stage, given what is around it with the part after it; raises what is around the part."""
        out, above = {}, {}
        for both, key, own, value, more in self.joins(stage, part):
            if both in around:
                raised(out, key, around[both] + more)
                raised(above, own, value + around[both])
        for (before, after), value in above.items() if not isinstance(part, str) else ():
            if before is None:
                raised(self.outside[part], after, value)
                continue
            for key in self.inside[part]:
                if key and key[1] == after and (before, key[0]) in self.q:
                    raised(self.outside[part], key, value + self.q[before, key[0]])
        return out


def closed_forest(data, weight, prices, witness, limit):
    """(scores of parts, a graph of them): its derivations are the forest's, those above the limit among them.

    The first parts are the edges of the forest, as they are numbered, the others words after others.
    """
    own, weights, ends = data["forest"], (weight, float(data["lm_weight"])), None
    model = Model(data["lm"], weights, witness["pairs"], own["translation"]["words"])
    forest = Forest(own, model, prices)
    if "reader" in data:
        forest.accepted(Reader(data["reader"]))
    for _ in range(ROUNDS):
        tables = Tables(forest, model, ends)
        forest.edges = [y for y, best in zip(forest.edges, tables.through, strict=True) if best > limit]
        both = zip(tables.inside, tables.outside, strict=True)
        ends = [{key for key in a if key in b and a[key] + b[key] > limit} for a, b in both]
    return spelt_out(forest, model, tables, limit)


def spelt_out(forest, model, tables, limit):
    """Items of whole contexts, per vertex: (first words, last words) -> [best score, number]; an edge for each way."""
    items, vertices, scores, span = [{} for _ in range(forest.top + 1)], [], list(forest.scores), model.span
    part_of = cache(lambda context, w: scores.append(model.term(context, w)) or len(scores) - 1)

    def follow(partial, key, item):
        left, last, score, below, parts = partial
        for w in key[0]:
            if len(left) == span:
                score, parts = score + model.score(last, w), (*parts, part_of(last, w))
            else:
                left = (*left, w)
            last = (*last, w)[-span:]
        if item is not None:
            score, below = score + item[0], (*below, item[1])
        return left, key[1] if len(key[0]) == span else last, score, below, parts

    def bound(v, left, last, score):
        """The most that a derivation with such an item may score."""
        around = tables.outside[v].get((left[0], last[-1]) if left else None, NEVER)
        if 1 < len(left) == span:
            score += model.u.get(left[-2:], 0) - model.u.get(last[-2:], 0)
        return score + around + sum(tables.q.get(pair, NEVER) for pair in pairwise(left))

    for v, e, weight, side in forest.edges:
        top, partial = v == forest.top, [((), (), weight, (), () if e is None else (e,))]
        if top:  # nothing that stands before <s> matters
            side, partial = side[1:], [((BEGIN,) * span, (BEGIN,), weight, (), ())]
        for part in side:
            right = {((part,), (part,)): None} if isinstance(part, str) else items[part]
            both = ((p, key, item) for p in partial for key, item in right.items())
            fit = (x for x in both if not x[0][1] or not x[1][0] or (x[0][1][-1], x[1][0][0]) in tables.q)
            partial = [follow(*x) for x in fit]
        for left, last, score, below, parts in partial:
            if (score if top else bound(v, left, last, score)) > limit:
                item = items[v].setdefault(None if top else (left, last), [score, len(vertices)])
                if item[1] == len(vertices):
                    vertices.append([])
                item[0] = max(item[0], score)
                vertices[item[1]].append((below, parts))
    return scores, graph_of(vertices if items[-1] else [[]])


CLOSED = {"phrase translation": closed_phrases, "forest translation": closed_forest}
CLOSED |= {f"accepted {name}": closing for name, closing in CLOSED.items()}


def closed(data):
    """The file with graphs in place of spaces that are searched: all that may score more than the claim is there.

    A structure that a graph lacks has one of that space that scores no more than ``above``, under the multipliers of
    ``closing``. With the best of all other spaces, that must be no more than the claim.
    """
    searched = {i: space for i, space in enumerate(data["spaces"]) if space["kind"] == "searched"}
    spaces = [graph_of([[((), ())]]) if i in searched else space for i, space in enumerate(data["spaces"])]
    data = data | {"spaces": spaces, "sides": None}
    if not searched:
        return data
    problem = Problem(data)
    prices, constant = problem.priced(data["closing"])
    best = [space.best(prices, own) for space, own in zip(problem.spaces, data["closing"]["spaces"], strict=True)]
    refuse_unless(not any(map(never, best)), "a space has no structures")
    scores, above = list(data["scores"]), {}
    for i, space in searched.items():
        refuse_unless(all(0 <= p < len(data["scores"]) for p in space["part"]), "there is no such part")
        own, above[i] = [prices[p] for p in space["part"]], exact(space["above"])
        terms, graph = CLOSED[space["problem"]](space["data"], float(space["weight"]), own, space["witness"], above[i])
        under = [exact(x) + (own[p] if p < len(own) else 0) for p, x in enumerate(terms)]
        best[i] = max(above[i], Graph(graph).best(under, None))
        if data["claim"].get("distinct") is True and len(spaces) == 1:
            data["sides"] = [sides_of(space, graph)]
        spaces[i] = joined(graph, len(scores), space["part"])
        scores += ["-inf" if x == float("-inf") else x for x in terms]
    limit = claimed(data["claim"], *(finite(data["claim"][name]) for name in ("score", "bound", "tolerance")))
    enough = all(constant + sum(best) - best[i] + above[i] <= limit for i in searched)
    refuse_unless(enough, "what is left out may score more")
    return data | {"scores": scores}


def joined(graph, start, cells):
    """A graph whose parts are numbered from ``start`` on; the first ones go with parts that rows may be about."""
    own = sliced(graph["part_ptr"], graph["part"])
    parts = [[p + start for p in ps] + [cells[p] for p in ps if p < len(cells)] for ps in own]
    part_ptr = [0, *accumulate(map(len, parts))]
    return graph | {"part_ptr": part_ptr, "part": list(chain.from_iterable(parts))}


def sides_of(space, graph):
    """What the edges of a graph of translations of a forest yield: words, and None for what each tail yields."""
    own = space["data"]["forest"]["translation"]
    sides = [[own["words"][t] if t >= 0 else None for t in side] for side in sliced(own["token_ptr"], own["token"])]
    parts = sliced(graph["part_ptr"], graph["part"])
    return [sides[ps[0]] if ps and ps[0] < len(sides) else [None] for ps in parts]


# -- the claim ---------------------------------------------------------------------------------------------------------


def check(data):
    """Raise Refused unless everything claimed follows; return what to say of it."""
    known = 1 if data.get("cuts") is None else 2
    refuse_unless(
        data["format"] == "certus proof" and data["version"] == known, f"the file is no proof of version {known}"
    )
    problem, claim, better = Problem(data := closed(data)), data["claim"], data["better"]
    score, bound, tolerance = (finite(claim[name]) for name in ("score", "bound", "tolerance"))
    refuse_unless(tolerance >= 0, "the tolerance is negative")
    refuse_unless(claim.get("distinct") is not True or data["sides"], "nothing tells distinct structures apart")
    total, slack, counted = sums(problem, data["structure"])
    refuse_unless(abs(total - score) << 52 <= slack, "the score is not that of the structure")
    refuse_unless(claim["rank"] == 1 + len(better), "the rank does not fit the number of better structures")
    for y in better:
        own, slack, _ = sums(problem, y)
        refuse_unless(own - score + tolerance << 52 >= -slack, "a better structure scores less")
    listed = [problem.told(y) for y in [data["structure"], *better]]
    refuse_unless(len(different(listed)) == len(listed), "a structure is listed twice")
    if claim["exact"] is True:
        refuse_unless(2 * (bound - score) <= tolerance, "bound and score are too far apart for a proof")
        refuse_unless(tolerance * EXACT**2 <= counted * (EXACT + 1), "the tolerance is too wide for a proof")
    found = proved(problem, data["proof"], better)
    grain = gcd(*(x for x in problem.scores if not never(x)))  # structures score multiples of it
    found = found // grain * grain if grain else min(found, 0)
    refuse_unless(found <= claimed(claim, score, bound, tolerance), "the proof shows less than is claimed")
    what = "optimal" if claim["exact"] is True else "bounded"
    trusts = "".join(f"; provided {x}" for x in data.get("trusts", ()))
    rank = f"rank {claim['rank']}{' of distinct ones' if claim.get('distinct') is True else ''}"
    return f"verified, {what}, {rank}: score {claim['score']}, bound {claim['bound']}{trusts}"


def claimed(claim, score, bound, tolerance):
    """What no other structure may beat; for a proof, what scores as much as this one but for the tolerance."""
    return (min(bound, score) if claim["exact"] is True else bound) + tolerance


def sums(problem, structure):
    """Of a structure: its score, 2^52 times what rounding may have added to it, and what a tolerance is a share of."""
    parts = [problem.scores[p] for p in problem.uses(structure)]
    refuse_unless(not any(map(never, parts)), "a structure uses a forbidden part")
    counted = sum(x if x > 0 else min(-x, exact(MASK)) for x in parts)
    return sum(parts), max(sum(1 for x in parts if x) - 1, 0) * sum(map(abs, parts)), counted


def main(paths):
    code = 0
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                said = check(json.load(file))
        except Refused as reason:
            said, code = f"FALSE: {reason}", 1
        except (OSError, *MALFORMED) as error:
            said, code = f"cannot be checked: {type(error).__name__}: {error}", code or 2
        print(f"{path}: {said}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
