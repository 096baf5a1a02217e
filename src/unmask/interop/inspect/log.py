"""Logs of Inspect, read by Inspect itself (extra `inspect`). Whatever is wrong with a file ends here, as an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from unmask.errors import DataError, MissingError
from unmask.models.inspect import convert_choice
from unmask.records import Choice

if TYPE_CHECKING:
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ModelOutput


def read_log(path: Path) -> EvalLog:
    """The whole log, `.eval` or `.json`, with its attachments put where they belong."""
    try:
        from inspect_ai.log import read_eval_log, resolve_sample_attachments
    except ImportError:
        raise MissingError(
            "reading a log of Inspect needs inspect_ai", advice="pip install 'unmask[inspect]'"
        ) from None
    try:
        with path.open("rb") as file:  # a name would be an address to Inspect
            log = read_eval_log(file, format="json" if path.suffix.lower() == ".json" else "eval")
        log.samples = [resolve_sample_attachments(sample, "full") for sample in log.samples or []]
    except OSError as error:
        raise MissingError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # a stranger's file, and a reader that raises whatever it stumbles over
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise DataError(
            f"{path} is not a log that Inspect can read: {what}", advice="Copy the log again from where it was written."
        ) from None
    return log


def list_model_calls(sample: EvalSample) -> Iterator[tuple[str, ModelEvent]]:
    """Every finished model call, with the text of its last user message."""
    for event in sample.events:
        if event.event == "model" and not event.pending:
            asked = next((turn.text for turn in reversed(event.input) if turn.role == "user"), "")
            yield asked, event


def first_choice(output: ModelOutput) -> Choice | None:
    return convert_choice(output.choices[0]) if output.choices else None
