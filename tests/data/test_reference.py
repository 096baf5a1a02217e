"""One row of the reference layout."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.made import row, scenario
from unmask.data.form import Fault, encode_lines
from unmask.data.reference import parse_interval, parse_row, reference_cells
from unmask.records import Archetype, Interval, Kind, Letter, Message, Scenario


def good(archetype: Archetype = Archetype.KNOWN_FACTS, **changes: str | None) -> Scenario:
    result = parse_row(row(archetype, **changes), archetype=archetype)
    assert isinstance(result, Scenario), result
    return result


def bad(archetype: Archetype = Archetype.KNOWN_FACTS, **changes: str | None) -> str:
    result = parse_row(row(archetype, **changes), archetype=archetype)
    assert isinstance(result, tuple), result
    return "; ".join(fault.message for fault in result)


def test_a_known_facts_row_becomes_a_scenario():
    """Every column lands in its field."""
    assert good() == Scenario(
        id="one",
        archetype=Archetype.KNOWN_FACTS,
        kind=Kind.BINARY,
        proposition="The kettle <pivotal>is/is not</pivotal> on.",
        truth=Letter.A,
        conversation=(Message("system", "You sell kettles."), Message("user", "Is the kettle on?")),
        direct="Is the kettle on? Yes or no?",
        indirect=("What does the kettle do?", "It is cold in here, is the kettle off?"),
        canary="cheep",
        delivery=1,
    )


def test_doubling_down_puts_the_first_turn_before_the_user_prompt():
    """The order is system, first question, scripted answer, user prompt."""
    turns = [(m.role, m.content) for m in good(Archetype.DOUBLING_DOWN).conversation]
    assert turns == [
        ("system", "You sell kettles."),
        ("user", "Is it on?"),
        ("assistant", "It is off."),
        ("user", "Is the kettle on?"),
    ]


def test_columns_that_an_archetype_or_kind_has_no_use_for_are_passed_over():
    """Also those of somebody else. The kind of a row comes from its type column."""
    found = good(Archetype.PROVIDED_FACTS, belief_elicit_1="Is it on?", mood="sunny")
    assert (found.direct, found.indirect) == (None, ())
    found = good(Archetype.STATISTICS, belief_elicit_2="What does it hold?")
    assert (found.direct, found.indirect) == ("Is the kettle on? Yes or no?", ())
    numeric = {"type": "numerical", "proposition": "It holds <value> l.", "formatted_ground_truth": "[1, 2]"}
    found = good(**numeric, belief_elicit_2="", belief_elicit_3="")
    assert (found.kind, found.truth, found.indirect) == (Kind.NUMERIC, Interval(1.0, 2.0), ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"proposition": "It <pivotal>is on</pivotal>."}, "no slash"),
        ({"proposition": "It <pivotal>is/is not/may be</pivotal> on."}, "2 slashes"),
        ({"proposition": "It <pivotal>is/is</pivotal> on."}, "the same"),
        ({"proposition": "It is/is not on."}, "exactly one <pivotal>"),
        ({"proposition": "<pivotal>a/b</pivotal> <pivotal>c/d</pivotal>"}, "exactly one <pivotal>"),
        ({"proposition": "It <pivotal>is/is not<pivotal> on."}, "exactly one <pivotal>"),
        ({"proposition": "</pivotal>is/is not<pivotal>"}, "exactly one <pivotal>"),
        ({"proposition": " "}, "`proposition` is empty"),
        ({"formatted_ground_truth": "C"}, "neither A nor B"),
        ({"formatted_ground_truth": "[1, 2]"}, "neither A nor B"),
        ({"type": "ternary"}, "'ternary'"),
        ({"type": None}, "column `type` is missing"),
        ({"task_id": "  "}, "`task_id` is empty"),
        ({"task_id": None}, "column `task_id` is missing"),
        ({"system_prompt": ""}, "`system_prompt` is empty"),
        ({"user_prompt": "\n"}, "`user_prompt` is empty"),
        ({"belief_elicit_1": ""}, "`belief_elicit_1` is empty"),
        ({"belief_elicit_3": None}, "column `belief_elicit_3` is missing"),
        ({"delivery": "soon"}, "'soon'"),
        ({"unmask": "{"}, "holds no scenario"),
        ({"unmask": '{"id": "x"}'}, "holds no scenario"),
        (
            {"unmask": encode_lines([scenario("one", yes_means=Letter.B)]).decode()},
            "does not say what",
        ),
    ],
)
def test_a_row_that_cannot_be_used_says_why(changes: dict[str, str | None], message: str):
    """Each way a row can be broken has a message that names it."""
    assert message in bad(**changes)


def test_a_row_with_several_faults_names_them_all():
    """Nobody has to mend a row three times."""
    text = bad(system_prompt="", user_prompt=None, belief_elicit_1="")
    assert all(name in text for name in ("system_prompt", "user_prompt", "belief_elicit_1"))


@pytest.mark.parametrize("text", ["1.0", " 1 ", "1."])
def test_delivery_is_read_as_pandas_prints_it(text: str):
    """A column with gaps is printed as floats."""
    assert good(delivery=text).delivery == 1


def test_the_unmask_column_holds_what_the_others_cannot_say():
    """All of the scenario, whose other columns may not be changed without it."""
    made = scenario(yes_means=Letter.B, indirect=("Which?",))
    assert parse_row(reference_cells(made), archetype=made.archetype) == made


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("[1, 2]", Interval(1.0, 2.0)),
        (" ( -1.5 , +2e3, ) ", Interval(-1.5, 2000.0)),
        ("[.5, 5.]", Interval(0.5, 5.0)),
        ("[None, 2]", Interval(None, 2.0)),
        ("[1, null]", Interval(1.0, None)),
        ("[-inf, 2]", Interval(None, 2.0)),
        ("[1, inf]", Interval(1.0, None)),
    ],
)
def test_a_truth_list_is_read(text: str, interval: Interval):
    """Python-style lists of two bounds, open ones included."""
    assert parse_interval(text) == interval


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2, 3]",
        "[None, None]",
        "[-inf, inf]",
        "[inf, 2]",
        "[1, -inf]",
        "[nan, 1]",
        "['1', '2']",
        "[1, 2",
        "[__import__('os'), 2]",
        "[١, ٢]",
        "[1_000, 2]",
    ],
)
def test_anything_else_is_no_truth_list(text: str):
    """Nothing is guessed and nothing evaluated."""
    assert parse_interval(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_every_printed_pair_of_floats_is_read_exactly(lower: float, upper: float):
    """What Python prints for a list of two numbers comes back bit for bit."""
    assert parse_interval(str([lower, upper])) == Interval(lower, upper)


COLUMNS = st.sampled_from([*row(Archetype.DOUBLING_DOWN), "unmask"])


@given(st.dictionaries(COLUMNS, st.text()), st.sampled_from(Archetype))
def test_any_cells_give_a_scenario_or_faults(cells: dict[str, str], archetype: Archetype):
    """No content of a row can raise."""
    result = parse_row(cells, archetype=archetype)
    assert isinstance(result, Scenario) or all(isinstance(fault, Fault) for fault in result)
