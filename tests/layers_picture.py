"""The picture of the layers in docs/design.md, drawn from what tests/test_layers.py holds.

python -m tests.layers_picture writes docs/images/layers.svg; a test fails while the file is another.
"""

from pathlib import Path

from tests.house import ROOT
from tests.test_layers import LAYERS, modules

PICTURE = ROOT / "docs" / "images" / "layers.svg"
# A row each: what stands to the right of it. The package itself, which offers what is below, is no row.
NOTES = {
    "cli": "commands; suites of certus bench",
    "report": "plots, pages, films of proofs",
    "models": "trained taggers and parsers, pipelines",
    "learn": "learners, templates, scores of output",
    "torch": "structures over tensors",
    "tagging": "problems: scores that answer questions",
    "problem": "the contract; what solves and proves",
    "io": "files to plain data and back",
    "text": "sentences and trees; SVG from plain data",
    "errors": "the ground floor",
    "kernels": "compiled loops over arrays",
}
LEFT, WIDE, RIGHT = 66, 400, 482
STYLE = """\
  <style>
    text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 12.5px; }
    .name { font-size: 13.5px; font-weight: 600; }
    .code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px; }
    .bg { fill: #fbfbf9; }
    .box { fill: #ffffff; stroke: #78878c; }
    .hot { fill: #dff1ee; stroke: #00796b; }
    .frame { fill: #f1f3f1; stroke: #78878c; }
    .line { fill: none; stroke: #5a6a70; stroke-width: 1.5; }
    .tip { fill: #5a6a70; }
    .name { fill: #1d282c; }
    .note { fill: #47565c; }
    .code { fill: #00574d; }
    @media (prefers-color-scheme: dark) {
      .bg { fill: #1b2226; }
      .box { fill: #263036; stroke: #7d8d93; }
      .hot { fill: #12403b; stroke: #4db6ac; }
      .frame { fill: #20292e; stroke: #7d8d93; }
      .line { fill: none; stroke: #a3b1b6; stroke-width: 1.5; }
      .tip { fill: #a3b1b6; }
      .name { fill: #eef2f2; }
      .note { fill: #c0cbcf; }
      .code { fill: #8fd6cd; }
    }
  </style>
"""


def rows() -> list[tuple[list[str], str]]:
    """Names and note of each layer that has any modules, the best known one first."""
    there = {name.split(".")[0] for name in modules()} - {"certus", "__main__"}
    found = []
    for layer in LAYERS:
        names = layer & there
        if names:
            (first,) = names & NOTES.keys()
            found.append(([first, *sorted(names - {first})], NOTES[first]))
    return found


def picture() -> str:
    """The file, whole."""
    drawn, y = [], 20
    for names, note in rows():
        boxes, x, top = [], LEFT + 10, y + 8
        for name in names:
            width = round(7.2 * len(name) + 14.4)
            if x + width > LEFT + WIDE - 10:
                x, top = LEFT + 10, top + 28
            boxes.append(f'  <rect class="box" x="{x}" y="{top}" width="{width}" height="22" rx="5"/>')
            boxes.append(f'  <text class="code" x="{x + 7}" y="{top + 15}">{name}</text>')
            x += width + 8
        high = top + 30 - y
        drawn += ["", f"  <!-- {note} -->"]
        drawn.append(f'  <rect class="frame" x="{LEFT}" y="{y}" width="{WIDE}" height="{high}" rx="5"/>')
        drawn += [*boxes, f'  <text class="note" x="{RIGHT}" y="{y + high / 2 + 4.5}">{note}</text>']
        y += high + 10
    said = "; ".join(", ".join(names) for names, _ in rows())
    end = y - 10
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{end + 36}" viewBox="0 0 760 {end + 36}" '
        'role="img" aria-labelledby="title desc">',
        '  <title id="title">The layers of certus</title>',
        f'  <desc id="desc">{len(rows())} layers, one above the other. From the top: {said}. Imports point down '
        "only.</desc>",
        STYLE.rstrip("\n"),
        f'  <rect class="bg" width="760" height="{end + 36}" rx="8"/>',
    ]
    foot = [
        "",
        "  <!-- imports -->",
        f'  <path class="line" d="M40 20V{end - 7}"/>',
        f'  <path class="tip" d="M40 {end}l-4.5 -8h9z"/>',
        f'  <text class="note" x="0" y="0" text-anchor="middle" transform="translate(28 {end // 2}) rotate(-90)">'
        "imports point down, never up</text>",
        f'  <text class="note" x="{LEFT}" y="{end + 22}">verify rechecks proofs in plain Python: nothing that it '
        "runs is a kernel.</text>",
        "</svg>",
    ]
    return "\n".join([*head, *drawn, *foot]) + "\n"


def main(path: Path = PICTURE) -> None:
    path.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
