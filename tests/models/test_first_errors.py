"""Mistakes that users make early: each message names what was given and what to call."""

import pytest

from certus import InvalidInput, Joint, SynchronousGrammar, Tagging, load
from certus.models.explain import head_choice
from certus.text import Sentence

pytestmark = pytest.mark.compiled  # the bundled parser


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("Red flies", "sentences is the string 'Red flies'"),
        (["Red flies"], "sentence 1 is the string 'Red flies'"),
        (Sentence.from_words(["a"]), "sentences is a Sentence"),
    ],
)
def test_what_is_no_list_of_sentences(given, found):
    with pytest.raises(InvalidInput, match=rf"{found}; .*Sentence.from_words.*parse_text"):
        list(load().parse(given))


def test_head_choice_takes_a_parser_and_a_sentence():
    pipeline, sentence = load(), Sentence.from_words(["a", "b"])
    with pytest.raises(InvalidInput, match=r"a Pipeline and a Sentence were given; .*load\(\).parser"):
        head_choice(pipeline, sentence, 1)
    with pytest.raises(InvalidInput, match="a Parser and the string 'a b' were given"):
        head_choice(pipeline.parser, "a b", 1)
    with pytest.raises(InvalidInput, match="word is 'a'"):
        head_choice(pipeline.parser, sentence, "a")


@pytest.mark.parametrize("step", ["polyak", 0.1])
def test_a_step_rule_is_no_name_and_no_number(step):
    apart = Joint(Tagging([[0, 1]]), Tagging([[1, 0]]), on="tags")
    with pytest.raises(InvalidInput, match=r"expected a rule of certus.relax.steps, such as polyak\(\)"):
        apart.decode(step=step)


def test_grammars_are_read_from_files():
    with pytest.raises(InvalidInput, match=r"rules is str; .*SynchronousGrammar.read"):
        SynchronousGrammar("rules.gz")
