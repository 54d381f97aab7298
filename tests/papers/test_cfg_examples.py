"""Worked examples of LR 2.2.3: the tree of figure 2-3 and the attachment ambiguity of example 2.2.2."""

import pytest

import certus
from certus.io.brackets import parse_tree

# NP -> D N is used by both parses but not in the printed table; with weight 0 it cancels, as the text has it.
EXAMPLE_2_2_2 = """
1 S -> NP VP
3 VP -> V NP
2 VP -> VP PP
5 NP -> NP PP
4 PP -> P NP
0 NP -> D N
2 N -> "man"
3 N -> "dog"
4 N -> "park"
2 P -> "in"
1 D -> "the"
5 V -> "walks"
"""
SENTENCE = ["the", "man", "walks", "the", "dog", "in", "the", "park"]


def test_example_2_2_2_attachment_ambiguity() -> None:
    grammar = certus.Grammar.from_text(EXAMPLE_2_2_2)
    problem = certus.Constituency(grammar, SENTENCE)
    noun = parse_tree(
        "(S (NP (D the) (N man)) (VP (V walks) (NP (NP (D the) (N dog)) (PP (P in) (NP (D the) (N park))))))"
    )
    verb = parse_tree(
        "(S (NP (D the) (N man)) (VP (VP (V walks) (NP (D the) (N dog))) (PP (P in) (NP (D the) (N park)))))"
    )
    words = 1 + 2 + 5 + 1 + 3 + 2 + 1 + 4
    assert problem.score(noun) == 4 + 5 + 3 + 1 + words
    assert problem.score(verb) == 3 + 4 + 2 + 1 + words
    result = problem.decode()
    assert result.structure == noun
    assert result.score == 32
    assert result.certificate.exact
    assert [r.structure for r in problem.kbest(5)] == [noun, verb]
    assert set(problem.all_structures()) == {noun, verb}


def test_example_2_2_2_hypergraph_of_figure_2_5() -> None:
    problem = certus.Constituency(certus.Grammar.from_text(EXAMPLE_2_2_2), SENTENCE)
    graph = problem.forest().graph
    graph.check(disjoint_references=True)
    # Figure 2-5: 8 words, 3 NPs of two words, PP, NP and VP inside the ambiguity, the whole VP with two edges, S.
    assert graph.n_vertices == 8 + 3 + 1 + 1 + 1 + 1 + 1
    assert graph.n_edges == graph.n_vertices + 1


def test_figure_2_3_score_is_the_sum_of_its_rules() -> None:
    weights = {"S": 1, "NP1": 2, "N1": 4, "VP": 8, "V": 16, "NP3": 32, "D": 64, "A": 128, "N2": 256}
    grammar = certus.Grammar.from_text(f"""
        {weights["S"]} S -> NP VP
        {weights["NP1"]} NP -> N
        {weights["N1"]} N -> "United"
        {weights["VP"]} VP -> V NP
        {weights["V"]} V -> "flies"
        {weights["NP3"]} NP -> D A N
        {weights["D"]} D -> "some"
        {weights["A"]} A -> "large"
        {weights["N2"]} N -> "jet"
    """)
    tree = parse_tree("(S (NP (N United)) (VP (V flies) (NP (D some) (A large) (N jet))))")
    result = certus.Constituency(grammar, ["United", "flies", "some", "large", "jet"]).decode()
    assert result.structure == tree
    assert result.score == sum(weights.values())


def test_example_2_2_2_needs_the_rule_left_out_of_the_table() -> None:
    printed = certus.Grammar.from_text(EXAMPLE_2_2_2.replace("0 NP -> D N\n", ""))
    with pytest.raises(certus.Infeasible, match="no S over the 8 words"):
        certus.Constituency(printed, SENTENCE).decode()
