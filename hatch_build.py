"""A wheel with compiled kernels: made when CERTUS_WHEEL names the folder that ``python -m certus.shipping`` filled.

Without it the wheel is pure Python, and kernels are compiled where they are used.
"""

import json
import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLATFORMS = {"linux": "manylinux_2_17_{}", "darwin": "macosx_11_0_{}"}  # as for numba, which the kernels need anyway


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Puts compiled kernels into the wheel, and says in its tag which Python and platform they are for."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        folder = os.environ.get("CERTUS_WHEEL")
        if not folder or self.target_name != "wheel" or version == "editable":
            return
        with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as stream:
            machine = json.load(stream)["machine"]
        processor = machine["triple"].partition("-")[0]
        python = "cp" + machine["python"].partition(" ")[2].replace(".", "")
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{PLATFORMS[sys.platform].format(processor)}"
        build_data["force_include"][folder] = "certus/kernels/compiled"
