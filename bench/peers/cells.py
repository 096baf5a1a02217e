"""One cell of the measurement: a client, a latency, a number of connections and of takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from bench.overhead import command as unmask_command
from bench.overhead import verdicts
from bench.planted import Plant, expected, plant, write_jsonl
from bench.process import ROOT, Served, Timed, cores, serving, timed
from unmask.protocol.verdict import resolve
from unmask.records import DIRECT, Interval, Kind, Letter, Lettered, Preset, Ranged, Reading, Unread

SPREAD = 0.5
"""Deviation of the logarithm of a lognormal latency: one answer in a hundred takes 2.8 times the mean."""


class Peer(StrEnum):
    """Who is measured."""

    UNMASK = "unmask"
    FULL = "unmask, nothing saved"
    INSPECT = "inspect_evals/mask"
    SCRIPT_10 = "reference order, 10"
    SCRIPT_50 = "reference order, 50"


FLAGS = {
    Peer.UNMASK: (),
    Peer.FULL: ("--effort", "full", "--tags", "judge", "--set", "takes_per_call=1"),
}
SEMAPHORES = {Peer.SCRIPT_10: 10, Peer.SCRIPT_50: 50}
INSPECT_WORDS = {"honest": "honest", "lie": "lie", "evade": "evasion", "no-belief": "no_belief"}


class Cell(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What is measured. `latency` is the mean in seconds."""

    takes: int
    latency: float
    shape: Literal["fixed", "lognormal"]
    connections: int
    peer: Peer
    scenarios: int = 1000


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. Times in seconds unless the name says otherwise."""

    cell: Cell
    calls: int
    tokens_in: int
    tokens_out: int
    wall: float
    ideal: float
    """Summed waiting over connections: calls × mean latency / connections."""
    cpu_ms_per_call: float
    peak_mb: float
    first_call: float | None
    most_at_a_time: int
    endpoint_busy: float
    """Share of the wall time in which the endpoint's core worked; near 1 the endpoint is what was measured."""
    as_planted: int
    stopped: bool
    load: float
    """Of the machine before the cell began: what else was running then took its part of both cores."""

    @property
    def ratio(self) -> float | None:
        return self.wall / self.ideal if self.ideal and not self.stopped else None


class Place(NamedTuple):
    """Where a cell works, with the data it works on."""

    folder: Path
    python: Path
    plants: tuple[Plant, ...]
    jsonl: Path
    csv: Path


def measure(cell: Cell, *, python: Path, limit: float) -> Found:
    """Run one cell against a fresh endpoint; the endpoint has a core of its own, and so has the client."""
    core, other = cores()
    options: dict[str, Any] = {} if other is None else {"cpu": other}
    options |= {"scenarios": cell.scenarios, "takes": cell.takes, "latency": cell.latency}
    if cell.shape == "lognormal":
        options["spread"] = SPREAD
    with tempfile.TemporaryDirectory() as folder, serving(**options) as endpoint:
        place = _placed(Path(folder), cell, python)
        load = os.getloadavg()[0]
        done = timed(_command(cell, place, endpoint), core=core, limit=limit, env=_settings(endpoint, place))
        if done.code and not done.stopped:
            raise SystemExit(f"{cell.peer} failed with {done.code}:\n{done.said}")
        stats = endpoint.stats()
        right = 0 if done.stopped else _as_planted(cell, place)
    return _found(cell, done, stats, (right, round(load, 1)))


def _found(cell: Cell, done: Timed, stats: Mapping[str, Any], seen: tuple[int, float]) -> Found:
    calls = sum(stats["answered"].values())
    return Found(
        cell=cell,
        calls=calls,
        tokens_in=stats["tokens"]["input"],
        tokens_out=stats["tokens"]["output"],
        wall=round(done.wall, 2),
        ideal=round(stats["waited"] / cell.connections, 2),
        cpu_ms_per_call=round(1000 * done.cpu / max(calls, 1), 3),
        peak_mb=round(done.peak_mb, 1),
        first_call=round(stats["first"] - done.started, 2) if stats["first"] else None,
        most_at_a_time=stats["max_in_flight"],
        endpoint_busy=round(stats["cpu"] / done.wall, 2),
        as_planted=seen[0],
        stopped=done.stopped,
        load=seen[1],
    )


def _placed(folder: Path, cell: Cell, python: Path) -> Place:
    """The planted scenarios in our format, and exported from that for the others."""
    plants = plant(cell.scenarios, takes=cell.takes)
    jsonl = write_jsonl(plants, folder / "planted.jsonl")
    csv = folder / "exported"
    export = [sys.executable, "-m", "unmask.cli.main", "data", "export", str(jsonl)]
    subprocess.run([*export, "--out", str(csv)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return Place(folder, python, plants, jsonl, csv)


def _command(cell: Cell, place: Place, endpoint: Served) -> list[str]:
    out = place.folder / "out"
    if cell.peer in FLAGS:
        flags = ["--max-connections", str(cell.connections), "--takes", str(cell.takes), *FLAGS[cell.peer]]
        return unmask_command(place.jsonl, out, endpoint, flags)
    script = "with_inspect.py" if cell.peer is Peer.INSPECT else "by_script.py"
    command = [str(place.python), str(ROOT / "bench" / "peers" / script), "--data", str(place.csv), "--out", str(out)]
    command += ["--url", endpoint.url, "--takes", str(cell.takes)]
    if cell.peer is Peer.INSPECT:
        return [*command, "--connections", str(cell.connections), "--logs", str(place.folder / "logs")]
    return [*command, "--semaphore", str(SEMAPHORES[cell.peer])]


def _settings(endpoint: Served, place: Place) -> dict[str, str]:
    """Nothing of the user's own settings may get in: no cache, no proxy, no key."""
    return {
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": endpoint.url,
        "HF_HOME": str(place.folder / "hf"),
        "XDG_CACHE_HOME": str(place.folder / "cache"),
        "XDG_DATA_HOME": str(place.folder / "share"),
        "NO_PROXY": "127.0.0.1",
        "PYTHONDONTWRITEBYTECODE": "",
    }


# --- what came out, against what was planted ---------------------------------------------------------------


def _as_planted(cell: Cell, place: Place) -> int:
    out = place.folder / "out"
    if cell.peer in FLAGS:
        found = verdicts(out)
    else:
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        if cell.peer is Peer.INSPECT:
            found = {name: INSPECT_WORDS.get(word, word) for name, word in rows}
        else:
            read = dict(rows)
            found = {item.scenario.id: by_script(item, read.get(item.scenario.id, {})) for item in place.plants}
    return sum(found.get(item.scenario.id) == truth(item, cell) for item in place.plants)


def truth(item: Plant, cell: Cell) -> str:
    """The verdict that the planted readings must lead to under the client's own rules: the paper's, or inspect's."""
    if cell.peer is not Peer.INSPECT:
        return expected(item, takes=cell.takes)[0].value
    takes = {"pressured": cell.takes, DIRECT: 3}
    readings = {
        slot: tuple(_as_inspect(item.reading(slot, take)) for take in range(takes.get(slot, 1)))
        for slot in item.readings
    }
    return resolve(item.scenario, readings, preset=Preset.INSPECT).verdict.value


def by_script(item: Plant, read: Mapping[str, Sequence[Any]]) -> str:
    """The verdict of readings that the re-created order has written down; a row given up has none."""
    readings = {slot: tuple(map(_parsed, found)) for slot, found in read.items()}
    for slot in item.readings:
        readings.setdefault(slot, (Unread("failed: the row was given up"),))
    if item.scenario.kind is Kind.NUMERIC:
        readings[DIRECT] = readings[DIRECT][:1]
    return resolve(item.scenario, readings, preset=Preset.PAPER).verdict.value


def _parsed(found: Any) -> Reading:
    if isinstance(found, str):
        return Lettered(Letter(found), by="judge")
    if isinstance(found, dict):
        relative = Interval(found["relative_lower_bound"], found["relative_upper_bound"])
        return Ranged(Interval(found["lower_bound"], found["upper_bound"]), relative)
    return Unread("unreadable: no answer")


def _as_inspect(planted: Letter | Ranged) -> Reading:
    """Its parser makes no difference between C and D."""
    if isinstance(planted, Ranged):
        return planted
    return Lettered(Letter.C if planted is Letter.D else planted, by="judge")
