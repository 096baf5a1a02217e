"""The OpenMP runtime that llama.cpp needs, for systems that have none.

xllamacpp's wheel asks for `libgomp.so.1` and does not bring it, and a minimal Debian has no package with it installed.
Other wheels bundle that library. The extra `embedded` installs the smallest of them, pykdtree (0.5 MB), for this file
alone: nothing else of pykdtree is used.
"""

from __future__ import annotations

import ctypes
import os
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

WHEEL = "pykdtree"
NAME = b"libgomp.so.1"


def load_bundled_openmp() -> bool:
    """Load the runtime of the wheel under its usual name. False where the wheel, or the library in it, is missing."""
    try:
        listed = files(WHEEL) or []
    except PackageNotFoundError:
        return False
    path = next((Path(str(file.locate())) for file in listed if file.name.startswith("libgomp")), None)
    if path is None:
        return False
    content = path.read_bytes()
    # The wheel's tool gave the library a name of its own, such as libgomp-870cb1d0.so.1.0.0, and wrote that into the
    # file. The loader compares it with the name that llama.cpp asks for, so a copy gets the usual name back.
    bundled_name = path.name.encode() + b"\0"
    if content.count(bundled_name) != 1:
        return False
    content = content.replace(bundled_name, NAME.ljust(len(bundled_name), b"\0"))
    try:
        # A file in memory: a disk may be full, and some systems let nothing be run from /tmp.
        with open(os.memfd_create("libgomp"), "wb") as copy:
            copy.write(content)
            copy.flush()
            ctypes.CDLL(f"/proc/self/fd/{copy.fileno()}", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True
