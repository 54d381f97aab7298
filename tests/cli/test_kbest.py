"""certus parse --kbest and certus translate --kbest."""

import json

import pytest

from tests.cli.test_translate import files, options  # noqa: F401 (a fixture)

SENTENCE = "Put the book on the table in the room"  # in the room, or the table that is in it


@pytest.mark.compiled  # a large model
def test_the_best_trees_are_printed_in_order(certus):
    run = certus("parse", "--kbest", "3", "--certificates", SENTENCE)
    ranks = [line for line in run.out.splitlines() if line.startswith("# rank")]
    assert ranks == [f"# rank = {k}" for k in range(1, len(ranks) + 1)]
    assert len(ranks) > 1
    scores = [float(line.split(" = ")[1]) for line in run.out.splitlines() if line.startswith("# score")]
    assert scores == sorted(scores, reverse=True)
    assert run.out.count("exact") == len(ranks)
    listed = [json.loads(line) for line in certus("parse", "--kbest", "3", "--json", SENTENCE).out.splitlines()]
    assert [tree["score"] for tree in listed] == scores
    assert [tree["rank"] for tree in listed] == list(range(1, len(ranks) + 1))
    plain = certus("parse", "--kbest", "1", SENTENCE).out
    assert plain.splitlines()[2:] == certus("parse", SENTENCE).out.splitlines()
    assert "leave them out, or --kbest" in certus("parse", "--kbest", "2", "--confidences", "a dog").complaint


def test_the_best_translations_in_the_format_of_moses(certus, files):  # noqa: F811
    given = options(files)
    best = certus("translate", *given, "le chien aboie").out.strip()
    lines = certus("translate", *given, "--kbest", "3", "le chien aboie").out.splitlines()
    fields = [line.split(" ||| ") for line in lines]
    assert fields[0][:2] == ["0", best]
    totals = [float(total) for _, _, _, total in fields]
    assert totals == sorted(totals, reverse=True)
    assert len(totals) == 3
    for _, _, features, total in fields:
        _, lm, _, rules = features.split()
        assert float(lm) + float(rules) == pytest.approx(float(total), abs=1e-6)
    shown = json.loads(certus("translate", *given, "--kbest", "3", "--json", "le chien aboie").out)
    assert [t["score"] for t in shown["translations"]] == pytest.approx(totals, abs=1e-6)
    assert all(t["exact"] for t in shown["translations"])
    assert "--kbest is exact" in certus("translate", *given, "--kbest", "3", "--method", "cube", "le chien").complaint
