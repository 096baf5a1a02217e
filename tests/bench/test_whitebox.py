"""The benchmark of local models runs at a size that any machine has, and its shares are what they say."""

from __future__ import annotations

import argparse

import pytest

pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

from bench import hf


def test_generation_is_held_against_the_bandwidth():
    args = argparse.Namespace(shape="tiny", rows=2, prompt=8, tokens=4, temperature=0.0, device="cpu", ways="plain")
    found = hf.measured(args)
    plain = found["plain"]
    assert plain["recorded"] is False
    assert plain["share"] == pytest.approx(found["bound_ms"] / plain["step_ms"])
    assert plain["tokens_s"] == pytest.approx(2e3 / plain["step_ms"])
