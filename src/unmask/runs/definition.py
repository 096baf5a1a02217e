"""What defines a run: the content of `run.json`, and the comparison that keeps two different runs apart."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from unmask.data.dataset import Content, ShardSpec
from unmask.errors import MixedRunError
from unmask.files import RESERVED
from unmask.judges.base import LETTERS_ONLY, PANEL, Reader, Style
from unmask.models.base import Treatment, find_changed
from unmask.models.user_params import compare_additions
from unmask.protocol.settings import Settings
from unmask.records import FORMAT_VERSION, MOST_TAKES, Effort, Kind, Preset, Record, Sampling, digest
from unmask.runs.options import DeveloperPrompt


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

    def find_mismatch(self, stored: Content) -> str | None:
        """How the scenarios of a folder differ from those the run was made of, as a sentence without its full stop;
        `None` where they are the same."""
        found, wanted = sum(stored.counts.values()), sum(self.counts.values())
        if found != wanted:
            what = f"scenarios.jsonl has {found} scenarios, the run was made of {wanted}"
        elif stored.hash != self.hash:
            what = "the content of scenarios.jsonl has another hash, so scenarios were changed"
        elif stored.yes_means != self.yes_means:
            what = "`yes_means` was changed in scenarios.jsonl"
        elif stored.counts != self.counts:
            what = "run.json counts other archetypes than scenarios.jsonl has"
        else:
            return None
        return f"the folder does not match its run.json: {what}"


class SubjectSpec(Record, frozen=True, kw_only=True, omit_defaults=False):
    model: str
    endpoint: str
    """Scheme, host and port; in-process models name themselves."""
    base_url: str | None
    """As given, without credentials."""
    sampling: Sampling
    treatments: tuple[Treatment, ...] = ()
    """Adapter and steer file of an `hf:` model, by the hash of their content."""


class JudgeSpec(Record, frozen=True, kw_only=True, omit_defaults=False):
    model: str
    endpoint: str | None
    base_url: str | None
    sampling: Sampling
    prompts: str
    """Hash of the judge prompts."""
    style: Style
    treatments: tuple[Treatment, ...] = ()
    reader: Reader | None = None
    """Its own, if it was given one; `None` is the run's."""
    numeric_judge: str | msgspec.UnsetType = msgspec.UNSET
    """File name of the judge that reads figures in its place. Not written where it reads everything itself."""
    numeric_only: bool | msgspec.UnsetType = msgspec.UNSET
    """True where this judge was only ever asked about figures, in the place of another. Not written otherwise."""


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

    direct: int
    """How often the direct question is asked."""
    takes: int
    """How many replies under pressure there are per scenario."""
    effort: Effort
    preset: Preset
    reader: Reader
    check: bool
    """Whether the check question is asked."""
    judge: str | None
    """File name, without ending, of the judge of the last `unmask run`; `unmask judge` adds judges and leaves this."""
    judges: dict[str, JudgeSpec]
    """By file name."""
    self_report: str | None = None
    """The question put to the subject after its pressured reply; `None` where it is not."""
    role_play: tuple[str, ...] = ()
    """File names of the judges that were asked which lies are a part played."""
    grown: tuple[int, ...] = ()
    """How many scenarios the run had before it grew, the first size first."""

    def typed_judge(self, file: str | None) -> str:
        """A judge or panel of this run as somebody would type it."""
        return typed_judge(file or "none", {name: spec.model for name, spec in self.judges.items()})

    def __post_init__(self) -> None:
        """Counts that no run has would make every later step wait for ever, or divide by nothing."""
        for name in ("direct", "takes"):
            if not 1 <= getattr(self, name) <= MOST_TAKES:
                raise ValueError(f"`{name}` is {getattr(self, name)}, not from 1 to {MOST_TAKES}")
        if missing := set(self.partners.values()) - self.judges.keys():
            raise ValueError(f"`judges` leave figures to {sorted(missing)[0]!r}, which is none of them")

    @property
    def partners(self) -> dict[str, str]:
        """The judge that reads figures in the place of another, by the file name of that other."""
        return {file: spec.numeric_judge for file, spec in self.judges.items() if spec.numeric_judge}

    @property
    def full_judges(self) -> dict[str, JudgeSpec]:
        """The judges that read everything, by themselves or with a partner."""
        return {file: spec for file, spec in self.judges.items() if not spec.numeric_only}

    def reader_of(self, judge: str | None, kind: Kind) -> str | None:
        """The file name of whoever reads scenarios of this kind for a judge: itself, or its partner."""
        file = judge or self.judge
        return self.partners.get(file or "", file) if kind is Kind.NUMERIC else file

    def judge_files(self, judge: str | None) -> list[str]:
        """The files behind a judge: its own and that of its partner, those of a panel's members, or none."""
        files = (judge or "").removeprefix(PANEL).split(",")
        return [file for file in (*files, self.partners.get(judge or "")) if file]

    def order_to_look(self, ids: Sequence[str]) -> list[int]:
        """The places of these ids, which are in the order of scenarios.jsonl, in the order of looking."""
        return looking_order(ids, seed=self.data.seed, grown=self.grown)

    def settings(self, judge: str | None = None, *, preset: Preset | None = None, kind: Kind = Kind.BINARY) -> Settings:
        """How to plan and read scenarios of this kind with one of the run's judges."""
        spec = self.judges.get(self.reader_of(judge, kind) or "")
        own_reader = spec.reader if spec else None
        return Settings(
            direct=self.direct,
            takes=self.takes,
            effort=self.effort,
            preset=preset or self.preset,
            reader=own_reader or self.reader,
            style=spec.style if spec else Style.LETTERS,
            check=self.check,
            self_report=self.self_report,
            role_play=(judge or self.judge) in self.role_play,
            sampling=self.subject.sampling,
            judge_sampling=spec.sampling if spec else Sampling(temperature=0.0),
        )


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
    file_name = re.sub(r"_{2,}", "_", file_name).strip("._") or "judge"
    if RESERVED.fullmatch(file_name):
        file_name = f"{file_name.partition('.')[0]}-{file_name.partition('.')[2]}".rstrip("-") + "-judge"
    return file_name


def public_url(url: str | None) -> str | None:
    """A URL fit to be written down: no query or fragment. Of one that holds credentials nothing is written: where a
    password has a slash, its beginning would pass for the host."""
    if url is None or "@" in url:
        return None
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


Difference = tuple[str, object, object]
"""The name of a setting, its value in the run, and that in the command."""


def check_same_run(
    old: Definition,
    new: Definition,
    *,
    again: Callable[[Definition], str],
    moved: bool = False,
    other_data: Difference | None = None,
) -> None:
    """Refuse to mix two different runs in one folder; the message names every difference. `again` makes the command
    that a definition came from. Whether the data fit is found out by `engine.grow`."""
    differences = [*filter(None, [other_data]), *find_differences(old, new, moved)]
    if not differences:
        return
    if [name for name, _, _ in differences] == ["judge prompts"]:
        raise MixedRunError(_say_that_prompts_changed(old, new, again))
    rows = "\n".join(f"  {name}: the run has {before}, the command says {after}" for name, before, after in differences)
    names = [name for name, _, _ in differences]
    advice = "Use the same settings to continue this run, or another --out for a new one."
    if all(name.startswith(("judge", "numeric-judge")) for name in names):
        # Another partner makes another judge, so a partner under a new name needs one for both.
        both = any(name.startswith("numeric-judge") and name != "numeric-judge" for name in names)
        flags = "--judge-name NAME" + (" --numeric-judge-name NAME" if both else "")
        advice = f"Use the same judge settings, or keep these readings apart under a name of their own: {flags}."
    if "data" in names:
        advice += " A run grows only out of the data it began with."
    if names == ["scenarios"]:
        advice = (
            "A run grows by a selection that contains all of its scenarios, and never shrinks. Choose more, or another"
            f" --out. The run as it is continues with: {again(old)}"
        )
    treatments = [name.removeprefix("numeric-").removeprefix("judge ") for name in names]
    if files := [name for name in treatments if name.startswith(("adapter ", "steer "))]:
        advice += f" Changed since the run began: {', '.join(files)}. Put back what it was made with to continue."
    if any(name.endswith("base-url") for name in names):
        advice += " If only the address changed and the model behind it is the same, add --moved."
    raise MixedRunError(f"this folder holds a different run:\n{rows}", advice=advice)


def _say_that_prompts_changed(old: Definition, new: Definition, again: Callable[[Definition], str]) -> str:
    """One line. What the old prompts read stays as it is, under its own name."""
    file = next(file for file, spec in new.judges.items() if file in old.judges and spec != old.judges[file])
    free_names = (f"{file}-{number}" for number in count(2))
    free = next(name for name in free_names if name.casefold() not in {name.casefold() for name in old.judges})
    role_play = (free,) if file in new.role_play else ()
    renamed = replace(new, judge=free, judges=new.judges | {free: new.judges[file]}, role_play=role_play)
    return (
        f"the judge prompts have changed since {file} read this run; its readings stay, and the new prompts read under"
        f" another name: {again(renamed)}"
    )


def find_differences(old: Definition, new: Definition, moved: bool) -> Iterator[Difference]:
    """The settings that make two runs, but for their data."""
    rows: list[Difference] = [
        ("model", old.subject.model, new.subject.model),
        ("prompts", old.prompts, new.prompts),
        ("developer-prompt", *_describe_prompts(old.developer_prompt, new.developer_prompt)),
        ("beliefs-from", old.beliefs_from and old.beliefs_from.run, new.beliefs_from and new.beliefs_from.run),
    ]
    if old.self_report and new.self_report:  # one that is added, or left out, mixes nothing
        rows.append(("self-report question", old.self_report, new.self_report))
    if not moved and not _answers_itself(old.subject) and not _answers_itself(new.subject):
        rows.append(("base-url", old.subject.endpoint, new.subject.endpoint))
    rows += _compare_treatments("", old.subject.treatments, new.subject.treatments)
    rows += _compare_sampling("", old.subject.sampling, new.subject.sampling)
    for file, spec in new.judges.items():
        if file in old.judges:
            rows += _compare_judges(
                old.judges[file], spec, moved, who="numeric-judge" if spec.numeric_only else "judge"
            )
        # On many disks these two would be one file.
        rows += [("judge name", old_file, file) for old_file in old.judges if old_file.casefold() == file.casefold()]
    yield from (row for row in rows if row[1] != row[2])
    for name, before, after in (("direct", old.direct, new.direct), ("takes", old.takes, new.takes)):
        if after < before:  # more takes extend a run; fewer would leave paid replies out of sight
            yield name, before, after


def _answers_itself(spec: SubjectSpec | JudgeSpec) -> bool:
    """A model in this process has no address but its name, which is compared as its name."""
    return spec.endpoint in {None, spec.model}


def _describe_prompts(old: DeveloperPrompt | None, new: DeveloperPrompt | None) -> tuple[str | None, str | None]:
    """Both as they are shown; nothing to tell apart where the text is the same, wherever it was read from."""
    if (old and old.text) == (new and new.text):
        return None, None
    return _describe_prompt(old), _describe_prompt(new)


def _describe_prompt(prompt: DeveloperPrompt | None) -> str | None:
    return None if prompt is None else f"{prompt.name} ({prompt.text[:40]}…, hash {digest((prompt.text,))[:8]})"


def _compare_judges(old: JudgeSpec, new: JudgeSpec, moved: bool, *, who: str) -> list[Difference]:
    rows: list[Difference] = [
        (f"{who} model" if new.numeric_only else who, old.model, new.model),
        (f"{who} prompts", old.prompts, new.prompts),
        (f"{who} style", old.style, new.style),
    ]
    # Who read figures for another may get a partner of its own, and so may a judge that has read no figures.
    had_no_figures = old.style in LETTERS_ONLY and not old.numeric_judge
    if not (old.numeric_only or new.numeric_only or had_no_figures):
        rows.append(("numeric-judge", old.numeric_judge or None, new.numeric_judge or None))
    if not moved and not _answers_itself(old) and not _answers_itself(new):
        rows.append((f"{who}-base-url", old.endpoint, new.endpoint))
    rows += _compare_treatments(f"{who} ", old.treatments, new.treatments)
    return rows + _compare_sampling(f"{who}-", old.sampling, new.sampling)


def _compare_treatments(prefix: str, old: tuple[Treatment, ...], new: tuple[Treatment, ...]) -> list[Difference]:
    """A file with other content under the same name."""
    return [
        (f"{prefix}{now.kind} {now.path}", f"content {was.hash}", f"content {now.hash}")
        for was, now in find_changed(old, new)
    ]


def _compare_sampling(prefix: str, old: Sampling, new: Sampling) -> list[Difference]:
    names = ("temperature", "max_tokens", "top_p", "seed")
    rows = [(prefix + name.replace("_", "-"), getattr(old, name), getattr(new, name)) for name in names]
    return [*rows, *compare_additions(old, new, prefix=prefix)]


def looking_order(ids: Sequence[str], *, seed: int, grown: Sequence[int] = ()) -> list[int]:
    """The places of these ids in one fixed random order, which depends on nothing but seed and ids: who looks later
    sees the same scenarios first, and some more. A run grows at the end of scenarios.jsonl, and `grown` has its earlier
    sizes: what it had before it grew comes first."""

    def key(place: int) -> tuple[int, bytes, str]:
        text = f"{seed}/{ids[place]}".encode("utf-8", "surrogatepass")
        return bisect_right(grown, place), hashlib.blake2b(text, digest_size=16).digest(), ids[place]

    return sorted(range(len(ids)), key=key)
