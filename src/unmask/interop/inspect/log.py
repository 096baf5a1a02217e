"""Logs of Inspect, read by Inspect itself (extra `inspect`). Whatever is wrong with a file ends here, as an error.

Inspect trusts the archives that it reads. An import takes one from anybody, so it hands Inspect a copy in which every
member was unpacked to the size that the index names and no further, after these sizes were found to be reasonable.
"""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from unmask.errors import DataError, MissingError, UnmaskError
from unmask.models.inspect import convert_choice
from unmask.records import Choice

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ModelOutput

LARGEST = 128 * 2**20
"""Bytes of one member once unpacked, and of a log in one JSON file. A sample of this benchmark has some 100 kB."""
MOST = 2 * 2**30
"""Bytes of all members that are read, once unpacked."""
RATIO = 100
"""How many times its own size a log may unpack to, beyond `LARGEST`. Transcripts shrink to a tenth, rarely to a
thirtieth."""
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, 93}
"""What Inspect writes; 93 is Zstandard. Others are refused: one reserves as much memory as a file asks for."""
_PIECE = 4096
"""Bytes unpacked at a time: a member that is larger than it claims is not unpacked further than that."""


def read_log(path: Path) -> EvalLog:
    """The whole log, `.eval` or `.json`, with its attachments put where they belong."""
    try:
        from inspect_ai.log import read_eval_log, resolve_sample_attachments
    except ImportError:
        raise MissingError(
            "reading a log of Inspect needs inspect_ai", advice="pip install 'unmask[inspect]'"
        ) from None
    try:
        with _open_copy(path) as file:
            log = read_eval_log(file, format="json" if path.suffix.lower() == ".json" else "eval")
        log.samples = [resolve_sample_attachments(sample, "full") for sample in log.samples or []]
    except UnmaskError:
        raise
    except OSError as error:
        raise MissingError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # a stranger's file, and a reader that raises whatever it stumbles over
        raise DataError(
            f"{path} is not a log that Inspect can read: {_shorten(error)}",
            advice="Copy the log again from where it was written.",
        ) from None
    return log


def _shorten(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _open_copy(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".json":
        _limit(path, path.stat().st_size <= LARGEST, f"it has more than {LARGEST} bytes")
        return path.open("rb")
    copy = tempfile.TemporaryFile()  # noqa: SIM115  it is closed by whoever reads it
    try:
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(copy, "w") as plain:
            members = {info.filename: info for info in archive.infolist() if _is_read(info.filename)}
            _check_sizes(path, members.values())
            for name, info in members.items():
                with archive.open(info) as packed, plain.open(name, "w") as unpacked:
                    while piece := packed.read(_PIECE):
                        unpacked.write(piece)
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return copy


def _is_read(name: str) -> bool:
    """The header, its first version in a log that was never finished, and the samples."""
    return name in {"header.json", "_journal/start.json"} or (name.startswith("samples/") and name.endswith(".json"))


def _check_sizes(path: Path, members: Iterable[zipfile.ZipInfo]) -> None:
    limit, unpacked = min(MOST, LARGEST + RATIO * path.stat().st_size), 0
    for info in members:
        name = info.filename
        _limit(path, info.compress_type in _METHODS, f"{name} is compressed in a way that logs are not")
        _limit(path, info.file_size <= LARGEST, f"{name} would unpack to {info.file_size} bytes")
        unpacked += info.file_size
    _limit(path, unpacked <= limit, f"it would unpack to more than {limit} bytes")


def _limit(path: Path, kept: bool, why: str) -> None:
    if not kept:
        raise DataError(f"{path} is not a log that can be read: {why}")


def list_model_calls(sample: EvalSample) -> Iterator[tuple[str, ModelEvent]]:
    """Every finished model call, with the text of its last user message."""
    for event in sample.events:
        if event.event == "model" and not event.pending:
            asked = next((turn.text for turn in reversed(event.input) if turn.role == "user"), "")
            yield asked, event


def first_choice(output: ModelOutput) -> Choice | None:
    return convert_choice(output.choices[0]) if output.choices else None
