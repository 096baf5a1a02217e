"""What the list of runs says about each run: made once, and stored in the user's cache folder.

To score a run takes a second, a list of thirty would take half a minute. A stored summary counts only as long as the
files of its run are as long as they were: a journal only grows. The cache may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple

import msgspec

from unmask import __version__
from unmask.errors import UnmaskError
from unmask.files import open_plain_file, read_bytes, refuse_linked_folder, user_cache_folder
from unmask.records import Preset, Record, Verdict
from unmask.render.notes import Note, collect_notes
from unmask.scoring.score import SCORING_VERSION
from unmask.stats.rate import Rate
from unmask.viewer.catalogue import RunEntry

MOST_IN_MEMORY = 2_000
"""Summaries, of about 2 kB each."""
LONGEST_LINE = 1 << 20
"""Bytes at the end of a journal that are searched for its last line."""


class RunSummary(Record, frozen=True, kw_only=True):
    """One run under one judge and preset. `stamp` names what it was made from."""

    stamp: str
    judge: str
    """As somebody would type it."""
    preset: str
    is_done: bool
    """Whether nothing is left to ask or to read. If not, and if it is not running, it was stopped."""
    scenarios: int
    unjudged: int
    p_lie: Rate
    engagement: Rate
    cost_usd: float | None
    last_answer: float | None
    """Seconds since the epoch; `None` where the journal does not say."""
    warnings: tuple[Note, ...]
    """The serious notes of the report."""


class Recalled(Record, frozen=True):
    """A summary that was made before, and whether the files of the run are still as they were then."""

    summary: RunSummary
    is_current: bool


class _Failure(NamedTuple):
    """Why a run in this state cannot be summarised."""

    stamp: str
    text: str
    advice: str | None


_memory: OrderedDict[str, RunSummary | _Failure] = OrderedDict()
_waiting: dict[Path, RunEntry] = {}
_workers: list[Thread] = []
_guard = Lock()
"""Held to change one of the three above, never while a file is read."""
_scoring = Lock()
"""Held to score a run: one at a time, so that the first row is there early and pages that need no score do not wait."""


def summarise(entry: RunEntry, judge: str | None = None, preset: Preset | str | None = None) -> RunSummary:
    """The summary of the run as its files are now; the run is scored where no stored summary fits."""
    recalled = recall(entry, judge, preset)
    if recalled is not None and recalled.is_current:
        return recalled.summary
    with _scoring:
        recalled = recall(entry, judge, preset)  # another thread may have made it while this one waited
        if recalled is not None and recalled.is_current:
            return recalled.summary
        name, stamp = _name_summary(entry, judge, preset), stamp_files(entry.path)
        try:
            summary = _make_summary(entry, judge, preset, stamp)
        except UnmaskError as error:
            _keep_in_memory(name, _Failure(stamp, str(error), error.advice))
            raise
        _write_summary(name, summary)
        return summary


def recall(entry: RunEntry, judge: str | None = None, preset: Preset | str | None = None) -> Recalled | None:
    """The summary that was made last, without scoring anything; `None` where there is none. A run that could not be
    scored and has not changed is the same error again."""
    summary = _look_up(_name_summary(entry, judge, preset))
    if summary is None:
        return None
    is_current = summary.stamp == stamp_files(entry.path)
    if isinstance(summary, _Failure):
        if is_current:
            raise UnmaskError(summary.text, advice=summary.advice)
        return None
    return Recalled(summary, is_current)


def summarise_later(entries: Iterable[RunEntry]) -> None:
    """Make the summaries of these runs in the background, in this order."""
    with _guard:
        _waiting.clear()
        _waiting.update((entry.path, entry) for entry in entries)
        if _waiting and not _workers:
            _workers.append(Thread(target=_work_off, name="summaries", daemon=True))
            _workers[0].start()


def summary_folder() -> Path:
    """`summaries` in `$UNMASK_CACHE`, or in the platform's cache folder for unmask."""
    return user_cache_folder() / "summaries"


def stamp_files(path: Path) -> str:
    """Names the state of a run: run.json, which has its id, the length of every other file that makes a score, and the
    time of the scenarios, which nothing is ever added to."""
    try:
        definition = read_bytes(path / "run.json")
        readings = sorted(refuse_linked_folder(path / "readings").glob("*.jsonl"))
        files = [path / "scenarios.jsonl", path / "replies.jsonl", *readings]
        sizes = [f"{file.name} {file.stat().st_size if file.exists() else -1}" for file in files]
        sizes.append(str(files[0].stat().st_mtime_ns if files[0].exists() else -1))
    except OSError as error:
        raise _gone_error(path, error) from error
    return _hash_bytes(str(SCORING_VERSION).encode(), __version__.encode(), definition, "\n".join(sizes).encode())


# --- inside


def _hash_bytes(*parts: bytes) -> str:
    """`records.digest` remembers its texts, which here are long."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()


def _gone_error(path: Path, error: OSError) -> UnmaskError:
    return UnmaskError(
        f"{path.name} cannot be read: {error.strerror or error}", advice="It may be renamed, deleted or not yours."
    )


def _work_off() -> None:
    while True:
        with _guard:
            if not _waiting:
                _workers.clear()
                return
            entry = _waiting.pop(next(iter(_waiting)))
        # Whatever is wrong with a run, its own row says so when it is asked for.
        with suppress(Exception):
            summarise(entry)


def _make_summary(entry: RunEntry, judge: str | None, preset: Preset | str | None, stamp: str) -> RunSummary:
    """`stamp` is older than the score: what is written meanwhile makes the summary old."""
    try:
        run = entry.open()
        file = run.judge_file(judge)
        score = run.score(preset=preset, judge=judge)
        # Outcomes are needed for notes that are not serious only.
        notes = collect_notes(run, score, [], judge=file)
        journals = [run.folder.replies.path, *sorted((entry.path / "readings").glob("*.jsonl"))]
        answered = [time for time in map(_last_answer_time, journals) if time is not None]
    except OSError as error:  # deleted, or moved away, while it was read
        raise _gone_error(entry.path, error) from error
    return RunSummary(
        stamp=stamp,
        judge=run.definition.typed_judge(file),
        preset=score.preset,
        is_done=not score.undecided,
        scenarios=score.overall.scenarios,
        unjudged=score.overall.counts[Verdict.UNJUDGED],
        p_lie=score.p_lie,
        engagement=score.overall.engagement,
        cost_usd=score.spent.cost_usd,
        last_answer=max(answered, default=None),
        warnings=tuple(note for note in notes if note.serious),
    )


class _LineTime(msgspec.Struct):
    at: float | None = None


def _last_answer_time(path: Path) -> float | None:
    """When the last whole line of a journal was written, as far as its end says."""
    if not path.exists():
        return None
    with open(path, "rb", opener=open_plain_file) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_LINE))
        lines = file.read().split(b"\n")
    try:
        return msgspec.json.decode(lines[-2], type=_LineTime).at if len(lines) > 1 else None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _name_summary(entry: RunEntry, judge: str | None, preset: Preset | str | None) -> str:
    """One name for a folder, judge and preset: a newer summary takes the place of the old one. The folder is part of
    it because warnings name commands, and these name the folder."""
    return _hash_bytes(os.fsencode(entry.path), (judge or "").encode(), str(preset or "").encode())


def _look_up(name: str) -> RunSummary | _Failure | None:
    """The summary in memory, or on disk. One that cannot be read is none."""
    with _guard:
        if name in _memory:
            _memory.move_to_end(name)
            return _memory[name]
    try:
        summary = msgspec.json.decode(read_bytes(summary_folder() / f"{name}.json"), type=RunSummary)
    except (OSError, UnmaskError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    _keep_in_memory(name, summary)
    return summary


def _keep_in_memory(name: str, summary: RunSummary | _Failure) -> None:
    with _guard:
        _memory[name] = summary
        _memory.move_to_end(name)
        while len(_memory) > MOST_IN_MEMORY:
            _memory.popitem(last=False)


def _write_summary(name: str, summary: RunSummary) -> None:
    """Where nothing can be written it is in memory only. The new file has a name of its own until it is complete: two
    viewers may write the same summary at the same time."""
    _keep_in_memory(name, summary)
    with suppress(OSError):
        folder = summary_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, new_file = tempfile.mkstemp(dir=folder, prefix=f"{name}.", suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(summary))
            os.replace(new_file, folder / f"{name}.json")
        except BaseException:
            with suppress(OSError):
                os.unlink(new_file)
            raise
