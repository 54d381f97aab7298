"""Phrase tables of Moses: what is read, what is left out, and errors that name the line."""

import gzip

import numpy as np
import pytest

from certus import FormatError, InvalidInput, LanguageModel, PhraseModel
from certus.io.arpa import parse_arpa
from certus.io.moses import read_phrase_table

TABLE = """das haus ||| the house ||| 0.5 0.25 1 0.5 ||| 0-0 1-1 ||| 2 2 1
das ||| the ||| 0.5 0.5 0.5 0.5 ||| 0-0 ||| 9 9 9
das |||  ||| 0.1 0.1 0.1 0.1 |||  ||| 1 1 1
ist ||| is ||| 1 1 1 0 ||| 0-0 ||| 1 1 1

gross ||| big ||| 1e-3 1 1 1
"""
WEIGHTS = {
    n: w for w, n in enumerate(("PhraseFE", "LexFE", "PhraseEF", "LexEF", "Words", "Phrases", "Distortion", "LM"), 1)
}


@pytest.fixture
def lm() -> LanguageModel:
    words = ["-1 <unk>", "0 <s>", "-1 </s>", "-1 the", "-1 house"]
    return LanguageModel(parse_arpa("\n".join(["\\data\\", "ngram 1=5", "\\1-grams:", *words, "\\end\\"])))


def test_entries_are_logarithms_limited_to_the_input(tmp_path):
    path = tmp_path / "table"
    path.write_text(TABLE)
    table = read_phrase_table(path)
    assert (len(table), table.n_scores, table.longest) == (5, 4, 2)
    assert table.entries["das", "haus"] == [(("the", "house"), tuple(np.log([0.5, 0.25, 1, 0.5])))]
    assert table.entries[("das",)][1][0] == ()
    assert table.entries[("ist",)][0][1][3] == -np.inf
    packed = tmp_path / "table.gz"
    packed.write_bytes(gzip.compress(TABLE.encode()))
    limited = read_phrase_table(packed, [["ein", "das"], ["das", "haus"]])
    assert set(limited.entries) == {("das",), ("das", "haus")}
    assert [(i, j) for i, j, _ in limited.matches(["das", "haus", "das"])] == [(0, 0), (0, 0), (0, 1), (2, 2), (2, 2)]
    assert set(read_phrase_table(path, max_phrase_length=1).entries) == {("das",), ("ist",), ("gross",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a ||| b ||| 1 1\nc ||| d ||| 1 1 1\n", ":2: 3 scores; expected 2, as on the lines before"),
        ("a ||| b\n", ":1: 2 field"),
        ("a ||| b ||| x 1\n", ":1: score 'x'"),
        ("a ||| b ||| -1\n", ":1: score '-1'"),
        (" ||| b ||| 1\n", ":1: the source side is empty"),
    ],
)
def test_errors_name_the_line(tmp_path, text, message):
    path = tmp_path / "table"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_phrase_table(path)
    with pytest.raises(FormatError, match="cannot be read"):
        read_phrase_table(tmp_path / "none")
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(text.encode() * 100)[:-12])
    with pytest.raises(FormatError):
        read_phrase_table(broken)


def test_the_model_weighs_scores_words_and_phrases(tmp_path, lm):
    path = tmp_path / "table"
    path.write_text(TABLE)
    model = PhraseModel.read(path, lm, WEIGHTS)
    options = {(o.start, o.end, o.target): o.score for o in model.options(["das", "haus"])}
    expected = np.log([0.5, 0.25, 1, 0.5]) @ [1, 2, 3, 4] + 5 * 2 + 6
    assert options[0, 1, ("the", "house")] == pytest.approx(expected)
    assert options[1, 1, ("haus",)] == pytest.approx(-100 + 5 + 6)  # unknown on its own, so copied
    assert [o.score for o in model.options(["ist"])] == [-np.inf]
    problem = model.problem(["das", "haus"])
    assert (problem.distortion, problem.lm_weight, problem.distortion_limit) == (7.0, 8.0, 6)
    assert problem.words(problem.decode().structure) == ["the", "house"]
    assert not PhraseModel(model.table, lm, WEIGHTS, unknown=None).options(["neu"])
    with pytest.raises(InvalidInput, match=r"lack 'LexFE' \(score 2 of the phrase table\), 'LM'"):
        PhraseModel(model.table, lm, {k: v for k, v in WEIGHTS.items() if k not in ("LexFE", "LM")})
    path.write_text("a ||| b ||| 1 1\n")
    with pytest.raises(InvalidInput, match="'Score1'"):
        PhraseModel.read(path, lm, WEIGHTS)
