"""A run as one run of Weights & Biases or MLflow, in a folder: nothing is sent, and their telemetry is off."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from unmask.data.frames import FlatTable, Row
from unmask.errors import MissingError
from unmask.records import Format
from unmask.runs.tables import split_summary

PROJECT = "unmask"


def log_to_wandb(folder: Path, *, name: str, summary: Row, table: FlatTable | None) -> None:
    """An offline run: `wandb sync` sends it."""
    os.environ["WANDB_ERROR_REPORTING"] = "false"
    try:
        import wandb
    except ImportError:
        raise MissingError("writing for Weights & Biases needs wandb", advice="pip install wandb") from None
    folder.mkdir(parents=True, exist_ok=True)
    config, numbers = split_summary(summary)
    quiet = {"silent": True, "console": "off", "disable_code": True, "disable_git": True}
    settings = wandb.Settings(**quiet, x_disable_stats=True, x_disable_meta=True, x_save_requirements=False)
    with wandb.init(
        project=PROJECT, name=name, dir=str(folder), mode="offline", config=config, settings=settings
    ) as run:
        run.log(numbers)
        if table is not None:
            rows = [[row[column] for column in table.types] for row in table.rows]
            run.log({"rows": wandb.Table(columns=list(table.types), data=rows)})


def log_to_mlflow(folder: Path, *, name: str, summary: Row, table: FlatTable | None) -> None:
    """A run in a database with a folder of artifacts: `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db`."""
    os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
    try:
        from mlflow import MlflowClient
    except ImportError:
        raise MissingError("writing for MLflow needs mlflow", advice="pip install mlflow") from None
    folder.mkdir(parents=True, exist_ok=True)
    store = folder.resolve()
    client = MlflowClient(tracking_uri=f"sqlite:///{store / 'mlflow.db'}")
    found = client.get_experiment_by_name(PROJECT)
    experiment = found.experiment_id if found else client.create_experiment(PROJECT, (store / "artifacts").as_uri())
    run = client.create_run(experiment, run_name=name).info.run_id
    params, numbers = split_summary(summary)
    for key, value in params.items():
        client.log_param(run, key, value)
    for key, value in numbers.items():
        client.log_metric(run, key, value)
    if table is not None:
        client.log_text(run, "".join(msgspec.json.encode(row).decode() + "\n" for row in table.rows), "rows.jsonl")
    client.set_terminated(run)


TRACKERS: dict[Format, Callable[..., None]] = {Format.WANDB: log_to_wandb, Format.MLFLOW: log_to_mlflow}
