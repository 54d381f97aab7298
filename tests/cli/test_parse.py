"""certus parse."""

import pytest

from certus.models.files import save_model
from certus.models.parser import KIND, VERSION
from certus.models.pipeline import BUNDLED
from tests.models.contents import contents


def test_options_of_another_command_are_refused(certus):
    assert "No such option: --grammar" in certus("parse", "--grammar", "g", "a dog").complaint
    assert "No such option: --workers" in certus("constituents", "--workers", "2", "a dog").complaint


@pytest.mark.compiled  # a large model
def test_a_hostile_model_is_refused_and_does_not_crash(certus, tmp_path):
    path = tmp_path / "parser.safetensors"
    (tmp_path / "tagger.safetensors").write_bytes((BUNDLED / "en" / "tagger.safetensors").read_bytes())
    whole, arrays = contents(BUNDLED / "en" / "parser.safetensors")
    for change, message in (
        ({"labels": []}, "labels is a list of 0; expected 1 or more items"),
        (
            {"settings": whole["settings"] | {"max_heads": 0}},
            "settings: max_heads is 0; expected a whole number 1..1000000",
        ),
        ({"settings": whole["settings"] | {"max_heads": -2}}, "settings: max_heads is -2"),
        (
            {"settings": whole["settings"] | {"second_width": -3.0}},
            "second_width is -3.0; expected a finite number 0..inf",
        ),
        ({"templates": "0" * 32}, "the model was trained with others"),
    ):
        save_model(path, KIND, VERSION, whole | change, arrays)
        assert message in certus("parse", "--model", tmp_path, "Dogs bark.").complaint
