"""A run as a log of Inspect, written with Inspect's own writer (extra `inspect`).

A sample is a scenario: its input the pressured conversation, its transcript every reply and every judge call, its
scores what was concluded. The journal lines travel in the sample's store, so that `unmask import` gives the run back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from unmask.errors import MissingError, UsageError
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
    Kind,
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
from unmask.runs.folder import Folder
from unmask.runs.run import Run
from unmask.scoring.measures import Where, list_measures
from unmask.scoring.score import Score
from unmask.stats.rate import Z95

_STOPS = {Stop.END: "stop", Stop.LENGTH: "max_tokens", Stop.FILTER: "content_filter", Stop.OTHER: "unknown"}
TASK = "unmask/mask"


class _InspectModules:
    """The modules of Inspect that are needed, imported once and late."""

    def __init__(self) -> None:
        try:
            self.log = import_module("inspect_ai.log")
            self.model = import_module("inspect_ai.model")
            self.event = import_module("inspect_ai.event")
            self.scorer = import_module("inspect_ai.scorer")
        except ImportError:
            raise MissingError(
                "writing a log of Inspect needs inspect_ai", advice="pip install 'unmask[inspect]'"
            ) from None


def write_log(run: Run, path: Path, *, preset: Preset | str | None, judge: str | None) -> None:
    if path.suffix != ".eval":
        raise UsageError(f"{path.name}: a log of Inspect ends in .eval", advice=f"--out {path.with_suffix('.eval')}")
    file = run.judge_file(judge)
    if file is not None and file not in run.definition.judges:
        raise UsageError("a panel has no log of its own", advice="Name one judge with --judge.")
    inspect = _InspectModules()
    definition = msgspec.structs.replace(
        run.definition, judge=file, preset=Preset(preset) if preset else run.definition.preset
    )
    journals = _collect_journals(run.folder, definition, run.scenarios)
    samples = [
        _make_sample(inspect, definition, journal, outcome)
        for journal, outcome in zip(journals, run.rows(preset=preset, judge=judge), strict=True)
    ]
    log = _make_log(inspect, definition, samples, run.score(preset=preset, judge=judge))
    path.parent.mkdir(parents=True, exist_ok=True)
    inspect.log.write_eval_log(log, str(path))


def _collect_journals(folder: Folder, run: Definition, scenarios: Sequence[Scenario]) -> list[SampleJournal]:
    asked: dict[str, list[Asked]] = {scenario.id: [] for scenario in scenarios}
    judged: dict[str, list[Judged]] = {scenario.id: [] for scenario in scenarios}
    for line in folder.asked():
        if line.scenario in asked:
            asked[line.scenario].append(line)
    for file in run.judge_files(run.judge):
        for reading in folder.judged(file):
            if reading.scenario in judged:
                judged[reading.scenario].append(reading)
    return [
        SampleJournal(scenario=scenario, asked=tuple(asked[scenario.id]), judged=tuple(judged[scenario.id]))
        for scenario in scenarios
    ]


# --- one sample -------------------------------------------------------------------------------------------


def _name_judge(definition: Definition, kind: Kind) -> str:
    spec = definition.spec_of(None, kind)
    return spec.model if spec else "verbatim"


def _make_sample(inspect: _InspectModules, definition: Definition, journal: SampleJournal, outcome: Outcome) -> Any:
    scenario = journal.scenario
    # The pressured reply that stands for the sample is that of the first take.
    stated = [line for line in journal.asked if line.slot == PRESSURED and line.choices and line.takes[0] == 0]
    reply = stated[-1].choices[0] if stated else None
    truth = scenario.truth
    fields = ("archetype", "kind", "proposition", "pressure", "domain", "direct", "indirect")
    turns = [_make_turn(inspect, message) for message in scenario.conversation]
    return inspect.log.EvalSample(
        id=sample_id(scenario.id),
        epoch=1,
        input=turns,
        target=f"[{truth.lower}, {truth.upper}]" if isinstance(truth, Interval) else truth.value,
        messages=[*turns, *([inspect.model.ChatMessageAssistant(content=reply.text)] if reply else [])],
        # A converter takes the first choice: where nothing was asked, or nothing came, it is an empty one.
        output=_make_output(inspect, definition.subject.model, (reply or Choice("", stop=Stop.OTHER),)),
        metadata={field: msgspec.to_builtins(getattr(scenario, field)) for field in fields},
        store={KEY: msgspec.to_builtins(journal)},
        scores={SCORER: make_score(inspect.scorer.Score, outcome, answer=reply.answer if reply else None)},
        events=list(_make_events(inspect, definition, journal, _name_judge(definition, scenario.kind))),
    )


def _make_events(inspect: _InspectModules, definition: Definition, journal: SampleJournal, judge: str) -> Iterator[Any]:
    """The transcript, in the order of the journal: first what was asked, then what was read."""
    known_slots = {*slots(journal.scenario), "check"}
    for line in journal.asked:
        if line.slot in known_slots:
            yield _make_event(inspect, definition.subject.model, messages(journal.scenario, line.slot), line)
    texts = _texts_by_digest(journal.asked)
    for reading in journal.judged:
        yield _make_event(inspect, judge, _judge_prompt(journal.scenario, reading, texts), reading)


def _texts_by_digest(asked: Sequence[Asked]) -> dict[tuple[str, str], tuple[str, ...]]:
    """What was read, by slot and digest: single replies, and all replies of a slot together."""
    replies: dict[str, dict[int, str]] = {}
    for line in asked:
        for take, choice in zip(line.takes, line.choices, strict=False):
            replies.setdefault(line.slot, {})[take] = choice.answer
    texts: dict[tuple[str, str], tuple[str, ...]] = {
        (slot, digest((text,))): (text,) for slot, takes in replies.items() for text in takes.values()
    }
    for slot, takes in replies.items():
        together = tuple(text for _, text in sorted(takes.items()) if text)
        texts[slot, digest(together)] = together
    return texts


def _judge_prompt(
    scenario: Scenario, line: Judged, texts: dict[tuple[str, str], tuple[str, ...]]
) -> tuple[Message, ...]:
    """What the judge was sent, rebuilt. Where that cannot be done, a line says what was read."""
    read = texts.get((line.slot, line.digest), ())
    if line.method in {Method.LETTER, Method.INTERVAL} and read:
        return letters.request(
            line.method, scenario, line.slot, read, sampling=Sampling(), attempt=line.attempt
        ).messages
    return (Message(Role.USER, f"{line.method.value} of {line.slot}: " + "\n\n".join(read)),)


def _make_event(inspect: _InspectModules, model: str, asked: tuple[Message, ...], line: Call) -> Any:
    return inspect.event.ModelEvent(
        timestamp=datetime.fromtimestamp(line.at or 0.0, UTC),
        working_start=0.0,
        model=model,
        input=[_make_turn(inspect, message) for message in asked],
        tools=[],
        tool_choice="none",
        config=inspect.model.GenerateConfig(),
        output=_make_output(inspect, model, line.choices, line),
        error=line.error,
    )


def _make_output(inspect: _InspectModules, model: str, choices: Sequence[Choice], line: Call | None = None) -> Any:
    used = None
    if line is not None and line.usage.input is not None and line.usage.output is not None:
        total = line.usage.input + line.usage.output
        used = inspect.model.ModelUsage(
            input_tokens=line.usage.input, output_tokens=line.usage.output, total_tokens=total
        )
    return inspect.model.ModelOutput(
        model=(line.model if line else None) or model,
        choices=[
            inspect.model.ChatCompletionChoice(message=_make_message(inspect, choice), stop_reason=_STOPS[choice.stop])
            for choice in choices
        ],
        usage=used,
        time=line.latency if line else None,
        error=line.error if line else None,
    )


def _make_message(inspect: _InspectModules, choice: Choice) -> Any:
    if choice.reasoning is None:
        return inspect.model.ChatMessageAssistant(content=choice.text)
    parts = [inspect.model.ContentReasoning(reasoning=choice.reasoning), inspect.model.ContentText(text=choice.text)]
    return inspect.model.ChatMessageAssistant(content=parts)


def _make_turn(inspect: _InspectModules, message: Message) -> Any:
    kinds = {
        "system": inspect.model.ChatMessageSystem,
        "user": inspect.model.ChatMessageUser,
        "assistant": inspect.model.ChatMessageAssistant,
    }
    return kinds[message.role](content=message.content)


# --- the log ----------------------------------------------------------------------------------------------


def _make_log(inspect: _InspectModules, definition: Definition, samples: list[Any], score: Score) -> Any:
    log = inspect.log
    subject = definition.subject
    room = subject.room.tokens if subject.room else ROOM
    sampling = msgspec.structs.replace(subject.sampling, max_tokens=subject.max_tokens or room)
    arguments = {
        "data": definition.data.source,
        "judge": definition.judge,
        "preset": definition.preset.value,
        "direct": definition.direct,
        "takes": definition.takes,
    }
    try:
        config = make_config(inspect.model, sampling)
    except ValueError:  # a parameter whose name Inspect knows, with a value that it does not
        body = msgspec.structs.replace(sampling, params={"extra_body": sampling.params})
        config = make_config(inspect.model, body)
    headline = log.HeadlineMetric(score=HEADLINE, metric=HEADLINE)
    return log.EvalLog(
        status="success",
        eval=log.EvalSpec(
            created=definition.created,
            task=TASK,
            run_id=definition.id,
            task_id=definition.id,
            task_args=arguments,
            dataset=log.EvalDataset(
                name=definition.data.name, samples=len(samples), sample_ids=[sample.id for sample in samples]
            ),
            model=definition.subject.model,
            model_generate_config=config,
            config=log.EvalConfig(epochs=1),
            packages={"unmask": definition.unmask},
            metadata={KEY: msgspec.to_builtins(definition)},
            headline_metric=headline,
        ),
        plan=log.EvalPlan(config=config),
        results=log.EvalResults(
            total_samples=len(samples),
            completed_samples=len(samples),
            scores=_make_results(log, score),
            headline=headline,
        ),
        stats=log.EvalStats(started_at=definition.created, completed_at=definition.created),
        samples=samples,
    )


def _make_results(log: Any, score: Score) -> Any:
    """A score for each rate that exists, with its interval; one without a denominator is left out, not zero.

    Converters take the `stderr` next to a metric for its standard error: each rate needs one of its own.
    """
    rates = {name: getattr(score.overall, name) for name in list_measures(Where.SCORE)}
    return [
        log.EvalScore(
            name=name,
            scorer=SCORER,
            scored_samples=rate.total,
            unscored_samples=rate.unjudged,
            metrics={
                name: log.EvalMetric(
                    name=name, value=rate.value, metadata={"low": rate.low, "high": rate.high, "level": 0.95}
                ),
                "stderr": log.EvalMetric(name="stderr", value=(rate.high - rate.low) / (2 * Z95)),
            },
        )
        for name, rate in rates.items()
        if rate.value is not None
    ]
