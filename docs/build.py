"""Build the site: python docs/build.py [--execute].

Pages are copied into .cache/pages on the way: formulas between dollars become MathML there, so that no page needs the
network or a script, and the tutorials, which are plain Python files with cells (``# %%``), become pages and notebooks.
With ``--execute`` a Jupyter kernel runs the cells, and the pages show what they print and draw (the extra
``certus[notebooks]``; a tutorial that fails ends the build). Without it the pages show the cells alone, and say so.

Zensical, which reads mkdocs.yml, does the rest into .cache/site.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

ROOT = Path(__file__).resolve().parent.parent
DOCS, PAGES, SITE = ROOT / "docs", ROOT / ".cache" / "pages", ROOT / ".cache" / "site"
CODE = re.compile(r"(^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)\s*$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|(?<![\w$])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\w$])", re.DOTALL)
NOTE = "*The cells of this page were not run when it was built: `make site` runs them, and shows what they draw.*"


def with_formulas(text: str) -> str:
    """A page with its formulas as MathML; code is left alone."""
    parts = CODE.split(text)  # plain, code, fence, plain, ...
    out = []
    for k in range(0, len(parts), 3):
        out.append(FORMULA.sub(_mathml, parts[k]))
        out.append(parts[k + 1] if k + 1 < len(parts) else "")
    return "".join(out)


def _mathml(found: re.Match[str]) -> str:
    block = found["block"]
    made = convert((block or found["inline"]).strip(), display="block" if block else "inline")
    return made if block else f"<span>{made}</span>"  # a line that begins with <math> would be a paragraph of its own


# -- tutorials ---------------------------------------------------------------------------------------------------------


def cells(source: str) -> list[dict[str, Any]]:
    """The cells of a Python file: ``# %% [markdown]`` begins one of text, in comments, ``# %%`` one of code."""
    out: list[dict[str, Any]] = []
    for part in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        kind, _, body = part.partition("\n")
        if kind.strip() == "[markdown]":
            text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in body.strip("\n").split("\n"))
            out.append({"cell_type": "markdown", "metadata": {}, "source": text})
        else:
            code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
            out.append(code | {"source": body.strip("\n")})
    return out


def notebook(source: str) -> dict[str, Any]:
    """The notebook of a Python file with cells, not executed."""
    made = [cell | {"id": f"cell-{k}"} for k, cell in enumerate(cells(source))]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": made, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def executed(made: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The notebook with what its cells print and draw; an error in a cell is an error here."""
    import nbformat
    from nbclient import NotebookClient

    given = nbformat.from_dict(made)
    NotebookClient(given, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return dict(given)


def page(made: dict[str, Any], name: str, *, ran: bool) -> str:
    """A notebook as Markdown, outputs as HTML."""
    out = [] if ran else [NOTE]
    for cell in made["cells"]:
        if cell["cell_type"] == "markdown":
            out.append(cell["source"])
        else:
            out.append(f"```python\n{cell['source']}\n```")
            out += [html for output in cell["outputs"] if (html := _shown(output))]
    first, *rest = out if ran else (out[1], out[0], *out[2:])
    link = f"[This page as a notebook]({name}.ipynb)"
    return "\n\n".join([first, link, *rest]) + "\n"


def _shown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        text = "" if output["name"] == "stderr" else output["text"]
        return f'<pre class="output">{escape(text.rstrip())}</pre>' if text.strip() else ""
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            lines = "".join(data[kind]).splitlines()
            return f'<div class="output">{" ".join(line for line in lines if line.strip())}</div>'
    text = "".join(data.get("text/plain", ""))
    return f'<pre class="output">{escape(text)}</pre>' if text else ""


# -- the build ---------------------------------------------------------------------------------------------------------


def prepare(execute: bool) -> None:
    """All that the site is made of, in .cache/pages."""
    for folder in (PAGES, SITE):  # and not by zensical --clean, which empties all of .cache
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, PAGES, ignore=shutil.ignore_patterns("*.py", "__pycache__", "*.bib", "tutorials"))
    for path in PAGES.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        path.write_text(with_formulas(text), encoding="utf-8")
    (PAGES / "tutorials").mkdir()
    for path in sorted((DOCS / "tutorials").glob("*.py")):
        made = notebook(path.read_text(encoding="utf-8"))
        if execute:
            print(f"running {path.name}", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory() as folder:
                made = executed(made, Path(folder))
        (PAGES / "tutorials" / f"{path.stem}.ipynb").write_text(json.dumps(made, indent=1), encoding="utf-8")
        text = with_formulas(page(made, path.stem, ran=execute))
        (PAGES / "tutorials" / f"{path.stem}.md").write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the site into .cache/site.")
    parser.add_argument("--execute", action="store_true", help="run the cells of the tutorials")
    prepare(parser.parse_args().execute)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", "mkdocs.yml"]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
