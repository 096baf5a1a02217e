"""Lanes: prompts that begin alike meet in one slot, all others spread."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.models.local.lanes import SHARED_CHARACTERS, Lanes


@pytest.fixture
def lanes():
    made = Lanes(3)
    yield made
    made.close()


def slots(lanes: Lanes, *prompts: str) -> list[int]:
    """The slot of each, all of them under way at the same time."""
    with ExitStack() as stack:
        return [stack.enter_context(lanes.take_lane(prompt)).slot for prompt in prompts]


def reply(name: str, *, order: str = "1") -> str:
    return f"{name * SHARED_CHARACTERS} {order}"


def test_the_second_order_follows_the_first(lanes):
    assert slots(lanes, reply("a"), reply("a", order="2"), reply("b"), reply("b", order="2")) == [0, 0, 1, 1]


def test_the_first_order_is_found_again_when_it_is_over(lanes):
    first = slots(lanes, reply("a"), reply("b"), reply("c"))
    assert slots(lanes, reply("c", order="2"), reply("a", order="2"), reply("b", order="2")) == [first[2], *first[:2]]


def test_questions_that_share_little_spread(lanes):
    alike = "x" * (SHARED_CHARACTERS - 1)
    assert slots(lanes, alike + "a", alike + "b", alike + "c") == [0, 1, 2]


def test_a_slot_that_is_through_is_given_again(lanes):
    with lanes.take_lane(reply("a")), lanes.take_lane(reply("b")):
        with lanes.take_lane(reply("c")) as lane:
            pass
        with lanes.take_lane(reply("d")) as next_one:
            assert next_one == lane


@given(st.lists(st.text(max_size=5), max_size=12, unique=True))
def test_no_slot_has_two_more_than_another_where_nothing_is_shared(prompts):
    lanes = Lanes(4)
    found = slots(lanes, *prompts)
    counts = [found.count(slot) for slot in range(4)]
    assert max(counts) - min(counts) <= 1
    lanes.close()


def test_one_slot_takes_everything():
    lanes = Lanes(1)
    assert slots(lanes, "a", "b", "") == [0, 0, 0]
    lanes.close()
