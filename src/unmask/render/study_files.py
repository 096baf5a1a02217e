"""What the analysis of a study leaves in its folder: `results.json`, `results.md` and `dose.svg`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import msgspec

from unmask.experiments.study_result import StudyResult
from unmask.files import write_atomically
from unmask.render.terminal.study import render_markdown


def write_study_files(result: StudyResult, folder: Path) -> tuple[Path, ...]:
    """Write them, and say which. There is no figure without a coefficient of steering or without matplotlib."""
    plain = msgspec.json.format(msgspec.json.encode(result.to_json()), indent=1) + b"\n"
    files = {folder / "results.json": plain, folder / "results.md": render_markdown(result).encode()}
    for path, content in files.items():
        write_atomically(path, content)
    if find_spec("matplotlib") is None or not any(len(dose.points) > 1 for dose in result.dose):
        return tuple(files)
    from unmask.render.figures.dose import write_dose_figure

    return *files, write_dose_figure(result, folder / "dose.svg")
