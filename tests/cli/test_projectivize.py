"""certus projectivize."""

CROSSING = "".join(f"{m}\tw\tw\tX\tX\t_\t{h}\tdep\t_\t_\n" for m, h in ((1, 3), (2, 4), (3, 0), (4, 3))) + "\n"


def test_a_treebank_becomes_projective(certus, tmp_path):
    treebank, output = tmp_path / "in.conllu", tmp_path / "out.conllu"
    treebank.write_text("# sent_id = a\n" + CROSSING + CROSSING.replace("2\tw\tw\tX\tX\t_\t4", "2\tw\tw\tX\tX\t_\t3"))
    ran = certus("projectivize", treebank, output)
    assert (ran.code, ran.out) == (0, "")
    assert "1 of 8 words moved, in 1 of 2 sentences" in ran.err
    first, second, _ = output.read_text().split("\n\n")
    assert first.startswith("# sent_id = a\n")
    assert "\n2\tw\tw\tX\tX\t_\t3\tdep\t_\tCrossingHead=4\n" in first
    assert "CrossingHead" not in second


def test_the_treebank_itself_is_not_written_over_and_must_have_heads(certus, tmp_path):
    treebank = tmp_path / "in.conllu"
    treebank.write_text(CROSSING)
    assert "would replace the input" in certus("projectivize", treebank, treebank).complaint
    treebank.write_text(CROSSING.replace("\t3\tdep", "\t_\tdep"))
    assert "HEAD" in certus("projectivize", treebank, tmp_path / "out").complaint
    assert not (tmp_path / "out").exists()
