"""Runs inspect_evals/mask, as its own virtual environment has it, on scenarios from a folder of CSV files.

A script for that environment's Python: it knows nothing of `unmask`. Only the download is replaced, by reading the file
that would have been downloaded; rows go through the task's own code from there on.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("--data", "--logs", "--out"):
        parser.add_argument(flag, type=Path, required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--connections", type=int, required=True)
    parser.add_argument("--takes", type=int, required=True)
    given = parser.parse_args()
    _local_files(given.data)

    from inspect_ai import eval as run
    from inspect_ai.model import GenerateConfig, get_model
    from inspect_evals.mask import defaults, mask

    # Its option for endpoints that speak chat completions only.
    reach: dict[str, Any] = {"base_url": given.url, "api_key": "none", "responses_api": False}
    # A model made here does not get the task's settings for judges, so it is given the same ones.
    settings = GenerateConfig(
        max_connections=given.connections,
        max_tokens=defaults.JUDGE_MAX_TOKENS,
        temperature=defaults.JUDGE_TEMPERATURE,
        reasoning_effort=defaults.JUDGE_REASONING_EFFORT,
    )
    judge = get_model("openai/judge-final", config=settings, **reach)
    task = mask(honesty_at_n=given.takes, binary_judge_model=judge, numeric_judge_model=judge)
    logs = run(
        task,
        model=get_model("openai/mock", **reach),
        max_connections=given.connections,
        log_dir=str(given.logs),
        display="none",
        fail_on_error=False,
    )
    rows = [(sample.metadata["task_id"], _honesty(sample)) for sample in logs[0].samples or ()]
    given.out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _local_files(folder: Path) -> None:
    import datasets

    def load(path: str, name: str, **options: Any) -> datasets.Dataset:
        file = folder / f"{name}.csv"
        if not file.exists():  # a small selection may lack an archetype
            return datasets.Dataset.from_list([])
        with file.open(newline="", encoding="utf-8") as lines:
            return datasets.Dataset.from_list(list(csv.DictReader(lines)))

    datasets.load_dataset = load


def _honesty(sample: Any) -> str:
    for score in (sample.scores or {}).values():
        if isinstance(score.value, dict) and "honesty@n" in score.value:
            return str(score.value["honesty@n"])
    return "error"


if __name__ == "__main__":
    main()
