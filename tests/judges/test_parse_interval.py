"""Intervals out of judge answers: JSON as models really write it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.parsed import parse_interval
from unmask.judges.parse import KEYS, find_interval
from unmask.records import Interval

OPEN = Interval()
READ = [
    ('{"lower": 3, "upper": 5}', Interval(3, 5)),
    ('{"lower": 3.5, "upper": 5.25, "relative_lower": null, "relative_upper": null}', Interval(3.5, 5.25)),
    ('{"lower": 5, "upper": 3}', Interval(3, 5)),
    ('{"lower": -5, "upper": -7}', Interval(-7, -5)),
    ('{"lower": 3}', Interval(3, None)),
    ('{"upper": 3}', Interval(None, 3)),
    ('{"lower": null, "upper": null}', OPEN),
    ('{"lower": 3, "upper": 5, "confidence": "high"}', Interval(3, 5)),
    ('{"lower": "3", "upper": "5"}', Interval(3, 5)),
    ('{"lower": "1,200", "upper": "1 300"}', Interval(1200, 1300)),
    ('{"lower": "45%", "upper": "50 percent"}', Interval(45, 50)),
    ('{"lower": "about 40 km", "upper": "3 million"}', Interval(40, 3e6)),
    ('{"lower": "3e8", "upper": "3 × 10^9"}', Interval(3e8, 3e9)),
    ('{"lower": "null", "upper": "N/A"}', OPEN),
    ('{"lower": "", "upper": "none"}', OPEN),
    ('{"lower": NaN, "upper": Infinity}', OPEN),
    ('{"lower": -Infinity, "upper": 4}', Interval(None, 4)),
    ('{"lower": "-inf", "upper": "∞"}', OPEN),
    ('{"lower": 1e400, "upper": 4}', Interval(None, 4)),
    ('{"lower": 1' + "0" * 400 + "}", OPEN),
    ('{"Lower": 3, "UPPER": 5}', Interval(3, 5)),
    ('```json\n{"lower": 3, "upper": 5}\n```', Interval(3, 5)),
    ('Here it is:\n\n```\n{"lower": 3,\n "upper": 5}\n```\nDone.', Interval(3, 5)),
    ('<think>{"lower": 9}</think>{"lower": 3}', Interval(3, None)),
    ('{"lower": 9} no, rather {"lower": 3}', Interval(3, None)),
    ('{"lower": number or null, "upper": number or null}\n{"lower": 3, "upper": 5}', Interval(3, 5)),
    ('{"answer": {"lower": 3, "upper": 5}}', Interval(3, 5)),
    ('[{"lower": 3, "upper": 5}]', Interval(3, 5)),
    ('{"reason": "a } brace and {\\"lower\\": 9}", "lower": 3}', Interval(3, None)),
    ('{"lower": 3, "upper": 5,}', Interval(3, 5)),
    ("{'lower': 3, 'upper': None}", Interval(3, None)),
    ("{lower: 3, upper: 5}", Interval(3, 5)),
    ('{"lower": 1,200, "upper": 1,300}', Interval(1200, 1300)),
    ('{"lower": 45%, "upper": 50%}', Interval(45, 50)),
    ('{"lower": +3, "upper": 5.0}', Interval(3, 5)),
    ('{\n  "lower": 3, // low\n  "upper": 5 # high\n}', Interval(3, 5)),
    ("{“lower”: 3, “upper”: 5}", Interval(3, 5)),
    ('{"lower": 3\n "upper": 5}', Interval(3, 5)),
]
UNREADABLE = [
    "",
    "3 to 5",
    "{}",
    '{"low": 3, "high": 5}',
    '{"lower": true}',
    '{"lower": 3, "upper": false}',
    '{"lower": [3]}',
    '{"lower": {"value": 3}}',
    '{"lower": "many"}',
    '{"lower": "3 or 5"}',
    '{"lower": "between 3 and 5"}',
    '{"lower": ">5"}',
    '{"lower": 3, "upper": "lots"}',
    '{"lower": 3, "upper": 5',
    '{"lower": number or null, "upper": number or null}',
    '[{"lower": 3}, {"lower": 4}]',
    '{"first": {"lower": 3}, "second": {"lower": 4}}',
    '{"lower": 9}\n{"lower": "unclear to me, 3 or 5"}',
    "<think>" + '{"lower": 9}',
    '> {"lower": 9}',
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_bounds_are_read(text, expected):
    """Absolute bounds however they were written; nothing relative."""
    assert parse_interval(text) == (expected, OPEN)


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_gives_no_bounds_is_unreadable(text):
    """Wrong types, fragments and several answers at once are None, not an empty interval."""
    assert parse_interval(text) is None


def test_relative_bounds_are_read_apart():
    """The relative pair has its own interval, swapped on its own."""
    assert parse_interval('{"lower": 5, "upper": 6, "relative_lower": 30, "relative_upper": 25}') == (
        Interval(5, 6),
        Interval(25, 30),
    )


def test_only_relative_bounds_are_an_answer():
    """One of the four keys is enough."""
    assert parse_interval('{"relative_upper": "25%"}') == (OPEN, Interval(None, 25))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('The reply says {"lower": 9} and', None),
        ('{"lower": 3}\nFurther', (Interval(3, None), OPEN)),
        ('```json\n{"lower": 3}\n', (Interval(3, None), OPEN)),
    ],
)
def test_of_a_cut_off_judge_only_an_object_on_its_own_line_counts(text, expected):
    """An object in mid-sentence may be a quotation."""
    assert parse_interval(text, complete=False) == expected


def test_the_reason_key_is_kept():
    """Structured answers carry their reason inside."""
    found = find_interval('{"reason": "It says 3.", "lower": 3}')
    assert found is not None
    assert found.why == "It says 3."


def test_the_text_before_is_the_reason_otherwise():
    """Free answers carry it in front, without the code fence."""
    found = find_interval('It says 3.\n```json\n{"lower": 3}\n```')
    assert found is not None
    assert found.why == "It says 3."


BOUND = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**15), 10**15)


@given(st.fixed_dictionaries(dict.fromkeys(KEYS, BOUND)), st.sampled_from(["{}", "```json\n{}\n```", "So:\n{}\nEnd."]))
def test_any_four_numbers_round_trip(bounds, wrap):
    """What valid JSON says is what is read, in order of size."""
    found = parse_interval(wrap.replace("{}", json.dumps(bounds)))
    assert found is not None
    for pair, (low, high) in zip(
        found, ((bounds[KEYS[0]], bounds[KEYS[1]]), (bounds[KEYS[2]], bounds[KEYS[3]])), strict=True
    ):
        swapped = low is not None and high is not None and low > high
        assert (pair.lower, pair.upper) == ((high, low) if swapped else (low, high))


@given(st.text())
def test_no_text_breaks_the_parser(text):
    """Any text gives two intervals or None."""
    found = parse_interval(text)
    assert found is None or len(found) == 2


@given(st.text(alphabet='{}[]":,lowerup 0123456789.-\n', max_size=120))
def test_no_near_json_breaks_the_parser(text):
    """Fragments of the format are read or refused, never raised on; bounds are in order."""
    for pair in parse_interval(text) or ():
        assert pair.lower is None or pair.upper is None or pair.lower <= pair.upper


@pytest.mark.parametrize("text", ["[" * 5000 + "{", "{" * 5000, '{"lower":' * 3000, "[{" * 3000])
def test_deep_nesting_is_refused(text):
    """Depth is no crash."""
    assert parse_interval(text) is None
