"""Checks a proof written by certus: one file, the standard library, exact integers. Usage: python standalone.py FILE...

docs/certificates.md specifies what is read here. A file holds a problem in normal form (parts with scores, spaces of
structures made of parts, rows that tie the uses of parts), a structure, what is claimed of it, and a proof. A space of
translations is given as what it is made of, from which follows a graph of all that may score more than is claimed. Exit
code 0 if every claim holds, 1 if one does not, 2 if a file cannot be read.

Numbers in a file are doubles and are read as the exact numbers they are: all are multiplied by one power of two, so
that everything below is done in integers, without rounding. NEVER stands for -infinity: a forbidden part.
"""

import json
import sys
from functools import cache
from itertools import pairwise, product
from math import prod

NEVER = None
EXACT, MASK = 10**9, 10**4  # a proof allows for 1 / EXACT of the scores in use, none of which counts below -MASK
MALFORMED = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)  # odd files


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

    def __init__(self, k):
        self.k = k

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


def least(a, b):
    return NEVER if NEVER in (a, b) else min(a, b)


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
        self.used = set(self.all_parts())

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
    With labels every arc also uses one of its label parts, the best one where only the best matters.
    """

    def __init__(self, data):
        self.single, self.labels = data["single"] is True, data.get("labels")
        self.arcs = {
            (h, m): p for h, row in enumerate(data["part"]) for m, p in enumerate(row) if p >= 0 and 0 != m != h
        }
        self.words = range(1, len(data["part"]))
        self.used = set(self.all_parts())

    def parts_of(self, arc):
        """The part of an arc, and those of its labels, by label."""
        own = [] if self.labels is None else self.labels[arc[0]][arc[1]]
        return self.arcs[arc], {label: p for label, p in enumerate(own) if p >= 0}

    def all_parts(self):
        return [p for arc in self.arcs for p in (self.arcs[arc], *self.parts_of(arc)[1].values())]

    def uses(self, tree):
        heads, labels = tree if self.labels is not None else (tree, None)
        n = len(self.words)
        fit = len(heads) == n + 1 and heads[0] == -1 and all((heads[m], m) in self.arcs for m in self.words)
        refuse_unless(fit, "heads do not fit the words")
        for m in self.words:
            seen, v = set(), m
            while v != 0:
                refuse_unless(v not in seen, f"word {m} hangs on a cycle")
                seen.add(v)
                v = heads[v]
        refuse_unless(not self.single or n == 0 or heads[1:].count(0) == 1, "more than one word hangs on node 0")
        found = [self.parts_of((heads[m], m)) for m in self.words]
        if labels is None:
            return [p for p, _ in found]
        refuse_unless(len(labels) == n + 1 and labels[0] == -1, "labels do not fit the words")
        both = list(zip(labels[1:], found, strict=True))
        refuse_unless(all(label in own for label, (_, own) in both), "labels do not fit the arcs")
        return [q for label, (p, own) in both for q in (p, own[label])]

    def score(self, scores, arc, allowed=lambda p, label: True):
        """Of an arc with its best label among those allowed."""
        p, own = self.parts_of(arc)
        if self.labels is None:
            return scores[p] if allowed(p, None) else NEVER
        return plus(scores[p], most(scores[q] for label, q in own.items() if allowed(q, label) or allowed(p, None)))

    def slack(self, arc_scores, dual):
        """The bound, and for each arc how much less trees that use it score at most."""
        alpha, gamma = list(dual["alpha"]), dual["gamma"] if self.single else 0
        sets = [(set(nodes), beta) for nodes, beta in zip(dual["sets"], dual["beta"], strict=True)]
        refuse_unless(gamma >= 0 and all(b >= 0 and 0 not in s for s, b in sets), "a number of a node set is negative")
        refuse_unless(len(alpha) == len(self.words) + 1, "alpha does not fit the words")
        left = {}
        for (h, m), score in arc_scores.items():
            if score is not NEVER:
                allowed = alpha[m] - sum(b for s, b in sets if m in s and h not in s) + (gamma if h == 0 else 0)
                left[h, m] = allowed - score
        if not self.has_tree(left):
            return NEVER, {}
        raised = {m: max(0, -min(x for (_, k), x in left.items() if k == m)) for m in self.words}
        bound = sum(alpha[1:]) + sum(raised.values()) - sum(b for _, b in sets) + gamma
        return bound, {(h, m): x + raised[m] for (h, m), x in left.items()}

    def has_tree(self, arcs):
        """Whether arcs lead from node 0, or with a single root from one node below it, to all others."""
        words = set(self.words)
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
        return self.slack({arc: self.score(scores, arc) for arc in self.arcs}, witness)[0]

    def best_with(self, scores, allowed, witness):
        """The best tree with an arc that uses what is allowed: by slack, or by a witness of its own for that arc.

        ``allowed(arc)`` is a test of (part, label), None for an arc whose parts are all that is asked for.
        """
        full = {arc: self.score(scores, arc) for arc in self.arcs}
        bound, slack = self.slack(full, witness)
        own = {(h, m): dual for h, m, dual in witness.get("forced", ())}
        found = NEVER
        for arc in slack if bound is not NEVER else ():
            score = self.score(scores, arc, allowed(arc))
            if score is not NEVER:
                here = bound - slack[arc] - (full[arc] - score)
                if arc in own:
                    only = {a: (score if a == arc else x) for a, x in full.items() if a[1] != arc[1] or a == arc}
                    here, less = self.slack(only, own[arc])
                    here = NEVER if here is NEVER else here - less[arc]
                found = most((found, here))
        return found

    def best_with_any(self, scores, chosen, witness):
        return self.best_with(scores, lambda arc: lambda p, label: p in chosen, witness)

    def best_other(self, scores, known, witness):
        """Another tree has an arc that the known one lacks, or the same with another label."""
        refuse_unless(len(known) == 1, "too many trees are known")
        (tree,) = known
        heads, labels = tree if self.labels is not None else (tree, None)

        def other(arc):
            if heads[arc[1]] != arc[0]:
                return lambda p, label: True
            return lambda p, label: label is not None and label != labels[arc[1]]

        return self.best_with(scores, other, witness)

    def most_uses(self, parts):
        """Words whose arc, and words whose label, may be one of these parts."""
        arcs = {m for (_, m), p in self.arcs.items() if p in parts}
        labels = {m for h, m in self.arcs if set(self.parts_of((h, m))[1].values()).intersection(parts)}
        return len(arcs) + len(labels)


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
        parts = set(rows["part"]).union(*(space.used for space in self.spaces))
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
            gone, required = set(), set(node["required"])
            refuse_unless(required <= copies, "a part is required that need not be used")
            for line in node["rivals"]:
                used = copies.intersection(line)
                refuse_unless(used and most_uses(problem, line) <= 1, "rivals of a part may be used beside it")
                gone.update(set(line) - used)
            stack.append((node["one"], zeros | gone, ones | required))
            continue
        refuse_unless(node["reward"] >= 0, "a reward is negative")
        scores, constant = problem.priced(node["u"], zeros, ones, node["reward"])
        asked = list(zip(problem.spaces, node["spaces"], strict=True))
        best = [space.best(scores, witness) for space, witness in asked]
        for p in node.get("through", ()):  # a reward does not see that another part is used twice in place of one
            (i,) = [i for i, space in enumerate(problem.spaces) if p in space.used]
            refuse_unless(p in ones and isinstance(problem.spaces[i], Graph), "a part need not be used by a graph")
            best[i] = least(best[i], problem.spaces[i].best_with_any(scores, {p}, None))

        def total(i, instead, best=best, constant=constant):
            return plus(constant, instead, *best[:i], *best[i + 1 :])

        if node["node"] == "fix":
            chosen = set(node["parts"])
            found = [total(i, s.best_with_any(scores, chosen, w)) for i, (s, w) in enumerate(asked)]
            stack.append((node["rest"], zeros.union(*(problem.copies(p) for p in chosen)), ones))
        elif node["known"]:
            known = [better[k] for k in node["known"]]
            mine = [different(y[i] for y in known) for i in range(len(asked))]
            refuse_unless(prod(map(len, mine)) == len(different(known)), "those known may be mixed into others")
            found = [total(i, s.best_other(scores, mine[i], w)) for i, (s, w) in enumerate(asked)]
        else:
            found = [plus(constant, *best)]
        bound = most([bound, *found])
    return bound


def different(items):
    """The items, each once."""
    found = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def most_uses(problem, parts):
    """No structure uses more of these parts than this, repeats counted."""
    return sum(space.most_uses(parts) or 0 for space in problem.spaces)


# -- phrase-based translations ---------------------------------------------------------------------------------------

# Phrase-based translations that score more than a bound: the standard library, exact integers, simple loops.
#
# A translation is a sequence of options that cover every source word once. It scores what its options score, less the
# distortion times the words jumped over, plus the weighted logarithms of a language model. ``closed_phrases`` returns a
# graph of all translations that score more than a bound. Whatever the witness says, none is left out: it only names
# the source words that bounds of completions keep track of, and prices (multipliers) of the words, any numbers.
#
# All terms may be weighted, and a price is added to what each option scores (NEVER: it is forbidden). Terms are
# doubles, calculated as the definition has it, and from there on exact: whole numbers of FINE, 2^-2148, of which the
# product of any two doubles is a multiple.

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
FINE = 1074


@cache
def exact(x):
    """A double as a whole number of 2^-2148; -infinity as one so low that no sum makes up for it."""
    if x == float("-inf"):
        return -(2**4400)
    top, bottom = float(x).as_integer_ratio()
    return top * (2 ** (2 * FINE) // bottom)


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


class ReadModel:
    """A language model whose contexts hold the state of an automaton too; what is refused has no value."""

    def __init__(self, lm, reader):
        self.lm, self.reader = lm, reader

    def kept(self, words):
        return self.reader.initial, self.lm.kept(words)

    def advance(self, context, word):
        (q, own), at_end = context, word == END
        value, after = self.lm.advance(own, word)
        then = q if at_end else self.reader.step(q, word)
        accepted = q in self.reader.finals if at_end else then is not None
        return value if accepted else None, (then, after)


class Sentence:
    """The options of a sentence, and which of them may follow where."""

    def __init__(self, data, weight, prices):
        self.n, self.window, self.outer, self.prices = len(data["source"]), data["window"] is True, weight, prices
        refuse_unless(len(prices) == len(data["scores"]), "prices do not fit the options")
        limit = data.get("distortion_limit")
        self.limit = self.n if limit is None else min(limit, self.n)
        self.lm, self.weight, self.distortion = LanguageModel(data["lm"]), data["lm_weight"], data["distortion"]
        if "reader" in data:
            self.lm = ReadModel(self.lm, Reader(data["reader"]))
        self.spans, self.scores = {}, [weight * float(score) for score in data["scores"]]
        for k, ((start, end, target), score) in enumerate(zip(data["options"], data["scores"], strict=True)):
            refuse_unless(0 <= start <= end < self.n, f"option {k} lies beyond the sentence")
            refuse_unless("reader" not in data or END not in target, f"option {k} has the end of a sentence inside")
            if score != "-inf" and prices[k] is not NEVER:
                self.spans.setdefault((start, end), []).append((k, tuple(target)))
        self.scored = cache(self.scored)

    def scored(self, context, words):
        """(terms of words after a context, the context after them)."""
        terms = []
        for word in words:
            value, context = self.lm.advance(context, word)
            terms.append(float("-inf") if value is None else self.outer * (self.weight * value))
        return terms, context

    def jump(self, place, start):
        return self.outer * (-self.distortion * abs(start - place))

    def gain(self, place, start, option, words, context):
        """(what an option adds, the context after it), exact."""
        terms, after = self.scored(context, words)
        own = exact(self.scores[option]) + self.prices[option] + exact(self.jump(place, start))
        return own + sum(map(exact, terms)), after

    def may_follow(self, covered, place, start, end):
        first = next(i for i in range(self.n + 1) if not covered >> i & 1)
        free = not covered & bits(start, end) and abs(start - place) <= self.limit
        return free and (not self.window or start == first or end + 1 - first <= self.limit)


def bits(start, end):
    return (1 << end + 1) - (1 << start)


class Bounds:
    """The most that any completion adds, if only the number of covered words and the tracked words are kept."""

    def __init__(self, sentence, witness):
        self.sentence, self.tracked = sentence, sum(1 << i for i in set(witness["tracked"]) if 0 <= i < sentence.n)
        self.price = [exact(x) for x in witness["multipliers"]]
        if len(self.price) != sentence.n:
            raise ValueError("there are not as many multipliers as words")
        self.after = cache(self.after)

    def of(self, covered, place, context):
        """The most that completes a coverage; prices are paid for what is used, and returned for what was left."""
        left = sum(p for i, p in enumerate(self.price) if not covered >> i & 1)
        best = self.after(covered.bit_count(), covered & self.tracked, place, context)
        return None if best is None else best - left

    def after(self, count, seen, place, context):
        """The most, with prices; None if nothing completes this."""
        s = self.sentence
        if count == s.n:
            return sum(map(exact, s.scored(context, (END,))[0])) if seen == self.tracked else None
        best = None
        low = count - max(s.limit - 1, 0) if s.window else 0  # the first uncovered word lies in low .. high
        high = next((i for i in range(count) if self.tracked >> i & 1 and not seen >> i & 1), count)
        for (start, end), options in s.spans.items():
            length, own = end - start + 1, bits(start, end) & self.tracked
            if count + length > s.n or seen & own or abs(start - place) > s.limit or start < place <= end + 1:
                continue
            if s.window and (start < low or (start > high and end + 1 - high > s.limit)):
                continue
            for option, words in options:
                gain, following = s.gain(place, start, option, words, context)
                rest = self.after(count + length, seen | own, end + 1, following)
                if rest is not None:
                    total = gain + sum(self.price[start : end + 1]) + rest
                    best = total if best is None else max(best, total)
        return best


def closed_phrases(data, weight, prices, witness, limit):
    """(scores of parts, a graph of them): its derivations are translations, those above the limit among them.

    The first parts are the options, as they are numbered. ``data`` is what PhraseTranslation.to_json writes.
    """
    s = Sentence(data, weight, prices)
    bounds = Bounds(s, witness)
    layers = [{} for _ in range(s.n + 1)]  # by words covered: (coverage, place, context) -> best score of a way there
    layers[0][0, 0, s.lm.kept((BEGIN,))] = 0
    into, ways = {}, []  # state -> steps (state before, option, place of its start)
    for count, layer in enumerate(layers):
        for state, score in layer.items():
            covered, place, context = state
            if count == s.n:
                if score + sum(map(exact, s.scored(context, (END,))[0])) > limit:
                    ways.append(state)
                continue
            for (start, end), options in s.spans.items():
                if not s.may_follow(covered, place, start, end):
                    continue
                for option, words in options:
                    gain, following = s.gain(place, start, option, words, context)
                    then = covered | bits(start, end), end + 1, following
                    rest = bounds.of(*then)
                    if rest is not None and score + gain + rest > limit:
                        reached = layers[count + end - start + 1]
                        reached[then] = max(score + gain, reached.get(then, score + gain))
                        into.setdefault(then, []).append((state, option, start, words))
    return graph_of(s, [state for layer in layers for state in layer], into, ways)


def graph_of(s, states, into, ways):
    """States as vertices, the end as the last one; a step is an edge with its option, its jump and its words."""
    number = {state: v for v, state in enumerate(states)}
    scores = list(s.scores)
    graph = {"kind": "graph", "in_ptr": [0, 1], "tail_ptr": [0, 0], "tail": [], "part_ptr": [0, 0], "part": []}

    def edge(tail, terms, option=None):
        graph["tail"].append(number[tail])
        graph["part"] += [*([] if option is None else [option]), *range(len(scores), len(scores) + len(terms))]
        scores.extend(terms)
        graph["tail_ptr"].append(len(graph["tail"]))
        graph["part_ptr"].append(len(graph["part"]))

    for state in states[1:]:
        for before, option, start, words in into[state]:
            edge(before, [s.jump(before[1], start), *s.scored(before[2], words)[0]], option)
        graph["in_ptr"].append(len(graph["tail_ptr"]) - 1)
    for state in ways:
        edge(state, s.scored(state[2], (END,))[0])
    graph["in_ptr"].append(len(graph["tail_ptr"]) - 1)
    return scores, graph


# -- translation forests ---------------------------------------------------------------------------------------------

# Closes a translation forest above a score: what may score more is one small graph. Standard library, exact integers.
#
# The problem is what ``ForestTranslation.to_json`` writes: a forest whose edges have target sides of words and vertices
# of their tails, the n-grams of a language model with natural logarithms, and its weight. A word scores the double
# weight * (back-offs, the longest context's first, + ln p); all doubles are then read as the exact numbers they are, in
# units of 2^-2148. Weights of the whole and prices of edges are as above. The witness has multipliers u of pairs of
# words, any numbers. Reading w after .. t v costs its score + u[t, v] - u[v, w], and over a sentence the u cancel: so
# the sum over its pairs of
#
#     q[v, w]  =  max over contexts that end in t v, t one of the words that may stand before v
#
# bounds every sentence. Tables of the best by first and last word, under q, inside and outside, bound all derivations
# of an edge; those below the limit go. What is left is spelt out with whole contexts, but for items below the limit.

ROUNDS = 4


def raised(table, key, value):
    if key not in table or value > table[key]:
        table[key] = value


class Model:
    """Scores of words after contexts, and q; words that the model does not know are <unk>."""

    def __init__(self, data, weight, pairs, names):
        self.lm, self.weights, self.terms, self.u, self.contexts = LanguageModel(data), weight, {}, {}, {}
        self.order, self.span = self.lm.order, max(self.lm.order - 1, 1)
        name = {-1: BEGIN, -2: END} | {i: self.word(w) for i, w in enumerate(names)}
        for v, w, value in pairs if self.order > 2 else ():
            if v in name and w in name and name[w] != END:
                self.u[name[v], name[w]] = exact(value)
        for words in self.lm.contexts:  # beginnings of n-grams that the model leaves out are among these
            if 2 <= len(words) < self.order:
                self.contexts.setdefault(words[-2:], []).append(words)

    def word(self, w):
        return w if (w,) in self.lm.value else UNKNOWN

    def term(self, context, w):
        outer, own = self.weights
        return outer * (own * self.lm.advance(context, w)[0])

    def score(self, context, w):
        context = context[max(len(context) - self.order + 1, 0) :]
        if (context, w) not in self.terms:
            self.terms[context, w] = exact(self.term(context, w))
        return self.terms[context, w]

    def optimistic(self, adjacent):
        before, q = {}, {}
        for v, w in adjacent:
            before.setdefault(w, set()).add(v)
        for v, w in adjacent:
            most = [self.score((v,), w)] if v == BEGIN or self.order <= 2 else []
            for t in before.get(v, ()) if self.order > 2 else ():
                own = max(self.score(c, w) for c in [(t, v), *self.contexts.get((t, v), ())])
                most.append(own + self.u.get((t, v), 0))
            q[v, w] = max(most) - self.u.get((v, w), 0) if most else None
        return {pair: value for pair, value in q.items() if value is not None}


class Forest:
    """Edges as (vertex, number, weight, target side of words and vertices); the top yields <s>, the root, </s>."""

    def __init__(self, data, model, prices):
        own, words = data["translation"], [model.word(w) for w in data["translation"]["words"]]
        self.top, self.edges, self.scores = data["root"] + 1, [], [model.weights[0] * float(x) for x in data["weights"]]
        refuse_unless(len(prices) == len(self.scores), "prices do not fit the edges")
        tails, sides = sliced(data["tail_ptr"], data["tail"]), sliced(own["token_ptr"], own["token"])
        for v, edges in enumerate(sliced(data["in_ptr"], range(len(tails)))[: self.top]):
            for e in edges:
                tail, side = tails[e], sides[e]
                refuse_unless(all(0 <= u < v for u in tail), f"a tail of vertex {v} is not below it")
                stands = [~t for t in side if t < 0] == list(range(len(tail)))
                refuse_unless(stands, f"edge {e} does not yield each of its tails once, from left to right")
                if data["weights"][e] != "-inf" and prices[e] is not NEVER:
                    side = [words[t] if t >= 0 else tail[~t] for t in side]
                    self.edges.append((v, e, exact(self.scores[e]) + prices[e], side))
        self.edges.append((self.top, None, 0, [BEGIN, self.top - 1, END]))


class ReadForest(Forest):
    """What of a forest an automaton accepts: a vertex for each function of states that its derivations are."""

    def __init__(self, data, model, prices, reader):
        super().__init__(data, model, prices)
        words, reached = {}, [{} for _ in range(self.top)]  # per vertex: function -> new vertex
        for name in data["translation"]["words"]:
            words[name] = tuple(reader.step(q, name) for q in reader.states)
        own, n, edges = data["translation"], 0, []
        for v, e, weight, side in self.edges[:-1]:
            tokens = own["token"][own["token_ptr"][e] : own["token_ptr"][e + 1]]
            parts = []
            for t, w in zip(tokens, side, strict=True):
                parts.append([(words[own["words"][t]], w)] if t >= 0 else list(reached[w].items()))
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
    """Inside and outside by (first, last) word, or None for what yields nothing."""

    def __init__(self, forest, model, ends):
        self.forest, self.ends = forest, ends
        self.q = model.optimistic(self._adjacent())
        self.inside = [{} for _ in range(forest.top + 1)]
        self.hooks, self.stages = {}, []
        for v, _, weight, side in forest.edges:
            stages = [{None: weight}]
            for part in side:
                stages.append(self._joined(stages[-1], part))
            self.stages.append(stages)
            for key, value in stages[-1].items():
                if ends is None or key in ends[v]:
                    raised(self.inside[v], key, value)

    def _adjacent(self):
        first, last = ([set() for _ in range(self.forest.top + 1)] for _ in range(2))
        empty, pairs = set(), set()
        for v, _, _, side in self.forest.edges:
            before, opening = set(), True  # words that the next one may follow; whether nothing need have come yet
            for part in side:
                firsts, lasts = ({part}, {part}) if isinstance(part, str) else (first[part], last[part])
                pairs |= {(a, b) for a in before for b in firsts}
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

    def _hook(self, word, part):
        """Per last word: the best of what part yields after a word."""
        if (word, part) not in self.hooks:
            best = self.hooks[word, part] = {}
            for key, value in self.table(part).items():
                if key and (word, key[0]) in self.q:
                    raised(best, key[1], self.q[word, key[0]] + value)
        return self.hooks[word, part]

    def _joined(self, stage, part):
        out = {}
        for key, value in stage.items():
            if key is None:
                for other, more in self.table(part).items():
                    raised(out, other, value + more)
                continue
            for last, more in self._hook(key[1], part).items():
                raised(out, (key[0], last), value + more)
            if None in self.table(part):
                raised(out, key, value + self.table(part)[None])
        return out

    def complete(self):
        """Outside tables; the best derivation with each edge."""
        self.outside, through = [{} for _ in self.inside], [None] * len(self.stages)
        for key in self.inside[-1]:
            self.outside[-1][key] = 0
        for i in range(len(self.stages) - 1, -1, -1):
            v, _, _, side = self.forest.edges[i]
            around = {key: self.outside[v][key] for key in self.stages[i][-1] if key in self.outside[v]}
            through[i] = max((around[key] + self.stages[i][-1][key] for key in around), default=None)
            for k in range(len(side) - 1, -1, -1):
                around = self._around(self.stages[i][k], side[k], around)
        return through

    def _around(self, stage, part, around):
        """What is around a stage, given what is around it with the part after it; raises what is around the part."""
        out, above, own = {}, {}, self.table(part)
        for key, value in stage.items():
            if key is None:
                for other in own:
                    if other in around:
                        raised(out, None, around[other] + own[other])
                        raised(above, (None, other), value + around[other])
                continue
            for last, more in self._hook(key[1], part).items():
                if (key[0], last) in around:
                    raised(out, key, around[key[0], last] + more)
                    raised(above, (key[1], last), value + around[key[0], last])
            if None in own and key in around:
                raised(out, key, around[key] + own[None])
                raised(above, (None, None), value + around[key])
        if not isinstance(part, str):
            for (before, after), value in above.items():
                if before is None:
                    raised(self.outside[part], after, value)
                    continue
                for key in own:
                    if key and key[1] == after and (before, key[0]) in self.q:
                        raised(self.outside[part], key, value + self.q[before, key[0]])
        return out


def closed_forest(data, weight, prices, witness, limit):
    """(scores of parts, a graph of them): its derivations are the forest's, those above the limit among them.

    The first parts are the edges of the forest, as they are numbered, the others words after others.
    """
    own, weights = data["forest"], (weight, float(data["lm_weight"]))
    model = Model(data["lm"], weights, witness["pairs"], own["translation"]["words"])
    reader, ends = Reader(data["reader"]) if "reader" in data else None, None
    forest = Forest(own, model, prices) if reader is None else ReadForest(own, model, prices, reader)
    for _ in range(ROUNDS):
        tables = Tables(forest, model, ends)
        through = tables.complete()
        forest.edges = [y for y, best in zip(forest.edges, through, strict=True) if best is not None and best > limit]
        both = list(zip(tables.inside, tables.outside, strict=True))
        ends = [{key for key in a if key in b and a[key] + b[key] > limit} for a, b in both]
    return Items(forest, model, tables, limit).graph(forest.scores)


class Items:
    """Per vertex: (first words, last words) -> [best score, number, ways]; a way is (edge, items, words scored)."""

    def __init__(self, forest, model, tables, limit):
        self.model, self.tables, self.items, self.ways = model, tables, [{} for _ in range(forest.top + 1)], []
        for v, e, weight, side in forest.edges:
            top, partial = v == forest.top, [((), (), weight, (), ())]
            if top:  # nothing that stands before <s> matters
                side, partial = side[1:], [((BEGIN,) * model.span, (BEGIN,), weight, (), ())]
            for part in side:
                right = {((part,), (part,)): None} if isinstance(part, str) else self.items[part]
                partial = [self._follow(p, *item) for p in partial for item in right.items() if self._fits(p, item[0])]
            for left, last, score, below, terms in partial:
                key, bound = (None, score) if top else ((left, last), self._bound(v, left, last, score))
                if bound is not None and bound > limit:
                    item = self.items[v].setdefault(key, [score, len(self.ways)])
                    if item[1] == len(self.ways):
                        self.ways.append([])
                    item[0] = max(item[0], score)
                    self.ways[item[1]].append((e, below, terms))

    def _fits(self, partial, key):
        return not partial[1] or not key[0] or (partial[1][-1], key[0][0]) in self.tables.q

    def _follow(self, partial, key, item):
        (left, last, score, below, terms), span = partial, self.model.span
        for w in key[0]:
            if len(left) == span:
                score, terms = score + self.model.score(last, w), (*terms, (last, w))
            else:
                left = (*left, w)
            last = (*last, w)[-span:]
        if len(key[0]) == span:
            last = key[1]
        return (
            (left, last, score, below, terms)
            if item is None
            else (left, last, score + item[0], (*below, item[1]), terms)
        )

    def _bound(self, v, left, last, score):
        """The most that a derivation with such an item may score; None if there is none."""
        out = self.tables.outside[v].get((left[0], last[-1]) if left else None)
        steps = [self.tables.q.get(pair) for pair in pairwise(left)]
        if out is None or None in steps:
            return None
        if 1 < len(left) == self.model.span:
            score += self.model.u.get(left[-2:], 0) - self.model.u.get(last[-2:], 0)
        return score + out + sum(steps)

    def graph(self, scores):
        number, model = {}, self.model
        graph = {"kind": "graph", "in_ptr": [0], "tail_ptr": [0], "tail": [], "part_ptr": [0], "part": []}
        for ways in self.ways if self.items[-1] else [[]]:
            for e, below, terms in ways:
                for context, w in terms:
                    if (context, w) not in number:
                        number[context, w] = len(scores)
                        scores.append(model.term(context, w))
                graph["tail"] += below
                graph["part"] += [*([] if e is None else [e]), *(number[term] for term in terms)]
                graph["tail_ptr"].append(len(graph["tail"]))
                graph["part_ptr"].append(len(graph["part"]))
            graph["in_ptr"].append(len(graph["tail_ptr"]) - 1)
        return scores, graph


CLOSED = {"phrase translation": closed_phrases, "forest translation": closed_forest}
CLOSED |= {f"accepted {name}": closing for name, closing in CLOSED.items()}


def closed(data):
    """The file with graphs in place of spaces that are searched: all that may score more than the claim is there.

    A structure that a graph lacks has one of that space that scores no more than ``above``, under the multipliers of
    ``closing``. With the best of all other spaces, that must be no more than the claim.
    """
    searched = {i: space for i, space in enumerate(data["spaces"]) if space["kind"] == "searched"}
    if not searched:
        return data
    fine = Numbers(FINE)
    nothing = {"kind": "graph", "in_ptr": [0, 1], "tail_ptr": [0, 0], "tail": [], "part_ptr": [0, 0], "part": []}
    spaces = [nothing if i in searched else space for i, space in enumerate(data["spaces"])]
    problem = Problem(data | {"spaces": spaces}, fine)
    (node,) = with_integers([data["closing"] | {"node": "closing"}], fine)
    prices, constant = problem.priced(node["u"], frozenset(), frozenset(), 0)
    best = [space.best(prices, witness) for space, witness in zip(problem.spaces, node["spaces"], strict=True)]
    refuse_unless(NEVER not in best, "a space has no structures")
    scores, above = list(data["scores"]), {}
    for i, space in searched.items():
        refuse_unless(all(0 <= p < len(data["scores"]) for p in space["part"]), "there is no such part")
        own, above[i] = [prices[p] for p in space["part"]], exact(space["above"])
        terms, graph = CLOSED[space["problem"]](space["data"], float(space["weight"]), own, space["witness"], above[i])
        under = [plus(exact(x), own[p] if p < len(own) else 0) for p, x in enumerate(terms)]
        best[i] = most((above[i], Graph(graph).best(under, None)))
        spaces[i] = joined(graph, len(scores), space["part"])
        scores += ["-inf" if x == float("-inf") else x for x in terms]
    limit = claimed(data["claim"], *(exact(data["claim"][name]) for name in ("score", "bound", "tolerance")))
    enough = all(constant + sum(best) - best[i] + above[i] <= limit for i in searched)
    refuse_unless(enough, "what is left out may score more")
    return data | {"scores": scores, "spaces": spaces}


def joined(graph, start, cells):
    """A graph whose parts are numbered from ``start`` on; the first ones go with parts that rows may be about."""
    part_ptr, part = [0], []
    for own in sliced(graph["part_ptr"], graph["part"]):
        part += [p + start for p in own] + [cells[p] for p in own if p < len(cells)]
        part_ptr.append(len(part))
    return graph | {"part_ptr": part_ptr, "part": part}


# -- the claim ---------------------------------------------------------------------------------------------------------


def check(data):
    """Raise Refused unless everything claimed follows; return what to say of it."""
    refuse_unless(data["format"] == "certus proof" and data["version"] == 1, "the file is no proof of version 1")
    data = closed(data)
    numbers = Numbers(exponent([data["scores"], data["spaces"], data["rows"], data["claim"], data["proof"]]))
    claim = data["claim"]
    score, bound, tolerance = (numbers.of(claim[name]) for name in ("score", "bound", "tolerance"))
    problem = Problem(data, numbers)
    total, slack, counted = sums(problem, data["structure"])
    refuse_unless(tolerance is not NEVER and tolerance >= 0, "the tolerance is negative")
    refuse_unless(abs(total - score) << 52 <= slack, "the score is not that of the structure")
    better = data["better"]
    refuse_unless(claim["rank"] == 1 + len(better), "the rank does not fit the number of better structures")
    listed = [data["structure"], *better]
    refuse_unless(all(y != z for i, y in enumerate(listed) for z in listed[:i]), "a structure is listed twice")
    for y in better:
        own, slack, _ = sums(problem, y)
        refuse_unless(own - score + tolerance << 52 >= -slack, "a better structure scores less")
    if claim["exact"] is True:
        refuse_unless(2 * (bound - score) <= tolerance, "bound and score are too far apart for a proof")
        refuse_unless(tolerance * EXACT**2 <= counted * (EXACT + 1), "the tolerance is too wide for a proof")
    found = proved(problem, with_integers(data["proof"], numbers), better)
    limit = claimed(claim, score, bound, tolerance) << numbers.k
    grain = greatest_divisor(x for x in problem.scores if x is not NEVER) << numbers.k
    if found is not NEVER:
        found = found // grain * grain if grain else min(found, 0)  # structures score multiples of it
    refuse_unless(below(found, limit), "the proof shows less than is claimed")
    what = "optimal" if claim["exact"] is True else "bounded"
    trusts = "".join(f"; provided {x}" for x in data.get("trusts", ()))
    return f"verified, {what}, rank {claim['rank']}: score {claim['score']}, bound {claim['bound']}{trusts}"


def claimed(claim, score, bound, tolerance):
    """What no other structure may beat; for a proof, what scores as much as this one but for the tolerance."""
    return (min(bound, score) if claim["exact"] is True else bound) + tolerance


def sums(problem, structure):
    """Of a structure: its score, 2^52 times what rounding may have added to it, and what a tolerance is a share of."""
    parts = [problem.scores[p] for p in problem.uses(structure)]
    refuse_unless(NEVER not in parts, "a structure uses a forbidden part")
    counted = sum(x if x > 0 else min(-x, MASK << problem.coefficients.k) for x in parts)
    return sum(parts), sum(1 for x in parts if x) * sum(map(abs, parts)), counted


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
        except (OSError, *MALFORMED) as error:
            said, code = f"cannot be checked: {type(error).__name__}: {error}", code or 2
        print(f"{path}: {said}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
