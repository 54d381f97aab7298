"""Closes a translation forest above a score: what may score more is one small graph. Standard library, exact integers.

The problem is what ``ForestTranslation.to_json`` writes: a forest whose edges have target sides of words and vertices
of their tails, the n-grams of a language model with natural logarithms, and its weight. A word scores the double
weight * (back-offs, the longest context's first, + ln p); all doubles are then read as the exact numbers they are, in
units of 2^-1074. The witness has multipliers u of pairs of words, any numbers. Reading w after .. t v costs its score
+ u[t, v] - u[v, w], and over a sentence the u cancel: so the sum over its pairs of

    q[v, w]  =  max over contexts that end in t v, t one of the words that may stand before v

bounds every sentence. Tables of the best by first and last word, under q, inside and outside, bound all derivations of
an edge; those below the limit go. What is left is spelt out with whole contexts, but for items below the limit.
"""

from itertools import pairwise

from certus.certificates.standalone_coverings import BEGIN, END, UNKNOWN, LanguageModel, exact

ROUNDS = 4


def raised(table, key, value):
    if key not in table or value > table[key]:
        table[key] = value


class Model:
    """Scores of words after contexts, and q; words that the model does not know are <unk>."""

    def __init__(self, data, weight, pairs, names):
        self.lm, self.weight, self.terms, self.u, self.contexts = LanguageModel(data), weight, {}, {}, {}
        self.order, self.span = self.lm.order, max(self.lm.order - 1, 1)
        name = {-1: BEGIN, -2: END} | {i: self.word(w) for i, w in enumerate(names)}
        for v, w, value in pairs if self.order > 2 else ():
            if v in name and w in name and name[w] != END:
                self.u[name[v], name[w]] = exact(value)
        for words in self.lm.value:
            if 2 <= len(words) < self.order:
                self.contexts.setdefault(words[-2:], []).append(words)

    def word(self, w):
        return w if (w,) in self.lm.value else UNKNOWN

    def score(self, context, w):
        context = context[max(len(context) - self.order + 1, 0) :]
        if (context, w) not in self.terms:
            self.terms[context, w] = exact(self.weight * self.lm.advance(context, w)[0])
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

    def __init__(self, data, model):
        own, words = data["translation"], [model.word(w) for w in data["translation"]["words"]]
        self.top, self.edges = data["root"] + 1, []
        for v in range(self.top):
            for e in range(data["in_ptr"][v], data["in_ptr"][v + 1]):
                tail = data["tail"][data["tail_ptr"][e] : data["tail_ptr"][e + 1]]
                side = own["token"][own["token_ptr"][e] : own["token_ptr"][e + 1]]
                if data["weights"][e] != "-inf" and all(0 <= u < v for u in tail):
                    side = [words[t] if t >= 0 else tail[~t] for t in side]
                    self.edges.append((v, e, exact(data["weights"][e]), side))
        self.edges.append((self.top, None, 0, [BEGIN, self.top - 1, END]))


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


def closed_graph(data, witness, above):
    """(scores of parts, a graph of them): its derivations are the forest's, those above the bound among them.

    The first parts are the edges of the forest, as they are numbered, the others words after others.
    """
    own = data["forest"]
    model = Model(data["lm"], float(data["lm_weight"]), witness["pairs"], own["translation"]["words"])
    forest, limit, ends = Forest(own, model), exact(above), None
    for _ in range(ROUNDS):
        tables = Tables(forest, model, ends)
        through = tables.complete()
        forest.edges = [y for y, best in zip(forest.edges, through, strict=True) if best is not None and best > limit]
        both = list(zip(tables.inside, tables.outside, strict=True))
        ends = [{key for key in a if key in b and a[key] + b[key] > limit} for a, b in both]
    return Items(forest, model, tables, limit).graph([float(x) for x in own["weights"]])


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
                        scores.append(model.weight * model.lm.advance(context, w)[0])
                graph["tail"] += below
                graph["part"] += [*([] if e is None else [e]), *(number[term] for term in terms)]
                graph["tail_ptr"].append(len(graph["tail"]))
                graph["part_ptr"].append(len(graph["part"]))
            graph["in_ptr"].append(len(graph["tail_ptr"]) - 1)
        return scores, graph
