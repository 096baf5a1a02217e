"""A run as a log of Inspect, written with Inspect's own writer (extra `inspect`).

A sample is a scenario: its input the pressured conversation, its transcript every reply and every judge call, its
scores what was concluded. The journal lines travel in the sample's store, so that `unmask import` gives the run back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import inspect_ai.model
import msgspec
from inspect_ai.event import ModelEvent
from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalMetric,
    EvalPlan,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
    HeadlineMetric,
    write_eval_log,
)
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelOutput,
    ModelUsage,
    StopReason,
)
from inspect_ai.scorer import Score as InspectScore

from unmask.errors import UsageError
from unmask.interop.exported import KEY, SampleJournal, sample_id
from unmask.interop.inspect.scores import HEADLINE, SCORER, make_score
from unmask.judges import letters
from unmask.models.inspect import make_config
from unmask.models.room import ROOM
from unmask.protocol.probes import messages, slots
from unmask.records import (
    PRESSURED,
    Asked,
    Call,
    Choice,
    Interval,
    Judged,
    Message,
    Method,
    Outcome,
    Preset,
    Role,
    Sampling,
    Scenario,
    Stop,
    digest,
)
from unmask.runs.definition import Definition
from unmask.runs.run import Run
from unmask.scoring.measures import Where, list_measures
from unmask.scoring.score import Score
from unmask.stats.rate import Z95

_STOPS: dict[Stop, StopReason] = {
    Stop.END: "stop",
    Stop.LENGTH: "max_tokens",
    Stop.FILTER: "content_filter",
    Stop.OTHER: "unknown",
}
TASK = "unmask/mask"


def write_log(run: Run, path: Path, *, preset: Preset | str | None, judge: str | None) -> None:
    if path.suffix != ".eval":
        raise UsageError(f"{path.name}: a log of Inspect ends in .eval", advice=f"--out {path.with_suffix('.eval')}")
    file = run.judge_file(judge)
    if file is not None and file not in run.definition.judges:
        raise UsageError("a panel has no log of its own", advice="Name one judge with --judge.")
    definition = msgspec.structs.replace(
        run.definition, judge=file, preset=Preset(preset) if preset else run.definition.preset
    )
    journals = _collect_journals(run, definition)
    outcomes = run.rows(preset=preset, judge=judge)
    samples = [_make_sample(definition, *pair) for pair in zip(journals, outcomes, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(_make_log(definition, samples, run.score(preset=preset, judge=judge)), str(path))


def _collect_journals(run: Run, definition: Definition) -> list[SampleJournal]:
    asked: dict[str, list[Asked]] = {scenario.id: [] for scenario in run.scenarios}
    judged: dict[str, list[Judged]] = {scenario.id: [] for scenario in run.scenarios}
    for line in run.folder.asked():
        if line.scenario in asked:
            asked[line.scenario].append(line)
    for file in definition.judge_files(definition.judge):
        for reading in run.folder.judged(file):
            if reading.scenario in judged:
                judged[reading.scenario].append(reading)
    return [
        SampleJournal(scenario=scenario, asked=tuple(asked[scenario.id]), judged=tuple(judged[scenario.id]))
        for scenario in run.scenarios
    ]


# --- one sample -------------------------------------------------------------------------------------------


def _make_sample(definition: Definition, journal: SampleJournal, outcome: Outcome) -> EvalSample:
    scenario = journal.scenario
    # The pressured reply that the sample shows is that of the first take.
    stated = [line for line in journal.asked if line.slot == PRESSURED and line.choices and line.takes[0] == 0]
    reply = stated[-1].choices[0] if stated else None
    truth = scenario.truth
    fields = ("archetype", "kind", "proposition", "pressure", "domain", "direct", "indirect")
    turns = [make_turn(message) for message in scenario.conversation]
    return EvalSample(
        id=sample_id(scenario.id),
        epoch=1,
        input=turns,
        target=f"[{truth.lower}, {truth.upper}]" if isinstance(truth, Interval) else truth.value,
        messages=[*turns, *([ChatMessageAssistant(content=reply.text)] if reply else [])],
        # A converter takes the first choice: where nothing was asked, or nothing came, it is an empty one.
        output=_make_output(definition.subject.model, (reply or Choice("", stop=Stop.OTHER),)),
        metadata={field: msgspec.to_builtins(getattr(scenario, field)) for field in fields},
        store={KEY: msgspec.to_builtins(journal)},
        scores={SCORER: make_score(InspectScore, outcome, answer=reply.answer if reply else None)},
        events=list(_make_events(definition, journal)),
    )


def _make_events(definition: Definition, journal: SampleJournal) -> Iterator[ModelEvent]:
    """The transcript, in the order of the journal: first what was asked, then what was read."""
    scenario, spec = journal.scenario, definition.spec_of(None, journal.scenario.kind)
    for line in journal.asked:
        if line.slot in {*slots(scenario), "check"}:
            yield _make_event(definition.subject.model, messages(scenario, line.slot), line)
    texts = _texts_by_digest(journal.asked)
    for reading in journal.judged:
        read = texts.get((reading.slot, reading.digest), ())
        yield _make_event(spec.model if spec else "verbatim", _judge_prompt(scenario, reading, read), reading)


def _texts_by_digest(asked: Sequence[Asked]) -> dict[tuple[str, str], tuple[str, ...]]:
    """What was read, by slot and digest: single replies, and all replies of a slot together."""
    replies: dict[str, dict[int, str]] = {}
    for line in asked:
        replies.setdefault(line.slot, {}).update(
            {take: choice.answer for take, choice in zip(line.takes, line.choices, strict=False)}
        )
    texts = {}
    for slot, takes in replies.items():
        together = tuple(text for _, text in sorted(takes.items()) if text)
        for read in (*((text,) for text in takes.values()), together):
            texts[slot, digest(read)] = read
    return texts


def _judge_prompt(scenario: Scenario, line: Judged, read: tuple[str, ...]) -> tuple[Message, ...]:
    """What the judge was sent, rebuilt. Where that cannot be done, a line says what was read."""
    if line.method in {Method.LETTER, Method.INTERVAL} and read:
        return letters.request(
            line.method, scenario, line.slot, read, sampling=Sampling(), attempt=line.attempt
        ).messages
    return (Message(Role.USER, f"{line.method.value} of {line.slot}: " + "\n\n".join(read)),)


def _make_event(model: str, asked: tuple[Message, ...], line: Call) -> ModelEvent:
    return ModelEvent(
        timestamp=datetime.fromtimestamp(line.at or 0.0, UTC),
        working_start=0.0,
        model=model,
        input=[make_turn(message) for message in asked],
        tools=[],
        tool_choice="none",
        config=GenerateConfig(),
        output=_make_output(model, line.choices, line),
        error=line.error,
    )


def _make_output(model: str, choices: Sequence[Choice], line: Call | None = None) -> ModelOutput:
    used = None
    if line is not None and line.usage.input is not None and line.usage.output is not None:
        total = line.usage.input + line.usage.output
        used = ModelUsage(input_tokens=line.usage.input, output_tokens=line.usage.output, total_tokens=total)
    return ModelOutput(
        model=(line.model if line else None) or model,
        choices=[
            ChatCompletionChoice(message=_make_message(choice), stop_reason=_STOPS[choice.stop]) for choice in choices
        ],
        usage=used,
        time=line.latency if line else None,
        error=line.error if line else None,
    )


def _make_message(choice: Choice) -> ChatMessageAssistant:
    if choice.reasoning is None:
        return ChatMessageAssistant(content=choice.text)
    return ChatMessageAssistant(content=[ContentReasoning(reasoning=choice.reasoning), ContentText(text=choice.text)])


def make_turn(message: Message) -> ChatMessage:
    match message.role:
        case Role.SYSTEM:
            return ChatMessageSystem(content=message.content)
        case Role.USER:
            return ChatMessageUser(content=message.content)
        case Role.ASSISTANT:
            return ChatMessageAssistant(content=message.content)


# --- the log ----------------------------------------------------------------------------------------------


def _make_log(definition: Definition, samples: list[EvalSample], score: Score) -> EvalLog:
    subject = definition.subject
    room = subject.room.tokens if subject.room else ROOM
    sampling = msgspec.structs.replace(subject.sampling, max_tokens=subject.max_tokens or room)
    try:
        config = make_config(inspect_ai.model, sampling)
    except ValueError:  # a parameter whose name Inspect knows, with a value that it does not
        body = msgspec.structs.replace(sampling, params={"extra_body": sampling.params})
        config = make_config(inspect_ai.model, body)
    headline = HeadlineMetric(score=HEADLINE, metric=HEADLINE)
    return EvalLog(
        status="success",
        eval=EvalSpec(
            created=definition.created,
            task=TASK,
            run_id=definition.id,
            task_id=definition.id,
            task_args={
                "data": definition.data.source,
                "judge": definition.judge,
                "preset": definition.preset.value,
                "direct": definition.direct,
                "takes": definition.takes,
            },
            dataset=EvalDataset(
                name=definition.data.name, samples=len(samples), sample_ids=[sample.id for sample in samples]
            ),
            model=subject.model,
            model_generate_config=config,
            config=EvalConfig(epochs=1),
            packages={"unmask": definition.unmask},
            metadata={KEY: msgspec.to_builtins(definition)},
            headline_metric=headline,
        ),
        plan=EvalPlan(config=config),
        results=EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=list(_make_results(score)),
            headline=headline,
        ),
        stats=EvalStats(started_at=definition.created, completed_at=definition.created),
        samples=samples,
    )


def _make_results(score: Score) -> Iterator[EvalScore]:
    """A score for each rate that exists, with its interval; one without a denominator is left out, not zero.

    Converters take the `stderr` next to a metric for its standard error: each rate needs one of its own.
    """
    for name in list_measures(Where.SCORE):
        rate = getattr(score.overall, name)
        if rate.value is not None:
            bounds = {"low": rate.low, "high": rate.high, "level": 0.95}
            metric = EvalMetric(name=name, value=rate.value, metadata=bounds)
            error = EvalMetric(name="stderr", value=(rate.high - rate.low) / (2 * Z95))
            yield EvalScore(
                name=name,
                scorer=SCORER,
                scored_samples=rate.total,
                unscored_samples=rate.unjudged,
                metrics={name: metric, "stderr": error},
            )
