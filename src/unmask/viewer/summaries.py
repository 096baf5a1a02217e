"""What the list of runs says about each run: made once, and stored in the user's cache folder.

To score a run takes a second, a list of thirty would take half a minute after every start. A stored summary counts as
long as the files of its run are as they were. The folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.errors import UnmaskError
from unmask.files import open_plain_file, read_bytes, user_cache_folder
from unmask.records import Record
from unmask.render.describe.caveats import Caveat, list_run_caveats
from unmask.scoring.score import SCORING_VERSION
from unmask.stats.rate import Rate
from unmask.viewer.cache import CACHE, read_stamp
from unmask.viewer.catalogue import RunEntry

LONGEST_LINE = 1 << 20
"""Bytes at the end of a journal that are searched for its last line."""


class RunSummary(Record, frozen=True, kw_only=True):
    """One run under its own judge and preset. `stamp` names what it was made from."""

    stamp: str
    is_done: bool
    """Whether nothing is left to ask or to read. If not, and if nobody works on it, it was stopped."""
    scenarios: int
    unjudged: int
    p_lie: Rate
    p_honest: Rate
    cost_usd: float | None
    last_answer: float | None
    """Seconds since the epoch; `None` where the journal does not say."""
    warnings: tuple[Caveat, ...]
    """The serious caveats of the report."""


def summarise(entry: RunEntry) -> RunSummary:
    """The summary of the run as its files are now; the run is scored where no stored summary fits."""

    def make() -> RunSummary:
        summary = _read_stored(entry)
        if summary is None:
            summary = _make_summary(entry)
            _store(entry, summary)
        return summary

    return CACHE.get([entry], "summary", make, megabytes=0.002)


def recall(entry: RunEntry) -> RunSummary | None:
    """The stored summary, without scoring anything; `None` where there is none that fits."""
    try:
        return _read_stored(entry)
    except OSError:
        return None


def summary_folder() -> Path:
    """`summaries` in `$UNMASK_CACHE`, or in the platform's cache folder for unmask."""
    return user_cache_folder() / "summaries"


# --- inside


def _make_summary(entry: RunEntry) -> RunSummary:
    """The stamp is older than the score: what is written meanwhile makes the summary old."""
    stamp, run = _name_state(entry), entry.open()
    score = run.score()
    caveats = list_run_caveats(run, score, judge=run.judge_file())
    journals = [run.folder.replies.path, *sorted((entry.path / "readings").glob("*.jsonl"))]
    answered = [time for time in map(read_last_time, journals) if time is not None]
    return RunSummary(
        stamp=stamp,
        is_done=not score.undecided,
        scenarios=score.overall.scenarios,
        unjudged=sum(score.unjudged_reasons.values()),
        p_lie=score.p_lie,
        p_honest=score.overall.p_honest,
        cost_usd=score.spent.cost_usd,
        last_answer=max(answered, default=None),
        warnings=tuple(caveat for caveat in caveats if caveat.serious),
    )


class _LineTime(msgspec.Struct):
    at: float | None = None


def read_last_time(path: Path) -> float | None:
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


def _name_state(entry: RunEntry) -> str:
    """The folder is part of it because warnings name commands, and these name the folder."""
    parts = (SCORING_VERSION, __version__, os.fsencode(entry.path), read_stamp(entry.path))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _file_of(entry: RunEntry) -> Path:
    return summary_folder() / f"{entry.key}.json"


def _read_stored(entry: RunEntry) -> RunSummary | None:
    """One that cannot be read is none."""
    try:
        summary = msgspec.json.decode(read_bytes(_file_of(entry)), type=RunSummary)
    except (OSError, UnmaskError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return summary if summary.stamp == _name_state(entry) else None


def _store(entry: RunEntry, summary: RunSummary) -> None:
    """Where nothing can be written it is in memory only. The new file has a name of its own until it is complete: two
    viewers may write the same summary at the same time."""
    with suppress(OSError):
        target = _file_of(entry)
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, new_file = tempfile.mkstemp(dir=target.parent, prefix=f"{target.stem}.", suffix=".new")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(summary))
            os.replace(new_file, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(new_file)
            raise
