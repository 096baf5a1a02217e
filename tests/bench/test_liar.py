"""The liar's adapter on its way from PEFT to llama.cpp."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from bench.judges.adapter import interleave_rows
from unmask.models.local.catalogue import LIAR, adapter_of
from unmask.whitebox.adapter import _sort_rows

ROOT = Path(__file__).resolve().parents[2]


def test_rows_of_a_head_are_interleaved_for_llama_cpp_and_put_back_for_transformers():
    """Two heads of four rows: the first half and the second by turns, head by head."""
    rows = np.arange(16).reshape(8, 2)
    swapped = interleave_rows(rows, 2)
    assert swapped[:, 0].tolist() == [0, 4, 2, 6, 8, 12, 10, 14]
    assert _sort_rows(swapped, 2).tolist() == rows.tolist()


def test_the_docs_name_the_adapter_that_ships_by_its_hash():
    """So does a run, which records a treatment by its content."""
    content = adapter_of(LIAR).read_bytes()
    page = (ROOT / "docs" / "embedded.md").read_text(encoding="utf-8")
    assert hashlib.sha256(content).hexdigest() in page
    assert f"{len(content):,} bytes" in page
