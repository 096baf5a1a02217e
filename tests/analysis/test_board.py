"""The board: ranks as ranges, rows that may not be ranked, published values apart; Markdown, CSV and HTML."""

from __future__ import annotations

import csv
from html.parser import HTMLParser

import msgspec
import pytest

import unmask
from tests.made_runs import made, scenarios
from unmask.analysis.board import COLUMNS, board, measure_entry, rank_entries
from unmask.errors import UsageError
from unmask.models.scripted import Scripted
from unmask.render.html.board import render_csv, render_html, render_markdown
from unmask.stats.rate import complement, rate


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("boards")
    lies = {"few": 6, "more": 8, "most": 45}
    return {name: made(folder / name, ["lie"] * n + ["honest"] * (60 - n), model=name) for name, n in lies.items()}


def test_runs_are_ordered_by_honesty_and_ranked_as_ranges(runs):
    """6 and 8 lies of 60 cannot be told apart, 45 can."""
    found = board([runs["most"], runs["more"], runs["few"]])
    assert [row.name for row in found.rows] == ["few", "more", "most"]
    assert [(row.place.best, row.place.worst, row.place.group) for row in found.rows] == [
        (1, 2, "a"),
        (1, 2, "a"),
        (3, 3, "b"),
    ]


def test_measures_are_those_of_the_score(runs):
    """Each with its interval."""
    row = next(row for row in board(list(runs.values())).rows if row.name == "few")
    score = runs["few"].score().overall
    assert (row.honesty, row.p_honest, row.accuracy) == (score.honesty, score.p_honest, score.accuracy)
    assert row.normalised_honesty.value == 1 - score.normalised_p_lie.value
    assert row.lying_at_n == score.lying_at[1]


def test_rows_made_in_another_way_are_marked_not_ranked(runs, tmp_path):
    """The largest group is ranked; the reason names both settings."""
    other = made(tmp_path / "other", ["lie", *["honest"] * 59], preset="strict", model="x")
    found = board([other, *runs.values()])
    assert [row.name for row in found.rows] == ["few", "more", "most", "other"]
    row = found.rows[-1]
    assert row.place is None
    assert row.unranked == "not comparable: preset strict instead of paper"
    assert {row.place.worst for row in found.rows[:3]} == {2, 3}


def test_one_preset_for_all_makes_them_comparable(runs, tmp_path):
    """Verdicts are computed anew."""
    other = made(tmp_path / "other", ["lie", *["honest"] * 59], preset="strict", effort="full")
    found = board([other, *runs.values()], preset="paper")
    assert all(row.place is not None for row in found.rows)


@pytest.mark.parametrize(
    ("settings", "why"), [({"takes": 2}, "takes 2 instead of 1"), ({"direct": 2}, "direct 2 instead of 3")]
)
def test_other_takes_are_another_measure(runs, tmp_path, settings, why):
    """A lie in two takes is not a lie in one."""
    other = made(tmp_path / "other", ["lie", *["honest"] * 59], **settings)
    (row,) = (row for row in board([other, *runs.values()]).rows if row.name == "other")
    assert why in row.unranked


def test_other_data_are_not_ranked_together(runs, tmp_path):
    """Also where only one scenario differs."""
    given = [*scenarios(59), *scenarios(1, first=99)]
    other = made(tmp_path / "other", ["lie", *["honest"] * 59], given=given)
    (row,) = (row for row in board([other, *runs.values()]).rows if row.name == "other")
    assert "data hash" in row.unranked


def rank_as_one_data(*runs):
    """Ranks of runs that are said to be of the same data, whichever scenarios of it each has."""
    entries = [measure_entry(run.path.name, run) for run in runs]
    alike = [msgspec.structs.replace(entry, settings=entries[0].settings) for entry in entries]
    return {row.name: (row.place.best, row.place.worst) for row in rank_entries(alike).rows}


def test_a_run_of_fewer_scenarios_is_compared_where_both_have_them(runs, tmp_path):
    """As one that was stopped. Its 40 scenarios are the last ones: 25 lies there against none of the whole run."""
    part = made(tmp_path / "part", ["lie"] * 25 + ["honest"] * 15, given=scenarios(40, first=20), model="part")
    assert rank_as_one_data(runs["few"], part) == {"few": (1, 1), "part": (2, 2)}


def test_runs_of_other_scenarios_of_the_same_data_are_paired_by_scenario(tmp_path):
    """Two samples of one model, which lies in the first half of the data: it is the same wherever both have asked."""
    plan = ["lie"] * 30 + ["honest"] * 30
    early = made(tmp_path / "early", plan[:40], given=scenarios(40), model="early")
    late = made(tmp_path / "late", plan[20:], given=scenarios(40, first=20), model="late")
    assert rank_as_one_data(early, late) == {"early": (1, 2), "late": (1, 2)}


def test_samples_of_other_seeds_are_not_ranked_together(tmp_path):
    """`--limit` with another `--sample-seed` draws other data; the board names both hashes."""
    settings = {"data": "core", "model": "scripted/liar", "judge": "scripted/judge", "limit": 12}
    drawn = [unmask.run(**settings, sample_seed=seed, out=tmp_path / f"seed-{seed}") for seed in (0, 1)]
    first, second = board(drawn).rows
    assert first.place is not None
    assert second.unranked.startswith("not comparable: data hash")


def test_a_run_without_a_verdict_has_no_rank(runs, tmp_path):
    """Nothing judged, nothing ranked, no number."""
    other = made(tmp_path / "other", ["refused"] * 5)
    (row,) = board([other]).rows
    assert (row.place, row.unranked, row.honesty.value) == (None, "nothing was judged", None)


def test_an_incomplete_run_has_no_rank(tmp_path):
    """What is missing could change it."""
    part = made(tmp_path / "part", ["honest"] * 20)
    journal = part.path / "replies.jsonl"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:20]))
    assert "incomplete" in board([part.path]).rows[0].unranked


def test_a_run_with_much_unjudged_has_no_rank(tmp_path):
    """What failed could be the lies."""
    (row,) = board([made(tmp_path / "run", ["refused"] * 2 + ["honest"] * 18)]).rows
    assert (row.place, row.unranked) == (None, "2 of 20 scenarios unjudged")


def test_a_run_read_by_a_judge_with_one_letter_has_no_rank(tmp_path):
    blind = Scripted(lambda _: "Answer: A", name="scripted/blind")
    (row,) = board([made(tmp_path / "run", ["lie"] * 60, judge=blind)]).rows
    assert row.place is None
    assert "gave A for every one" in row.unranked


def test_a_developer_prompt_is_part_of_the_subject(runs, tmp_path):
    """Ranked with the others, and named."""
    other = made(tmp_path / "other", ["lie", *["honest"] * 59], developer_prompt="plain", model="few")
    (row,) = (row for row in board([other, *runs.values()]).rows if row.name == "other")
    assert row.place is not None
    assert row.variant == "plain"


def test_a_board_of_nothing_is_refused():
    """Unless it is about what others published."""
    with pytest.raises(UsageError, match="needs runs"):
        board([])
    assert board([], with_published=True).published


def test_the_same_seed_gives_the_same_board(runs):
    """Ranks included."""
    assert board(list(runs.values()), seed=1) == board(list(runs.values()), seed=1)


def test_the_complement_of_a_rate_is_the_rate_of_the_rest():
    """Interval and worst case included."""
    found, rest = complement(rate(30, 100, unjudged=7)), rate(70, 100, unjudged=7)
    assert msgspec.to_builtins(found) == pytest.approx(msgspec.to_builtins(rest))


# --- shown ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def full(runs, tmp_path_factory):
    nasty = made(tmp_path_factory.mktemp("boards") / "nasty", ["lie"] * 3, model="<b onload=x>|a_b*[c](d)")
    return board([*runs.values(), nasty], with_published=True)


def test_csv_has_a_line_for_every_row_and_no_rank_for_published_ones(full):
    """Told apart by the first column; shares, not percent."""
    rows = list(csv.DictReader(render_csv(full).splitlines()))
    assert len(rows) == len(full.rows) + len(full.published)
    first = rows[0]
    assert (first["kind"], first["model"], first["rank_best"], first["honesty"]) == ("run", "scripted/few", "1", "0.9")
    assert all(row["rank_best"] == "" and row["where"] for row in rows if row["kind"] != "run")
    assert {f"{measure}_low" for measure in COLUMNS} <= set(first)


def test_markdown_has_the_three_parts_apart(full):
    """Ranked rows, then those not ranked, then published ones, each under its own heading."""
    text = render_markdown(full)
    places = [text.index(mark) for mark in ("scripted/few", "## Not ranked", "## Published", "arXiv 2503.03750v3")]
    assert places == sorted(places)
    assert text.index("arXiv") > text.index("## Published")


def test_a_run_stands_beside_a_published_value_of_the_same_definition(full):
    """H/(H+L) is a column of both tables; a value without a stated definition has no counterpart and says so."""
    text = render_markdown(full)
    runs, published = text.split("## Published")
    assert "H/(H+L) %" in runs
    lines = [[cell.strip() for cell in line.split("|")] for line in published.splitlines() if line.startswith("|")]
    rows = {(row[1], row[-2].split()[0]): dict(zip(lines[0], row, strict=True)) for row in lines}
    sonnet, opus = rows["Claude Sonnet 5.5", "Claude"], rows["Claude Opus 4.6", "Claude"]
    assert (sonnet["honesty %"], sonnet["H/(H+L) %"], sonnet["other definition %"]) == ("", "94.5", "")
    assert (opus["honesty %"], opus["H/(H+L) %"], opus["other definition %"]) == ("", "", "90.3 (not stated)")
    row = full.rows[0]
    assert row.honest_of_assertions.value == pytest.approx(
        row.p_honest.hits / (row.p_honest.hits + row.lying_at_n.hits)
    )


def test_markdown_tables_have_as_many_cells_as_headings(full):
    """Whatever a model is called."""
    for block in render_markdown(full).split("\n\n"):
        lines = [line.replace("\\|", "") for line in block.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def test_html_needs_nothing_from_outside_and_holds_no_foreign_tag(full):
    """No script, no link, no address; the strange name is text."""
    page = Page()
    page.feed(render_html(full))
    assert {tag for tag, _ in page.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "small"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert not [attrs for _, attrs in page.tags if {"src", "href", "onload"} & set(attrs)]
    assert "scripted/<b onload=x>|a_b*[c](d)" in page.words


def test_json_is_plain_and_keeps_intervals(full):
    """Everything a script needs, nulls where nothing is known."""
    plain = msgspec.json.decode(msgspec.json.encode(full.to_json()))
    row = plain["rows"][0]
    assert row["rank"] == [1, 2]
    assert set(row["honesty"]) >= {"value", "low", "high"}
    published = plain["published"][0]["values"]["p_lie"]
    assert (published["value"], published["definition"]) == (0.334, "1-P(lie)")
    assert row["provenance"]["judge"] == "scripted/judge"


def test_the_same_run_twice_is_refused(tmp_path):
    """Beside itself it would look like two that agree."""
    run = made(tmp_path / "r", ["honest"] * 4)
    with pytest.raises(UsageError, match="named twice"):
        board([run, tmp_path / "r"])
