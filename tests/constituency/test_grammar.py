"""Grammars: the text format, treebanks, binarisation there and back, files."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certus import Constituency, FormatError, Grammar, Infeasible, InvalidInput, Tree
from certus.constituency.binarise import Binary, Chain, Memory, Symbol, Word
from certus.constituency.lexicon import Listed
from certus.constituency.signatures import classes
from certus.io.brackets import parse_tree, read_trees
from tests.constituency.strategies import trees
from tests.data import shared_data

MEMORIES = [(None, 1, 1), (0, 1, 1), (1, 2, 1), (2, 2, 2), (1, 3, 2), (2, 3, 3)]


# -- text ------------------------------------------------------------------------------------------------------------


def test_text_format():
    grammar = Grammar.from_text(
        """
        # a comment, then a rule without a weight
        S -> A "
    """.replace('A "', "A B")
    )
    assert grammar.root == "S"
    assert grammar.tags == ()
    quoted = Grammar.from_text(r'1 X -> "\"" ' + "\n" + r'2 # -> "\\"' + '\n-1e-1 # -> "two words"', root="#")
    assert quoted.root == "#"
    assert quoted.entry('"') == ((Symbol("X"), 1.0),)
    assert quoted.entry("\\") == ((Symbol("#"), 2.0),)
    assert quoted.entry("two words") == ((Symbol("#"), -0.1),)
    assert quoted.tags == ("#", "X")
    assert quoted.entry("else") == ()
    assert "else" not in quoted.lexicon


def test_symbols_may_look_like_numbers():
    assert Grammar.from_text("3 -> A B\n2 3 -> B A").root == "3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g: holds no rules"),
        ("S NP VP", 'g:1: "S NP VP" is not a rule'),
        ("\nx S -> A", 'g:2: the weight is "x"'),
        ("nan S -> A", "g:1: the weight is nan"),
        ("-inf S -> A", "g:1: the weight is -inf"),
        ("1 S ->", "g:1: S has nothing on its right-hand side"),
        ('1 S -> A "in"', "g:1: a word stands beside other symbols"),
        ("1 S -> A <unknown>", "g:1: a word stands beside other symbols"),
        ('1 S -> "a', "g:1: a double quote is not closed"),
        ('1 S -> ""', 'g:1: the word "" is empty'),
        ('1 "S" -> A', 'g:1: the left-hand side is "S"'),
        ("1 S -> A B\n2 S -> A B", "g:2: S -> A B stands on line 1 already"),
        ("1 S -> A\n1 A -> B\n0 B -> S", "g:.*cycle: S -> A -> B -> S"),
        ("1 S -> S", "g:1: unary rules make a cycle: S -> S"),
    ],
)
def test_text_errors_name_the_line(text, message):
    with pytest.raises(FormatError, match=message):
        Grammar.from_text(text, path="g")


def test_too_many_chains():
    rules = [f"0 X{a} -> X{b}" for a in range(16) for b in range(a + 1, 16)]
    with pytest.raises(FormatError, match="more than 20000 chains"):
        Grammar.from_text("\n".join(rules))


def test_chains_are_the_paths_of_unary_rules():
    grammar = Grammar.from_text('1 S -> A\n2 A -> B\n4 S -> B\n8 B -> "b"')
    found = {"-".join(symbol.label for symbol in chain.path): weight for chain, weight in grammar.chains.items()}
    assert found == {"S-A": 1, "A-B": 2, "S-B": 4, "S-A-B": 3}
    problem = Constituency(grammar, ["b"])
    assert [str(r.structure) for r in problem.kbest(5)] == ["(S (B b))", "(S (A (B b)))"]
    assert [r.score for r in problem.kbest(5)] == [12, 11]


# -- treebanks -------------------------------------------------------------------------------------------------------


def check_round_trip(bank, memory, parse):
    """The derivation of a tree is in the grammar, scores finitely, and no more than the best."""
    horizontal, vertical, tag_vertical = memory
    grammar = Grammar.from_treebank(bank, horizontal=horizontal, vertical=vertical, tag_vertical=tag_vertical)
    for tree in bank:
        problem = Constituency(grammar, tree.words)
        score = problem.score(tree)
        assert np.isfinite(score)
        if parse:
            assert problem.decode().score >= score - 1e-9
    return grammar


@settings(max_examples=30)
@given(st.lists(trees(), min_size=1, max_size=3), st.sampled_from(MEMORIES))
def test_every_training_tree_is_derived(bank, memory):
    check_round_trip(bank, memory, parse=True)


def own_grammar(tree, memory):
    """A copy of the tree over words that are all different, and the grammar of its derivation and nothing else."""
    words = (f"w{i}" for i in range(10**6))
    copy = Tree.from_preorder((label, word and next(words), arity) for label, word, arity in tree.preorder())
    steps = list(memory.derivation(copy))
    binary = {step: 0.0 for step in steps if isinstance(step, Binary)}
    chains = {step: 0.0 for step in steps if isinstance(step, Chain)}
    lexicon = Listed({f"w{s.position}": ((s.symbol, 0.0),) for s in steps if isinstance(s, Word)})
    return copy, Grammar(tree.label, binary, chains, lexicon, memory=memory)


@given(trees())
def test_binarised_and_back(tree):
    copy, grammar = own_grammar(tree, Memory(None, 99, 99))
    assert copy in set(Constituency(grammar, copy.words).all_structures())


@settings(max_examples=30)
@given(trees(), st.sampled_from(MEMORIES))
def test_a_treebank_of_one_tree_gives_it_back(tree, memory):
    """With one tag a word, the tree itself is among the trees of its own grammar, which are all different."""
    grammar = Grammar.from_treebank([tree], horizontal=memory[0], vertical=memory[1], tag_vertical=memory[2])
    problem = Constituency(grammar, tree.words)
    results = problem.kbest(50)
    structures = [result.structure for result in results]
    assert len(set(structures)) == len(structures)
    for result in results:
        assert result.score == pytest.approx(result.certificate.bound)
        assert problem.score(result.structure) == pytest.approx(result.score)
    if len(structures) < 50:
        assert tree in structures


def test_derivation_of_a_tree():
    tree = parse_tree("(TOP (S (NP (D the) (J big) (J red) (N dog)) (VP (V barks))))")
    steps = [str(part) for step in Memory(1, 2, 1).derivation(tree) for part in (step[0] if len(step) == 1 else step)]
    assert steps == [
        *("TOP", "S^TOP"),
        *("S^TOP", "NP^S", "VP^S"),
        *("NP^S", "D", "@NP^S|D"),
        *("@NP^S|D", "J", "@NP^S|J"),
        *("@NP^S|J", "J", "N"),
        *("D", "0", "J", "1", "J", "2", "N", "3"),
        *("VP^S", "V"),
        *("V", "4"),
    ]


def test_probabilities_sum_to_one():
    bank = [parse_tree("(S (A a) (B b))"), parse_tree("(S (A a) (B b) (B b))"), parse_tree("(S (X (A a)) (B b))")]
    grammar = Grammar.from_treebank(bank, root="S", horizontal=2, vertical=1, tag_vertical=1)
    total = {}
    for rule, weight in grammar.binary.items():
        total[rule.parent] = total.get(rule.parent, 0) + math.exp(weight)
    for chain, weight in grammar.chains.items():
        total[chain.path[0]] = total.get(chain.path[0], 0) + math.exp(weight)
    assert all(value == pytest.approx(1) for value in total.values())
    assert grammar.binary[next(r for r in grammar.binary if r.right.label == "S")] == pytest.approx(math.log(1 / 3))


def test_other_roots_are_wrapped():
    grammar = Grammar.from_treebank([parse_tree("(S (A a) (B b))")])
    assert str(Constituency(grammar, ["a", "b"]).decode().structure) == "(TOP (S (A a) (B b)))"


def test_unknown_words_take_the_tags_of_their_class():
    bank = [
        parse_tree(f"(S (N {noun}) (V {verb}))")
        for noun, verb in (("walking", "walked"), ("running", "jumped"), ("Talking", "talked"))
    ]
    grammar = Grammar.from_treebank(bank)
    best = max(grammar.entry("shouted"), key=lambda item: item[1] + math.log(3))
    assert best[0].label == "V"
    assert max(grammar.entry("shouting"), key=lambda item: item[1])[0].label == "N"
    assert grammar.entry("Running", first=True) == grammar.entry("running")
    assert grammar.entry("Running") != grammar.entry("running")
    assert Constituency(grammar, ["shouting", "shouted"]).decode().structure.tags == ["N", "V"]


def test_brackets_are_looked_up_as_penn_writes_them():
    grammar = Grammar.from_treebank([parse_tree("(S (-LRB- -LRB-) (N a) (-RRB- -RRB-))")])
    assert grammar.entry("(") == grammar.entry("-LRB-") != grammar.entry(")")


def test_classes_of_words():
    assert list(classes("Re-elected")) == ["<capital,hyphen,ed>", "<capital,hyphen>", "<unknown>"]
    assert list(classes("1,000")) == ["<number>", "<unknown>"]
    assert list(classes("IBM")) == ["<capitals>", "<unknown>"]
    assert list(classes("dog")) == ["<lower>", "<unknown>"]
    assert list(classes("--")) == ["<hyphen,symbol>", "<unknown>"]
    assert list(classes(""))[-1] == "<unknown>"


@pytest.mark.parametrize("memory", MEMORIES)
def test_fallback_gives_every_sentence_a_tree(memory):
    bank = [
        parse_tree("(TOP (S (NP (D the) (N dog)) (VP (V barks))))"),
        parse_tree("(TOP (S (NP (N cats)) (VP (V sit))))"),
    ]
    options = {"horizontal": memory[0], "vertical": memory[1], "tag_vertical": memory[2]}
    plain = Grammar.from_treebank(bank, **options)
    robust = Grammar.from_treebank(bank, **options, fallback="FRAG")
    known = ["the", "dog", "sit"]
    assert Constituency(robust, known).decode().structure == Constituency(plain, known).decode().structure
    for words in (["barks"], ["sit", "the", "cats", "new"], ["cats"] * 7):
        with pytest.raises(Infeasible):
            Constituency(plain, words).decode()
        problem = Constituency(robust, words)
        results = problem.kbest(10)
        assert results[0].structure.subtrees[0].label == "FRAG"
        assert len({result.structure for result in results}) == len(results)
        for result in results:
            assert result.score == pytest.approx(result.certificate.bound)


@pytest.mark.parametrize("option", [{"horizontal": -1}, {"vertical": 0}, {"tag_vertical": True}, {"vertical": None}])
def test_wrong_memory(option):
    with pytest.raises(InvalidInput, match=f"{next(iter(option))} is .*; expected a whole number"):
        Grammar.from_treebank([parse_tree("(S (A a) (B b))")], **option)


def test_empty_treebank():
    with pytest.raises(InvalidInput, match="holds no trees"):
        Grammar.from_treebank([])


# -- files -----------------------------------------------------------------------------------------------------------


def grammars_to_save():
    text = Grammar.from_text('1 S -> A B A\n0.1 A -> B\n2 B -> "b"\n-3 B -> <unknown>')
    bank = Grammar.from_treebank([parse_tree("(TOP (S (NP (A a) (B b) (C c)) (VP (B b))))")], horizontal=1, vertical=2)
    robust = Grammar.from_treebank([parse_tree("(TOP (S (A a) (B b) (C c)))")], fallback="FRAG")
    masked = Grammar.from_text('-1.7e308 S -> A\n-1.7e308 A -> B\n0 B -> "b"\n0 S -> "b"')  # a chain of -inf
    return [text, bank, robust, masked]


@pytest.mark.parametrize("grammar", grammars_to_save())
def test_saved_and_loaded(grammar, tmp_path):
    grammar.save(tmp_path / "g.json")
    copy = Grammar.load(tmp_path / "g.json")
    assert copy.binary == grammar.binary
    assert copy.chains == grammar.chains
    assert (copy.root, copy.tags, copy.memory) == (grammar.root, grammar.tags, grammar.memory)
    for word in ("a", "b", "zzz", "Zed"):
        assert copy.entry(word) == grammar.entry(word)
    assert copy.to_json() == grammar.to_json()


def test_damaged_files(tmp_path):
    grammar = grammars_to_save()[1]
    path = tmp_path / "g.json"
    grammar.save(path)
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(FormatError, match="cut short"):
        Grammar.load(path)
    data = json.loads(text)
    changes = [
        {"format": "other"},
        {"version": 99},
        {"symbols": []},
        {"binary_weights": [1.0]},
        {"binary_weights": ["-inf"] * len(data["binary"])},
        {"lexicon": {"kind": "other"}},
        {"lexicon": {}},
        {"memory": 3},
        {"chains": [[0, 10**6]]},
    ]
    for change in changes:
        path.write_text(json.dumps(data | change))
        with pytest.raises(FormatError, match=r"g\.json: "):
            Grammar.load(path)


# -- the Penn sample -------------------------------------------------------------------------------------------------


def test_penn_sample_round_trip_and_questions():
    bank = list(read_trees(shared_data("ptb-sample", "dev.mrg.gz"), clean=True))
    grammar = check_round_trip(bank, (1, 2, 2), parse=False)
    for tree in bank[:60]:
        copy, own = own_grammar(tree, Memory(None, 99, 99))
        assert copy in set(Constituency(own, copy.words).all_structures())
    short = min(bank, key=lambda tree: abs(len(tree.words) - 9))
    problem = Constituency(grammar, short.words)
    result = problem.decode()
    assert result.score >= problem.score(short)
    assert result.score == pytest.approx(problem.reference_maximum())
    marginals = problem.marginals()["tags"]
    np.testing.assert_allclose(marginals.sum(axis=1), 1, rtol=1e-9)
    general = super(Constituency, problem)
    np.testing.assert_allclose(marginals, general.marginals()["tags"], atol=1e-9)
    assert problem.max_marginals()["tags"].max(axis=1) == pytest.approx(np.full(problem.n, result.score))
    assert len({r.structure for r in problem.kbest(20)}) == 20


def test_no_tree_in_a_treebank_grammar():
    grammar = Grammar.from_treebank([parse_tree("(S (A a) (B b))")])
    with pytest.raises(Infeasible, match="no TOP over the 3 words"):
        Constituency(grammar, ["a", "b", "b"]).decode()
    assert isinstance(Constituency(grammar, ["a", "b"]).decode().structure, Tree)
