"""certus calibrate: make the confidences of a parser mean what they say."""

from pathlib import Path
from typing import Annotated

from certus.cli.arguments import Argument, Option
from certus.cli.messages import print_json
from certus.cli.options import JsonObject, ParserModel
from certus.cli.overwriting import refuse_overwriting
from certus.cli.progress import watched
from certus.evaluate import Calibration, calibration_error
from certus.evaluate.calibration import arcs_right
from certus.io.conllu import read_conllu
from certus.models.pipeline import load


def calibrate(
    dev: Annotated[Path, Argument(help="Gold trees that the parser was not trained on, in CoNLL-U")],
    output: Annotated[Path, Option(help="Where the calibration goes, for certus parse --calibration")],
    model: ParserModel = "en",
    test: Annotated[Path | None, Option(help="Other gold trees, to measure what it gains")] = None,
    json: JsonObject = False,
) -> None:
    """Calibrate confidences: learn from gold trees how often arcs of each confidence are right.

    Prints the expected calibration error before and after, on the trees of --test where there are any.
    """
    refuse_overwriting(output, dev, test)
    pipeline = load(model)

    def measured(path: Path) -> tuple[list[float], list[bool]]:
        gold = list(read_conllu(path))
        parsed = pipeline.parse(gold, confidences=True)
        return arcs_right(gold, watched(parsed, "parsing"))

    shares, right = measured(dev)
    fitted = Calibration.fit(shares, right)
    fitted.save(output)
    if test is not None:
        shares, right = measured(test)
    before, after = calibration_error(shares, right), calibration_error(fitted(shares), right)
    if json:
        print_json({"words": len(shares), "before": before, "after": after})
    else:
        print(f"expected calibration error of {len(shares)} arcs: {before:.4f} before, {after:.4f} after")
