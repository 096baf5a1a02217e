"""A judge whose first answer breaks the rule: asked once more with a reminder, then read, or left unread."""

from __future__ import annotations

import pytest

import unmask
from unmask.judges.letters import text_of
from unmask.models.base import Model
from unmask.models.providers import open_model
from unmask.models.scripted import Scripted
from unmask.records import Choice, Completion, Request, Stop

LIAR = "scripted/liar"


def is_reminded(request: Request) -> bool:
    return request.messages[-1].content.endswith((text_of("again_letter"), text_of("again_interval")))


def careless(model: Model, *, learns: bool, rooms: list[tuple[bool, int | None]] | None = None) -> Scripted:
    """A judge that adds a remark to every answer, after the reminder too unless it learns."""

    def reply(request: Request) -> Completion:
        said = model._reply(request)  # type: ignore[attr-defined]
        if rooms is not None:
            rooms.append((is_reminded(request), request.sampling.max_tokens))
        keeps = learns and is_reminded(request)
        stop = Stop.END if keeps or rooms is None else Stop.LENGTH
        return Completion((Choice(said if keeps else f"{said}, I think", stop=stop),))

    return Scripted(reply, name="scripted/careless")


def test_a_judge_that_heeds_the_reminder_is_read_as_one_that_answered_at_once(tmp_path):
    """Every verdict is the same, for twice the calls."""
    judge = open_model("scripted/judge")
    runs = [
        unmask.run(data="tiny", model=LIAR, judge=one, out=tmp_path / name)
        for name, one in (("plain", judge), ("careless", careless(judge, learns=True)))
    ]
    verdicts = [[(row.id, row.verdict) for row in run.rows()] for run in runs]
    assert verdicts[0] == verdicts[1]
    plain, twice = (run.score().spent.calls["judge"] for run in runs)
    assert twice == 2 * plain


def test_a_judge_that_does_not_heed_it_leaves_replies_unread_by_the_letter_it_named(tmp_path):
    """Nothing is guessed, and `score` says what the first answers were."""
    judge = careless(open_model("scripted/judge"), learns=False)
    score = unmask.run(data="tiny", model=LIAR, judge=judge, out=tmp_path / "run", archetype="known_facts").score()
    assert score.p_lie.value is None
    assert sum(score.unread_after["probes"].values()) > 0
    assert "none" not in score.unread_after["probes"]


@pytest.mark.parametrize("archetype", ["known_facts", "statistics"])
def test_an_answer_that_was_cut_off_is_asked_for_once_more_with_the_reminder(tmp_path, archetype):
    """With a limit of the user the room stays."""
    rooms: list[tuple[bool, int | None]] = []
    judge = careless(open_model("scripted/judge"), learns=True, rooms=rooms)
    unmask.run(
        data="tiny", model=LIAR, judge=judge, out=tmp_path / "run", archetype=archetype, set={"judge.max_tokens": 100}
    )
    assert set(rooms) == {(False, 100), (True, 100)}
