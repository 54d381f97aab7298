"""Pages say what they should, are whole in themselves, and no word in them is markup."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import certus
from certus.data import demo_grammar, demo_tagger
from certus.errors import InvalidInput
from certus.report.comparison import compare_parses, differences
from certus.report.explanation import explain_result
from certus.report.film import film
from certus.report.page import embedded, figures, page
from certus.text import Sentence, Token
from tests.test_contract import MADE, made

WORDS = ["Red", "flies", "some", "large", "jet"]
HOSTILE = "</script><script>alert(1)</script>"


def data_of(text: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


def scripts(text: str) -> int:
    """How many script elements a browser would see."""
    count = 0

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            nonlocal count
            count += tag == "script"
            assert not [name for name, _ in attrs if name.startswith("on") or name in ("src", "href")]

    Reader().feed(text)
    return count


def joint() -> certus.Joint:
    return certus.Joint(certus.Constituency(demo_grammar(), WORDS), demo_tagger().tagging(WORDS), on="tags")


def crossing(n: int = 5, seed: int = 0) -> certus.Dependency:
    rng = np.random.default_rng(seed)
    return certus.Dependency(
        rng.integers(-8, 9, (n + 1, n + 1)), sibling=rng.integers(-8, 9, (n + 1, n + 1, n + 1)), projective=False
    )


def test_json_in_a_page_cannot_end_its_element():
    given = {"a": HOSTILE, "b": ["\u2028", "<!--", 1.5]}
    assert "<" not in embedded(given)
    assert json.loads(embedded(given)) == given
    assert scripts(page(HOSTILE, "<p>x</p>", data=given, script="explain.js")) == 2


def test_a_joint_problem_is_filmed_until_it_agrees():
    problem = joint()
    reel = film(problem, WORDS)
    assert reel.names == ("Grammar", "Tagger")
    assert ("part", "0-") not in reel.frames[0].apart
    assert any(kind == "tag" for kind, _ in reel.frames[0].apart)
    last, best = reel.frames[-1], problem.decode()
    assert not last.apart
    assert last.primal == best.score
    assert min(frame.dual for frame in reel.frames) >= best.score - 1e-9
    assert max(k for frame in reel.frames for k in frame.shown) == len(reel.pictures) - 1


@pytest.mark.parametrize("seed", range(4))
def test_the_dual_values_of_a_film_bound_every_crossing_tree(seed):
    problem = crossing(seed=seed)
    best = max(problem.score(tree) for tree in problem.all_structures())
    reel = film(problem, list("abcde"))
    assert all(frame.dual >= best - 1e-9 for frame in reel.frames)
    assert all(frame.primal <= best for frame in reel.frames)
    assert len(reel.names) == len(reel.frames[0].shown) == 2
    for frame in reel.frames:
        agree = frame.said == "they agree on every part"
        assert agree == (not frame.apart)


def test_constraints_are_filmed():
    tagging = certus.Tagging([[0, 1], [0, 3], [0, 1]], tags=("A", "B"))
    limited = tagging.subject_to(certus.constraints.at_most(1, "tags", [(i, 1) for i in range(3)]))
    reel = film(limited)
    assert len(reel.names) == 1
    assert all(frame.dual >= limited.decode().score - 1e-9 for frame in reel.frames)


def test_dynamic_programs_have_no_film():
    assert film(certus.Tagging([[0, 1], [2, 0]])) is None


def test_the_page_of_a_result_says_what_is_proved():
    problem = joint()
    text = explain_result(problem, problem.decode(), kbest=3)
    data = data_of(text)
    assert "Proved optimal" in text
    assert len(data["kbest"]) == 3
    assert data["film"]["frames"][-1]["said"] == "they agree on every part"
    assert scripts(text) == 2


@pytest.mark.parametrize("name", MADE)
def test_results_of_every_kind_are_explained(name):
    problem = made(name).problem
    result = problem.decode()
    text = explain_result(problem, result, kbest=1)
    assert scripts(text) == 2
    assert ("Proved optimal" in text) == result.certificate.exact
    assert "<svg" in text
    for frame in (data_of(text)["film"] or {"frames": []})["frames"]:
        assert frame["dual"] >= result.score - 1e-6


def test_a_result_that_is_not_proved_says_so():
    problem = crossing()
    result = problem.decode()
    loose = certus.Result(
        result.structure, result.score, certus.Certificate("dual", result.score, result.score + 2.0, 0.0)
    )
    text = explain_result(problem, loose, words=[HOSTILE, "b", "c", "d", "e"])
    assert "Not proved optimal" in text
    assert scripts(text) == 2
    assert "alert(1)&lt;/script&gt;" in text


def sentence(heads, labels, tags=("NOUN", "VERB", "NOUN"), forms=("a", HOSTILE, "c")) -> Sentence:
    rows = zip(forms, heads, labels, tags, strict=True)
    return Sentence([Token(i, w, upos=t, head=h, deprel=d) for i, (w, h, d, t) in enumerate(rows, start=1)])


def test_differences_are_of_the_first_kind_that_differs():
    a = sentence((2, 0, 2), ("x", "root", "y"))
    b = sentence((2, 0, 1), ("z", "root", "q"), ("NOUN", "NOUN", "NOUN"))
    assert [(d.word, d.kind, d.first, d.second) for d in differences(a, b)] == [
        (1, "label", "x", "z"),
        (2, "tag", "VERB", "NOUN"),
        (3, "head", f"2 {HOSTILE}", "1 a"),
    ]
    with pytest.raises(InvalidInput, match="the same words"):
        differences(a, sentence((2, 0, 2), ("x", "root", "y"), forms=("a", "b", "c")))


def test_a_comparison_counts_and_draws():
    a, b = sentence((2, 0, 2), ("x", "root", "y")), sentence((2, 0, 1), ("x", "root", "y"))
    text = compare_parses([(a, a), (a, b), (a, b)], ("gold", HOSTILE), most=1)
    assert "3, of which 2 differ" in text
    assert "7 (77.78%)" in text
    assert "The first 1 of the 2" in text
    assert len(data_of(text)["sentences"]) == 1
    assert scripts(text) == 2
    with pytest.raises(InvalidInput, match="no sentence"):
        compare_parses([])


def test_figures_are_a_page_without_scripts():
    assert scripts(figures(HOSTILE, [(sentence((2, 0, 2), ("x", "root", "y")).picture(), HOSTILE)])) == 0
