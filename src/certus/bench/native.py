"""The same loops in C++, built on the spot with g++ where there is one."""

import ctypes
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

FLAGS = ("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC")


@lru_cache
def build(name: str) -> Any:
    """The library of one C++ file; None without g++."""
    if shutil.which("g++") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / f"{name}.so"
        source = Path(__file__).parent / "cpp" / f"{name}.cpp"
        subprocess.run(["g++", *FLAGS, str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def pointer(array: Any) -> ctypes.c_void_p:
    """The address of an array's first number."""
    return ctypes.c_void_p(array.ctypes.data)
