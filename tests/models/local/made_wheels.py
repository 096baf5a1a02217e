"""Small wheels, and an entry whose file lies in them."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from unmask.models.local.catalogue import CatalogueEntry

PARTS = (b"GGUF" + bytes(range(256)) * 40, b"\x01\x02" * 5000 + b"the end")
"""Two: pip is started for each of them."""
WHOLE = b"".join(PARTS)


def entry(*, hub: bool = False, whole: bytes = WHOLE) -> CatalogueEntry:
    return CatalogueEntry(
        name="made",
        file="made.gguf",
        about="",
        licence="CC0-1.0",
        origin="",
        size=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
        wheels=tuple((f"unmask-made-part{number}==1.0", f"unmask_made_part{number}/data.bin") for number in (1, 2)),
        hub="made/model" if hub else None,
    )


def write_wheel(folder: Path, number: int, data: bytes, *, module: str = "", member: str = "data.bin") -> Path:
    """A wheel as pip wants it, with `data` where the entry says and `module` as the code next to it."""
    package, info = f"unmask_made_part{number}", f"unmask_made_part{number}-1.0.dist-info"
    path = folder / f"{package}-1.0-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(f"{package}/__init__.py", module)
        wheel.writestr(f"{package}/{member}", data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: unmask-made-part{number}\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: made\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path
