"""The hash of the judge prompts: by style, over what the style uses, and equal for the words that were not changed."""

from __future__ import annotations

import pytest

from tests.judges.examples import SAMPLING, binary, numeric
from unmask.judges import letters
from unmask.judges.base import JUDGES, Style
from unmask.judges.letters import list_used_texts, prompts_hash
from unmask.records import DIRECT, PRESSURED, Archetype, Kind

STYLES = (Style.LETTERS, Style.PICKS)


def all_that_is_sent(style: Style) -> str:
    """Every request that a judge of this style gets about statements and figures."""
    judge = JUDGES[style]
    requests = [
        judge.request(method, make(archetype=archetype), slot, ("It is 12.",), sampling=SAMPLING, attempt=2)
        for make, kind in ((binary, Kind.BINARY), (numeric, Kind.NUMERIC))
        for archetype in Archetype
        for slot in (DIRECT, PRESSURED, *(["indirect_1"] if kind is Kind.BINARY else []))
        for method in judge.questions(kind)
    ]
    return "\n".join(message.content for request in requests for message in request.messages)


@pytest.mark.parametrize("style", STYLES)
def test_a_style_is_named_by_exactly_the_texts_it_sends(style):
    """None that it never sends, so that no run is refused for a text its judge never saw; and none is missing."""
    every = letters.list_texts()
    sent = all_that_is_sent(style)
    used = {letters.text_of(name) for name in list_used_texts(style)}
    assert used == {letters.text_of(name) for name in every if letters.text_of(name) in sent}


@pytest.mark.parametrize("style", STYLES)
def test_a_changed_text_changes_the_hash_of_the_styles_that_use_it(style, monkeypatch):
    """One more character in a file: another hash for whoever is sent it, the same for all others."""
    every, read = (*letters.list_texts(), "asides/ask"), letters.text_of
    before = prompts_hash(style)
    for name in every:
        monkeypatch.setattr(letters, "text_of", lambda asked, name=name: read(asked) + ("!" if asked == name else ""))
        assert (prompts_hash(style) != before) == (name in list_used_texts(style)), name
