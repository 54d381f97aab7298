"""certus translate, search-errors, train lm and evaluate --bleu, on a model that fits on a page."""

import gzip
import json

import pytest

from certus import LanguageModel

RULES = """[X] ||| le chien ||| the dog ||| p=-0.5
[X] ||| le chien ||| a dog ||| p=-0.25
[X] ||| aboie ||| barks ||| p=-0.1
[X] ||| [X,1] aboie ||| barks [1] ||| p=0.2
"""
GLUE = """[S] ||| [X,1] ||| [1]
[S] ||| [S,1] [X,2] ||| [1] [2]
"""
TEXT = "the dog barks\nthe dog sleeps\na cat sleeps\n"
TABLE = """le chien ||| the dog ||| 0.5 0.5 0.5 0.5 ||| 0-0 1-1 ||| 1 1 1
aboie ||| barks ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 1 1 1
"""


@pytest.fixture
def files(tmp_path, certus):
    (tmp_path / "rules").write_bytes(gzip.compress(RULES.encode()))
    (tmp_path / "glue").write_text(GLUE)
    (tmp_path / "weights").write_text("p 1\nLM 1\n")
    (tmp_path / "text").write_text(TEXT)
    (tmp_path / "table").write_text(TABLE)
    names = ("PhraseFE", "LexFE", "PhraseEF", "LexEF", "Words", "Phrases", "Distortion", "LM")
    (tmp_path / "phrase-weights.json").write_text(json.dumps({"phrase_based": {"weights": dict.fromkeys(names, 1)}}))
    trained = certus("train", "lm", "--text", tmp_path / "text", "--order", 2, "--output", tmp_path / "lm.gz")
    assert trained.code == 0
    assert "from 3 sentences" in trained.err
    assert "too little text to estimate the discounts of order 1, 2" in trained.err
    return tmp_path


def options(folder):
    named = {"--grammar": "rules", "--glue": "glue", "--lm": "lm.gz", "--weights": "weights"}
    return [part for name, file in named.items() for part in (name, folder / file)]


def test_sentences_are_translated_line_by_line(certus, files):
    ran = certus("translate", *options(files), stdin="le chien aboie\n\nzut\n")
    assert ran.code == 0
    assert ran.out == "the dog barks\n\nzut\n"
    assert "2 sentences, 2 proved optimal" in ran.err


def test_json_has_score_bound_and_proof(certus, files):
    ran = certus("translate", *options(files), "--json", stdin="le chien aboie\n\n")
    first, second = map(json.loads, ran.out.splitlines())
    lm = LanguageModel.read(files / "lm.gz")
    assert first["translation"] == "the dog barks"
    assert first["score"] == pytest.approx(-0.6 + lm.score(["the", "dog", "barks"]))
    assert first["exact"]
    assert first["bound"] == pytest.approx(first["score"])
    assert {"iterations", "seconds", "kind"} <= set(first)
    assert second["translation"] == ""
    for method in ("cube", "intersection"):
        again = json.loads(certus("translate", *options(files), "--json", "--method", method, "le chien aboie").out)
        assert again["score"] == pytest.approx(first["score"])


def test_phrases_are_translated_too(certus, files):
    arguments = ["--phrase-table", files / "table", "--lm", files / "lm.gz", "--weights", files / "phrase-weights.json"]
    ran = certus("translate", *arguments, "le chien aboie")
    assert (ran.code, ran.out) == (0, "the dog barks\n")


def test_what_cannot_be_translated_is_named(certus, files):
    (files / "rules").write_text(RULES)
    (files / "glue").write_text("[S] ||| [X,1] ||| [1]\n")
    ran = certus("translate", *options(files), stdin="le chien le chien\n")
    assert (ran.code, ran.out) == (2, "\n")
    assert "stdin:1: no derivation of [S] covers all 4 words" in ran.err


def test_a_language_model_without_unknown_words_can_be_given_one(certus, files):
    text = gzip.decompress((files / "lm.gz").read_bytes()).decode()
    lines = [line for line in text.split("\n") if "<unk>" not in line]
    (files / "lm.gz").write_bytes(gzip.compress("\n".join(lines).replace("ngram 1=9", "ngram 1=8").encode()))
    assert "lm.gz:5: the 1-grams have no <unk>" in certus("translate", *options(files), "le chien").complaint
    ran = certus("translate", *options(files), "--set", "lm_unknown=-5", "le chien")
    assert (ran.code, ran.out) == (0, "the dog\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--lm", "lm.gz", "--weights", "weights"], "give either --grammar, for rules, or --phrase-table"),
        (["--grammar", "rules", "--weights", "weights"], "--lm is missing"),
        (["--grammar", "rules", "--lm", "lm.gz"], "--weights is missing"),
        (["--phrase-table", "table", "--glue", "glue", "--lm", "lm.gz", "--weights", "weights"], "--glue goes with"),
        (["--phrase-table", "table", "--lm", "lm.gz", "--weights", "weights", "--set", "pops=5"], "pops are of cube"),
        (["--grammar", "rules", "--lm", "lm.gz", "--weights", "weights", "--set", "width=5"], "width is for phrases"),
        (["--grammar", "rules", "--glue", "glue", "--lm", "text", "--weights", "weights"], "text:1: no line"),
        (
            ["--grammar", "rules", "--glue", "glue", "--lm", "lm.gz", "--weights", "text"],
            "text:1: expected 'name value'",
        ),
        (["--grammar", "rules", "--glue", "glue", "--lm", "lm.gz", "--weights", "bare"], "no weight for LM"),
        (
            ["--grammar", "rules", "--glue", "glue", "--lm", "lm.gz", "--weights", "lm-only"],
            "feature 'p' has no weight",
        ),
    ],
)
def test_bad_usage_is_one_line(certus, files, monkeypatch, arguments, message):
    (files / "bare").write_text("p 1\n")
    (files / "lm-only").write_text("LM 1\n")
    monkeypatch.chdir(files)
    assert message in certus("translate", *arguments, "le chien").complaint


def test_search_errors_are_counted_against_the_optimum(certus, files):
    (files / "in").write_text("le chien aboie\nle chien\n")
    (files / "good").write_text("the dog barks\nthe dog\n")
    (files / "bad").write_text("barks a dog\nthe cat\n")
    scored = [{"translation": "x", "score": -100.0}, {"translation": "y", "score": 5.0}]
    (files / "scored").write_text("\n".join(map(json.dumps, scored)))
    lists = [part for name in ("good", "bad", "scored") for part in ("--translations", files / name)]
    ran = certus("search-errors", *options(files), *lists, "--pops", 50, "--json", files / "in")
    assert ran.code == 0, ran.err
    table = json.loads(ran.out)
    assert (table["sentences"], table["certified"]) == (2, 2)
    runs = {name.split("/")[-1]: run for name, run in table["runs"].items()}
    assert {name: run["search errors"] for name, run in runs.items()} == {
        "cube pruning, 50 pops": 0,
        "good": 0,
        "bad": 1,
        "scored": 1,
    }
    assert (runs["bad"]["not derivable"], runs["bad"]["compared"]) == (1, 1)
    assert runs["scored"]["better"] == 1
    printed = certus("search-errors", *options(files), *lists, "--pops", 50, files / "in")
    assert "2 sentences, 2 certified" in printed.out
    assert "1 translations that the model cannot derive" in printed.out
    (files / "glue").write_text("[S] ||| [X,1] ||| [1]\n")
    ran = certus("search-errors", *options(files), stdin="le chien le chien\nle chien\n")
    assert ran.code == 2
    assert "stdin:1: no derivation" in ran.err
    assert "1 sentences, 1 certified" in ran.out
    (files / "short").write_text("the dog barks\n")
    short = certus("search-errors", *options(files), "--translations", files / "short", files / "in")
    assert "short: has 1 translations" in short.complaint


def test_bleu(certus, files):
    pytest.importorskip("sacrebleu")
    (files / "system").write_text("the dog barks\nthe dog sleeps\na cat sleeps\n")
    ran = certus("evaluate", "--bleu", "--json", files / "text", files / "system")
    scores = json.loads(ran.out)
    assert (scores["sentences"], scores["chrF"]) == (3, pytest.approx(100.0))
    printed = certus("evaluate", "--bleu", "--tokenizer", "none", files / "text", files / "system")
    assert "tok:none" in printed.out
    (files / "system").write_text("the dog barks\n")
    assert "has 1 lines, but" in certus("evaluate", "--bleu", files / "text", files / "system").complaint
    assert (
        "no tokenizer 'x'" in certus("evaluate", "--bleu", "--tokenizer", "x", files / "text", files / "text").complaint
    )


def test_bleu_without_sacrebleu_says_what_to_install(certus, files, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    assert "pip install 'certus[mt]'" in certus("evaluate", "--bleu", files / "text", files / "text").complaint
    assert "--tokenizer is for --bleu" in certus("evaluate", "--tokenizer", "none", "a", "b").complaint


def test_text_with_marks_is_refused(certus, tmp_path):
    (tmp_path / "text").write_text("the dog\n<s> dog\n")
    ran = certus("train", "lm", "--text", tmp_path / "text", "--output", tmp_path / "lm")
    assert "sentence 2 holds '<s>'" in ran.complaint
    assert not (tmp_path / "lm").exists()


def phrase_options(folder):
    named = {"--phrase-table": "table", "--lm": "lm.gz", "--weights": "phrase-weights.json"}
    return [part for name, file in named.items() for part in (name, folder / file)]


def test_constraints_and_terminology_hold_and_a_refused_sentence_is_reported(certus, files):
    (files / "terms").write_text("# terms\nchien\ta dog\n")
    ran = certus("translate", *options(files), "--terminology", files / "terms", stdin="le chien aboie\naboie\n")
    assert (ran.code, ran.out) == (0, "a dog barks\nbarks\n")
    (files / "asked").write_text(
        '{"starts_with": "barks", "length": [1, 3]}\n{"contains": ["cat"]}\n\n{"avoids": ["the"]}\n'
    )
    lines = "le chien aboie\nle chien\nle chien\nle chien\nle chien\n"
    ran = certus("translate", *options(files), "--constraints", files / "asked", "--workers", 2, stdin=lines)
    assert (ran.code, ran.out) == (2, "barks the dog\n\nthe dog\na dog\n\n")
    assert "stdin:2: no derivation of the forest satisfies the constraints" in ran.err
    assert "stdin:5: --constraints has 4 lines" in ran.err
    assert "3 sentences, 3 proved optimal" in ran.err
    (files / "asked").write_text('{"contain": ["cat"]}\n')
    assert (
        "asked:1: expected a JSON object with some of"
        in certus("translate", *options(files), "--constraints", files / "asked", "le chien").complaint
    )
    (files / "terms").write_text("chien a dog\n")
    assert (
        "terms:1: expected the source words"
        in certus("translate", *options(files), "--terminology", files / "terms", "le chien").complaint
    )


def test_lattices_are_translated(certus, files):
    lattice = "((('le',1.0,1),),(('chien',0.9,1),('chat',0.1,1),),(('aboie',0.5,1),('*EPS*',0.5,1),),)"
    for model in (options, phrase_options):
        ran = certus("translate", *model(files), "--lattice", stdin=lattice + "\n((('le',1,0),),)\n")
        assert ran.code == 2
        assert ran.out.split("\n")[0] in ("the dog barks", "the dog")
        assert "stdin:2: lattice: arc 0 of the lattice leads from node 0 to 0" in ran.err
    logs = certus("translate", *options(files), "--lattice", "--log-scores", '[[["le chien", 0, 1]]]')
    assert "without blanks" in logs.err
    assert "not in lattices" in certus("translate", *options(files), "--lattice", "--terminology", "x", "y").complaint
    assert "about the scores of --lattice" in certus("translate", *options(files), "--log-scores", "y").complaint


def test_all_results_are_saved_and_verified(certus, files):
    (files / "table").write_text(TABLE + TABLE.replace("the dog", "a dog"))
    more = ["--kbest", 3, "--distinct", "--save-results", files / "saved"]
    ran = certus("translate", *phrase_options(files), *more, stdin="le chien aboie\n\naboie\n")
    assert ran.code == 0
    lines = [line.split(" ||| ") for line in ran.out.splitlines()]
    assert [line[0] for line in lines] == ["0", "0", "0", "2"]
    assert len({line[1] for line in lines[:3]}) == 3
    saved = sorted((files / "saved").iterdir())
    assert [path.name for path in saved] == ["000001.1.json", "000001.2.json", "000001.3.json", "000003.1.json"]
    assert certus("verify", *saved).code == 0
    assert "--distinct is for lists" in certus("translate", *phrase_options(files), "--distinct", "aboie").complaint


def test_the_translation_of_least_risk(certus, files):
    for model in (options, phrase_options):
        ran = certus("translate", *model(files), "--minimum-risk", "--set", "margin=9", stdin="le chien aboie\n\n")
        assert (ran.code, ran.out) == (0, "the dog barks\n\n")
        found = json.loads(certus("translate", *model(files), "--minimum-risk", "--json", "le chien").out)
        assert found["translation"] == found["best"] == "the dog"
        assert 0.0 <= found["left_out"] < 1.0
        assert found["kept"] >= 1
    assert "a choice among many" in certus("translate", *options(files), "--minimum-risk", "--kbest", 2, "y").complaint
