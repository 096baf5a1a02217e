"""What the list of runs says about each run: made once, and stored in the user's cache folder.

To score a run takes a second, a list of thirty would take half a minute after every start. A stored summary counts as
long as the files of its run are as they were. The folder may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.errors import UnmaskError
from unmask.files import read_bytes, user_cache_folder, write_atomically
from unmask.records import Record
from unmask.render.describe.caveats import Caveat, list_run_caveats
from unmask.scoring.score import SCORING_VERSION
from unmask.stats.rate import Rate
from unmask.viewer.cache import read_stamp
from unmask.viewer.catalogue import RunEntry


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
    """The summary of the run as its files are now; the run is scored where no stored summary fits. Where nothing can be
    written it is scored each time."""
    summary = recall(entry)
    if summary is None:
        summary = _make_summary(entry)
        with suppress(UnmaskError):
            write_atomically(_file_of(entry), msgspec.json.encode(summary))
    return summary


def recall(entry: RunEntry) -> RunSummary | None:
    """The stored summary, without scoring anything; `None` where there is none that fits."""
    try:
        summary = msgspec.json.decode(read_bytes(_file_of(entry)), type=RunSummary)
        return summary if summary.stamp == _name_state(entry) else None
    except (OSError, UnmaskError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def summary_folder() -> Path:
    """`summaries` in `$UNMASK_CACHE`, or in the platform's cache folder for unmask."""
    return user_cache_folder() / "summaries"


def _make_summary(entry: RunEntry) -> RunSummary:
    """The stamp is older than the score: what is written meanwhile makes the summary old."""
    stamp, run = _name_state(entry), entry.open()
    score = run.score()
    lines = [*run.folder.asked(), *(line for file in run.definition.judges for line in run.folder.judged(file))]
    return RunSummary(
        stamp=stamp,
        is_done=not score.undecided,
        scenarios=score.overall.scenarios,
        unjudged=sum(score.unjudged_reasons.values()),
        p_lie=score.p_lie,
        p_honest=score.overall.p_honest,
        cost_usd=score.spent.cost_usd,
        last_answer=max((line.at for line in lines if line.at is not None), default=None),
        warnings=tuple(one for one in list_run_caveats(run, score, judge=run.judge_file()) if one.serious),
    )


def _name_state(entry: RunEntry) -> str:
    """The folder is part of it because warnings name commands, and these name the folder."""
    parts = (SCORING_VERSION, __version__, os.fsencode(entry.path), read_stamp(entry.path))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _file_of(entry: RunEntry) -> Path:
    return summary_folder() / f"{entry.key}.json"
