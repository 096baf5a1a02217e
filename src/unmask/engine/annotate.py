"""Which side *yes* means where the data does not say: asked of a judge once, and used by every later run of the data.

Each question is asked twice, the second time with the two statements exchanged, and counts where both answers name the
same statement. What was said of a question is one line of `yes_means/HASH.jsonl` in the cache folder: HASH names the
questions of the set. No text of the set is in it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from unmask.data.dataset import Dataset, is_open
from unmask.engine.define import NO_MODEL, style_of
from unmask.engine.loop import run_blocking
from unmask.errors import FatalModelError, ModelError, UsageError
from unmask.files import Lock, lock_path, user_cache_folder
from unmask.judges.answers import ATTEMPTS, find_letter
from unmask.judges.base import Style
from unmask.judges.letters import yes_means_request
from unmask.models.base import Model
from unmask.models.limiter import Limiter, Limits
from unmask.models.providers import open_model
from unmask.models.room import room_of_try
from unmask.records import FORMAT_VERSION, Letter, Record, Result, Sampling, Scenario, digest
from unmask.runs.journal import JournalFile, mend_file, read_lines

_PATIENCE = 600.0
"""Seconds for one answer."""
_OTHER = {Letter.A: Letter.B, Letter.B: Letter.A}


class SaidSide(Record, frozen=True, kw_only=True):
    """One line: what a judge said about one question."""

    v: int = FORMAT_VERSION
    scenario: str
    question: str
    """Digest of the question and its two statements."""
    judge: str
    side: Letter | None = None
    """The statement that *yes* affirms; `None` where the two answers do not name the same one."""


class Annotation(Result, frozen=True, kw_only=True, omit_defaults=False):
    """What `unmask data annotate` has done."""

    data: str
    judge: str
    file: str
    """Where the answers are."""
    questions: int
    """Those of the data that do not say which side *yes* means."""
    asked: int
    """Those that this command asked; the others had been asked before."""
    sides: dict[str, int]
    """Questions by the statement that *yes* affirms; `none` where the answers do not agree."""
    failed: int
    """Questions without an answer; the same command asks them again."""


def annotate(dataset: Dataset, judge: Model, *, max_connections: int = 50) -> Annotation:
    """Ask a judge that writes about every question whose side nobody knows. Each answer is on disk before the next."""
    return run_blocking(lambda: _annotate(dataset, judge, max_connections))


async def _annotate(dataset: Dataset, judge: Model, max_connections: int) -> Annotation:
    path, questions = sides_path(dataset), list_open(dataset.scenarios)
    with Lock(lock_path(path), advice="Wait for it to end; the same command then asks what is left."):
        mend_file(path)
        known, failed = {line.question: line.side for line in read_lines(path, SaidSide)}, 0
        left = {name: scenario for name, scenario in questions.items() if name not in known}
        file, limiter = JournalFile(path), Limiter(judge.endpoint, Limits(max_connections))

        async def ask(name: str, scenario: Scenario) -> None:
            known[name] = side = await _ask_side(limiter, judge, scenario)
            file.append(SaidSide(scenario=scenario.id, question=name, judge=judge.name, side=side))

        tasks = [asyncio.create_task(ask(name, scenario)) for name, scenario in left.items()]
        try:
            for task in asyncio.as_completed(tasks):
                try:
                    await task
                except FatalModelError:
                    raise
                except ModelError:
                    failed += 1
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await judge.close()
            file.close()
    sides = Counter(side.value if side else "none" for name, side in known.items() if name in questions)
    return Annotation(
        data=dataset.name,
        judge=judge.name,
        file=str(path),
        questions=len(questions),
        asked=len(left) - failed,
        sides=dict(sides),
        failed=failed,
    )


async def _ask_side(limiter: Limiter, judge: Model, scenario: Scenario) -> Letter | None:
    first = await _ask_once(limiter, judge, scenario, exchanged=False)
    if first is None:
        return None
    second = await _ask_once(limiter, judge, scenario, exchanged=True)
    return first if second is not None and _OTHER[second] is first else None


async def _ask_once(limiter: Limiter, judge: Model, scenario: Scenario, *, exchanged: bool) -> Letter | None:
    """A or B as they are shown; `None` where the judge cannot tell, or does not answer as asked, twice."""
    for attempt in range(1, ATTEMPTS + 1):
        sampling = Sampling(temperature=0.0, max_tokens=room_of_try(None, attempt))
        request = yes_means_request(scenario, exchanged=exchanged, sampling=sampling, attempt=attempt)
        answer = find_letter((await limiter.send(judge, request)).choices[0])
        if answer is not None:
            return answer.letter if answer.letter in _OTHER else None
    return None


def list_open(scenarios: Iterable[Scenario]) -> dict[str, Scenario]:
    """The yes/no questions whose side is not known, by their names, each with a scenario that asks it."""
    return {name_question(scenario): scenario for scenario in scenarios if is_open(scenario)}


def name_question(scenario: Scenario) -> str:
    return digest((scenario.direct or scenario.check or "", *scenario.statements))


def sides_path(dataset: Dataset) -> Path:
    """The file of all sets with these questions, whatever else is in them."""
    plain = [replace(scenario, yes_means=None) for scenario in dataset.scenarios]
    return user_cache_folder() / "yes_means" / f"{digest(tuple(sorted(list_open(plain))))}.jsonl"


def add_sides(part: Dataset, *, of: Dataset) -> Dataset:
    """A part of a set, with the sides that judges gave for the whole of it. What the data says itself stays."""
    said = {line.question: line for line in read_lines(sides_path(of), SaidSide) if line.side is not None}
    if not said:
        return part
    lines = [said.get(name_question(one)) if is_open(one) else None for one in part.scenarios]
    annotated = (
        one if line is None else replace(one, yes_means=line.side, yes_means_by=line.judge)
        for one, line in zip(part.scenarios, lines, strict=True)
    )
    return replace(part, scenarios=tuple(annotated))


def open_annotator(judge: str, base_url: str | None = None) -> Model:
    """The model of this name. One that picks among lines or reads verbatim cannot be asked about a question."""
    model = None if judge == NO_MODEL else open_model(judge, role="judge", base_url=base_url, timeout=_PATIENCE)
    if model is None or style_of(model) is not Style.LETTERS:
        raise UsageError(
            f"--judge {judge} cannot say which side yes means: it reads replies only",
            advice="Name a model that writes, such as openai/gpt-4o.",
        )
    return model
