"""Tables, data frames, notebooks, and logs for Inspect's own tools."""

from __future__ import annotations

import csv
import importlib
import json
import sys
import tracemalloc

import msgspec
import pytest

from bench.grown import Shape, grow
from tests.interop.made import made_run, verdicts
from tests.thorough import THOROUGH
from unmask.errors import MissingError
from unmask.interop.export import export
from unmask.records import Per
from unmask.runs.run import Run
from unmask.runs.tables import COLUMNS
from unmask.text import unguard_formula


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made_run(tmp_path_factory.mktemp("export") / "run", takes=2)


def as_csv(path):
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("per", Per)
def test_csv_jsonl_and_parquet_hold_the_same_rows(run, tmp_path, per):
    """The three formats say the same, cell by cell."""
    from pyarrow import parquet

    for form in ("csv", "jsonl", "parquet"):
        export(run, format=form, out=tmp_path / form, per=per)
    rows = run.table(per).rows
    assert rows
    assert [json.loads(line) for line in (tmp_path / "jsonl").read_text(encoding="utf-8").splitlines()] == rows
    assert parquet.ParquetFile(tmp_path / "parquet").read().to_pylist() == rows
    texts = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in rows]
    assert [{name: unguard_formula(cell) for name, cell in row.items()} for row in as_csv(tmp_path / "csv")] == texts


def test_no_cell_of_a_csv_is_a_formula(run, tmp_path):
    """Replies that begin like a formula do not begin a cell; figures may be negative."""
    export(run, format="csv", out=tmp_path / "rows.csv", per="reply")
    rows = as_csv(tmp_path / "rows.csv")
    assert any(cell.startswith("'=") for row in rows for cell in row.values())
    for row in rows:
        for name, cell in row.items():
            if COLUMNS[Per.REPLY][name] is str:
                assert cell[:1] not in set("=+-@\t\r\n")


@pytest.mark.parametrize("preset", ["paper", "strict"])
def test_one_row_of_a_run_has_its_settings_and_the_numbers_of_its_score(run, preset):
    """Intervals and worst cases with every rate; what warns comes before the numbers, and what is unknown is absent."""
    (row,) = run.table("run", preset=preset).rows
    score = run.score(preset=preset)
    assert (row["model"], row["takes"], row["data_hash"]) == ("scripted/planted", 2, run.definition.data.hash)
    for name, rate in (("p_lie", score.p_lie), ("p_evasion", score.overall.p_evasion), ("accuracy", score.accuracy)):
        found = [row[name], *(row[f"{name}_{part}"] for part in ("low", "high", "worst_low", "worst_high"))]
        assert found == [rate.value, rate.low, rate.high, rate.worst_low, rate.worst_high]
    assert (row["judged"], row["unjudged"], row["excess"]) == (score.p_lie.total, score.unjudged_share, None)
    assert row["warnings"] == "; ".join(finding.text for finding in score.warnings)
    assert list(row).index("warnings") < list(row).index("p_lie")


def test_rows_of_takes_and_replies_are_those_of_the_score(run):
    """Every take of a scenario has its row; replies of all slots are there, with their text, reading or error."""
    takes = run.table("take", preset="strict").rows
    for found in run.rows(preset="strict"):
        own = [row for row in takes if row["id"] == found.id]
        assert [row["take_verdict"] for row in own if row["take"] is not None] == [v.value for v in found.verdicts]
        assert {row["verdict"] for row in own} == {found.verdict.value}
    rows = run.table("reply").rows
    replies = [choice.answer for each in run.scenarios for choice in run.replies(each.id).values()]
    assert sorted(row["reply"] for row in rows if row["reply"] is not None) == sorted(replies)
    assert any(row["error"] for row in rows)


def test_pandas(run):
    """A data frame has the table's columns, with missing values where nothing is known."""
    frame = run.to_pandas("reply")
    table = run.table("reply")
    assert set(frame.columns) == table.types.keys()
    assert len(frame) == len(table.rows)
    assert str(frame["take"].dtype) == "Int64"
    assert frame["lower"].dtype == float
    assert frame["error"].isna().sum() == sum(row["error"] is None for row in table.rows)


@pytest.mark.parametrize(
    ("form", "module", "package"),
    [
        ("parquet", "pyarrow", "'unmask[parquet]'"),
        ("inspect", "inspect_ai.log", "'unmask[inspect]'"),
        ("wandb", "wandb", "wandb"),
        ("mlflow", "mlflow", "mlflow"),
        ("pandas", "pandas", "pandas"),
    ],
)
def test_a_missing_package_is_named(run, monkeypatch, form, module, package):
    """Formats that need another package say which, and write nothing."""
    importlib.import_module("inspect_ai.log")  # or half of it would be imported now
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "unmask.interop.inspect.export", raising=False)
    with pytest.raises(MissingError) as caught:
        run.to_pandas() if form == "pandas" else export(run, format=form, out=run.path / "x.eval")
    assert not (run.path / "x.eval").exists()
    assert caught.value.advice == f"pip install {package}"


# --- Inspect's own tools ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "run.eval"
    export(run, format="inspect", out=path)
    return path


def test_inspect_reads_the_log(run, log):
    """Inspect opens the log: every sample with its verdict, or unscored with one of Inspect's reasons."""
    from typing import get_args

    from inspect_ai.log import read_eval_log
    from inspect_ai.scorer import ScoreReason

    found = read_eval_log(str(log))
    assert found.status == "success"
    scores = {sample.id: sample.scores["outcome"] for sample in found.samples}
    values = {name: score.value for name, score in scores.items() if isinstance(score.value, dict)}
    known = {name: pair for name, pair in verdicts(run).items() if pair[0] != "unjudged"}
    assert {name: (value["verdict"], value["accuracy"]) for name, value in values.items()} == known
    unscored = {name: score.reason for name, score in scores.items() if name not in values}
    assert unscored
    assert set(unscored.values()) <= set(get_args(ScoreReason))


def test_the_measures_are_metrics_of_the_log_each_with_its_interval_and_standard_error(run, log):
    """A converter takes the `stderr` of a score for that of all its metrics, so each rate is a score. P(lie) is the one
    that Inspect's lists show."""
    from inspect_ai.log import headline_metric, read_eval_log

    found, rates = read_eval_log(str(log), header_only=True), run.score().overall
    for score in found.results.scores:
        (rate,) = score.metrics.keys() - {"stderr"}
        ours, metric = getattr(rates, rate), score.metrics[rate]
        assert (metric.value, metric.metadata["low"], metric.metadata["high"]) == (ours.value, ours.low, ours.high)
        assert score.metrics["stderr"].value == pytest.approx((ours.high - ours.low) / 3.92, rel=1e-3)
        assert (score.scored_samples, score.unscored_samples) == (ours.total, ours.unjudged)
    assert headline_metric(found).metric.value == rates.p_lie.value


def test_the_log_has_what_a_converter_of_logs_reads(run, log):
    """As that of Every Eval Ever: a first choice of every sample, also of one that was never put under pressure, the
    settings of the model, and a target that is a text."""
    from inspect_ai.log import read_eval_log

    found = read_eval_log(str(log))
    asked = found.eval.model_generate_config
    assert (asked.temperature, asked.max_tokens) == (1.0, 16_000)  # the planted subject reasons now and then
    assert found.stats.started_at == run.definition.created
    replies = {sample.id: sample.output.choices[0].message.text for sample in found.samples}
    stated = {each.id: run.replies(each.id).get(("pressured", 0)) for each in run.scenarios}
    assert replies == {name: choice.text if choice else "" for name, choice in stated.items()}
    assert "" in replies.values()
    assert all(isinstance(sample.target, str) for sample in found.samples)


def test_the_log_has_the_transcripts(run, log):
    """Each journal line is a model event, a judge's with the prompt it was sent."""
    from inspect_ai.log import read_eval_log

    samples = {sample.id: sample for sample in read_eval_log(str(log)).samples}
    for scenario in run.scenarios:
        events = [event for event in samples[scenario.id].events if event.event == "model"]
        said = {choice.text for choice in run.replies(scenario.id).values() if choice.text}
        assert said <= {event.output.completion for event in events}
        assert {len(event.input) for event in events if event.model == "scripted/reader"} <= {2}


@pytest.fixture(scope="module")
def long_run(tmp_path_factory) -> Run:
    """One of 300 replies, each after 20,000 characters of reasoning."""
    long = Run(grow(tmp_path_factory.mktemp("long") / "run", Shape(300)).run)
    lines = list(long.folder.asked())
    long.folder.replies.path.unlink()
    for line in lines:
        choices = tuple(msgspec.structs.replace(choice, reasoning="r" * 20_000) for choice in line.choices)
        long.folder.replies.append(msgspec.structs.replace(line, choices=choices))
    long.folder.replies.close()
    return long


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"] if THOROUGH else ["csv", "parquet"])
def test_an_export_never_holds_all_reasoning(long_run, tmp_path, form, monkeypatch):
    """It is read from the file reply by reply, as it is written."""
    monkeypatch.setattr("unmask.interop.export.GROUP", 50)  # the last group is not full
    export(Run(long_run.path), format=form, out=tmp_path / "first", per="reply")  # imports what is needed
    tracemalloc.start()
    try:
        export(Run(long_run.path), format=form, out=tmp_path / "out", per="reply")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < long_run.folder.replies.path.stat().st_size * 2 / 3
