"""Phrase-based translations that score more than a bound: the standard library, exact integers, simple loops.

A translation is a sequence of options that cover every source word once. It scores what its options score, less the
distortion times the words jumped over, plus the weighted logarithms of a language model. ``closed_graph`` returns a
graph of all translations that score more than a bound. Whatever the witness says, none is left out: it only names the
source words that bounds of completions keep track of, and prices (multipliers) of the words, which may be any numbers.

Terms are doubles, calculated as the definition has it, and from there on exact: whole numbers of 2^-1074.
"""

from functools import cache

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"


def exact(x):
    """A double as a whole number of 2^-1074; -infinity as one so low that no sum makes up for it."""
    if x == float("-inf"):
        return -(2**2200)
    top, bottom = float(x).as_integer_ratio()
    return top * (2**1074 // bottom)


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


class Sentence:
    """The options of a sentence, and which of them may follow where."""

    def __init__(self, data):
        self.n, self.window = len(data["source"]), data["window"] is True
        limit = data.get("distortion_limit")
        self.limit = self.n if limit is None else min(limit, self.n)
        self.lm, self.weight, self.distortion = LanguageModel(data["lm"]), data["lm_weight"], data["distortion"]
        self.spans, self.scores = {}, data["scores"]
        for k, ((start, end, target), score) in enumerate(zip(data["options"], data["scores"], strict=True)):
            if score != "-inf":
                self.spans.setdefault((start, end), []).append((k, tuple(target)))
        self.scored = cache(self.scored)

    def scored(self, context, words):
        """(terms of words after a context, the context after them)."""
        terms = []
        for word in words:
            value, context = self.lm.advance(context, word)
            terms.append(self.weight * value)
        return terms, context

    def jump(self, place, start):
        return -self.distortion * abs(start - place)

    def gain(self, place, start, option, words, context):
        """(what an option adds, the context after it), exact."""
        terms, after = self.scored(context, words)
        return exact(self.scores[option]) + exact(self.jump(place, start)) + sum(map(exact, terms)), after

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


def closed_graph(data, witness, above):
    """(scores of parts, a graph of them): its derivations are translations, those above the bound among them.

    The first parts are the options, as they are numbered. ``data`` is what PhraseTranslation.to_json writes.
    """
    s, limit = Sentence(data), exact(above)
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
