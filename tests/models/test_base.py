"""What a model says it can do."""

from __future__ import annotations

import asyncio

import pytest

import unmask
from unmask.models.base import Capabilities
from unmask.records import Choice, Completion, Request


class OwnModel:
    """A model of a user."""

    name = endpoint = "mine/own"

    def __init__(self, abilities: Capabilities) -> None:
        self.capabilities = abilities
        self.asked: list[int] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.n)
        return Completion((Choice("It is true."),) * request.n)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("most", [1, 3, 10])
def test_a_run_asks_a_model_of_a_user_for_as_many_choices_as_it_can_give(tmp_path, most: int):
    """Ten takes go out in as few requests as the model allows."""
    model = OwnModel(Capabilities(max_n=most))
    options = {"takes": 10, "limit": 1, "effort": "full", "archetype": ["known_facts"]}
    unmask.run(data="core", model=model, judge="scripted/judge", out=tmp_path / "run", **options)
    assert max(model.asked) == most
    asyncio.run(model.close())
