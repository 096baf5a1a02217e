"""The Python face: `unmask.run`, `unmask.judge`, `unmask.open_run`, with the scripted models that ship."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path

import pytest

import unmask
from tests.golden_files import check_golden
from unmask.errors import MissingError, UsageError
from unmask.models.scripted import Scripted
from unmask.records import Request, Verdict

JUDGE = "scripted/judge"


def small(out: Path, model: str = "scripted/liar", **settings: object) -> unmask.Run:
    return unmask.run(data="tiny", model=model, judge=JUDGE, out=out, **settings)


@pytest.mark.parametrize(
    ("model", "verdict"),
    [("honest", Verdict.HONEST), ("liar", Verdict.LIE), ("evasive", Verdict.EVASION)],
)
def test_each_scripted_character_gets_its_verdict_everywhere(tmp_path: Path, model: str, verdict: Verdict):
    """All twelve scenarios, all six archetypes."""
    run = small(tmp_path / "run", f"scripted/{model}")
    assert {row.verdict for row in run.rows()} == {verdict}


def test_it_runs_inside_a_running_event_loop(tmp_path: Path):
    """As in a notebook: the caller's loop is left alone."""

    async def notebook() -> unmask.Run:
        return small(tmp_path / "run")

    assert asyncio.run(notebook()).score().overall.counts[Verdict.LIE] == 12


def test_the_same_call_again_asks_nothing(tmp_path: Path):
    """A finished run is read, not repeated."""
    small(tmp_path / "run")
    calls = []

    def reply(request: Request) -> str:
        calls.append(request)
        return "no"

    again = unmask.run(data="tiny", model=Scripted(reply, name="scripted/liar"), judge=JUDGE, out=tmp_path / "run")
    assert calls == []
    assert again.score().overall.p_lie.hits == 12


def test_a_model_of_ones_own_is_one_callable(tmp_path: Path):
    """Anything that meets the Model protocol can be the subject."""
    run = unmask.run(
        data="tiny",
        model=Scripted(lambda _: "I would rather not say.", name="my/model"),
        judge="verbatim",
        out=tmp_path,
    )
    assert run.definition.subject.model == "my/model"
    assert run.score().overall.counts[Verdict.HONEST] == 0


def test_an_unknown_setting_is_a_usage_error_that_names_it(tmp_path: Path):
    """A misspelt keyword must not be ignored."""
    with pytest.raises(UsageError, match="temprature"):
        small(tmp_path / "run", temprature=1.0)


def test_a_folder_that_is_no_run_says_so(tmp_path: Path):
    """With what to type next."""
    with pytest.raises(MissingError, match=r"no run\.json"):
        unmask.open_run(tmp_path)


def test_half_a_character_in_a_reply_of_ones_own_model_is_kept_as_a_sign_and_asked_once(tmp_path: Path):
    """What the journal holds is what is read: the next call finds nothing to ask or to read again."""
    calls = []

    def reply(request: Request) -> str:
        calls.append(request)
        return "I would rather not say \ud83d"

    for _ in range(2):
        run = unmask.run(data="tiny", model=Scripted(reply, name="my/model"), judge=JUDGE, out=tmp_path / "run")
    lines = list(run.folder.asked())
    assert {choice.text for line in lines for choice in line.choices} == {"I would rather not say \ufffd"}
    assert len(calls) == sum(len(line.takes) for line in lines)


def test_public_signatures():
    """What people call: names, parameters and defaults of all public functions, classes and their methods."""
    lines = []
    for name in sorted(set(unmask.__all__) - {"__version__"}):
        public = getattr(unmask, name)
        if inspect.isclass(public):
            lines.append(f"class {name}")
            for member, value in sorted(vars(public).items()):
                if member.startswith("_") or member in {"with_traceback", "add_note"}:
                    continue
                call = inspect.signature(value) if inspect.isfunction(value) else ""
                lines.append(f"  {member}{call}")
        else:
            lines.append(f"{name}{inspect.signature(public)}")
    check_golden("public_names.txt", re.sub(r" at 0x\w+", "", "\n".join(lines)) + "\n")
