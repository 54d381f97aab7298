"""Plain text to sentences of words."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certus.errors import InvalidInput
from certus.io.conllu import read_conllu
from certus.text import tokenize, tokenize_spans
from tests.data import shared_data


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't, can't and won't.", "I do n't , ca n't and wo n't ."),
        ("It's Bush's; we'll say they've gone", "It 's Bush 's ; we 'll say they 've gone"),
        ("the boys' DON’T cannot gonna", "the boys ' DO N’T can not gon na"),
        ('"Yes," (he said)', '" Yes , " ( he said )'),
        ("Mr. Fry of the U.S. and J. K. Row", "Mr. Fry of the U.S. and J. K. Row"),
        ("see http://a.org/b-c?d=e.", "see http://a.org/b-c?d=e ."),
        ("(www.a.com/x), jo.b@c-d.org!", "( www.a.com/x ) , jo.b@c-d.org !"),
        ("a well-known co-worker's e-mail", "a well - known co-worker 's e-mail"),
        ("$5.50, 1,000 at 7:30pm on 9/11/2001", "$ 5.50 , 1,000 at 7:30 pm on 9/11/2001"),
        ("call 713-853-3989 or 50% of 1990s 2nd 10k", "call 713-853-3989 or 50 % of 1990s 2nd 10 k"),
        ("wait... what?! -- no :) and/or", "wait ... what ?! -- no :) and / or"),
        ("O'Brien's AT&T", "O'Brien 's AT & T"),
        ("see draft-2.doc", "see draft-2.doc"),
        ("it 's n't", "it 's n't"),
    ],
)
def test_words(text, words):
    assert [word for sentence in tokenize(text) for word in sentence] == words.split()


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("He came. She left! Why? ok", [3, 6, 8, 9]),
        ('He said "Go." Then he left.', [6, 10]),
        ("Dr. Who lives in St. Louis. Yes.", [7, 9]),
        ("at 5 p.m. on Monday", [5]),
        ("Acme Inc. The end", [2, 4]),
        ("Well... not now", [4]),
        ("Title\n\nText follows", [1, 3]),
        ("one\nline", [2]),
        ("(Really.) Next", [4, 5]),
        ("", []),
        (" \n\n ", []),
    ],
)
def test_sentences(text, ends):
    found = 0
    places = []
    for sentence in tokenize(text):
        found += len(sentence)
        places.append(found)
    assert places == ends


@pytest.mark.parametrize(
    ("chunk", "tokens"),
    [
        ("dog", ["dog"]),
        ("dog.", ["dog", "."]),
        ("U.S.", ["U.S."]),
        ("Mr.", ["Mr."]),
        ("don't", ["do", "n't"]),
        ("can’t", ["ca", "n’t"]),
        ("it's", ["it", "'s"]),
        ("'s", ["'s"]),
        ("n't", ["n't"]),
        ("dogs'", ["dogs", "'"]),
        ("(see", ["(", "see"]),
        ("jet).", ["jet", ")", "."]),
        ("3.14", ["3.14"]),
        ("$5", ["$", "5"]),
        ("50%,", ["50", "%", ","]),
        ("...", ["..."]),
        ("wait...", ["wait", "..."]),
        ("``Hello,''", ["``", "Hello", ",", "''"]),
        ("?!", ["?", "!"]),
        (".", ["."]),
        ("well-known", ["well-known"]),
    ],
)
def test_words_as_the_penn_treebank_has_them(chunk, tokens):
    assert tokenize(chunk, style="penn") == [tokens]


def test_lines_are_sentences_but_in_the_web_style():
    text = "don't stop. Go\n\n  \non."
    assert tokenize(text, style="blank") == [["don't", "stop.", "Go"], ["on."]]
    assert tokenize(text, style="penn") == [["do", "n't", "stop", ".", "Go"], ["on", "."]]
    assert tokenize(text, style="web") == [["do", "n't", "stop", "."], ["Go"], ["on", "."]]


PIECES = [
    "don't",
    " ",
    "\n\n",
    "U.S.",
    ". ",
    "'s",
    "http://a.b/c).",
    "...",
    "-",
    "co-op",
    "7:30pm",
    '"',
    "(",
    "é",
    "\x00",
    "😀",
]


@pytest.mark.parametrize("style", ["web", "penn", "blank"])
@given(text=st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=12).map("".join)))
def test_every_character_but_white_space_is_in_one_word(style, text):
    sentences = tokenize_spans(text, style=style)
    spans = [span for sentence in sentences for span in sentence]
    assert all(sentences)
    assert all(text[span.start : span.end] == span.form and span.form for span in spans)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert "".join(span.form for span in spans) == "".join(text.split())


def test_long_input_takes_linear_time():
    for piece in ("a", "1", ".", "-", "a.", "a-", "1-", "(", "a@", "a'", "1,", "$", "_"):
        assert "".join(w for s in tokenize(piece * 20000) for w in s) == piece * 20000


def test_only_strings():
    with pytest.raises(InvalidInput, match="text is bytes"):
        tokenize(b"text")
    with pytest.raises(InvalidInput, match="style is 'ptb'; expected one of 'web', 'penn', 'blank'"):
        tokenize("text", style="ptb")


def test_agrees_with_the_treebank():
    sentences = read_conllu(shared_data("ud", "en_ewt", "dev.conllu.gz"))
    both = gold = found = 0
    for sentence in sentences:
        text = sentence.comment("text")
        ours = {(s.start, s.end) for group in tokenize_spans(text) for s in group}
        theirs, at = set(), 0
        for word in sentence.words:
            at = text.index(word, at)
            theirs.add((at, at + len(word)))
            at += len(word)
        both, gold, found = both + len(ours & theirs), gold + len(theirs), found + len(ours)
    assert 2 * both / (gold + found) > 0.985
