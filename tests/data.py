"""Where the corpora are that some tests read. They are not part of the repository; without them those tests skip."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared_data(*parts: str) -> Path:
    """The file or folder under the data folder: $CERTUS_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("CERTUS_DATA", ROOT.parent / "shared" / "data"))
    path = folder.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)}; set CERTUS_DATA to the folder that holds it")
    return path
