"""Lattices as input, in PLF and JSON, for phrases and rules, against all of their paths."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import certus
from certus import FormatError, InvalidInput, LanguageModel, SynchronousGrammar
from certus.io.lattices import EPSILON, WordLattice
from certus.io.moses import PhraseTable
from certus.translation import GrammarModel, PhraseModel, PhraseOption, PhraseTranslation
from tests.translation.cases import arpas

SOURCE = ("u", "v", "w", EPSILON)
WEIGHTS = {"Score1": 1.0, "Words": 0.5, "Phrases": -0.25, "Distortion": 1.0, "LM": 0.5, "Lattice": 2.0}
RULES = """[S] ||| [X,1] ||| [1]
[S] ||| [S,1] [X,2] ||| [1] [2]
[X] ||| u ||| a ||| f=1
[X] ||| u v ||| b c ||| f=2
[X] ||| v [X,1] ||| [1] b ||| f=-1
[X] ||| w ||| ||| f=0.5
[X] ||| u [X,1] w ||| c [1] ||| f=1.5"""


@st.composite
def plf(draw, most_nodes: int = 4):
    """A lattice as nested lists, with a path through all nodes."""
    n = draw(st.integers(1, most_nodes - 1))
    columns = []
    for k in range(n):
        arcs = [(draw(st.sampled_from(SOURCE)), draw(st.integers(-3, 0)), 1)]
        for _ in range(draw(st.integers(0, 2))):
            arcs.append((draw(st.sampled_from(SOURCE)), draw(st.integers(-3, 0)), draw(st.integers(1, n - k))))
        columns.append(arcs)
    return columns


def paths(columns):
    """Every path: (start, end, word, score) of its words, with the epsilons after it, the first with those before."""
    found, agenda = [], [(0, ())]
    while agenda:
        node, taken = agenda.pop()
        if node == len(columns):
            words, lead, first = [], 0, 0
            for a, b, word, score in taken:
                if word != EPSILON:
                    words.append([first if not words else a, b, word, score + lead])
                    lead = 0
                elif words:
                    words[-1][1], words[-1][3] = b, words[-1][3] + score
                else:
                    lead += score
            found.append(words)
            continue
        agenda += [(node + d, (*taken, (node, node + d, w, s))) for w, s, d in columns[node]]
    return [words for words in found if words]


def table(seed: int) -> PhraseTable:
    rng = np.random.default_rng(seed)
    entries = {}
    for side in [("u",), ("v",), ("u", "v"), ("v", "w"), ("w", "u", "v")]:
        targets = {tuple(rng.choice(["a", "b", "d"], size=rng.integers(0, 3)).tolist()) for _ in range(2)}
        entries[side] = [(t, (float(rng.integers(-4, 0)),)) for t in sorted(targets)]
    return PhraseTable(entries, 1, 3)


def options_of_path(model, words):
    """The phrases of one path of a lattice, each over the columns that its words lie in."""
    options = []
    for i in range(len(words)):
        for j in range(i, min(i + 3, len(words))):
            cost = WEIGHTS["Lattice"] * sum(w[3] for w in words[i : j + 1])
            side = model.options([w[2] for w in words[i : j + 1]])
            whole = [o for o in side if (o.start, o.end) == (0, j - i)]
            options += [PhraseOption(words[i][0], words[j][1] - 1, o.target, o.score + cost) for o in whole]
    return options


@given(plf(), st.integers(0, 20), arpas(max_order=3), st.sampled_from([0, 1, 3, None]))
@settings(max_examples=60)
def test_phrases_of_a_lattice_are_those_of_its_best_path(columns, seed, arpa, limit):
    model = PhraseModel(table(seed), LanguageModel(arpa), WEIGHTS, distortion_limit=limit, unknown=-3.0)
    best = -np.inf
    for words in paths(columns):
        options = options_of_path(model, words)
        one = PhraseTranslation(
            options, model.lm, source=["x"] * len(columns), lm_weight=0.5, distortion=1.0, distortion_limit=limit
        )
        best = max([best, *map(one.score, one.all_structures())])
    problem = model.problem(WordLattice.of(columns, probabilities=False))
    if best == -np.inf:
        with pytest.raises(certus.Infeasible):
            problem.decode()
        return
    result = problem.decode()
    assert result.score == pytest.approx(best, abs=1e-9)
    certus.verify(problem, result)


@given(plf(), arpas(max_order=3))
@settings(max_examples=60)
def test_rules_over_a_lattice_give_the_derivations_of_its_paths(columns, arpa):
    grammar = SynchronousGrammar.from_text(RULES, weights={"f": 1.0, "PassThrough": -2.0}, max_span=None)
    lattice, expected = WordLattice.of(columns, probabilities=False), {}
    for words in paths(columns):
        cost = sum(w[3] for w in words)
        try:
            forest = grammar.forest([w[2] for w in words])
        except certus.Infeasible:
            continue
        for y in forest.graph.hyperpaths():
            text = " ".join(forest.yields(y))
            expected[text] = max(expected.get(text, -np.inf), forest.score(y) + cost)
    if not expected:
        with pytest.raises(certus.Infeasible):
            grammar.forest(lattice)
        return
    forest = grammar.forest(lattice)
    found = {}
    for y in forest.graph.hyperpaths():
        text = " ".join(forest.yields(y))
        found[text] = max(found.get(text, -np.inf), forest.score(y))
    assert found == pytest.approx(expected)
    lm = LanguageModel(arpa)
    problem = GrammarModel(grammar, lm, 0.5).problem(lattice)
    result = problem.decode()
    assert result.score == pytest.approx(max(s + 0.5 * lm.score(t.split()) for t, s in expected.items()), abs=1e-9)
    certus.verify(problem, result)


def test_plf_json_and_lists_are_one_lattice():
    text = r"""((('das',0.5,1),("dass",.25,1),('it\'s',1e-3,2),),(('haus',1.0,1),('*EPS*',1,1)),)"""
    data = [[["das", 0.5, 1], ["dass", 0.25, 1], ["it's", 1e-3, 2]], [["haus", 1.0, 1], ["*EPS*", 1, 1]]]
    edges = {"edges": [[k, k + a[-1], *a[:-1]] for k, column in enumerate(data) for a in column]}
    lattice = WordLattice.parse(text)
    assert lattice == WordLattice.of(data) == WordLattice.parse(json.dumps(data)) == WordLattice.of(edges)
    assert lattice == WordLattice.parse(json.dumps(edges))
    assert lattice.n_nodes == 3
    assert lattice.arcs[1].score == pytest.approx(np.log(0.25))
    assert [a.word for a in lattice.arcs] == ["das", "dass", "it's", "haus", ""]


def test_a_lattice_as_lists_or_as_a_mapping_goes_to_the_problem():
    model = PhraseModel(table(3), LanguageModel(tiny()), WEIGHTS)
    columns = [[("u", 0.5, 1), ("v", 0.25, 1)], [("w", 1.0, 1)]]
    edges = {"edges": [[0, 1, "u", 0.5], [0, 1, "v", 0.25], [1, 2, "w", 1.0]]}
    assert model.problem(columns).options == model.problem(edges).options
    assert model.problem(columns).source == ("u|v", "w")
    grammar = GrammarModel(SynchronousGrammar.from_text(RULES, weights={"f": 1.0}), LanguageModel(tiny()), 1.0)
    assert grammar.problem(columns).decode().score == grammar.problem(edges).decode().score


def tiny():
    from certus.io.arpa import parse_arpa

    return parse_arpa("\n".join(["\\data\\", "ngram 1=3", "\\1-grams:", "-1 <unk>", "0 <s>", "-1 </s>", "\\end\\"]))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("((('a',1,1),)", "brackets of the lattice do not match"),
        ("((('a',1,1),),))", "closes a bracket that is not open"),
        ("(((('a',1,1),),),)", "fourth bracket"),
        ("((('a',1,0),),)", "arcs lead to later nodes"),
        ("((('a',-1,1),),)", "logarithms are asked for"),
        ("((('a',x,1),),)", "where a number or a quoted word"),
        ("((('a b',1,1),),)", "without blanks"),
        ("(('a',1,1),)", "expected one entry per node"),
        ("__import__('os')", "where a number or a quoted word"),
        ("()", "is empty"),
        ("((),(('a',1,1),),)", "no path of the lattice"),
        ('{"nodes": 3}', 'has "edges"'),
        ("[1, 2", "is no JSON"),
        ("[[[3, 1, 1]]]", "expected one entry per node"),
    ],
)
def test_what_is_no_lattice_is_refused_with_its_place(text, what):
    with pytest.raises(FormatError, match=what) as error:
        WordLattice.parse(text, place="in.plf:7")
    assert str(error.value).startswith("in.plf:7: ")


def test_a_mapping_without_edges_is_refused():
    model = PhraseModel(table(3), LanguageModel(tiny()), WEIGHTS)
    with pytest.raises(InvalidInput, match='has "edges"'):
        model.problem({"a": 1, "b": 2})
