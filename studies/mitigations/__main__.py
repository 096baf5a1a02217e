"""Run a study of mitigations from its design to its result: python -m studies.mitigations STUDY.toml

The design is a file that is written, and committed, before the first arm runs; studies/README.md lists every key. The
same command continues a study where it stopped. results.md and results.json are written to the study's folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from studies.mitigations.analyse import analyse
from studies.mitigations.design import read_design
from studies.mitigations.labels import draw_labels, take_labels
from studies.mitigations.report import render
from studies.mitigations.run import Study, run_study
from unmask import UnmaskError


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m studies.mitigations", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="STUDY.toml")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the study's folder; build/NAME unless given")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="only these arms: 'steer-*'")
    work = parser.add_mutually_exclusive_group()
    work.add_argument("--analyse", action="store_true", help="run nothing; analyse what is there")
    work.add_argument("--draw-labels", action="store_true", help="draw replies to label, without their origin")
    work.add_argument("--labels", type=Path, metavar="FILE", help="take in the labels of one person")
    parser.add_argument("--who", metavar="NAME", help="who gave them; the name of the file unless given")
    given = parser.parse_args(words)
    try:
        _work(given)
    except UnmaskError as error:
        print(f"studies: {error}", *filter(None, [error.advice]), sep="\n", file=sys.stderr)
        return error.exit_code
    return 0


def _work(given: argparse.Namespace) -> None:
    design = read_design(given.file)
    study = Study(given.file, design, given.out or Path("build", design.name))
    if given.draw_labels:
        print("{}: {} replies, mixed, without their origin".format(*draw_labels(study)))
        return
    if given.labels is not None:
        counts = take_labels(study, given.labels, given.who or given.labels.stem)
        print(*(f"{arm}: {count} labels" for arm, count in counts.items()), sep="\n")
        return
    if not given.analyse:
        run_study(study, only=given.only, say=lambda text: print(text, file=sys.stderr))
        if given.only:
            return
    result = analyse(study)
    text = render(result)
    (study.out / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    (study.out / "results.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    sys.exit(main())
