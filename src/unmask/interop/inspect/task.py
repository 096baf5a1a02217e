"""The benchmark as an Inspect task: Inspect asks and keeps the log, our planner, prompts, parser and rules decide.

The planner is the one `unmask run` uses, so the same replies give the same requests and the same verdicts. Under lazy
effort the judge has to read between two questions; those readings are made by the solver, the rest by the scorer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from inspect_ai import Epochs, Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import ChatMessageAssistant, GenerateConfig
from inspect_ai.model import get_model as inspect_model
from inspect_ai.scorer import Metric, MetricProtocol, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from unmask.data.dataset import Dataset
from unmask.errors import FatalModelError, ModelError
from unmask.interop.exported import KEY, SampleJournal, sample_id
from unmask.interop.inspect.export import make_turn
from unmask.interop.inspect.scores import HEADLINE, SCORER, make_score
from unmask.judges.base import JUDGES
from unmask.models.inspect import InspectModel
from unmask.models.room import ROOM, room_of_try
from unmask.protocol.plan import JudgeWork, SubjectWork, plan
from unmask.protocol.probes import messages
from unmask.protocol.settings import Settings
from unmask.records import (
    Accuracy,
    Archetype,
    Asked,
    Effort,
    Judged,
    Kind,
    Outcome,
    Request,
    Sampling,
    Scenario,
)
from unmask.runs.folder import make_state
from unmask.runs.outcomes import outcome_of
from unmask.scoring.measures import Where, list_measures, measure_rate

TIMEOUT = 24 * 3600.0
"""Inspect has its own limits (`--timeout`, `--max-retries`); this one only ends what they let go on."""

JudgeOpener = Callable[[], InspectModel | None]
"""The judge, opened when it is needed: a task is also built only to be listed."""


def build_task(
    dataset: Dataset,
    *,
    settings: Settings,
    judge: str | None,
    definition: dict[str, Any],
) -> Task:
    """The task over these scenarios. Without a `judge` the rules read."""

    def open_judge() -> InspectModel | None:
        return None if judge is None else InspectModel(inspect_model(judge), name=judge, timeout=TIMEOUT)

    return Task(
        dataset=MemoryDataset([_make_sample(scenario) for scenario in dataset.scenarios], name=dataset.name),
        solver=ask_probes(settings, open_judge),
        scorer=read_and_resolve(settings, open_judge),
        config=GenerateConfig(
            temperature=settings.sampling.temperature, max_tokens=settings.sampling.max_tokens or ROOM
        ),
        epochs=Epochs(1, "mode"),
        version=1,
        headline_metric=HeadlineMetric(metric=HEADLINE),
        metadata={KEY: definition},
    )


def _make_sample(scenario: Scenario) -> Sample:
    truth = scenario.truth if isinstance(scenario.truth, str) else str([scenario.truth.lower, scenario.truth.upper])
    return Sample(
        id=sample_id(scenario.id),
        input=[make_turn(message) for message in scenario.conversation],
        target=str(truth),
        metadata={
            "archetype": scenario.archetype.value,
            "proposition": scenario.proposition,
            "scenario": msgspec.to_builtins(scenario),
        },
    )


# --- asking and reading -----------------------------------------------------------------------------------


class SampleProgress:
    """One scenario on its way: what has been asked and read, as journal lines, and the planner's view of it."""

    def __init__(self, journal: SampleJournal) -> None:
        self.scenario = journal.scenario
        self.asked = list(journal.asked)
        self.judged = list(journal.judged)
        self.seen = make_state(journal.asked, journal.judged)

    @property
    def journal(self) -> SampleJournal:
        return SampleJournal(scenario=self.scenario, asked=tuple(self.asked), judged=tuple(self.judged))

    async def run_steps(self, settings: Settings, subject: InspectModel | None, judge: InspectModel | None) -> None:
        """Send what the planner wants until it wants nothing. Without a subject, or a judge, its work is left."""
        while work := plan(self.scenario, self.seen, settings):
            steps = [
                self._ask_subject(step, settings, subject)
                if isinstance(step, SubjectWork)
                else self._ask_judge(step, settings, judge)
                for step in work
                if (subject if isinstance(step, SubjectWork) else judge) is not None
            ]
            if not steps:
                return
            await asyncio.gather(*steps)

    async def _ask_subject(self, step: SubjectWork, settings: Settings, subject: InspectModel | None) -> None:
        # The first attempt leaves the settings to Inspect, whose flags may have changed them.
        room = room_of_try(settings.sampling.max_tokens, step.attempt)
        sampling = Sampling(temperature=None, max_tokens=room if step.attempt > 1 else None)
        request = Request(messages(self.scenario, step.slot), sampling)
        answers = await asyncio.gather(*(_complete(subject, request) for _ in step.takes))
        for take, answer in zip(step.takes, answers, strict=True):
            line = Asked(scenario=self.scenario.id, slot=step.slot, takes=(take,), attempt=step.attempt)
            self.asked.append(msgspec.structs.replace(line, **answer, max_tokens=room))
            self.seen.add_asked(self.asked[-1])

    async def _ask_judge(self, step: JudgeWork, settings: Settings, judge: InspectModel | None) -> None:
        room = room_of_try(settings.judge_sampling.max_tokens, step.attempt)
        sampling = msgspec.structs.replace(settings.judge_sampling, max_tokens=room)
        request = JUDGES[settings.style].request(
            step.method, self.scenario, step.slot, step.texts, sampling=sampling, attempt=step.attempt
        )
        answer = await _complete(judge, request)
        line = Judged(
            scenario=self.scenario.id, slot=step.slot, digest=step.digest, method=step.method, attempt=step.attempt
        )
        self.judged.append(msgspec.structs.replace(line, **answer))
        self.seen.add_judged(self.judged[-1])


async def _complete(model: InspectModel | None, request: Request) -> dict[str, Any]:
    """The answer as fields of a journal line, or why there is none. What can never work ends the sample, as Inspect's
    users expect."""
    assert model is not None
    try:
        answer = await model.complete(request)
    except FatalModelError:
        raise
    except ModelError as error:
        return {"error": str(error)}
    return {field: getattr(answer, field) for field in ("choices", "usage", "latency", "model")}


def _load_progress(state: TaskState) -> SampleProgress:
    stored = state.store.get(KEY)
    if stored is not None:
        return SampleProgress(msgspec.convert(stored, SampleJournal))
    return SampleProgress(SampleJournal(scenario=msgspec.convert(state.metadata["scenario"], Scenario)))


@solver
def ask_probes(settings: Settings, reader: JudgeOpener) -> Solver:
    """Ask the probes and the pressured request; read only what decides whether more has to be asked."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        progress = _load_progress(state)
        judge = reader() if settings.effort is Effort.LAZY else None
        await progress.run_steps(settings, InspectModel(inspect_model(), name=str(state.model), timeout=TIMEOUT), judge)
        state.store.set(KEY, msgspec.to_builtins(progress.journal))
        stated = progress.seen.reply("pressured", 0)
        if stated is not None and stated.choice is not None:
            state.messages.append(ChatMessageAssistant(content=stated.choice.text))
            state.output.completion = stated.choice.text
        return state

    return solve


# --- scoring ----------------------------------------------------------------------------------------------


def _read_outcomes(scores: list[SampleScore]) -> tuple[list[Outcome], int]:
    """What each sample showed, and the number of takes. A score that Inspect made of several epochs has only the
    verdict and the accuracy that most of them share: it counts as one take."""
    outcomes = []
    for score in scores:
        if not isinstance(score.score.value, dict):
            continue
        value, detail = score.score.as_dict(), score.score.metadata or {}
        beliefless = value["accuracy"] == Accuracy.NO_BELIEF
        plain = {
            "id": str(score.sample_id),
            "archetype": Archetype.KNOWN_FACTS,  # no measure looks at it, nor at the kind
            "kind": Kind.BINARY,
            "belief": detail.get("belief", {"is": "none", "why": "as in most epochs"} if beliefless else None),
            "verdicts": detail.get("takes", [value["verdict"]]),
            "could_be_lie": detail.get("could_be_lie", True),
        }
        outcomes.append(msgspec.convert(plain | value, Outcome))
    return outcomes, max((len(outcome.verdicts) for outcome in outcomes), default=0) or 1


def _rate_metric(name: str) -> Metric:
    """A measure of `unmask score` under the same name."""

    def compute(scores: list[SampleScore]) -> float:
        outcomes, takes = _read_outcomes(scores)
        value = measure_rate(outcomes, name, takes=takes).value
        return float("nan") if value is None else value

    def create() -> Metric:
        typed: MetricProtocol = compute
        return typed

    return metric(name=name)(create)()


METRICS = list(map(_rate_metric, list_measures(Where.INSPECT)))


@scorer(metrics=METRICS, name=SCORER)
def read_and_resolve(settings: Settings, reader: JudgeOpener) -> Scorer:
    """Read what is left to be read and resolve the scenario."""

    async def score(state: TaskState, target: Target) -> Score:
        progress = _load_progress(state)
        await progress.run_steps(msgspec.structs.replace(settings, ask=False), None, reader())
        state.store.set(KEY, msgspec.to_builtins(progress.journal))
        result = outcome_of(progress.scenario, progress.seen, settings)
        found: Score = make_score(Score, result, answer=state.output.completion)
        return found

    return score
