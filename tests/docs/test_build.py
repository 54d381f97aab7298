"""What the pages go through before they are a site: formulas, and tutorials that are notebooks."""

import importlib.util
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("latex2mathml")
ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.py"))
spec = importlib.util.spec_from_file_location("build", ROOT / "docs/build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)


def test_formulas_are_mathml_and_code_is_left_alone():
    text = "a $x \\le 1$ and `$y$`\n\n```sh\necho $z $z\n```\n\n$$ \\sum_i u_i $$\n\n2 $ and 3 $ stay"
    made = build.with_formulas(text)
    assert made.count("<math") == 2
    assert "`$y$`" in made
    assert "echo $z $z" in made
    assert "2 $ and 3 $ stay" in made
    ElementTree.fromstring(made[made.index("<math") : made.index("</math>") + 7])


def test_cells_are_read_and_shown():
    made = build.notebook("# %% [markdown]\n# # Title\n#\n# Text.\n\n# %%\nx = 1\nprint(x)\n")
    assert [cell["cell_type"] for cell in made["cells"]] == ["markdown", "code"]
    assert made["cells"][0]["source"] == "# Title\n\nText."
    bare = build.page(made, "name", ran=False)
    assert bare.startswith("# Title")
    assert "make site" in bare
    made["cells"][1]["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "<b>1\n"},
        {"output_type": "execute_result", "data": {"text/html": "<svg>\n\n</svg>", "text/plain": "x"}},
    ]
    ran = build.page(made, "name", ran=True)
    assert '<pre class="output">&lt;b&gt;1</pre>' in ran
    assert '<div class="output"><svg> </svg></div>' in ran
    assert "make site" not in ran


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda p: p.stem)
def test_tutorials_are_notebooks_of_valid_code(path):
    made = build.notebook(path.read_text(encoding="utf-8"))
    assert made["cells"][0]["source"].startswith("# ")
    for cell in made["cells"]:
        if cell["cell_type"] == "code":
            compile(cell["source"], str(path), "exec")
    json.dumps(made)


def test_there_is_a_tutorial_of_each_kind():
    assert {path.stem for path in TUTORIALS} == {
        "joint_models",
        "scores_from_torch",
        "translation",
        "your_own_problem",
        "your_treebank",
    }
