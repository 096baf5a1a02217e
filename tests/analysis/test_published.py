"""The published facts: complete, attributed, and in the words of the program."""

from __future__ import annotations

import re

import pytest

from unmask.analysis.board import published_rows
from unmask.analysis.published.values import published_values, training_compute
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


def test_no_value_stands_twice():
    """One row for each source, place, model, variant, archetype and measure."""
    keys = [(one.source, one.where, one.model, one.variant, one.archetype, one.measure) for one in published_values()]
    assert len(set(keys)) == len(keys)


def test_the_papers_table_is_whole():
    """32 models with P(lie), P(honest) and accuracy, 29 of them also at ten takes."""
    table = [one for one in published_values() if one.source == "paper" and one.where.endswith("Table 3")]
    counts = {measure: sum(one.measure == measure for one in table) for measure in ("p_lie", "p_honest", "accuracy")}
    assert counts == {"p_lie": 32, "p_honest": 32, "accuracy": 32}
    assert sum(one.measure == "lying_at_10" for one in table) == 29


def test_verdicts_of_a_replication_sum_to_one():
    """Shares made from counts, over the judged."""
    for other in published_rows():
        if {"p_lie", "p_no_belief"} <= set(other.values):
            parts = [one for one in published_values() if (one.source, one.model) == (other.source, other.model)]
            kinds = {"p_lie", "p_honest", "p_evasion", "p_no_belief"}
            assert sum(one.value for one in parts if one.measure in kinds) == pytest.approx(1, abs=1e-5)


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


def test_compute_names_where_to_look_it_up():
    """A report, a model card or an address."""
    place = re.compile(r"arXiv \d{4}\.\d{5}|github\.com/\S+|model card")
    assert [one.model for one in training_compute() if not place.search(one.source)] == []
