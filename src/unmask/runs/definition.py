"""What defines a run: the content of `run.json`, and the comparison that keeps two different runs apart."""

from __future__ import annotations

import hashlib
import re
import shlex
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from unmask.data.dataset import ShardSpec, content_hash, hash_sides
from unmask.errors import MixedRunError
from unmask.judges.base import LETTERS_ONLY, PANEL, Style, Tags
from unmask.models.base import Treatment, find_changed
from unmask.models.room import Room
from unmask.models.settings import DEFINING, ModelSettings
from unmask.models.user_params import describe_headers, describe_params
from unmask.protocol.settings import Settings
from unmask.records import FORMAT_VERSION, MOST_TAKES, Effort, Kind, Preset, Record, Sampling, Scenario, Slot, digest
from unmask.runs.options import DeveloperPrompt

Count = Annotated[int, msgspec.Meta(ge=1, le=MOST_TAKES)]
"""One that no run has would make every later step wait for ever, or divide by nothing."""


class DataSpec(Record, frozen=True, kw_only=True, omit_defaults=False):
    name: str
    source: str
    """What the user typed."""
    revision: str | None
    hash: str
    """Over the selected scenarios."""
    full_hash: str
    """Over all scenarios of the source, before selection."""
    yes_means: str | None
    """Over which side *yes* means in the selected scenarios, which the other hashes leave out; `None` where that is
    known of none."""
    counts: dict[str, int]
    """Scenarios by archetype."""
    skipped: tuple[str, ...] = ()
    """Rows that were left out as bad."""
    archetypes: tuple[str, ...] = ()
    """Those selected; empty for all."""
    ids: tuple[str, ...] = ()
    limit: int | None = None
    seed: int = 0
    """Of the sample and of the order in which scenarios are asked."""
    shard: ShardSpec | msgspec.UnsetType = msgspec.UNSET
    """Which part of this selection the run is. Not written where it is all of it."""

    def find_mismatch(self, stored: Collection[Scenario]) -> str | None:
        """How the scenarios of a folder differ from those the run was made of, as a sentence without its full stop;
        `None` where they are the same."""
        found, wanted = len(stored), sum(self.counts.values())
        if found != wanted:
            what = f"scenarios.jsonl has {found} scenarios, the run was made of {wanted}"
        elif content_hash(stored) != self.hash:
            what = "the content of scenarios.jsonl has another hash, so scenarios were changed"
        elif hash_sides(stored) != self.yes_means:
            what = "`yes_means` was changed in scenarios.jsonl"
        else:
            return None
        return f"the folder does not match its run.json: {what}"


class SubjectSpec(ModelSettings, frozen=True, kw_only=True, omit_defaults=False):
    """How the subject was last asked. `model` is its name, `base_url` as given, without credentials."""

    model: str
    endpoint: str
    """Scheme, host and port; in-process models name themselves."""
    treatments: tuple[Treatment, ...] = ()
    """Adapter and steer file of an `hf:` model, by the hash of their content."""
    room: Room | None = None
    """Since when replies may be longer than 1,000 tokens, because the model reasons."""


class JudgeSpec(ModelSettings, frozen=True, kw_only=True, omit_defaults=False):
    """How a judge was last asked. Its `name` is that of its file where it was given one."""

    model: str
    endpoint: str | None
    prompts: str
    """Hash of the judge prompts."""
    style: Style
    treatments: tuple[Treatment, ...] = ()
    tags: Tags | None = None
    """Who reads tagged answers for it, if it was given that; `None` is the run's."""
    room: Room | None = None
    """As of the subject."""
    numeric: JudgeSpec | msgspec.UnsetType = msgspec.UNSET
    """The model that reads numbers in its place. Not written where it reads everything itself."""

    @property
    def models(self) -> tuple[JudgeSpec, ...]:
        """The judge, and the model that reads numbers in its place if there is one."""
        return (self, self.numeric) if self.numeric else (self,)

    @property
    def title(self) -> str:
        return f"{self.model}, {self.numeric.model} for numbers" if self.numeric else self.model


class BaselineRef(Record, frozen=True, omit_defaults=False):
    """The baseline whose probes this run reuses."""

    run: str
    """Its id."""
    path: str


class Definition(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`run.json`. The first group may not change once replies exist; the second may, and is what was last used."""

    v: int = FORMAT_VERSION
    id: str
    created: str
    unmask: str
    """The version that made the run."""
    data: DataSpec
    subject: SubjectSpec
    prompts: str
    """Hash of what the probes are wrapped in."""
    developer_prompt: DeveloperPrompt | None
    beliefs_from: BaselineRef | None

    direct: Count
    """How often the direct question is asked."""
    takes: Count
    """How many replies under pressure there are per scenario."""
    effort: Effort
    preset: Preset
    tags: Tags
    control: bool
    """Whether the same question is also asked without the role."""
    check: bool
    """Whether the check question is asked."""
    judge: str | None
    """File name, without ending, of the judge of the last `unmask run`; `unmask judge` adds judges and leaves this."""
    judges: dict[str, JudgeSpec]
    """By file name."""
    self_report: str | None = None
    """The question put to the subject after its pressured reply; `None` where it is not."""
    asides: dict[Slot, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """More questions that judges were asked, such as `role_play`, each with the file names of these judges."""
    grown: tuple[int, ...] = ()
    """How many scenarios the run had before it grew, the first size first."""

    def typed_judge(self, file: str | None) -> str:
        """A judge or panel of this run as somebody would type it."""
        return typed_judge(file or "none", {name: spec.model for name, spec in self.judges.items()})

    def spec_of(self, judge: str | None, kind: Kind) -> JudgeSpec | None:
        """The model that reads scenarios of this kind for a judge."""
        spec = self.judges.get(judge or self.judge or "")
        return spec.numeric if spec and spec.numeric and kind is Kind.NUMERIC else spec

    def judge_files(self, judge: str | None) -> list[str]:
        """The files behind a judge: its own, those of a panel's members, or none."""
        return [file for file in (judge or "").removeprefix(PANEL).split(",") if file]

    def order_to_look(self, ids: Sequence[str]) -> list[int]:
        """The places of these ids, which are in the order of scenarios.jsonl, in the order of looking."""
        return looking_order(ids, seed=self.data.seed, grown=self.grown)

    def settings(self, judge: str | None = None, *, preset: Preset | None = None, kind: Kind = Kind.BINARY) -> Settings:
        """How to plan and read scenarios of this kind with one of the run's judges."""
        spec, own = self.spec_of(judge, kind), self.judges.get(judge or self.judge or "")
        return Settings(
            direct=self.direct,
            takes=self.takes,
            effort=self.effort,
            preset=preset or self.preset,
            tags=(own and own.tags) or self.tags,
            style=spec.style if spec else Style.LETTERS,
            control=self.control,
            check=self.check,
            self_report=self.self_report,
            asides=tuple(slot for slot, files in self.asides.items() if (judge or self.judge) in files),
            sampling=self.subject.sampling,
            judge_sampling=spec.sampling if spec else Sampling(temperature=0.0),
        )

    def rooms(self, judge: str | None) -> dict[str, Room]:
        """By role, for those that reason."""
        own = self.judges.get(judge or "")
        of_judges = [spec.room for spec in own.models] if own else []
        rooms = zip(("subject", "judge", "numeric_judge"), (self.subject.room, *of_judges), strict=False)
        return {role: room for role, room in rooms if room is not None}

    def with_room(self, role: str, judge: str, room: Room | None) -> Definition:
        """The same run, with this room for one role."""
        if role == "subject":
            return replace(self, subject=replace(self.subject, room=room))
        spec = self.judges[judge]
        if role == "judge":
            spec = replace(spec, room=room)
        elif spec.numeric:
            spec = replace(spec, numeric=replace(spec.numeric, room=room))
        return replace(self, judges=self.judges | {judge: spec})


_LONGEST_NAME = 120
_UNUSUAL = re.compile(r"[^A-Za-z0-9.@+_/:-]")
"""What names of models, which have `/` and `:`, do not hold: losing it in a file name may make two names one."""


def judge_file(name: str) -> str:
    """The file name of a judge or a person: `openai/gpt-4o` is kept in `readings/openai_gpt-4o.jsonl`.

    Always a plain name of one file: no folder, nothing hidden, nothing too long. A file name gives itself. Where
    characters are lost, a digest of the name keeps two of them apart: 张伟 and 李娜 are not one person.
    """
    file_name = plain_name(name)
    if len(file_name) > _LONGEST_NAME or _UNUSUAL.search(name) or not name.strip("._/:"):
        file_name = f"{file_name[: _LONGEST_NAME - 21].rstrip('._')}-{digest((name,))}"
    return file_name


def file_of(spec: JudgeSpec) -> str:
    """The file name of a judge: its own name, else that of its model."""
    return spec.name or judge_file(spec.model)


def typed_judge(judge: str, models: Mapping[str, str]) -> str:
    """What `--judge` takes for a judge or a panel of a run, as somebody would type it: `openai/gpt-4o` for the file
    `openai_gpt-4o`. `models` has the model behind each file. A file that another of the same model hides keeps its own
    name."""
    if judge.startswith(PANEL):
        return PANEL + ",".join(typed_judge(file, models) for file in judge.removeprefix(PANEL).split(","))
    model = models.get(judge)
    hidden = judge_file(model or "") != judge and list(models.values()).count(model or "") > 1
    return judge if model is None or hidden else model


def plain_name(name: str) -> str:
    """What is left of a name in signs that every disk takes. Two names may leave the same."""
    file_name = re.sub(r"[^A-Za-z0-9.@+_-]+", "_", name)
    return re.sub(r"_{2,}", "_", file_name).strip("._") or "judge"


def public_url(url: str | None) -> str | None:
    """A URL fit to be written down: no query or fragment. Of one that holds credentials nothing is written: where a
    password has a slash, its beginning would pass for the host."""
    try:
        parts = urlsplit((url or "").strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in (url or ""):
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


Difference = tuple[str, object, object]
"""The name of a setting, its value in the run, and that in the command."""


def check_same_run(
    old: Definition,
    new: Definition,
    path: Path,
    *,
    other_data: Difference | None = None,
) -> None:
    """Refuse to mix two different runs in one folder; the message names every difference. Whether the data fit is
    found out by `engine.grow`."""
    differences = [*filter(None, [other_data]), *find_differences(old, new)]
    if not differences:
        return
    shown = [(name, *("none" if value is None else value for value in values)) for name, *values in differences]
    rows = [f"{name}: the run has {before}, the command says {after}" for name, before, after in shown]
    names = [name for name, _, _ in differences]
    advice = "Use the same settings to continue this run, or another --out for a new one."
    if all(name.startswith(("judge", "numeric")) for name in names):
        advice = "Use the same judge settings, or keep these readings apart: --set judge.name=NAME."
    if "data" in names:
        advice += " A run grows only out of the data it began with."
    continues = f"The run as it is continues with: unmask run --out {shlex.quote(str(path))}"
    if names == ["scenarios"]:
        advice = (
            "A run grows by a selection that contains all of its scenarios, and never shrinks. Choose more, or another"
            f" --out. {continues}"
        )
    if names == ["takes"]:
        advice = f"To score fewer: `unmask score` with --takes {new.takes}. {continues}"
    treatments = [name.removeprefix("numeric ").removeprefix("judge ") for name in names]
    if files := [name for name in treatments if name.startswith(("adapter ", "steer "))]:
        advice += f" Changed since the run began: {', '.join(files)}. Put back what it was made with to continue."
    raise MixedRunError("this folder holds a different run:", problems=rows, advice=advice)


def find_differences(old: Definition, new: Definition) -> Iterator[Difference]:
    """The settings that make two runs, but for their data."""
    rows: list[Difference] = [
        ("model", old.subject.model, new.subject.model),
        ("prompts", old.prompts, new.prompts),
        ("developer-prompt", *_describe_prompts(old.developer_prompt, new.developer_prompt)),
        ("beliefs-from", old.beliefs_from and old.beliefs_from.run, new.beliefs_from and new.beliefs_from.run),
    ]
    if old.self_report and new.self_report:  # one that is added, or left out, mixes nothing
        rows.append(("self-report question", old.self_report, new.self_report))
    rows += _compare_models("", old.subject, new.subject)
    for file, spec in new.judges.items():
        if file in old.judges:
            rows += _compare_judges(old.judges[file], spec)
        # On many disks these two would be one file.
        rows += [("judge name", old_file, file) for old_file in old.judges if old_file.casefold() == file.casefold()]
    yield from (row for row in rows if row[1] != row[2])
    for name, before, after in (("direct", old.direct, new.direct), ("takes", old.takes, new.takes)):
        if after < before:  # more takes extend a run; fewer would leave paid replies out of sight
            yield name, before, after


def _describe_prompts(old: DeveloperPrompt | None, new: DeveloperPrompt | None) -> tuple[str | None, str | None]:
    """Both as they are shown; nothing to tell apart where the text is the same, wherever it was read from."""
    if (old and old.text) == (new and new.text):
        return None, None
    before, now = (
        f"{one.name} ({one.text[:40]}…, hash {digest((one.text,))[:8]})" if one else None for one in (old, new)
    )
    return before, now


def _compare_judges(old: JudgeSpec, new: JudgeSpec) -> list[Difference]:
    rows: list[Difference] = [("judge", old.model, new.model)]
    before, now = (spec.numeric.model if spec.numeric else None for spec in (old, new))
    had_no_numbers = old.style in LETTERS_ONLY and not old.numeric  # such a judge may get one that reads them
    if not had_no_numbers:
        rows.append(("numeric judge", before, now))
    for who, was, spec in (("judge", old, new), ("numeric judge", old.numeric, new.numeric)):
        if was and spec:
            rows += [(f"{who} prompts", was.prompts, spec.prompts), (f"{who} style", was.style, spec.style)]
            rows += _compare_models(f"{who} ", was, spec)
    return rows


def _compare_models(prefix: str, old: SubjectSpec | JudgeSpec, new: SubjectSpec | JudgeSpec) -> list[Difference]:
    """A file with other content under the same name, and what is sent with every request."""
    before, now = describe_settings(old), describe_settings(new)
    files = [
        (f"{prefix}{file.kind} {file.path}", f"content {was.hash}", f"content {file.hash}")
        for was, file in find_changed(old.treatments, new.treatments)
    ]
    return [*files, *((prefix + name, before[name], now[name]) for name in now)]


def describe_settings(model: ModelSettings) -> dict[str, object]:
    """What the answers of a model depend on, by the names under which it is shown."""
    values = {field.replace("_", " "): getattr(model, field) for field in DEFINING}
    params, headers = values.pop("params"), values.pop("headers")
    return values | {"parameters": describe_params(params), "headers": describe_headers(headers)}


def looking_order(ids: Sequence[str], *, seed: int, grown: Sequence[int] = ()) -> list[int]:
    """The places of these ids in one fixed random order, which depends on nothing but seed and ids: who looks later
    sees the same scenarios first, and some more. A run grows at the end of scenarios.jsonl, and `grown` has its earlier
    sizes: what it had before it grew comes first."""

    def key(place: int) -> tuple[int, bytes, str]:
        text = f"{seed}/{ids[place]}".encode("utf-8", "surrogatepass")
        return bisect_right(grown, place), hashlib.blake2b(text, digest_size=16).digest(), ids[place]

    return sorted(range(len(ids)), key=key)
