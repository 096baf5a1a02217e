"""What a model says it can do, and models that were written before there was a record for it."""

from __future__ import annotations

import asyncio

import pytest

import unmask
from unmask.engine.define import style_of
from unmask.judges.base import Style
from unmask.models.base import Capabilities, capabilities_of
from unmask.records import Choice, Completion, Request


class OlderModel:
    """A model of a user, with the attributes that the protocol had before."""

    name = endpoint = "mine/older"

    def __init__(self, *, max_n: int = 1, supports_options: bool = False) -> None:
        self.max_n = max_n
        self.supports_options = supports_options
        self.asked: list[int] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.n)
        return Completion((Choice("It is true."),) * request.n)

    async def close(self) -> None:
        pass


class NewerModel(OlderModel):
    """The same with a record, which counts."""

    capabilities = Capabilities(max_n=10)


def test_a_model_without_the_record_says_it_with_its_attributes():
    assert capabilities_of(OlderModel(max_n=7, supports_options=True)) == Capabilities(max_n=7, supports_options=True)


@pytest.mark.parametrize(
    ("abilities", "style"),
    [
        (Capabilities(), Style.LETTERS),
        (Capabilities(supports_options=True), Style.LETTERS),
        (Capabilities(supports_options=True, trained_to_read=True), Style.PICKS),
        (Capabilities(trained_to_read=True), Style.LETTERS),
    ],
)
def test_a_judge_is_asked_by_what_it_can_do(abilities: Capabilities, style: Style):
    """Every model writes, but for one that was trained to read and gives probabilities of options."""
    judge = NewerModel()
    judge.capabilities = abilities
    assert style_of(judge) is style


@pytest.mark.parametrize(("model", "most"), [(OlderModel(), 1), (OlderModel(max_n=3), 3), (NewerModel(), 10)])
def test_a_run_asks_a_model_of_a_user_for_as_many_choices_as_it_can_give(tmp_path, model: OlderModel, most: int):
    """Ten takes go out in as few requests as the model allows."""
    options = {"takes": 10, "limit": 1, "effort": "full", "archetype": ["known_facts"]}
    unmask.run(data="core", model=model, judge="scripted/judge", out=tmp_path / "run", **options)
    assert max(model.asked) == most
    asyncio.run(model.close())
