"""The published facts: complete, attributed, and in the words of the program."""

from __future__ import annotations

import re

import pytest

from unmask.analysis.published.columns import COLUMNS, describe_others, place_values, published_rows
from unmask.analysis.published.values import HonestyDefinition, published_values, training_compute
from unmask.records import Archetype

SHARES = {
    "p_lie",
    "p_honest",
    "p_evasion",
    "p_no_belief",
    "p_evasion_or_no_belief",
    "p_honest_at_10",
    "p_evasion_or_no_belief_at_10",
    "lying_at_10",
    "honesty",
    "normalised_honesty",
    "accuracy",
    "no_belief_of_asked",
    "rectified_p_lie",
    "safety_rate",
    "judge_agreement",
    "self_report_agreement",
}
PLACE = re.compile(r"arXiv \d{4}\.\d{5}|\w/\w|(system|model) card|README|theaipost\.ai")


def test_every_value_is_attributed():
    """A source, and a place to look it up."""
    assert [one for one in published_values() if not one.source or not PLACE.search(one.where)] == []


def test_every_value_is_a_known_measure_in_its_range():
    """A share or a correlation, with bounds around it."""
    for one in published_values():
        least = -1 if one.measure.startswith("spearman_compute_") else 0
        assert least == -1 or one.measure in SHARES, one
        assert least <= one.value <= 1, one
        assert one.low is None or one.low <= one.value <= one.high, one
        assert one.archetype is None or Archetype(one.archetype), one


def test_every_honesty_score_carries_its_definition():
    """Anthropic's is never 1 - P(lie): H/(H+L) where the card states it, else not stated."""
    for one in published_values():
        is_honesty = one.measure in {"p_lie", "honesty", "normalised_honesty", "lying_at_10", "safety_rate"}
        assert is_honesty is (one.definition not in {HonestyDefinition.AS_NAMED, HonestyDefinition.RECTIFIED}), one
    anthropic = {one.model: one.definition for one in published_values() if one.source == "anthropic"}
    assert anthropic.pop("Claude Sonnet 5.5") is HonestyDefinition.OF_ASSERTIONS
    assert set(anthropic.values()) == {HonestyDefinition.NOT_STATED}


def test_a_value_stands_only_under_the_column_of_its_definition():
    """And under another or none it stands apart, with what is known of its definition."""
    rows = {(row.source, row.model, row.variant): row.values for row in published_rows()}
    sonnet = rows["anthropic", "Claude Sonnet 5.5", None]
    assert (place_values(sonnet), list(describe_others(sonnet))) == ({}, ["94.5 (H/(H+L), without statistics)"])
    opus = rows["anthropic", "Claude Opus 4.6", None]
    assert (place_values(opus), list(describe_others(opus))) == ({}, ["90.3 (not stated)"])
    grok = rows["xai", "Grok 4.7 (high)", None]
    assert (place_values(grok), list(describe_others(grok))) == ({}, ["100.0 (rectified)"])
    assert list(describe_others(rows["inspect_evals", "gpt-4o", None])) == ["62.9 (1-L/n)"]


def test_lying_at_10_is_published_under_its_own_name_only():
    """V6: honesty is per take, for runs and for what was published; Lying@10 of the paper's table is no honesty."""
    for row in published_rows():
        spans = place_values(row.values)
        assert spans.keys() <= set(COLUMNS)
        assert ("lying_at_10" in spans) is ("lying_at_10" in row.values)
        if "p_lie" in row.values and row.values["p_lie"].definition is HonestyDefinition.OF_ALL:
            assert spans["honesty"].value == pytest.approx(1 - row.values["p_lie"].value)
    assert sum("lying_at_10" in place_values(row.values) for row in published_rows()) == 29


def test_counts_give_honesty_under_each_definition():
    """One model, from the same counts: 1 - 162/992, 1 - 162/969 and 690/852."""
    rows = {(row.source, row.model): row.values for row in published_rows()}
    spans = place_values(rows["igrof", "Claude Opus 4.6"])
    found = [spans[name] for name in ("honesty", "normalised_honesty", "honest_of_assertions")]
    assert [span.value for span in found] == pytest.approx([1 - 162 / 992, 1 - 162 / 969, 690 / 852], abs=1e-5)
    assert all(span.low < span.value < span.high for span in found)


def test_the_papers_table_is_whole():
    """32 models with P(lie), P(honest) and accuracy, 29 of them also at ten takes."""
    table = [one for one in published_values() if one.source == "paper" and one.where.endswith("Table 3")]
    counts = {measure: sum(one.measure == measure for one in table) for measure in ("p_lie", "p_honest", "accuracy")}
    assert counts == {"p_lie": 32, "p_honest": 32, "accuracy": 32}
    assert sum(one.measure == "lying_at_10" for one in table) == 29


def test_compute_is_given_with_its_basis_and_source():
    """And only for models of the paper's table."""
    known = {one.model for one in published_values()}
    for one in training_compute():
        assert one.model in known
        assert one.basis in {"disclosed", "estimated", "speculative"}
        assert one.source
        assert 1e22 < one.flop < 1e26


def test_disclosed_compute_is_six_times_parameters_times_tokens():
    """Every figure that is called disclosed follows from what its own source note says."""
    for one in training_compute():
        found = re.match(r"6 x (\S+) (?:active )?parameters x (\S+) tokens", one.source)
        assert found or one.basis != "disclosed", one.model
        if found:
            assert one.flop == pytest.approx(6 * float(found[1]) * float(found[2]), rel=1e-3), one.model
