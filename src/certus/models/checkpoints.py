"""Files from which an interrupted training goes on."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certus.errors import FormatError
from certus.models.files import Arrays, Stored, load_model, save_model
from certus.schema import Field

VERSION = 6


@dataclass(frozen=True)
class Checkpoint:
    """Where a training keeps how far it has come; ``fingerprint`` tells apart trainings with different outcomes."""

    path: str | os.PathLike[str]
    kind: str
    fingerprint: str

    def save(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        """Write the state of the training, all of it or nothing."""
        save_model(self.path, self.kind, VERSION, {"fingerprint": self.fingerprint, **config}, arrays)

    def load(self) -> tuple[Field, Stored] | None:
        """The state of the training, None if there is no file yet; FormatError for the file of another training."""
        if not Path(self.path).exists():
            return None
        config, stored = load_model(self.path, self.kind, VERSION)
        if config.object().get("fingerprint") != self.fingerprint:
            raise FormatError(
                self.path,
                None,
                "a checkpoint of other training data or settings; give the same, or train without resuming.",
            )
        return config, stored
