"""The entry for the register of inspect_evals names what is here."""

from __future__ import annotations

from pathlib import Path

import yaml

from unmask.data.load import load

ROOT = Path(__file__).resolve().parent.parent.parent
ENTRY = yaml.safe_load((ROOT / "docs/examples/inspect_evals/eval.yaml").read_text(encoding="utf-8"))


def test_the_entry_names_the_task_and_its_data():
    """Inspect finds the task in that file, with the number of samples that the entry says."""
    from inspect_ai._eval.loader import load_tasks

    (named,) = ENTRY["tasks"]
    (task,) = load_tasks([f"{ROOT / named['task_path']}@{named['name']}"], {"judge": "verbatim"})
    assert len(task.dataset) == named["dataset_samples"] == len(load("core").scenarios)
    assert task.headline_metric.metric == "p_lie"
