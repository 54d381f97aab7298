"""Normal forms of problems of one graph against all structures, and that they need no kernel."""

import subprocess
import sys
from itertools import islice

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import (
    Constituency,
    Grammar,
    Hyperpath,
    Infeasible,
    LexicalizedConstituency,
    Tagging,
)
from tests.constituency.spines import RandomSpines, trees
from tests.constituency.strategies import grammars, sentences
from tests.constituency.strategies import trees as random_trees
from tests.oracles import cfg
from tests.oracles.normal import check
from tests.strategies import hypergraphs
from tests.tagging.cases import random_tagging, taggings


@given(hypergraphs(), st.lists(st.integers(0, 20), max_size=2))
@settings(max_examples=50)
def test_hyperpaths(drawn, required):
    graph, weights = drawn
    problem = Hyperpath(graph, weights)
    check(problem)
    for e in required:
        if e < graph.n_edges:
            problem = problem.with_fixed("edges", (e,), 1)
    check(problem)


@given(taggings())
@settings(max_examples=150)
def test_taggings(problem):
    check(problem)


def test_tagging_parts_that_are_not_read_do_not_appear():
    form = Tagging([[0, 1], [2, -np.inf]], bigram=[[1e300, 3], [4, 1e300]]).normal_form()
    assert sorted(form.scores.tolist()) == [0, 1, 2, 4, 1e300]
    assert len(random_tagging(np.random.default_rng(0), 25, 45, order=2).normal_form().spaces[0].tail) < 60_000


@given(grammars(), sentences())
@settings(max_examples=60)
def test_phrase_structure(rules, words):
    problem = Constituency(Grammar.from_text("\n".join(map(str, rules))), words)
    check(problem, [tree for tree, _ in cfg.trees(rules, "S", words)])


@given(st.lists(random_trees(), min_size=1, max_size=3), st.sampled_from([(None, 1), (1, 1), (0, 2), (1, 3)]))
@settings(max_examples=30)
def test_treebank_grammars(treebank, memory):
    grammar = Grammar.from_treebank(treebank, horizontal=memory[0], vertical=memory[1])
    words = min((tree.words for tree in treebank), key=len)[:6]
    problem = Constituency(grammar, words).with_scores_rounded_up(1.0)
    try:
        structures = list(islice(problem.all_structures(), 201))
    except Infeasible:
        structures = []
    if len(structures) < 201:
        check(problem, structures)


@given(st.integers(0, 10**6), st.lists(st.sampled_from("aabbc,"), min_size=1, max_size=3), st.sampled_from([0.0, 0.3]))
@settings(max_examples=20)
def test_lexicalized_trees(seed, words, forbidden):
    grammar = RandomSpines(seed, forbidden)
    problem = LexicalizedConstituency(grammar, words)
    structures = [tree for tree, _ in trees(grammar, words)]
    check(problem, structures)
    if structures:
        check(problem.within(4.0))
    arcs = np.random.default_rng(seed).random((len(words) + 1, len(words) + 1)) < 0.7
    check(problem.allowing(arcs), structures)


def test_no_words_have_no_lexicalized_tree():
    check(LexicalizedConstituency(RandomSpines(0), []), [])


def test_normal_forms_need_no_numba():
    code = (
        "import sys\nsys.modules['numba'] = None\nimport certus\nimport numpy as np\n"
        "p = certus.Tagging([[0, 1], [1, 0]], bigram=[[0, 2], [0, 0]])\n"
        "p.normal_form(), p.normal_structure([0, 1])\n"
        "g = certus.Hypergraph(in_ptr=[0, 1, 2, 4], tail_ptr=[0, 0, 0, 2, 4], tail=[0, 1, 1, 0])\n"
        "p = certus.Hyperpath(g, [1, 2, 3, 4]).with_fixed('edges', (2,), 1)\n"
        "p.normal_form(), p.normal_structure([2, 0, 1])\n"
        'g = certus.Grammar.from_text(\'1 S -> N V\\n 0.5 N -> "dogs"\\n 2 V -> "bark"\')\n'
        "p = certus.Constituency(g, ['dogs', 'bark'])\n"
        "n, v = certus.Tree('N', 'dogs'), certus.Tree('V', 'bark')\n"
        "p.normal_form(), p.normal_structure(certus.Tree('S', [n, v]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
