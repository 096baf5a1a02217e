"""Whether a study was written down before it was run: the first commit that has its design, against its runs."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from unmask.errors import MissingError
from unmask.experiments.study_design import StudyDesign, design_hash, hash_prompt
from unmask.runs.options import SHIPPED_PROMPTS


class FirstCommit(NamedTuple):
    """The commit in which a file first had a design."""

    commit: str
    time: datetime
    """In UTC."""


def find_first_commit(file: Path, wanted: str) -> FirstCommit | None:
    """The oldest commit of a study's file in which it has this design; `None` where no commit has it. The file may have
    had another name then."""
    return _find_first(file, lambda content: _hash_design_text(content) == wanted)


def list_late_arms(file: Path, results: Mapping[str, Any]) -> list[str]:
    """What speaks against a study having been written down first: no commit with its design or with the text of one of
    its prompts, or arms that began before the commit or at the same second. Empty where nothing does. `results` is the
    content of `results.json`."""
    firsts = {f"the design {results['design_hash']}": find_first_commit(file, results["design_hash"])}
    for name, recorded in results["prompts"].items():
        if name not in SHIPPED_PROMPTS:
            firsts[f"the prompt {name}"] = _find_first_prompt(file.parent / name, recorded)
    begun = {name: arm["created"] for name, arm in results["arms"].items() if arm["created"] is not None}
    missing = [f"no commit of {file.name} has {what}" for what, first in firsts.items() if first is None]
    if missing or not begun:
        return missing or ["no arm has been run"]
    return [
        f"{name} began at {created}, and {what} was committed at {first.time.isoformat()}"
        for what, first in firsts.items()
        for name, created in begun.items()
        if first is not None and _parse_time(created) <= first.time
    ]


def _find_first_prompt(file: Path, wanted: str) -> FirstCommit | None:
    return _find_first(file, lambda content: hash_prompt(content) == wanted)


def _find_first(file: Path, is_wanted: Callable[[bytes], bool]) -> FirstCommit | None:
    """The oldest commit in which the content of a file is the wanted one."""
    for commit, seconds, path in reversed(list(_list_commits(file))):
        content = _ask_git(file.parent, "show", f"{commit}:{path}")
        if content is not None and is_wanted(content):
            return FirstCommit(commit, datetime.fromtimestamp(seconds, UTC))
    return None


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
    lines = listing.decode("utf-8", "replace").replace("\n", "\0").split("\0")
    for part in filter(None, lines):
        words = part.split(" ")
        if len(words) == 2 and len(words[0]) >= 40 and words[1].isdigit():
            commit, seconds = words[0], int(words[1])
        elif commit is not None and seconds is not None:
            yield commit, seconds, part


def _hash_design_text(content: bytes) -> str | None:
    try:
        return design_hash(msgspec.convert(tomllib.loads(content.decode("utf-8")), StudyDesign))
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError):
        return None


def _ask_git(folder: Path, *words: str) -> bytes | None:
    """What git says; `None` where it fails."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None
