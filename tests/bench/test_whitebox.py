"""The benchmarks of local models run at a size that any machine has, and their shares are what they say."""

from __future__ import annotations

import argparse

import pytest

pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

from bench import hf, lorra


def test_generation_is_held_against_the_bandwidth():
    args = argparse.Namespace(
        shape="tiny", rows=2, prompt=8, tokens=4, temperature=0.0, device="cpu", ways="plain", profile=False
    )
    found = hf.measured(args)
    plain = found["plain"]
    assert plain["recorded"] is False
    assert plain["share"] == pytest.approx(found["bound_ms"] / plain["step_ms"])
    assert plain["tokens_s"] == pytest.approx(2e3 / plain["step_ms"])


def test_training_is_held_against_the_matrix_rate_over_real_tokens():
    args = argparse.Namespace(shape="tiny", batch=2, answer=8, steps=2, device="cpu", profile=False)
    found = lorra.measured(args)
    assert found["share"] == pytest.approx(1e3 * found["tflop"] / found["step_ms"] / found["matrix_tflops"])
    assert 0 <= found["filling"] < 0.5
    assert len(found["losses"]) == 5
