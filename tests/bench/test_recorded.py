"""The recorded run of `unmask demo --recorded`: it is what this version makes of its answers."""

from __future__ import annotations

import json
from pathlib import Path

from bench.recorded import TARGET, pack_run, renew_run
from unmask.demo.recorded import unpack_run


def read_files(folder: Path) -> dict[str, bytes]:
    names = ("scenarios.jsonl", "replies.jsonl", "readings/hf_judge-1.5b.jsonl")
    return {name: (folder / name).read_bytes() for name in names}


def test_the_packed_run_is_as_this_version_writes_it(tmp_path):
    """A change of format, of prompts or of `core` needs `python -m bench.recorded --renew`."""
    before, now = tmp_path / "before", tmp_path / "now"
    renew_run(TARGET.read_bytes(), before, now)
    assert read_files(now) == read_files(before)
    old, new = (json.loads((folder / "run.json").read_bytes()) for folder in (before, now))
    assert {**new, "unmask": old["unmask"]} == old
    assert unpack_run(pack_run(now), tmp_path / "again").score().overall.scenarios == 250
