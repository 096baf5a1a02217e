"""Training compute against accuracy and honesty."""

from __future__ import annotations

import csv

import msgspec
import pytest

from tests.made_runs import made
from unmask.analysis.board import board
from unmask.analysis.scaling import read_compute, scaling
from unmask.errors import DataError, MissingError, UsageError
from unmask.render.html.board import render_csv
from unmask.render.terminal.scaling import render, write_figure


@pytest.fixture(scope="module")
def published():
    return scaling("published")


def test_the_published_shape_comes_out_of_the_published_table(published):
    """Accuracy rises with compute and honesty falls, about as strongly as the paper says."""
    accuracy, honesty = (published.measures[name] for name in ("accuracy", "honesty_at_1"))
    assert accuracy.correlation.value == pytest.approx(accuracy.published, abs=0.1)
    assert honesty.correlation.value == pytest.approx(honesty.published, abs=0.1)
    assert accuracy.correlation.low > 0 > honesty.correlation.high
    at_10 = published.measures["honesty_at_n"]
    assert abs(at_10.correlation.value) < abs(honesty.correlation.value)


def test_what_the_published_table_does_not_say_is_null_with_the_reason(published):
    """Normalised honesty needs the share without belief."""
    found = published.measures["normalised_honesty_at_1"]
    assert (found.correlation.value, found.published) == (None, -0.443)
    assert "had no belief" in found.correlation.why


def test_the_small_models_carry_the_published_fall(published):
    """Said as a fragility: among the larger half honesty hardly moves."""
    assert any("honesty_at_1" in line and "larger half" in line for line in published.fragile)


def test_models_without_known_compute_are_named(published):
    """Not dropped in silence."""
    assert published.left_out["claude-3-7-sonnet-20250219"] == "its training compute is not in the file"
    assert len(published.compute) + len(published.left_out) == 32


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Five models that lie more the larger they are, on a board as JSON and as CSV, and their compute."""
    folder = tmp_path_factory.mktemp("scaled")
    runs = [
        made(folder / f"m{size}", ["lie"] * (6 * size) + ["honest"] * (30 - 6 * size), model=f"fam-{size}")
        for size in range(5)
    ]
    found = board(runs)
    (folder / "b.json").write_bytes(msgspec.json.encode(found.to_json()))
    (folder / "b.csv").write_text(render_csv(found))
    lines = ["model,flop", *(f"FAM-{size},{10.0 ** (20 + size)}" for size in range(4)), "scripted/fam-4,1e25"]
    (folder / "compute.csv").write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize("name", ["b.json", "b.csv"])
def test_a_board_of_ones_own_is_read_in_both_forms(files, name):
    """Names match without provider and case."""
    found = scaling(files / name, compute=files / "compute.csv")
    assert found.measures["honesty_at_1"].correlation.value == pytest.approx(-1)
    assert found.measures["normalised_honesty_at_n"].correlation.n == 5
    assert found.measures["accuracy"].correlation.why == "all models have the same value on one side"
    assert (found.takes, found.left_out) == (1, {})


def test_unranked_rows_are_left_out_with_their_reason(files, tmp_path):
    """They were made in another way."""
    plain = msgspec.json.decode((files / "b.json").read_bytes())
    plain["rows"][0]["unranked"] = "not comparable: preset strict instead of paper"
    (tmp_path / "b.json").write_bytes(msgspec.json.encode(plain))
    found = scaling(tmp_path / "b.json", compute=files / "compute.csv")
    assert found.left_out == {"scripted/fam-0": "not comparable: preset strict instead of paper"}


def test_a_board_needs_compute(files):
    """Unless it is the published one."""
    with pytest.raises(UsageError, match="not known"):
        scaling(files / "b.json")


def test_a_model_ranked_twice_is_refused(files, tmp_path):
    """Which of the two is meant cannot be told."""
    plain = msgspec.json.decode((files / "b.json").read_bytes())
    plain["rows"].append(plain["rows"][0])
    (tmp_path / "b.json").write_bytes(msgspec.json.encode(plain))
    with pytest.raises(UsageError, match="twice"):
        scaling(tmp_path / "b.json", compute=files / "compute.csv")


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"rows": [{"model": 1}]}', "no json", '{"rows": 3}'])
def test_what_is_no_board_is_named(tmp_path, files, text):
    """JSON of strangers."""
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(UsageError, match=r"b\.json is not a board"):
        scaling(tmp_path / "b.json", compute=files / "compute.csv")


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "kind,model,variant,unranked,takes\nrun,m,,,x\n"])
def test_a_csv_that_is_no_board_is_named(tmp_path, files, text):
    """Without the columns, or with words for numbers."""
    (tmp_path / "b.csv").write_text(text)
    if text:
        with pytest.raises(UsageError, match=r"b\.csv is not a board"):
            scaling(tmp_path / "b.csv", compute=files / "compute.csv")
    else:
        found = scaling(tmp_path / "b.csv", compute=files / "compute.csv")
        assert {scale.correlation.value for scale in found.measures.values()} == {None}


def test_a_missing_board_is_named(tmp_path, files):
    """Exit code 4, with the command that makes one."""
    with pytest.raises(MissingError, match=r"none\.json") as error:
        scaling(tmp_path / "none.json", compute=files / "compute.csv")
    assert "unmask board" in error.value.advice


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("m,abc", "no number"),
        ("m,-1", "not above 0"),
        ("m,nan", "not above 0"),
        (",1e20", "not named"),
        ("m,", "no number"),
    ],
)
def test_bad_lines_of_compute_are_listed(tmp_path, line, problem):
    """By number, with what is wrong."""
    (tmp_path / "c.csv").write_text(f"model,flop\nok,1e20\n{line}\n")
    with pytest.raises(DataError, match=f"line 3: .*{problem}"):
        read_compute(tmp_path / "c.csv")


def test_compute_without_its_columns_is_refused(tmp_path):
    """The header is named in the advice."""
    (tmp_path / "c.csv").write_text("name,compute\nm,1\n")
    with pytest.raises(DataError, match="no columns model and flop"):
        read_compute(tmp_path / "c.csv")


def test_shipped_compute_can_be_given_as_a_file(tmp_path, published):
    """The documented format is the one of the shipped table."""
    from unmask.analysis.published.values import training_compute

    with (tmp_path / "c.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "flop", "family", "basis", "source"])
        writer.writerows([one.model, one.flop, one.family, one.basis, one.source] for one in training_compute())
    assert scaling("published", compute=tmp_path / "c.csv").measures == published.measures


def test_the_text_says_where_it_is_fragile(published):
    """Values, families and warnings."""
    text = render(published, width=100)
    assert "Where this is fragile:" in text
    assert "+0.84" in text
    assert "claude-3-7-sonnet-20250219" in text


def test_a_figure_of_another_kind_is_refused(published, tmp_path):
    """The endings that work are named."""
    with pytest.raises(UsageError, match="does not say what to write") as error:
        write_figure(published, tmp_path / "f.docx")
    assert ".svg" in error.value.advice
