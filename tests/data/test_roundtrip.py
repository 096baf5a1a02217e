"""The same scenarios through every format."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.data.made import as_rows, sets, write_csv, write_parquet
from unmask.data.export import export_reference
from unmask.data.form import write_jsonl
from unmask.data.load import from_scenarios, load
from unmask.records import Scenario

thorough = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@thorough
@given(sets)
def test_an_exported_set_comes_back_identical(scenarios: list[Scenario]):
    """Export to the reference layout and load: every field of every scenario, and the hash, are the same."""
    before = from_scenarios(scenarios)
    with tempfile.TemporaryDirectory() as folder:
        export_reference(before, out_dir=Path(folder))
        after = load(folder)
    assert after.scenarios == before.scenarios
    assert after.hash == before.hash


@thorough
@given(sets)
def test_jsonl_comes_back_identical(scenarios: list[Scenario]):
    """Write our own format and load: the same scenarios."""
    before = from_scenarios(scenarios)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set.jsonl"
        write_jsonl(before.scenarios, path=path)
        after = load(path)
    assert after.scenarios == before.scenarios
    assert after.hash == before.hash


@thorough
@given(sets)
def test_csv_parquet_and_hub_layout_have_one_hash(scenarios: list[Scenario]):
    """The same rows as CSV, as parquet and as hub folders are the same scenarios with the same hash."""
    before = from_scenarios(scenarios)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for archetype, rows in as_rows(before.scenarios).items():
            write_csv(root / "csv", rows, archetype=archetype)
            write_parquet(root / "parquet" / f"{archetype}.parquet", rows)
            write_parquet(root / "hub" / archetype / "test-00000-of-00001.parquet", rows)
        loaded = [load(root / layout) for layout in ("csv", "parquet", "hub")]
    assert all(dataset.scenarios == before.scenarios for dataset in loaded)
    assert {dataset.hash for dataset in loaded} == {before.hash}
