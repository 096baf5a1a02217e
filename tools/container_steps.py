"""Carries out the steps of the Containerfile in minimal Debian systems, for machines without podman or docker.

    make test-container                needs root and debootstrap

Each stage is a system of its own, and the context is the tree as it was last committed. In the end the demo runs there
as a container would run it: as the user, in the working folder, with the entry point.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from bare_systems import ROOT, built, find_archive, require_tools, run_inside, take_over

IMAGE = re.compile(r"debian:(\w+)-slim(?: AS (\w+))?")


class Step(NamedTuple):
    name: str
    rest: str


def read_steps(text: str) -> Iterator[Step]:
    """The instructions, one on each line."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition(" ")
            yield Step(name, rest)


class Stage:
    """A system that steps change, and what they say of the container."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.user, self.place = folder, "root", "/"
        self.variables: dict[str, str] = {}
        self.entry: list[str] = []

    def run(self, command: str) -> tuple[int, str]:
        user = f"setpriv --reuid={self.user} --regid={self.user} --init-groups"
        variables = " ".join(shlex.quote(f"{name}={value}") for name, value in self.variables.items())
        home = "HOME=/root" if self.user == "root" else f"HOME=/home/{self.user}"
        return run_inside(self.folder, f"cd {self.place} && {user} env {home} {variables} sh -c {shlex.quote(command)}")


def copy(stage: Stage, rest: str, stages: dict[str, Stage], context: Path) -> None:
    """Files, or what is in a folder, from the context or another stage."""
    words = shlex.split(rest)
    source = stages[words.pop(0).removeprefix("--from=")].folder if words[0].startswith("--from=") else context
    *names, target = words
    for name in names:
        found, there = source / name.lstrip("/"), stage.folder / target.lstrip("/")
        if found.is_dir():
            shutil.copytree(found, there, symlinks=True, dirs_exist_ok=True)
        else:
            there.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, there)


def main() -> int:
    require_tools()
    archive, stages, context = find_archive(), dict[str, Stage](), ROOT
    with ExitStack() as systems:
        for step in read_steps((ROOT / "Containerfile").read_text(encoding="utf-8")):
            print(f"\n{step.name} {step.rest}", flush=True)
            if step.name == "FROM":
                found = IMAGE.fullmatch(step.rest)
                assert found, step
                folder = systems.enter_context(built(found[1], archive, ("base-files",)))
                folder.chmod(0o755)  # the root of the system; temporary folders are for their owner alone
                stage = stages[found[2] or ""] = Stage(folder)
                if context is ROOT:
                    context = folder.with_suffix(".context")
                    systems.callback(shutil.rmtree, context, ignore_errors=True)
                    shutil.move(folder / "unmask", context)
                else:
                    shutil.rmtree(folder / "unmask")
                (folder / "unmask").mkdir()  # where commands begin
            elif step.name == "RUN":
                if stage.run(step.rest)[0]:
                    return 1
                take_over(stage.folder)  # the package ca-certificates has just written its own
            elif step.name == "COPY":
                copy(stage, step.rest, stages, context)
            elif step.name == "ENV":
                stage.variables |= dict([step.rest.split("=", 1)])
            elif step.name == "USER":
                stage.user = step.rest
            elif step.name == "WORKDIR":
                stage.place = step.rest
            elif step.name == "ENTRYPOINT":
                stage.entry = json.loads(step.rest)
            else:
                assert step.name == "CMD", step
                command = json.loads(step.rest)
        print("\nthe container", flush=True)
        code, said = stage.run(shlex.join([*stage.entry, *command]))
        done, _ = stage.run(shlex.join([*stage.entry, "demo", "--recorded"]))
        may_write, _ = stage.run('test "$(id -un)" = root || touch /opt/unmask/probe /usr/probe')
        good = not code and "Usage: unmask" in said and not done and may_write
        print("\nthe container works" if good else "\nthe container does NOT work")
        return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
