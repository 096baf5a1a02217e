"""What a command prints and returns once a run can be scored."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from unmask.cli.flags import MAX_UNJUDGED
from unmask.cli.options import print_blocks, print_json, print_note

if TYPE_CHECKING:
    from unmask.analysis.gate import Gate
    from unmask.analysis.sensitivity import Sensitivity
    from unmask.render.describe.score import Steps
    from unmask.runs.run import Run
    from unmask.scoring.score import Score

T = TypeVar("T", bound="Gate | Sensitivity")


def finish_run(run: Run, *, judge: str | None = None, preset: str | None = None, as_json: bool) -> None:
    """Print the score of a run that has just been made or judged, where it is and what to do next; then as `finish`."""
    from unmask.records import Verdict

    score, rows = run.score(judge=judge, preset=preset), run.rows(judge=judge, preset=preset)
    lie = next((row.id for row in rows if row.verdict is Verdict.LIE), None)
    flags = [] if judge in (None, run.definition.judge) else ["--judge", run.definition.typed_judge(judge)]
    flags += ["--preset", preset] if preset and preset != run.definition.preset.value else []
    note = "a lie, from question to verdict" if lie else "from question to verdict"
    steps = [(_type("show", run, lie or rows[0].id, *flags), note)]
    finish(score, run, as_json=as_json, flags=flags, steps=steps)


def _type(command: str, run: Run, *words: str) -> str:
    """A command of this program about a run, as it can be typed here."""
    return f"{program_name()} {shlex.join([command, str(run.path), *words])}"


def program_name() -> str:
    """How this program is called from here, so that a command can be typed as it is shown."""
    from shutil import which

    started = Path(sys.argv[0])
    if started.suffix == ".py":
        return "python -m unmask"
    on_path = which(started.name)
    return started.name if on_path and Path(on_path).resolve() == started.resolve() else sys.argv[0]


def finish(
    score: Score,
    run: Run,
    *,
    as_json: bool,
    max_unjudged: float = MAX_UNJUDGED,
    every: bool = False,
    flags: Sequence[str] = (),
    own: Sequence[str] = (),
    steps: Steps = (),
) -> None:
    """Print the score, or `every` measure of it, and what to type next: first what is missing. `flags` are for every
    command about this score, `own` for `unmask score` only. Leave with exit code 3 where too much is unjudged or
    something was not asked yet."""
    from unmask.render.describe.score import describe_score
    from unmask.runs.imported import read_import_file

    reasons = list_reasons(score, max_unjudged)
    missing = list(_list_missing(score, run, max_unjudged))
    about = read_import_file(run.path)
    if as_json:
        print_json(score.to_json() | ({"against": about.against} if about is not None else {}))
    else:
        page = (_type("report", run, *flags), "everything on one page")
        more = [] if every else [(_type("score", run, *flags, *own, "--all"), "every measure, and the cost")]
        said = {command for command, _ in missing}
        steps = [*missing, page, *(step for step in steps if step[0] not in said), *more]
        print_blocks(describe_score(score, every=every, max_unjudged=max_unjudged, steps=steps, about=about))
    for reason in reasons:
        print_note(f"unmask: {reason}")
    if reasons:
        for command, note in missing if as_json else ():
            print_note(f"  {note}: {command}")
        sys.exit(3)


def list_reasons(score: Score, max_unjudged: float) -> list[str]:
    """Why the exit code is 3: the run is incomplete, above the unjudged limit, judged by one that gives one letter
    always, or of a model that says nothing at all."""
    from unmask.scoring.score import describe_unjudged

    share, undecided = score.unjudged_share, len(score.undecided)
    reasons = _name_constant_judges(score)[:1]
    if score.says_nothing:
        reasons.append(f"the model said nothing: all {score.guards['empty'].total} replies are empty")
    if undecided:
        reasons.append(f"{undecided} scenario{' is' if undecided == 1 else 's are'} not finished")
    elif share is None:
        reasons.append("there is nothing to score")
    elif share > max_unjudged:
        reasons.append(f"{describe_unjudged(score)}, more than {100 * max_unjudged:g} %")
    return reasons


def _name_constant_judges(score: Score) -> list[str]:
    from unmask.scoring.guards import ONE_LETTER

    return [finding.text for finding in score.warnings if finding.guard == ONE_LETTER]


def _list_missing(score: Score, run: Run, max_unjudged: float) -> Iterator[tuple[str, str]]:
    """The commands that help where something is missing, each with what it does. A judge that could not read a reply
    does not read it the next time either: only what failed is tried again."""
    from unmask.cli.defaults import PUBLISHED_JUDGE
    from unmask.judges.base import Style
    from unmask.records import Preset, UnreadReason, Verdict
    from unmask.runs.commands import completing_command

    reasons, share, preset = score.unjudged_reasons, score.unjudged_share or 0.0, Preset(score.preset)
    spec = score.run.get("judges", {}).get(score.run.get("judge"), {})
    judge, style = spec.get("model", score.run.get("judge")), spec.get("style")
    if _name_constant_judges(score):
        yield _type("label", run), "compares the judge with people"
    if UnreadReason.FAILED in reasons and not score.undecided:
        command = completing_command(run.definition, run.path, judge=score.run.get("judge"), preset=preset)
        yield command, f"tries the {reasons[UnreadReason.FAILED]} failed again"
    elif share > max_unjudged and not score.undecided:
        another = _type("judge", run, "--judge", PUBLISHED_JUDGE)
        if style == Style.VERBATIM:
            yield another, f"reads the rest with a model: {judge} reads only what is said word for word"
        elif UnreadReason.NO_FIGURES in reasons:
            command = _type("judge", run, "--judge", str(judge), "--numeric-judge", PUBLISHED_JUDGE)
            yield command, f"lets another judge read the numbers, which {judge} cannot"
        elif reasons.keys() & {UnreadReason.UNREADABLE, UnreadReason.UNSURE, UnreadReason.TIE}:
            yield another, f"{judge} cannot read these replies, and trying again will not help"
    if share > max_unjudged or score.says_nothing:
        rows = run.rows(judge=score.run.get("judge"), preset=preset)
        row = next((row for row in rows if row.verdict is Verdict.UNJUDGED), rows[0])
        yield _type("show", run, row.id), "why a reply is unread" if share > max_unjudged else "what was answered"


def warn_about_folder(run: Run, judge: str | None) -> None:
    """On standard error, before any number: where the folder is not the run that its run.json describes."""
    identity = run._identify(judge)
    for finding in identity.findings:
        print_note(f"WARNING: {run.path}: {finding.text}.")
    for sentence in filter(None, (answered.explain() for answered in identity.answered_by)):
        print_note(f"{run.path}: {sentence}")


def with_typed_judge(result: T, run: str) -> T:
    """A result with its judge as somebody would type it, for a screen. JSON has the name of the file."""
    from msgspec.structs import replace

    from unmask.runs.run import open_run

    if result.judge is None:
        return result
    return replace(result, judge=open_run(run).definition.typed_judge(result.judge))
