"""`unmask compare RUN published:MODEL`: which published value is meant, and what the parts add up to."""

from __future__ import annotations

import pytest

from tests.cli.terminal import unmask as command
from tests.made_runs import made
from unmask.analysis.published.gap import explain_gap, find_published
from unmask.errors import UsageError

PLAN = ["lie", "honest", "evasion", "lie", "honest", "no_belief"] * 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made(tmp_path_factory.mktemp("gap") / "run", PLAN)


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("claude-sonnet-5.5", "anthropic"),
        ("Claude Sonnet 5.5", "anthropic"),
        ("anthropic/claude-sonnet-5.5", "anthropic"),
        ("inspect_evals/gpt-4o", "inspect_evals"),
    ],
)
def test_a_published_model_is_found_by_its_name_in_any_spelling(name, source):
    assert find_published(name).source == source


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-4o", "several have published"),
        ("claude-opus-5", "does not state"),
        ("claude-sonet-5.5", "nobody is known"),
    ],
)
def test_a_name_that_is_not_one_stated_value_is_refused_with_a_way_out(name, says):
    with pytest.raises(UsageError, match=says) as refused:
        find_published(name)
    assert refused.value.advice


def test_own_number_parts_and_remainder_add_up_to_the_published_one(run):
    gap = explain_gap(run, "published:claude-sonnet-5.5")
    assert gap.own.value + sum(part.change for part in gap.parts) == pytest.approx(gap.recounted.value)
    assert gap.recounted.value + gap.remainder.value == pytest.approx(0.945)
    assert gap.remainder.low < gap.remainder.value < gap.remainder.high


def test_the_command_shows_the_gap_and_refuses_another_order(run, tmp_path):
    shown = command("compare", str(run.path), "published:claude-sonnet-5.5", cwd=tmp_path)
    assert "this run as they count" in shown.stdout
    refused = command("compare", "published:claude-sonnet-5.5", str(run.path), cwd=tmp_path)
    assert (refused.returncode, "Name the run first, then published:MODEL" in refused.stderr) == (2, True)


def test_score_as_prints_each_definition_with_its_parts(run, tmp_path):
    shown = command("score", str(run.path), "--as", "all", cwd=tmp_path)
    for text in ("paper", "inspect", "anthropic", "five, without statistics", "Not stated", "DeepSight"):
        assert text in shown.stdout
