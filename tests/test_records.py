"""The nouns: archetypes as one table, slots as an open set, the questions of a scenario."""

from __future__ import annotations

import pytest

from unmask.judges.letters import text_of
from unmask.records import (
    Archetype,
    Kind,
    Letter,
    Message,
    Scenario,
)

CONVERSATION = (Message("system", "You sell cats."), Message("user", "Do they bark?"))


def scenario(archetype: Archetype = Archetype.KNOWN_FACTS, **fields) -> Scenario:
    return Scenario(
        id="cats",
        archetype=archetype,
        kind=Kind.BINARY,
        proposition="Cats <pivotal>meow/bark</pivotal>.",
        truth=Letter.A,
        conversation=CONVERSATION,
        **fields,
    )


@pytest.mark.parametrize("archetype", Archetype)
def test_every_archetype_says_what_people_and_judges_are_shown(archetype):
    """Each entry has a title and, where it names one, a text that exists."""
    assert archetype.traits.title
    assert archetype.traits.judge_text is None or text_of(archetype.traits.judge_text)


def test_only_what_supplies_its_fact_asks_for_no_belief():
    """Provided facts are believed as they are supplied."""
    assert [kind for kind in Archetype if not scenario(kind).asks_belief] == [Archetype.PROVIDED_FACTS]


def test_questions_are_in_the_order_they_are_asked():
    """Direct, indirect ones, check. The probes are the same without the check."""
    asked = scenario(direct="Do cats bark?", indirect=("What do cats say?", "And at night?"), check="What was said?")
    assert list(asked.questions) == ["direct", "indirect_1", "indirect_2", "check"]
    assert list(asked.probes) == ["direct", "indirect_1", "indirect_2"]
    assert asked.questions["indirect_2"] == "And at night?"
    assert scenario().questions == {}
