"""`unmask import`: from a log or a folder of another harness to a run folder, without a model call."""

from __future__ import annotations

import shlex
from pathlib import Path

from unmask.errors import DataError, MissingError, UnmaskError, UsageError
from unmask.interop import cases, evaluated, exported
from unmask.interop.against import write_import
from unmask.interop.cases import ImportedRun
from unmask.interop.inspect import mask_log
from unmask.interop.inspect.log import read_log
from unmask.runs.folder import Folder
from unmask.runs.run import Run


def import_run(source: str | Path, *, out: str | Path, model: str | None = None) -> Run:
    """Make a run folder of an Inspect log or of a folder of evaluated CSV files, without a model call. `model` picks
    one of several."""
    imported = _read_source(Path(source), model=model)
    cases.write_run(imported, Path(out))
    run = Run(out)
    write_import(run, imported)
    return run


def _read_source(path: Path, *, model: str | None) -> ImportedRun:
    if Folder(path).exists:
        raise UsageError(f"{path} is a run folder already", advice=shlex.join(["unmask", "score", str(path)]))
    if path.is_dir():
        return evaluated.read_folder(path, model=model)
    if not path.is_file():
        raise MissingError(
            f"there is nothing at {path}",
            advice="`unmask import` takes a log of Inspect (.eval) or a folder of evaluated CSV files.",
        )
    if path.suffix.lower() not in (".eval", ".json"):
        raise UsageError(
            f"{path.name} is no log of Inspect",
            advice="A log ends in .eval; a CSV file is imported by its folder.",
        )
    log = read_log(path)
    try:
        if exported.read_definition(log) is not None:
            return exported.read_exported_log(log, path=path)
        if mask_log.is_mask(log):
            return mask_log.read_mask_log(log, path=path)
    except UnmaskError:
        raise
    except (ValueError, TypeError, RecursionError) as error:  # fields that Inspect leaves to the task
        raise DataError(f"{path} has a sample that cannot be read: {error}") from None
    raise UsageError(
        f"{path.name} is a log of {log.eval.task or 'an unnamed task'}, not of MASK",
        advice="Logs of inspect_evals/mask, of unmask/mask and of `unmask export --format inspect` can be imported.",
    )
