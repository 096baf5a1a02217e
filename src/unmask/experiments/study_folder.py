"""The folder of a study: the design as it was, one run folder for each arm, and what each piece of work cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.errors import JournalError, MissingError, MixedRunError
from unmask.experiments.study_design import (
    Arm,
    StudyDesign,
    design_hash,
    hash_prompts,
    list_arms,
    list_prompt_files,
    read_design,
)
from unmask.files import file_exists, open_plain_file, read_bytes, write_atomically
from unmask.records import FORMAT_VERSION, Record

DESIGN_FILE = "design.toml"
LATEST_FILE = "design-latest.toml"
RECORD_FILE = "study.json"
COSTS_FILE = "arms.jsonl"


class ArmWork(StrEnum):
    """The pieces of work of an arm, in their order."""

    PREPARE = "prepare"
    """A steer file or an adapter was made. One that several arms use is booked to the arm it was made for first."""
    RUN = "run"
    FLUENCY = "fluency"
    """The perplexity of the arm's model was measured."""


class ArmCost(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A line of `arms.jsonl`: one piece of work that was finished."""

    arm: str
    what: ArmWork
    seconds: float
    """Of the session that finished it."""
    calls: int = 0
    """To subject and judge, of all sessions."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    peak_memory: int | None = None
    """Bytes of GPU memory at the most, of everything in this process; `None` on a CPU."""
    device: str
    """Name of the GPU, or `cpu`."""
    at: str
    continued: bool = False
    """Whether an earlier session was interrupted. Its seconds are not counted."""


class StudyRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`study.json`: written once, before the first arm."""

    v: int = FORMAT_VERSION
    unmask: str
    design_hash: str
    created: str
    model: str
    """As the runs name it, without a treatment."""
    model_hash: str
    prompts: dict[str, str] | None = None
    """The hash of the text of each prompt; `None` where it was not recorded."""


class StudyFolder:
    """A study that has begun. `design` is the one of the latest command; only `left_out` and `changed` may differ from
    the one that the first arm began with."""

    def __init__(self, path: Path, design: StudyDesign, record: StudyRecord) -> None:
        self.path, self.design, self.record = path, design, record
        self.arms: tuple[Arm, ...] = list_arms(design, path)
        self.design_hash = record.design_hash
        self.prompt_hashes = hash_prompts(design, path)

    @property
    def prepared(self) -> Path:
        return self.path / "prepared"

    def run_path(self, arm_name: str) -> Path:
        return self.path / "runs" / arm_name

    def costs(self) -> list[ArmCost]:
        """Every line of `arms.jsonl`. A last line that a kill has cut off is no line."""
        file = self.path / COSTS_FILE
        if not file_exists(file):
            return []
        *lines, _ = read_bytes(file).split(b"\n")
        try:
            return [msgspec.json.decode(line, type=ArmCost) for line in lines if line]
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise JournalError(
                f"{file} cannot be read: {error}", advice="Delete the line; its arm is looked at again."
            ) from None

    def add_cost(self, cost: ArmCost) -> None:
        """Append a line in one write, so that several processes may work on one study."""
        self._cut_torn_line()
        handle = os.open(self.path / COSTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(handle, msgspec.json.encode(cost) + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)

    def is_finished(self, arm_name: str, work: ArmWork = ArmWork.RUN) -> bool:
        """Whether this piece of work of an arm was finished, and its run folder is here."""
        is_here = (self.run_path(arm_name) / "run.json").is_file()
        return is_here and any(cost.arm == arm_name and cost.what is work for cost in self.costs())

    def _cut_torn_line(self) -> None:
        file = self.path / COSTS_FILE
        if not file_exists(file):
            return
        data = read_bytes(file)
        if data and not data.endswith(b"\n"):
            with open(file, "r+b", opener=open_plain_file) as torn:
                torn.truncate(data.rfind(b"\n") + 1)


def open_study(out: Path) -> StudyFolder:
    """A study that has begun, as it is in its folder."""
    record = _read_record(out)
    if record is None:
        raise MissingError(f"{out} holds no study", advice="unmask mitigate study STUDY.toml --out DIR begins one.")
    latest = out / LATEST_FILE
    design = read_design(latest if file_exists(latest) else out / DESIGN_FILE)
    return StudyFolder(out, design, record)


def update_study(file: Path, *, out: Path) -> StudyFolder:
    """A study that has begun, with what has been added to its file since: `left_out` and `changed`."""
    if _read_record(out) is not None:
        refuse_other_design(file, read_design(file), out)
        _keep_latest(file, out)
    return open_study(out)


def _keep_latest(file: Path, out: Path) -> None:
    """Copy the file into the folder where it says more than the copy that is there."""
    latest = out / LATEST_FILE
    if file.read_bytes() != read_bytes(latest if file_exists(latest) else out / DESIGN_FILE):
        write_atomically(latest, file.read_bytes())


def is_begun(out: Path) -> bool:
    return file_exists(out / RECORD_FILE)


def begin_study(file: Path, *, out: Path, model: str, model_hash: str | None = None) -> StudyFolder:
    """Make the folder of a study, or continue it: copies of the file and of its prompts first, `study.json` last. Only
    a study that has begun can do without `model_hash`."""
    design = read_design(file)
    refuse_other_design(file, design, out)
    record = _read_record(out)
    if record is None and model_hash is not None:
        for name in list_prompt_files(design):
            write_atomically(out / name, (file.parent / name).read_bytes())
        write_atomically(out / DESIGN_FILE, file.read_bytes())
        created = datetime.now(UTC).isoformat(timespec="seconds")
        record = StudyRecord(
            unmask=__version__,
            design_hash=design_hash(design),
            created=created,
            model=model,
            model_hash=model_hash,
            prompts=hash_prompts(design, out),
        )
        write_atomically(out / RECORD_FILE, msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
    elif record is not None and model_hash not in (None, record.model_hash):
        raise MixedRunError(
            f"{out} was begun with another model: its weights were {record.model_hash}, these are {model_hash}",
            advice="Put back the model it was begun with, or use another --out.",
        )
    _keep_latest(file, out)
    return open_study(out)


def refuse_other_design(file: Path, design: StudyDesign, out: Path) -> None:
    """Refuse to continue a study by a file that says something else than the one it was begun with."""
    record = _read_record(out)
    if record is None:
        return
    before = read_design(out / DESIGN_FILE)
    differences = list(_list_differences(before, design))
    hashes = hash_prompts(before, out)
    differences += [
        f"the prompt {name} has another text than when the study began"
        for name, recorded in (record.prompts or {}).items()
        if hashes.get(name) != recorded
    ]
    differences += [
        f"the prompt {name} has another text"
        for name in list_prompt_files(design)
        if file_exists(out / name) and read_bytes(out / name) != (file.parent / name).read_bytes()
    ]
    if differences:
        raise MixedRunError(
            f"{file} is not the design that {out} was begun with:\n" + "\n".join(f"  {line}" for line in differences),
            advice=f"Put back what {out / DESIGN_FILE} says, or use another --out. Only `left_out` and [[changed]] may"
            " be added to after the first arm has begun.",
        )
    returned = sorted(set(before.left_out) - set(design.left_out))
    if returned and not design.changed:
        raise MixedRunError(
            f"{file} leaves out fewer arms than {out} was begun with: {', '.join(returned)}",
            advice="Say so in a [[changed]] entry with `date`, `what` and `why`, and they are run.",
        )


def _list_differences(before: StudyDesign, now: StudyDesign) -> Iterator[str]:
    for name in StudyDesign.__struct_fields__:
        old, new = getattr(before, name), getattr(now, name)
        if name in ("left_out", "changed") or old == new:
            continue
        if isinstance(old, msgspec.Struct) and type(old) is type(new):
            for key in old.__struct_fields__:
                if getattr(old, key) != getattr(new, key):
                    yield f"{name}.{key}: the study has {getattr(old, key)!r}, the file says {getattr(new, key)!r}"
        else:
            yield f"{name}: the study has {old!r}, the file says {new!r}"


def _read_record(out: Path) -> StudyRecord | None:
    file = out / RECORD_FILE
    if not file_exists(file):
        return None
    try:
        return msgspec.json.decode(read_bytes(file), type=StudyRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise JournalError(f"{file} cannot be read: {error}", advice="Restore it, or use another --out.") from None
