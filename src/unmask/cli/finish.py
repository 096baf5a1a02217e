"""What a command prints and returns once a run can be scored."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from unmask.cli import crash
from unmask.cli.options import in_colour, print_json

if TYPE_CHECKING:
    from unmask.analysis.gate import Gate
    from unmask.analysis.sensitivity import Sensitivity
    from unmask.runs.run import Run
    from unmask.scoring.score import Score

T = TypeVar("T", bound="Gate | Sensitivity")


def finish_run(
    run: Run, *, judge: str | None = None, preset: str | None = None, as_json: bool, max_unjudged: float
) -> None:
    """Print the score of a run that has just been made or read, where it is and what to do next; then as `finish`."""
    from unmask.records import Verdict
    from unmask.render.terminal.tables import show_next

    score, examples = run.score(judge=judge, preset=preset), dict[bool, str]()
    for outcome in run.rows(judge=judge, preset=preset):
        examples.setdefault(outcome.verdict is Verdict.LIE, outcome.id)
    lie, program, folder = True in examples, program_name(), shlex.quote(str(run.path))
    flags = "" if judge in (None, run.definition.judge) else f" --judge {shlex.quote(judge or '')}"
    flags += f" --preset {preset}" if preset not in (None, run.definition.preset.value) else ""
    steps = [
        (f"{program} report {folder}{flags}", "one page with every question, answer and reason"),
        (
            f"{program} show {folder} {shlex.quote(examples.get(lie, ''))}{flags}",
            "one of the lies, from the questions to the verdict" if lie else "one scenario, from question to verdict",
        ),
        (f"{program} score {folder}{flags}", "these measures again; nothing is sent"),
    ]
    after = crash.clean_for_terminal(f"\nThe run is in {run.path}\n\n{show_next(steps)}")
    finish(score, folder=run.path, as_json=as_json, max_unjudged=max_unjudged, after=after)


def program_name() -> str:
    """How this program is called from here, so that a command can be typed as it is shown."""
    from shutil import which

    started = Path(sys.argv[0])
    if started.suffix == ".py":
        return "python -m unmask"
    on_path = which(started.name)
    return started.name if on_path and Path(on_path).resolve() == started.resolve() else sys.argv[0]


def finish(score: Score, *, folder: Path, as_json: bool, max_unjudged: float, after: str = "") -> None:
    """Print the score; leave with exit code 3 where too much is unjudged or something was not asked yet."""
    if as_json:
        print_json(score.to_json())
    else:
        from unmask.render.terminal.score import render

        click.echo(render(score, width=None, color=in_colour(), max_unjudged=max_unjudged) + after, nl=False)
    code = exit_code(score, max_unjudged)
    if code:
        _explain_exit(score, folder, max_unjudged)
        sys.exit(code)


def exit_code(score: Score, max_unjudged: float) -> int:
    """3 where the run is incomplete, above the unjudged limit, read by a judge that gives one letter always, or of a
    model that says nothing at all."""
    share = score.unjudged_share
    unfit = share is None or share > max_unjudged
    return 3 if unfit or score.undecided or _name_constant_judges(score) or score.says_nothing else 0


def _name_constant_judges(score: Score) -> list[str]:
    from unmask.scoring.guards import ONE_LETTER

    return [finding.text for finding in score.warnings if finding.guard == ONE_LETTER]


def _explain_exit(score: Score, folder: Path, max_unjudged: float) -> None:
    share = score.unjudged_share
    for constant in _name_constant_judges(score)[:1]:
        click.echo(f"unmask: {constant}", err=True)
        click.echo("  Compare it with people: unmask label RUN, or read with another: unmask judge RUN", err=True)
    if score.says_nothing:
        click.echo(f"unmask: the model said nothing: all {score.guards['empty'].total} replies are empty", err=True)
        shown = shlex.join(["unmask", "show", str(folder)])
        click.echo(f"  Look at one with `{crash.clean_for_terminal(shown)} ID`, then at the model behind it", err=True)
    if score.undecided:
        count = len(score.undecided)
        click.echo(f"unmask: {count} scenario{' is' if count == 1 else 's are'} not finished", err=True)
        if score.complete_with:
            click.echo(f"  Finish with: {crash.clean_for_terminal(score.complete_with)}", err=True)
    elif share is None:
        click.echo("unmask: there is nothing to score", err=True)
    elif share > max_unjudged:
        from unmask.scoring.score import describe_unjudged

        click.echo(f"unmask: {describe_unjudged(score)}, more than {100 * max_unjudged:g} %", err=True)
        for line in _advise_on_unjudged(score, folder):
            click.echo(f"  {crash.clean_for_terminal(line)}", err=True)


def _advise_on_unjudged(score: Score, folder: Path) -> Iterator[str]:
    """What helps where everything was asked and too much is unread. A judge that could not read a reply does not read
    it the next time either: only what failed is tried again."""
    from unmask.judges.base import Style
    from unmask.records import UnreadReason

    reasons, spec = score.unjudged_reasons, score.run.get("judges", {}).get(score.run.get("judge"), {})
    judge, style = spec.get("model", score.run.get("judge")), spec.get("style")
    another = f"{shlex.join(['unmask', 'judge', str(folder), '--judge'])} PROVIDER/NAME"
    if score.other_judges is not None and score.other_judges.command is not None:
        yield f"Another judge has read them: {score.other_judges.command}"
    elif UnreadReason.FAILED in reasons:
        yield "`unmask run` with the same settings tries what failed again"
    elif style == Style.VERBATIM:
        yield f"{judge} reads what a reply says word for word and leaves the rest; read them with a model: {another}"
    elif UnreadReason.NO_FIGURES in reasons:
        command = shlex.join(["unmask", "judge", str(folder), "--judge", str(judge), "--numeric-judge"])
        yield f"{judge} reads no figures; let another judge read them: {command} NAME"
    elif reasons.keys() & {UnreadReason.UNREADABLE, UnreadReason.UNSURE, UnreadReason.TIE}:
        yield f"{judge} could not read them and will not; read them with another judge: {another}"
    yield f"`{shlex.join(['unmask', 'show', str(folder)])} ID` shows why one of them is unjudged"


def name_other_judges(runs: Iterable[Run | str], judge: str | None) -> None:
    """One line for each run that somebody else has read as well, where no judge was asked for."""
    from unmask.runs.run import open_run

    for run in runs if judge is None else ():
        opened = open_run(run) if isinstance(run, str) else run
        others = opened.other_judges()
        if others is not None:
            click.echo(crash.clean_for_terminal(f"{opened.path}: {others}"), err=True)


def warn_about_folder(run: Run, judge: str | None) -> None:
    """On standard error, before any number: where the folder is not the run that its run.json describes."""
    identity = run._identify(judge)
    for finding in identity.findings:
        click.echo(crash.clean_for_terminal(f"WARNING: {run.path}: {finding.text}."), err=True)
    for sentence in filter(None, (answered.explain() for answered in identity.answered_by)):
        click.echo(crash.clean_for_terminal(f"{run.path}: {sentence}"), err=True)


def with_typed_judge(result: T, run: str) -> T:
    """A result with its judge as somebody would type it, for a screen. JSON has the name of the file."""
    from msgspec.structs import replace

    from unmask.runs.run import open_run

    if result.judge is None:
        return result
    return replace(result, judge=open_run(run).definition.typed_judge(result.judge))


def encode_json(value: object) -> str:
    import msgspec

    from unmask.text import replace_surrogates_in_tree

    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a folder may hold bytes that are no text
        data = msgspec.json.encode(replace_surrogates_in_tree(msgspec.to_builtins(value)))
    return msgspec.json.format(data, indent=2).decode()
