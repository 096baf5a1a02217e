"""The options of a run, and what may be set of a model."""

from __future__ import annotations

import pytest

from unmask.errors import UsageError
from unmask.runs.options import options_from


def test_a_setting_goes_to_the_model_that_it_names():
    given = {"price": "1/2", "judge.tier": "default", "numeric.max_tokens": "77", "judge.name": "mine"}
    options = options_from({"set": given}, numeric_judge="openai/o3-mini")
    assert (options.subject.price, options.judge.price) == ("1/2", None)
    assert (options.judge.tier, options.judge.name) == ("default", "mine")
    assert (options.judge.max_tokens, options.numeric_judge.max_tokens) == (None, 77)


def test_a_judge_for_numbers_has_temperature_and_room_of_the_judge():
    options = options_from({"set": {"judge.temperature": 0.3, "judge.max_tokens": 50, "judge.price": "1/1"}})
    numeric = options.numeric_judge
    assert (numeric.temperature, numeric.max_tokens, numeric.price) == (0.3, 50, None)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("max_token", "max_tokens"),
        ("judge.max_token", "judge.max_tokens"),
        ("judge.prize", "judge.price"),
        ("name", "judge.name"),
        ("numeric.name", "numeric."),
        ("judge.takes_per_call", "takes_per_call"),
        ("jugde.tier", "judge.tier"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_nearest(name, nearest):
    with pytest.raises(UsageError, match=f"--set {name}: there is no such setting") as refused:
        options_from({"set": {name: "1"}})
    assert nearest in (refused.value.advice or "")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_tokens", "many", "--set max_tokens=many cannot be used"),
        ("judge.timeout", "0", "--set judge.timeout=0 is out of range"),
        ("top_p", "3", "--set top_p=3 is out of range"),
        ("takes_per_call", 0, "--set takes_per_call=0 is out of range"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name, value, said):
    with pytest.raises(UsageError, match=said):
        options_from({"set": {name: value}})


def test_one_setting_given_twice_is_refused():
    with pytest.raises(UsageError, match="--set temperature and --temperature are the same setting"):
        options_from({"temperature": 0.5, "set": {"temperature": 0.6}})
