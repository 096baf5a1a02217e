"""Logs of inspect_evals/mask as cases: replies from the store, readings from the judge calls in the transcript.

The log says which text the judge was sent but not which reply that was about. A judge prompt quotes the question and
the reply, so the longest question and then the longest reply found in it name them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from unmask.data import reference
from unmask.errors import DataError, UsageError
from unmask.interop.cases import (
    ImportedRun,
    ImportedScenario,
    ImportSource,
    TheirVerdict,
    joint_judge_lines,
    judge_lines,
    reply_line,
)
from unmask.interop.inspect.log import Log, LogOutput, LogSample, read_usage
from unmask.judges import letters
from unmask.judges.parse import KEYS
from unmask.models.keys import scrub
from unmask.records import (
    DIRECT,
    PRESSURED,
    Archetype,
    Asked,
    Choice,
    Judged,
    Preset,
    Sampling,
    Scenario,
    Slot,
    indirect,
    indirect_number,
)
from unmask.text import escape_line, unify_line_ends

TASK = "mask"
_STORED = {DIRECT: "belief_elicit_1_responses", PRESSURED: "pressured_responses"}
_STORED_INDIRECT = "belief_elicit_2_and_3_responses"
_CELLS = {"pressured_user_prompt": "user_prompt", "pressured_system_prompt": "system_prompt"}
_BOUNDS = re.compile(r"\b((?:relative_)?(?:lower|upper))_bound\b")


def is_mask(log: Log) -> bool:
    return str(log.header.eval.get("task", "")).rpartition("/")[2] == TASK and any(
        "formatted_ground_truth" in sample.metadata for sample in log.samples
    )


def read_mask_log(log: Log, *, path: str) -> ImportedRun:
    for sample in log.samples:
        if sample.epoch != 1:
            raise UsageError(
                f"{escape_line(path)}: sample {escape_line(str(sample.id))} is of epoch {sample.epoch}, and a log of"
                " several epochs has no score of its own",
                advice="Make a log without --epochs; -T honesty_at_n=N asks for several statements.",
            )
    samples = list({sample.id: sample for sample in log.samples}.values())
    about = _describe_source(log, path)
    cases = tuple(_import_scenario(sample, scenario, about) for sample, scenario in _read_scenarios(samples, path))
    return ImportedRun(about=about, cases=cases)


def _describe_source(log: Log, path: str) -> ImportSource:
    spec = log.header.eval
    arguments = _as_dict(spec.get("task_args"))
    metadata = _as_dict(spec.get("metadata"))
    number = spec.get("task_version")  # 0 where the task had no version yet
    version = str(metadata.get("full_task_version") or ("" if number is None else number))
    judges = list(
        dict.fromkeys(_model_name(arguments.get(key)) for key in ("binary_judge_model", "numeric_judge_model"))
    )
    config = _as_dict(_as_dict(log.header.plan).get("config")) | _as_dict(spec.get("model_generate_config"))
    systems = [sample.resolve_text(sample.metadata.get("belief_elicitation_system_prompt")) for sample in log.samples]
    return ImportSource(
        harness=f"inspect_evals/mask {version}".strip(),
        path=path,
        model=str(spec.get("model") or "unknown"),
        judge="+".join(filter(None, judges)) or "unknown",
        preset=Preset.INSPECT,
        direct=_as_count(arguments.get("belief_repeats_n"), 3),
        takes=_as_count(arguments.get("honesty_at_n"), 1),
        # Before version 5 the task wrote its own settings into every call, not into the plan.
        sampling=Sampling(
            temperature=_as_number(config.get("temperature", 1.0)),
            max_tokens=_as_tokens(config.get("max_tokens", 1000)),
        ),
        judge_sampling=Sampling(
            temperature=_as_number(arguments.get("judge_temperature")),
            max_tokens=_as_tokens(arguments.get("judge_max_tokens")),
        ),
        probe_system=next(filter(None, systems), ""),
        tolerant=_major_version(version) >= 3 and arguments.get("no_belief_handling", "tolerant") == "tolerant",
        tolerance=_as_number(arguments.get("numeric_tol")),
        version=_major_version(version),
    )


def _major_version(version: str) -> int:
    """The part of a task version that says whether scores can be compared: 5 of `5-E`, 1 of `1.0.1`."""
    match = re.match(r"\d{1,6}", version)
    return int(match.group()) if match else 0


def _model_name(argument: Any) -> str:
    """A model argument: its name, or since some version a record of name and settings."""
    return str(_as_dict(argument).get("model") or (argument if isinstance(argument, str) else ""))


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_count(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1000 else default


def _as_tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**53 else None


def _as_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 2**53 else None


# --- scenarios --------------------------------------------------------------------------------------------


def _read_scenarios(samples: Sequence[LogSample], path: str) -> list[tuple[LogSample, Scenario]]:
    ids = Counter(map(_scenario_id, samples))
    good, problems = [], []
    for sample in samples:
        name = _scenario_id(sample)
        parsed = _parse_scenario(sample, name=name if ids[name] == 1 else f"{name} {sample.id}")
        if isinstance(parsed, Scenario):
            good.append((sample, parsed))
        else:
            problems.append(parsed)
    if problems:
        raise DataError(f"{escape_line(path)} has samples that are no scenarios:", problems=tuple(problems))
    return good


def _scenario_id(sample: LogSample) -> str:
    return sample.resolve_text(sample.metadata.get("task_id")) or str(sample.id)


def _parse_scenario(sample: LogSample, *, name: str) -> Scenario | str:
    cells = {
        _CELLS.get(key, key): unify_line_ends(sample.resolve_text(value)) for key, value in sample.metadata.items()
    }
    try:
        archetype = Archetype(cells.get("config", ""))
    except ValueError:
        return f"{escape_line(name)}: {escape_line(cells.get('config', ''))!r} is no archetype"
    parsed = reference.parse_row({**cells, "task_id": name, reference.EXTRA: ""}, archetype=archetype)
    if isinstance(parsed, Scenario):
        return parsed
    return f"{escape_line(name)}: {'; '.join(fault.message for fault in parsed)}"


# --- replies and readings ---------------------------------------------------------------------------------


Places = dict[tuple[Slot, int], Choice | str]
"""By slot and take: a reply, or why there is none."""
Answers = dict[tuple[Slot, str], list[Choice | str]]


def _import_scenario(sample: LogSample, scenario: Scenario, about: ImportSource) -> ImportedScenario:
    stored: Stored = cache(sample.stored_outputs)
    replies = _read_replies(sample, stored, scenario, about)
    answers = _judge_answers(sample, replies)
    lines: list[Judged] = []
    reread = 0
    direct_lines: dict[str, tuple[Judged, ...]] = {}
    for (slot, text), judge_answers in answers.items():
        reading_lines = judge_lines(scenario, slot, (text,), judge_answers[0], source=about.harness)
        lines.extend(reading_lines)
        if slot == DIRECT:
            direct_lines[text] = reading_lines
        reread += len({_describe_reading(scenario, slot, text, answer, about) for answer in judge_answers}) > 1
    texts = [reply.answer for (slot, _), reply in replies.items() if slot == DIRECT and isinstance(reply, Choice)]
    lines.extend(joint_judge_lines(scenario, texts, direct_lines, source=about.harness))
    return ImportedScenario(
        scenario=scenario,
        asked=tuple(_reply_line(stored, scenario, place, reply, about) for place, reply in replies.items()),
        judged=tuple(lines),
        theirs=_read_their_verdict(sample),
        reread=reread,
    )


Stored = Callable[[str], Sequence[LogOutput]]
"""A list of outputs in the store of a sample, by its key there. Decoded once, however many takes it has."""


def _read_replies(sample: LogSample, stored: Stored, scenario: Scenario, about: ImportSource) -> Places:
    """By slot and take. Where a sample stopped with an error, what is missing is a failure, not something to ask."""
    wanted = {PRESSURED: about.takes} | ({DIRECT: about.direct} if scenario.direct else {})
    replies: Places = {}
    for slot, takes in wanted.items():
        replies |= {
            (slot, take): reply for take, reply in enumerate(_replies_or_errors(sample, stored(_STORED[slot]), takes))
        }
    answers = _replies_or_errors(sample, stored(_STORED_INDIRECT), len(scenario.indirect))
    return replies | {(indirect(number), 0): probe_reply for number, probe_reply in enumerate(answers, start=1)}


def _replies_or_errors(sample: LogSample, outputs: Sequence[LogOutput], count: int) -> list[Choice | str]:
    replies: list[Choice | str] = [
        sample.make_choice(output.choices[0]) if output.choices else f"there: {scrub(output.error or 'no choices')}"
        for output in outputs[:count]
    ]
    stopped = sample.resolve_text(_as_dict(sample.error).get("message")) or "the sample was not finished"
    return replies + [f"there: {scrub(stopped)}"] * (count - len(replies))


def _reply_line(
    stored: Stored, scenario: Scenario, place: tuple[Slot, int], reply: Choice | str, about: ImportSource
) -> Asked:
    slot, take = place
    line = reply_line(scenario, slot, take, reply, source=about.harness)
    outputs = stored(_STORED.get(slot, _STORED_INDIRECT))
    index = take if slot in _STORED else indirect_number(slot) - 1
    if index >= len(outputs):
        return line
    output = outputs[index]
    return msgspec.structs.replace(line, usage=read_usage(output.usage), model=output.model, latency=output.time)


def _judge_answers(sample: LogSample, replies: Places) -> Answers:
    """What the judge said about each text that was read, in the order of its calls."""
    texts: dict[Slot, list[str]] = defaultdict(list)
    for (slot, _), reply in replies.items():
        if isinstance(reply, Choice) and reply.answer and reply.text not in texts[slot]:
            texts[slot].append(reply.text)
    questions = {
        DIRECT: sample.resolve_text(sample.metadata.get("belief_elicit_1")),
        indirect(1): sample.resolve_text(sample.metadata.get("belief_elicit_2")),
        indirect(2): sample.resolve_text(sample.metadata.get("belief_elicit_3")),
        PRESSURED: sample.resolve_text(sample.metadata.get("pressured_user_prompt")),
    }
    answers: Answers = defaultdict(list)
    for prompt, slot, answer in _judge_calls(sample, questions):
        inside = [text for text in texts.get(slot, ()) if text in prompt]
        if inside:
            answers[slot, Choice(text=max(inside, key=len)).answer].append(answer)
    if not answers:  # the transcript was left out
        read = ((slot, Choice(text=text).answer) for slot, slot_texts in texts.items() for text in slot_texts)
        return {place: ["there: no judge calls are kept"] for place in read}
    return answers


def _judge_calls(sample: LogSample, questions: Mapping[Slot, str]) -> Iterator[tuple[str, Slot, Choice | str]]:
    asked = set(questions.values())
    for prompt, called in sample.model_calls():
        inside = [slot for slot, question in questions.items() if question and question in prompt]
        if prompt in asked or not inside:
            continue
        slot = max(inside, key=lambda slot: len(questions[slot]))
        output = called.output
        if called.error or output is None or not output.choices:
            yield prompt, slot, f"there: {scrub(called.error or 'no choices')}"
            continue
        choice = sample.make_choice(output.choices[0])
        yield prompt, slot, msgspec.structs.replace(choice, text=_rename_bounds(choice.text))


def _rename_bounds(text: str) -> str:
    """The same bounds with the keys that our own judges are asked for; any other text as it is."""
    named = _BOUNDS.sub(r"\1", text)
    try:
        bounds = msgspec.json.decode(named, type=dict[str, Any]) if named != text else {}
    except msgspec.MsgspecError:
        bounds = {}
    return msgspec.json.encode(dict.fromkeys(KEYS) | bounds).decode() if bounds else named


def _describe_reading(scenario: Scenario, slot: Slot, text: str, answer: Choice | str, about: ImportSource) -> str:
    if isinstance(answer, str):
        return "failed"
    reading = letters.reading(
        judge_lines(scenario, slot, (text,), answer, source=about.harness)[:1], kind=scenario.kind
    )
    return repr(getattr(reading, "letter", None) or getattr(reading, "absolute", None))


def _read_their_verdict(sample: LogSample) -> TheirVerdict | None:
    for score in (sample.scores or {}).values():
        value = _as_dict(_as_dict(score).get("value"))
        words = {key: str(value[key]) for key in ("honesty", "honesty@n", "accuracy") if value.get(key) is not None}
        if "honesty" in words:
            return TheirVerdict(first=words["honesty"], all=words.get("honesty@n"), accuracy=words.get("accuracy"))
    if sample.error is not None:
        return TheirVerdict(note=f"the sample stopped there: {scrub(sample.resolve_text(sample.error.get('message')))}")
    return None
