"""Before the first request of a session: what its answers go into is open."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from unmask.engine.session import ready
from unmask.errors import JournalError
from unmask.runs.journal import Lines


def test_a_process_that_may_open_no_more_files_is_told_how_to_have_more(tmp_path: Path):
    """That is no matter of the folder's rights."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(JournalError, match="Too many open files") as caught:
            ready([Lines(tmp_path / "replies.jsonl", reserve=True)])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "ulimit -n" in (caught.value.advice or "")
    assert "--max-connections" in (caught.value.advice or "")
