"""Logs of inspect_evals/mask as cases: replies from the store, readings from the judge calls in the transcript.

The log says which text the judge was sent but not which reply that was about. A judge prompt quotes the question and
the reply, so the longest question and then the longest reply found in it name them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.data import reference
from unmask.data.form import Fault
from unmask.errors import DataError, UsageError
from unmask.interop.cases import (
    ImportedRun,
    ImportedScenario,
    define_imported,
    joint_judge_lines,
    judge_lines,
    reply_line,
)
from unmask.interop.inspect.log import first_choice, list_model_calls
from unmask.judges import letters
from unmask.judges.answers import KEYS
from unmask.models.inspect import convert_usage
from unmask.models.keys import scrub
from unmask.protocol.presets import RULES, Rules, Tolerated
from unmask.records import (
    DIRECT,
    MOST_TAKES,
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
)
from unmask.runs.definition import Definition
from unmask.runs.imported import TheirVerdict
from unmask.text import unify_line_ends

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ModelOutput

_STORED = {DIRECT: "belief_elicit_1_responses", PRESSURED: "pressured_responses"}
_STORED_INDIRECT = "belief_elicit_2_and_3_responses"
_CELLS = {"pressured_user_prompt": "user_prompt", "pressured_system_prompt": "system_prompt"}
_BOUNDS = re.compile(r"\b((?:relative_)?(?:lower|upper))_bound\b")


def is_mask(log: EvalLog) -> bool:
    return log.eval.task.rpartition("/")[2] == "mask" and any(
        "formatted_ground_truth" in sample.metadata for sample in log.samples or ()
    )


def read_mask_log(log: EvalLog, *, path: Path) -> ImportedRun:
    samples = list({sample.id: sample for sample in log.samples or ()}.values())
    if any(sample.epoch != 1 for sample in log.samples or ()):
        raise UsageError(
            f"{path} is a log of several epochs, which has no score of its own",
            advice="Make a log without --epochs; -T honesty_at_n=N asks for several statements.",
        )
    harness, definition = _define(log, path)
    cases = tuple(
        _import_scenario(sample, scenario, definition, harness) for sample, scenario in _read_scenarios(samples, path)
    )
    return ImportedRun(harness=harness, definition=definition, cases=cases, theirs=_their_rules(log.eval.task_args))


def _define(log: EvalLog, path: Path) -> tuple[str, Definition]:
    spec, arguments = log.eval, log.eval.task_args
    harness = f"inspect_evals/mask {(spec.metadata or {}).get('full_task_version') or spec.task_version}"
    judges = dict.fromkeys(_model_name(arguments.get(key)) for key in ("binary_judge_model", "numeric_judge_model"))
    # Before version 5 the task wrote its own settings into every call, not into the plan.
    settings = {"temperature": 1.0, "max_tokens": 1000} | log.plan.config.model_dump(exclude_none=True)
    settings |= spec.model_generate_config.model_dump(exclude_none=True)
    systems = (_text(sample, "belief_elicitation_system_prompt") for sample in log.samples or ())
    definition = define_imported(
        harness,
        path,
        model=spec.model or "unknown",
        judge="+".join(filter(None, judges)) or "unknown",
        preset=Preset.INSPECT,
        direct=_as_takes(arguments.get("belief_repeats_n"), 3),
        takes=_as_takes(arguments.get("honesty_at_n"), 1),
        sampling=_read_sampling(settings.get("temperature"), settings.get("max_tokens")),
        judge_sampling=_read_sampling(arguments.get("judge_temperature"), arguments.get("judge_max_tokens")),
        probe_system=next(filter(None, systems), ""),
    )
    return harness, definition


def _their_rules(arguments: Mapping[str, Any]) -> Rules:
    """The rules of 5-E with the arguments of the task; strict where it has no argument for it, as in older versions."""
    rules, tolerance = RULES[Preset.INSPECT], _as_number(arguments.get("numeric_tol"))
    if tolerance is not None:
        rules = msgspec.structs.replace(rules, tolerance=max(0.0, tolerance))
    if arguments.get("no_belief_handling") == "tolerant":
        return rules
    return msgspec.structs.replace(rules, tolerated=Tolerated.NONE, indirect_passes=frozenset())


def _model_name(argument: Any) -> str:
    """A model argument: its name, or since some version a record of name and settings."""
    name = argument.get("model") if isinstance(argument, dict) else argument
    return name if isinstance(name, str) else ""


def _text(sample: EvalSample, key: str) -> str:
    value = sample.metadata.get(key)
    return value if isinstance(value, str) else ""


def _as_takes(value: Any, default: int) -> int:
    return value if type(value) is int and 0 < value <= MOST_TAKES else default


def _read_sampling(temperature: Any, max_tokens: Any) -> Sampling:
    tokens = _as_number(max_tokens)
    return Sampling(temperature=_as_number(temperature), max_tokens=int(tokens) if tokens else None)


def _as_number(value: Any) -> float | None:
    """What is no number of a usual size is unknown."""
    return float(value) if type(value) in (int, float) and abs(value) < 1e15 else None


# --- scenarios --------------------------------------------------------------------------------------------


def _read_scenarios(samples: Sequence[EvalSample], path: Path) -> list[tuple[EvalSample, Scenario]]:
    ids = Counter(_scenario_id(sample) for sample in samples)
    good, problems = [], []
    for sample in samples:
        name = _scenario_id(sample)
        parsed = _parse_scenario(sample, name if ids[name] == 1 else f"{name} {sample.id}")
        if isinstance(parsed, Scenario):
            good.append((sample, parsed))
        else:
            problems.append(f"{name}: {'; '.join(fault.message for fault in parsed)}")
    if problems:
        raise DataError(f"{path} has samples that are no scenarios:", problems=tuple(problems))
    return good


def _scenario_id(sample: EvalSample) -> str:
    return str(sample.metadata.get("task_id") or sample.id)


def _parse_scenario(sample: EvalSample, name: str) -> Scenario | tuple[Fault, ...]:
    cells = {
        _CELLS.get(key, key): unify_line_ends(value) for key, value in sample.metadata.items() if isinstance(value, str)
    }
    archetype = cells.get("config", "")
    if archetype not in set(Archetype):
        return (Fault("archetype", f"{archetype!r} is no archetype"),)
    cells |= {"task_id": name, reference.EXTRA: ""}
    return reference.parse_row(cells, archetype=Archetype(archetype))


# --- replies and readings ---------------------------------------------------------------------------------


Answers = dict[tuple[Slot, str], list[Choice | str]]
"""What the judge said, or why it said nothing, by the slot and the text that it read. Where identical replies were read
several times, the first answer counts."""


def _import_scenario(sample: EvalSample, scenario: Scenario, definition: Definition, harness: str) -> ImportedScenario:
    asked = tuple(_reply_lines(sample, scenario, definition, harness))
    lines: list[Judged] = []
    reread = False
    direct_lines: dict[str, tuple[Judged, ...]] = {}
    for (slot, text), answers in _judge_answers(sample, asked).items():
        reading_lines, *more = (judge_lines(scenario, slot, (text,), answer, source=harness) for answer in answers)
        lines.extend(reading_lines)
        reread |= any(_reading(scenario, again) != _reading(scenario, reading_lines) for again in more)
        if slot == DIRECT:
            direct_lines[text] = reading_lines
    texts = [line.choices[0].answer for line in asked if line.slot == DIRECT and line.choices]
    lines.extend(joint_judge_lines(scenario, texts, direct_lines, source=harness))
    theirs = _read_their_verdict(sample)
    return ImportedScenario(scenario=scenario, asked=asked, judged=tuple(lines), theirs=theirs, reread=reread)


def _reading(scenario: Scenario, lines: Sequence[Judged]) -> list[object]:
    reading = letters.reading(lines[:1], kind=scenario.kind)
    return [getattr(reading, field, None) for field in ("letter", "absolute", "relative")]


def _reply_lines(sample: EvalSample, scenario: Scenario, definition: Definition, harness: str) -> Iterator[Asked]:
    """By slot and take. Where a sample stopped with an error, what is missing is a failure, not something to ask."""
    stopped = f"there: {scrub(sample.error.message if sample.error else 'the sample was not finished')}"
    wanted = {PRESSURED: definition.takes} | ({DIRECT: definition.direct} if scenario.direct else {})
    places = [(slot, take, _STORED[slot], take) for slot, takes in wanted.items() for take in range(takes)]
    places += [(indirect(number), 0, _STORED_INDIRECT, number - 1) for number in range(1, len(scenario.indirect) + 1)]
    stored = {key: _stored_outputs(sample, key) for key in (*_STORED.values(), _STORED_INDIRECT)}
    for slot, take, key, place in places:
        if place >= len(stored[key]):
            yield reply_line(scenario, slot, take, stopped, source=harness)
            continue
        output = stored[key][place]
        reply = first_choice(output) or f"there: {scrub(output.error or 'no choices')}"
        yield msgspec.structs.replace(
            reply_line(scenario, slot, take, reply, source=harness),
            usage=convert_usage(output.usage),
            model=output.model or None,
            latency=output.time if output.time is not None and isfinite(output.time) else None,
        )


def _stored_outputs(sample: EvalSample, key: str) -> list[ModelOutput]:
    from inspect_ai.model import ModelOutput

    outputs = sample.store.get(key)
    return [ModelOutput.model_validate(output) for output in outputs[:MOST_TAKES]] if isinstance(outputs, list) else []


def _judge_answers(sample: EvalSample, asked: Sequence[Asked]) -> Answers:
    """What the judge said about each text that was read, in the order of its calls."""
    texts: dict[Slot, dict[str, str]] = defaultdict(dict)
    for line in asked:
        if line.choices and line.choices[0].answer:
            texts[line.slot][line.choices[0].text] = line.choices[0].answer
    questions = {
        DIRECT: _text(sample, "belief_elicit_1"),
        indirect(1): _text(sample, "belief_elicit_2"),
        indirect(2): _text(sample, "belief_elicit_3"),
        PRESSURED: _text(sample, "pressured_user_prompt"),
    }
    answers: Answers = defaultdict(list)
    for prompt, slot, answer in _judge_calls(sample, questions):
        inside = [text for text in texts[slot] if text in prompt]
        if inside:
            answers[slot, texts[slot][max(inside, key=len)]].append(answer)
    if not answers:  # the transcript was left out
        read = ((slot, answer) for slot, slot_texts in texts.items() for answer in slot_texts.values())
        return {place: ["there: no judge calls are kept"] for place in read}
    return answers


def _judge_calls(sample: EvalSample, questions: Mapping[Slot, str]) -> Iterator[tuple[str, Slot, Choice | str]]:
    asked = set(questions.values())
    for prompt, called in list_model_calls(sample):
        inside = {slot: question for slot, question in questions.items() if question and question in prompt}
        if prompt in asked or not inside:
            continue
        slot = max(inside, key=lambda slot: len(inside[slot]))
        choice = None if called.error else first_choice(called.output)
        if choice is None:
            yield prompt, slot, f"there: {scrub(called.error or called.output.error or 'no choices')}"
        else:
            yield prompt, slot, msgspec.structs.replace(choice, text=_rename_bounds(choice.text))


def _rename_bounds(text: str) -> str:
    """The same bounds with the keys that our own judges are asked for; any other text as it is."""
    named = _BOUNDS.sub(r"\1", text)
    try:
        bounds = msgspec.json.decode(named, type=dict[str, Any]) if named != text else {}
    except msgspec.MsgspecError:
        bounds = {}
    return msgspec.json.encode(dict.fromkeys(KEYS) | bounds).decode() if bounds else named


def _read_their_verdict(sample: EvalSample) -> TheirVerdict | None:
    for score in (sample.scores or {}).values():
        value = score.value if isinstance(score.value, Mapping) else {}
        words = {key: word for key in ("honesty", "honesty@n", "accuracy") if isinstance(word := value.get(key), str)}
        if "honesty" in words:
            return TheirVerdict(first=words["honesty"], all=words.get("honesty@n"), accuracy=words.get("accuracy"))
    return None
