"""The process of the target "guided": one reader under atheris, which must be there before certus is imported."""

import importlib
import io
import sys
import tempfile
from contextlib import redirect_stderr
from pathlib import Path

# Readers, not kernels, which numba could not compile once they are instrumented.
MODULES = [
    "certus.io",
    "certus.schema",
    "certus.serialize",
    "certus.hypergraph.formats",
    "certus.constituency.head_rules",
    "certus.constituency.rule_text",
    "certus.text",
    "certus.features.brown",
    "certus.translation.forest",
]


def main(name: str, arguments: list[str]) -> None:
    """Hand a reader to atheris, which ends the process."""
    import atheris

    with atheris.instrument_imports(include=MODULES):
        for module in MODULES:
            importlib.import_module(module)
        from tests.fuzz.files import READERS, verdict
    reader = next(r for r in READERS if r.name == name)
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / f"file{reader.suffix}"

    def one(data: bytes) -> None:
        path.write_bytes(data)
        with redirect_stderr(io.StringIO()):
            verdict(reader, path)

    for data in reader.seeds():  # kernels are loaded, or compiled, before time is counted
        one(data)
    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
