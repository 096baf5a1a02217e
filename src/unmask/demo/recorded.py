"""A recorded run: a run folder as one file of the package, and back. `unmask demo --recorded` opens it."""

from __future__ import annotations

import io
import zipfile
from importlib.resources import files
from pathlib import Path

from unmask.errors import MixedRunError
from unmask.files import write_atomically
from unmask.runs.run import Run, open_run

FILE = "recorded.zip"
_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file in the archive, so that the same run always gives the same bytes."""


def pack_run(folder: str | Path) -> bytes:
    """The run folder as a zip file: definition, scenarios, replies and readings, and nothing else that lies there."""
    run = open_run(folder)
    judges = [run.folder.readings_path(judge) for judge in sorted(run.definition.judges)]
    names = ("run.json", "scenarios.jsonl", "replies.jsonl")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in (*(run.path / name for name in names), *(path for path in judges if path.is_file())):
            member = zipfile.ZipInfo(path.relative_to(run.path).as_posix(), _TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, path.read_bytes(), compresslevel=9)
    return packed.getvalue()


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
