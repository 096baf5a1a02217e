"""Whether a study was written down before it was run: the first commit that has its design, against its runs."""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from unmask.errors import MissingError
from unmask.experiments.study_design import StudyDesign


class FirstCommit(NamedTuple):
    """The commit in which a file first had a design."""

    commit: str
    time: datetime
    """In UTC."""


def hash_design(design: StudyDesign) -> str:
    """Names a design. `left_out` and `changed` may come later, and are no part of it."""
    unchanged = msgspec.structs.replace(design, left_out=(), changed=())
    return hashlib.blake2b(msgspec.json.encode(unchanged, order="sorted"), digest_size=8).hexdigest()


def find_first_commit(file: Path, design_hash: str) -> FirstCommit | None:
    """The oldest commit of a study's file in which it has this design; `None` where no commit has it. The file may have
    had another name then."""
    for commit, seconds, path in reversed(list(_list_commits(file))):
        text = _ask_git(file.parent, "show", f"{commit}:{path}")
        if text is not None and _hash_text(text) == design_hash:
            return FirstCommit(commit, datetime.fromtimestamp(seconds, UTC))
    return None


def list_late_arms(file: Path, results: Mapping[str, Any]) -> list[str]:
    """What speaks against a study having been written down first: no commit with its design, or arms that began before
    the commit or at the same second. Empty where nothing does. `results` is the content of `results.json`."""
    first = find_first_commit(file, results["design_hash"])
    if first is None:
        return [f"no commit of {file.name} has the design {results['design_hash']}"]
    begun = {name: arm["created"] for name, arm in results["arms"].items() if arm["created"] is not None}
    if not begun:
        return ["no arm has been run"]
    return [
        f"{name} began at {created}, and the design was committed at {first.time.isoformat()}"
        for name, created in begun.items()
        if _parse_time(created) <= first.time
    ]


def _parse_time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _list_commits(file: Path) -> Iterator[tuple[str, int, str]]:
    """Commit, time and path of the file in it, the newest first."""
    listing = _ask_git(
        file.parent, "log", "--follow", "--name-only", "--diff-filter=AMRC", "-z", "--format=%H %ct", "--", file.name
    )
    if listing is None:
        raise MissingError(f"{file} is in no git repository that has commits", advice="Commit the study first.")
    commit = seconds = None
    for part in filter(None, (piece.strip("\n") for piece in listing.replace("\n", "\0").split("\0"))):
        words = part.split(" ")
        if len(words) == 2 and len(words[0]) >= 40 and words[1].isdigit():
            commit, seconds = words[0], int(words[1])
        elif commit is not None and seconds is not None:
            yield commit, seconds, part


def _hash_text(text: str) -> str | None:
    try:
        return hash_design(msgspec.convert(tomllib.loads(text), StudyDesign))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError):
        return None


def _ask_git(folder: Path, *words: str) -> str | None:
    """What git says; `None` where it fails."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
