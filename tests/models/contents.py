"""What a model file holds, unchecked, so that tests can damage it."""

import json
from typing import Any

from safetensors import safe_open


def contents(path: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The config and the arrays."""
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["certus"])["config"], arrays
