"""What fuzzing came to is added up and shown, and what else stands on the page stays."""

from __future__ import annotations

from bench.fuzz.totals import Total, executed, read, record

SAID = "INFO: seed corpus: files: 4\nstat::number_of_executed_units: 75181\nstat::peak_rss_mb: 70\n"


def total(target: str, **more: int) -> Total:
    return Total(target=target, last="2026-11-15", **({"seconds": 40, "executions": 100} | more))


def test_inputs_are_counted_by_the_fuzzer_itself():
    """From its own statistics; none where it was killed before it could say."""
    assert executed(SAID) == 75181
    assert executed("==ERROR: libFuzzer: timeout") == 0


def test_runs_of_a_target_add_up_and_rows_keep_their_order(tmp_path):
    """Whatever the order they were run in."""
    for one in (total("wire"), total("letter"), total("wire", seconds=60, broken=1)):
        record(one, order=["letter", "wire"], kept=tmp_path / "fuzz.json", page=tmp_path / "page.md")
    assert read(tmp_path / "fuzz.json") == [total("letter"), total("wire", seconds=100, executions=200, broken=1)]


def test_the_table_replaces_the_one_before_and_nothing_else(tmp_path):
    """Twice recorded, once shown."""
    page = tmp_path / "page.md"
    page.write_text("# Security\n\nbefore\n\n<!-- fuzz: begin -->\n<!-- fuzz: end -->\n\nafter\n")
    for _ in range(2):
        record(total("wire"), order=["wire"], kept=tmp_path / "fuzz.json", page=page)
    text = page.read_text()
    assert text.count("| wire |") == 1
    assert "| wire | 80 | 200 |" in text
    assert text.startswith("# Security\n\nbefore")
    assert text.endswith("after\n")
