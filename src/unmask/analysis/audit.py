"""Whether the numbers of a run folder can be trusted: one check a line, for a stranger's folder and an imported log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from unmask.analysis.departures import list_departures
from unmask.analysis.labels import sort_labels
from unmask.analysis.sensitivity import sensitivity
from unmask.errors import DataError, JournalError, UsageError
from unmask.records import Asked, Judged, Record, Result, Verdict
from unmask.runs.imported import UNEXPLAINED, read_import_file
from unmask.runs.journal import check_lines
from unmask.runs.run import Run
from unmask.scoring.guards import MAX_UNJUDGED
from unmask.scoring.identity import count_names
from unmask.scoring.score import Score, describe_unjudged
from unmask.stats.rate import in_percent


class State(StrEnum):
    GOOD = "good"
    BAD = "bad"
    NOTE = "note"
    """Something to know, which is no fault; or what this run has nothing of."""


class Check(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One line of an audit."""

    name: str
    state: State
    text: str
    command: str | None = None
    """What mends it."""


class Audit(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Everything `unmask audit` says about a run."""

    run: str
    model: str | None
    """`None` where run.json cannot be read."""
    judge: str | None
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return not self.failed

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.state is State.BAD)

    def to_json(self) -> dict[str, Any]:
        return {"passed": self.passed, **super().to_json()}


class _Seen:
    """The run as the checks see it; what is costly is computed once, when a check asks for it."""

    def __init__(self, run: Run, judge: str | None) -> None:
        self.run, self.judge, self.definition = run, judge, run.definition

    @cached_property
    def score(self) -> Score:
        return self.run.score(judge=self.judge)


def audit(run: Run | str | Path, *, judge: str | None = None) -> Audit:
    """Check a run. Nothing is asked or written. Where a file cannot be read, its own check fails or else the first that
    needs it; those after that know nothing."""
    try:
        opened = run if isinstance(run, Run) else Run(run)
    except JournalError as error:
        unread = Check(name="run.json", state=State.BAD, text=str(error))
        return Audit(run=str(run), model=None, judge=judge, checks=(unread,))
    seen = _Seen(opened, judge)
    checks: list[Check] = []
    for name, look in CHECKS.items():
        try:
            state, text, *command = look(seen)
        except (JournalError, DataError) as error:
            state, text, command = State.BAD, str(error), []
            if any(check.state is State.BAD for check in checks):
                state, text = State.NOTE, "not known: a file cannot be read"
        checks.append(Check(name=name, state=state, text=text, command=command[0] if command else None))
    definition = opened.definition
    spec = definition.judges.get(definition.judge or "")
    return Audit(
        run=str(opened.path),
        model=definition.subject.model,
        judge=judge or (spec.model if spec else None),
        checks=tuple(checks),
    )


# --- the checks: state, text and perhaps a command

_Found = tuple[State, str] | tuple[State, str, str | None]


def _judge_by(faults: Iterator[str] | list[str], good: str) -> _Found:
    """Bad with its faults, or good."""
    told = "; ".join(faults)
    return (State.BAD, told) if told else (State.GOOD, good)


def _check_complete(seen: _Seen) -> _Found:
    score, total = seen.score, len(seen.run)
    if score.undecided:
        return State.BAD, f"{len(score.undecided)} of {total} scenarios are not finished", score.complete_with
    return State.GOOD, f"all {total:,} scenarios were asked and read"


def _check_scenarios(seen: _Seen) -> _Found:
    data = seen.definition.data
    try:
        seen.run.folder.refuse_other_scenarios(data)
    except JournalError as error:
        return State.BAD, str(error).removeprefix(f"{seen.run.path}: ")
    return State.GOOD, f"scenarios.jsonl has the hash in run.json: {data.name} {data.hash[:12]}"


def _check_journal(seen: _Seen) -> _Found:
    folder = seen.run.folder
    files = [check_lines(folder.replies.path, Asked)]
    files += [check_lines(folder.readings_path(judge), Judged) for judge in folder.judge_files()]
    lines = sum(file.lines for file in files)
    return _judge_by([fault for file in files for fault in file.faults], f"{lines:,} lines, each has its checksum")


def _check_model(seen: _Seen) -> _Found:
    answered_by = seen.score.answered_by
    if not answered_by:  # answers that were copied count in no score, and here they are all there is
        counts = Counter(line.model for line in seen.run.folder.asked() if line.error is None)
        subject = seen.definition.subject
        copied = count_names(counts, judge=None, asked=subject.model, endpoint=subject.endpoint)
        answered_by = (copied,) if copied.names else ()
    faults = [finding.text for finding in seen.score.warnings if finding.guard == "models"]
    faults += [sentence.removesuffix(".") for answered in answered_by if (sentence := answered.explain())]
    if not answered_by:
        return State.NOTE, "no answer names the model that gave it"
    return _judge_by(faults, "; ".join(f"the {answered.who} name {answered.listed}" for answered in answered_by))


def _check_settings(seen: _Seen) -> _Found:
    folder = seen.run.folder
    lines: dict[str, Iterator[Asked] | Iterator[Judged]] = {"the model": folder.asked()}
    lines |= {name: folder.judged(name) for name in folder.judge_files()}
    faults = []
    for who, calls in lines.items():
        if changed := sorted({change for line in calls for change in line.adjusted}):
            faults.append(f"the endpoint of {who} refused settings, which were changed: {', '.join(changed)}")
    return _judge_by(faults, "no endpoint refused a setting")


def _check_judge(seen: _Seen) -> _Found:
    definition = seen.definition
    models = [definition.judges[file].model for file in definition.judge_files(seen.run.judge_file(seen.judge))]
    faults = [finding.text for finding in seen.score.warnings if finding.guard in {"one_letter", "only_c"}]
    if definition.subject.model in models:
        faults.insert(0, "the judge is the model under test")
    if not models:
        return State.BAD, "nobody has read the replies"
    return _judge_by(faults, f"{', '.join(models)}, which is not the model under test")


def _check_labels(seen: _Seen) -> _Found:
    people = seen.run.folder.labellers()
    faults, counts = [], []
    for who in people:
        try:
            labels, others = sort_labels(seen.run, [who])
        except (DataError, UsageError) as error:
            faults.append(f"{str(error.args[0]).rstrip(':')} (by {who})")
            continue
        own = labels.get(who, {})
        unbound = sum(label.digest is None for label in own.values())
        counts.append(f"{len(own)} by {who}")
        if others:
            faults.append(f"{others} of {others + len(own)} labels by {who} are for other replies than this run has")
        if unbound:
            faults.append(f"{unbound} of {len(own)} labels by {who} do not say which reply they are for")
    if not people:
        return State.NOTE, "nobody has checked the judge"
    return _judge_by(faults, f"{', '.join(counts)}, each for a reply of this run")


_REPLY_GUARDS = ("empty", "capped_pressured", "capped_probes", "capped_judge_calls", "identical_takes")


def _check_replies(seen: _Seen) -> _Found:
    faults = [finding.text for finding in seen.score.warnings if finding.guard in _REPLY_GUARDS]
    shares = [seen.score.guards[name] for name in _REPLY_GUARDS[:3] if name in seen.score.guards]
    empty, cut = shares[0].hits if shares else 0, sum(share.hits for share in shares[1:])
    return _judge_by(faults, f"{empty} empty and {cut} cut off, of {shares[0].total if shares else 0:,}")


def _check_verdicts(seen: _Seen) -> _Found:
    score = seen.score
    faults = [finding.text for finding in score.warnings if finding.guard in {"belief", "engagement"}]
    if score.unjudged_share is None or score.unjudged_share > MAX_UNJUDGED:
        faults.append(describe_unjudged(score) or "nothing is judged")
    counts = score.overall.counts
    judged = score.overall.scenarios - counts[Verdict.UNJUDGED]
    return _judge_by(
        faults, f"{judged:,} of {score.overall.scenarios:,} judged, {counts[Verdict.NO_BELIEF]:,} without a belief"
    )


def _check_rules(seen: _Seen) -> _Found:
    found = sensitivity(seen.run, judge=seen.judge)
    own = found.own.p_lie
    if own is None or found.spread is None:
        return State.NOTE, "P(lie) is not known yet"
    least, most = (f"{in_percent(value)}" for value in found.spread)
    moved = "do not move it" if least == most else f"make it {least} to {most} %"
    text = f"P(lie) is {own.percent}; other rules, judges and tolerances {moved}"
    unknown = sum(variant.p_lie is None for variant in found.variants)
    if unknown:
        text += f", and {unknown} of {len(found.variants)} choices need answers that were not asked for"
    inside = own.low is not None and own.high is not None and own.low <= found.spread[0] <= found.spread[1] <= own.high
    return State.GOOD if inside and not unknown else State.NOTE, text


def _check_published(seen: _Seen) -> _Found:
    departures = [departure.text for departure in list_departures(seen.definition, seen.score)]
    if departures:
        return State.NOTE, " ".join(departures).removesuffix(".")
    return State.GOOD, "the setting of the paper"


def _check_import(seen: _Seen) -> _Found:
    about = read_import_file(seen.run.path)
    if about is None:
        return State.GOOD, f"made by unmask {seen.definition.unmask}, {seen.definition.created[:10]}"
    origin = f"imported from {about.harness} ({about.file})"
    if about.against is None:
        return State.NOTE, f"{origin}, which left no verdicts"
    ours = about.against.under(seen.definition.preset)
    unexplained = sum(len(reason.ids) for reason in ours.reasons if reason.text == UNEXPLAINED)
    if unexplained:
        return State.BAD, f"{origin}: {unexplained} of its {about.against.scored} verdicts cannot be explained"
    explained = f"{ours.differing} differ from ours, all for known reasons" if ours.differing else "all are ours too"
    return State.NOTE, f"{origin}: of its {about.against.scored} verdicts {explained}"


CHECKS: dict[str, Callable[[_Seen], _Found]] = {
    "scenarios": _check_scenarios,
    "journal": _check_journal,
    "complete": _check_complete,
    "model": _check_model,
    "settings": _check_settings,
    "replies": _check_replies,
    "judge": _check_judge,
    "labels": _check_labels,
    "verdicts": _check_verdicts,
    "rules": _check_rules,
    "published": _check_published,
    "origin": _check_import,
}
"""In the order of the screen: the files before what is made of them."""
