"""Packs a run folder into the file that `unmask demo --recorded` opens.

    unmask run hf:qwen2.5-coder-1.5b --data core --judge hf:judge-1.5b --effort full --also check \\
        --seed 0 --out DIR
    python -m bench.recorded DIR

The file that ships was made by this command in November 2026, on a GPU, when the judge still read figures. Its replies
and letters are from that run; `python -m bench.recorded --renew` took them over into a run of this version, without the
scenarios about figures. What the judge is asked about letters has not changed since (`tests/judges/test_pick.py` holds
it to the byte), so nobody was asked again. A change of format renews the file in the same way.
"""

from __future__ import annotations

import argparse
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import msgspec

from unmask.data.load import load
from unmask.demo import recorded
from unmask.engine.define import create_or_continue, define_run, judge_spec, select_letters
from unmask.engine.prepare import select_data
from unmask.judges.base import LETTERS_ONLY
from unmask.models.base import Capabilities, Treatment
from unmask.models.local.catalogue import is_trained_judge
from unmask.models.scripted import Scripted
from unmask.runs.folder import Folder
from unmask.runs.journal import JournalFile
from unmask.runs.options import options_from
from unmask.runs.run import open_run

TARGET = Path(recorded.__file__).with_name(recorded.FILE)
OPTIONS = options_from({"effort": "full", "also": "check", "seed": 0})
"""Those of the command above."""


FILE_TIME = (1980, 1, 1, 0, 0, 0)
"""Of every file in the archive, so that the same run always gives the same bytes."""


def pack_run(folder: str | Path) -> bytes:
    """The run folder as a zip file: definition, scenarios, replies and readings, and nothing else that lies there."""
    run = open_run(folder)
    judges = [run.folder.readings_path(judge) for judge in sorted(run.definition.judges)]
    names = ("run.json", "scenarios.jsonl", "replies.jsonl")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in (*(run.path / name for name in names), *(path for path in judges if path.is_file())):
            member = zipfile.ZipInfo(path.relative_to(run.path).as_posix(), FILE_TIME)
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, path.read_bytes(), compresslevel=9)
    return packed.getvalue()


class _RecordedModel(Scripted):
    """A model as `run.json` names it. It is never asked."""

    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__(lambda _: "", name=spec["model"])
        self.endpoint = spec["endpoint"]
        trained = is_trained_judge(spec["model"])
        self.capabilities = Capabilities(supports_options=True, trained_to_read=trained)
        self.treatments = msgspec.convert(spec["treatments"], tuple[Treatment, ...])


def renew_run(packed: bytes, before: Path, path: Path) -> None:
    """A run folder as this version makes it, with the answers of a packed run about the scenarios that it selects. The
    packed run is unpacked into `before`."""
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        archive.extractall(before)
    old, packed_run = json.loads((before / "run.json").read_bytes()), Folder(before)
    whole, judge = load(old["data"]["source"]), _RecordedModel(old["judges"][old["judge"]])
    spec = judge_spec(judge, OPTIONS.judge)
    options = OPTIONS
    if spec.style in LETTERS_ONLY:
        options, _ = select_letters(whole, OPTIONS, judge=spec.model)
    dataset, folder = select_data(whole, options), Folder(path)
    wanted = define_run(dataset, _RecordedModel(old["subject"]), spec, options)
    create_or_continue(folder, msgspec.structs.replace(wanted, id=old["id"], created=old["created"]), dataset)
    names, journal = set(dataset.ids), JournalFile(folder.readings_path(old["judge"]))
    for asked in packed_run.asked():
        if asked.scenario in names:
            folder.replies.append(asked)
    for judged in packed_run.judged(old["judge"]):
        if judged.scenario in names:
            journal.append(judged)
    folder.replies.close()
    journal.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="a finished run")
    parser.add_argument("--renew", action="store_true", help="bring the packed run to this version instead")
    arguments = parser.parse_args()
    if arguments.renew == (arguments.folder is not None):
        parser.error("give a folder, or --renew")
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.renew:
            renew_run(TARGET.read_bytes(), Path(scratch) / "packed", Path(scratch) / "run")
        packed = pack_run(arguments.folder or Path(scratch) / "run")
    TARGET.write_bytes(packed)
    print(f"{TARGET.name}: {len(packed):,} bytes")


if __name__ == "__main__":
    main()
