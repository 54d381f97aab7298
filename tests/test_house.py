"""The numbers of the house: what they count, and what must stay as it is."""

import re
from pathlib import Path

import pytest

from tests.house import ROOT, House, main
from tests.layers_picture import PICTURE, picture


@pytest.fixture(scope="module")
def house():
    return House(ROOT)


def test_no_function_takes_many_arguments_by_place(house):
    assert not house.wide()


def test_packages_form_no_cycle(house):
    assert not house.cycle()


def test_files_that_a_new_thing_touches_exist(house):
    touched = house.touched()
    assert {"step rule", "kind of part", "learner", "kind of problem", "command"} <= touched.keys()
    for name, files in touched.items():
        for path in re.findall(r"`([\w/]+\.py)`", files):
            assert path.startswith(("cli/NAME", "bench/suites/NAME")) or (house.source / path).exists(), (name, path)


def test_what_is_counted(tmp_path, capsys):
    source = tmp_path / "src" / "certus"
    (source / "upper").mkdir(parents=True)
    (source / "lower").mkdir()
    many = ", ".join("abcdefghi")
    body = "    x = 1\n" * 60
    (source / "upper" / "a.py").write_text(f"from certus.lower import b\ndef f({many}):\n{body}")
    (source / "lower" / "b.py").write_text("def g(self, *, k):\n    from certus.upper import a\n    return a\n")
    (tmp_path / "CONTRIBUTING.md").write_text(
        "## What a new ... touches\n\n| new | files |\n| rule | 2: `upper/a.py` |\n"
    )
    house = House(Path(tmp_path))
    assert house.lines() == {"upper": 62, "lower": 3}
    assert house.long() == [("upper/a.py:2 f", 61)]
    assert house.wide() == [("upper/a.py:2 f", 9)]
    assert house.inside() == 1
    assert set(house.cycle()) == {"upper", "lower"}
    main([str(tmp_path)])
    assert "files of a new rule" in capsys.readouterr().out


def test_the_picture_of_the_layers_is_that_of_the_sources():
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run python -m tests.layers_picture"
