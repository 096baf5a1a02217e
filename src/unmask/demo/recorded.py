"""A recorded run: a run folder as one file of the package. `unmask demo --recorded` opens it."""

from __future__ import annotations

import io
import zipfile
from importlib.resources import files
from pathlib import Path

from unmask.errors import MixedRunError
from unmask.files import write_atomically
from unmask.runs.run import Run, open_run

FILE = "recorded.zip"


def unpack_run(packed: bytes, folder: Path) -> Run:
    """Write the packed run into `folder`. One that lies there already is left as it is; another one is refused."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        definition = archive.read("run.json")
        before = folder / "run.json"
        if not before.is_file():
            # run.json comes last: a folder that has it is complete.
            for name in sorted(archive.namelist(), key=lambda name: name == "run.json"):
                write_atomically(folder / name, archive.read(name))
        elif before.read_bytes() != definition:
            raise MixedRunError(f"{folder} holds another run", advice="Use another --out, or remove that folder.")
    return open_run(folder)


def open_recorded(folder: Path) -> Run:
    """The recorded run that ships with unmask, unpacked into `folder`."""
    return unpack_run(files(__package__).joinpath(FILE).read_bytes(), folder)
