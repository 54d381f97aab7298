"""certus cluster."""


def test_words_are_clustered_and_the_file_is_readable(certus, tmp_path):
    from certus.features.brown import Clusters

    text, output = tmp_path / "text.txt", tmp_path / "paths"
    text.write_text("and the dog ran and the cat slept\nand the dog slept and the cat ran\n\n")
    ran = certus("cluster", text, "--output", output, "--clusters", "3")
    assert (ran.code, ran.out) == (0, "")
    assert "6 words in 3 clusters" in ran.err
    assert len(Clusters.load(output)) == 3


def test_a_text_without_words_is_refused(certus, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n")
    ran = certus("cluster", tmp_path / "text.txt", "--output", tmp_path / "paths")
    assert "no word to cluster" in ran.complaint
    assert not (tmp_path / "paths").exists()
