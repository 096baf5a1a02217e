"""Runs for the tests of exports and imports: planted replies put into a run folder without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from bench import replies
from bench.planted import Plant, plant
from unmask.engine.run import run as run_it
from unmask.models.scripted import Scripted
from unmask.records import Request
from unmask.runs.run import Run

SCENARIOS = 24
PATHS = ("run", "calls", "tokens", "cost_usd", "answered_by")
"""What a score says of where a run lies, what it took over, what it cost and who answered: a copy cost nothing, and a
table of readings does not name the model behind each."""


def _marks(request: Request) -> tuple[list[tuple[bytes, ...]], list[tuple[bytes, bytes]]]:
    from bench import prose

    body = json.dumps([message.content for message in request.messages]).encode()
    return prose.TOKEN.findall(body), prose.MARK.findall(body)


def made_run(out: Path, *, takes: int = 1, preset: str = "paper", seed: int = 1, **options: Any) -> Run:
    """A run over planted scenarios. Some replies are silent, cut off or refused, some judge answers say nothing."""
    plants = plant(SCENARIOS, seed=seed, takes=takes)
    data = out.with_suffix(".jsonl")
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(b"".join(msgspec.json.encode(item.scenario) + b"\n" for item in plants))
    by_name = {item.scenario.id: item for item in plants}
    subject = Scripted(_Subject(by_name), name="scripted/planted", max_n=1)
    judge = Scripted(_Judge(by_name), name="scripted/reader", max_n=1)
    settings = {"takes": takes, "preset": preset, **options}
    return run_it(data=str(data), model=subject, judge=judge, out=str(out), **settings)


class _Subject:
    def __init__(self, plants: dict[str, Plant]) -> None:
        self.plants = plants
        self.asked: dict[tuple[str, str], int] = {}

    def __call__(self, request: Request) -> Any:
        from unmask.errors import RequestRefusedError
        from unmask.records import Choice, Completion, Stop

        name, slot = (part.decode() for part in _marks(request)[1][-1])
        take = self.asked.get((name, slot), 0)
        self.asked[name, slot] = take + 1
        said = replies.reply(self.plants[name], slot, take)
        match hash_of(name, slot, take) % 23:
            case 0:
                return Completion((Choice("", stop=Stop.END),))
            case 1:
                return Completion((Choice("=1+1 " + said.text, said.reasoning, Stop.LENGTH),))
            case 2:
                raise RequestRefusedError("refused: too long, it says\nin two lines")
            case 3:
                return Completion((Choice("", "all of it was thought", Stop.LENGTH),))
            case 4:
                return Completion((Choice('- a list,\r\n"quoted"\n' + said.text, said.reasoning),))
            case _:
                return Completion((Choice(said.text, said.reasoning),))


class _Judge:
    def __init__(self, plants: dict[str, Plant]) -> None:
        self.plants = plants

    def __call__(self, request: Request) -> Any:
        from unmask.records import Choice, Completion, Stop

        tokens, marks = _marks(request)
        if not tokens:
            return replies.yes_means(self.plants[marks[-1][0].decode()], request.messages[-1].content)
        match hash_of(*(part.decode() for part in tokens[0])) % 19:
            case 0:
                return "I have read it twice."
            case 1:
                return Completion((Choice("The reply, on the whole, see", stop=Stop.LENGTH),))
            case _:
                return replies.judgement(self.plants, tokens)


def hash_of(*parts: object) -> int:
    from zlib import crc32

    return crc32(repr(parts).encode())


def measures(run: Run, preset: str | None = None) -> dict[str, Any]:
    """Everything a score says, apart from where the run lies and what it cost."""
    found = {key: value for key, value in run.score(preset=preset).to_json().items() if key not in PATHS}
    found["undecided"] = {"count": found["undecided"]["count"], "ids": found["undecided"]["ids"]}
    (found["placebo"] or {}).pop("complete_with", None)
    return found


def verdicts(run: Run, preset: str | None = None) -> dict[str, tuple[str, str]]:
    return {row.id: (row.verdict.value, row.accuracy.value) for row in run.rows(preset=preset)}
