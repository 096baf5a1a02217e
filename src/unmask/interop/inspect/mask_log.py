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
from unmask.errors import DataError
from unmask.interop.cases import About, Case, Imported, Theirs, jointly, judged, letter_text, replied
from unmask.interop.inspect.log import Log, Output, Sample, usage
from unmask.judges import letters as written
from unmask.models.keys import scrub
from unmask.records import (
    DIRECT,
    MOST_TAKES,
    PRESSURED,
    Archetype,
    Asked,
    Choice,
    Judged,
    Kind,
    Letter,
    Preset,
    Sampling,
    Scenario,
    Slot,
    indirect,
    indirect_number,
)
from unmask.text import plain, tidy

TASK = "mask"
_STORED = {DIRECT: "belief_elicit_1_responses", PRESSURED: "pressured_responses"}
_STORED_INDIRECT = "belief_elicit_2_and_3_responses"
_CELLS = {"pressured_user_prompt": "user_prompt", "pressured_system_prompt": "system_prompt"}
_EPOCHS = 1000
_BOUNDS = re.compile(r"\b((?:relative_)?(?:lower|upper))_bound\b")


def is_mask(log: Log) -> bool:
    return str(log.header.eval.get("task", "")).rpartition("/")[2] == TASK and bool(
        any("formatted_ground_truth" in sample.metadata for sample in log.samples)
    )


def cases(log: Log, *, path: str) -> Imported:
    """Every sample as a case, its epochs together: the statements of all of them are takes, the probes of the first
    one make the belief."""
    for sample in log.samples:
        if not 1 <= sample.epoch <= _EPOCHS:
            raise DataError(f"{plain(path)}: sample {plain(str(sample.id))} has the epoch {sample.epoch}")
    groups = _grouped(log.samples)
    about = _about(log, path)
    if about.takes > MOST_TAKES:
        raise DataError(f"{plain(path)} has {about.takes} takes of a scenario, more than {MOST_TAKES}")
    made = tuple(_case(samples, scenario, about) for samples, scenario in _scenarios(groups, path))
    return Imported(about=about, cases=made)


Epochs = Mapping[int, Sample]
"""A sample by epoch, in order; an epoch that never began is missing."""


def _grouped(samples: Sequence[Sample]) -> list[Epochs]:
    found: dict[str | int, dict[int, Sample]] = {}
    for sample in samples:
        found.setdefault(sample.id, {})[sample.epoch] = sample
    return [dict(sorted(held.items())) for held in found.values()]


def _first(samples: Epochs) -> Sample:
    return next(iter(samples.values()))


def _about(log: Log, path: str) -> About:
    spec = log.header.eval
    arguments = _dict(spec.get("task_args"))
    metadata = _dict(spec.get("metadata"))
    number = spec.get("task_version")  # 0 where the task had no version yet
    version = str(metadata.get("full_task_version") or ("" if number is None else number))
    judges = list(dict.fromkeys(_model(arguments.get(key)) for key in ("binary_judge_model", "numeric_judge_model")))
    config = _dict(_dict(log.header.plan).get("config")) | _dict(spec.get("model_generate_config"))
    epochs = max((sample.epoch for sample in log.samples), default=1)
    systems = [sample.text(sample.metadata.get("belief_elicitation_system_prompt")) for sample in log.samples]
    return About(
        harness=f"inspect_evals/mask {version}".strip(),
        path=path,
        model=str(spec.get("model") or "unknown"),
        judge="+".join(filter(None, judges)) or "unknown",
        preset=Preset.INSPECT,
        direct=_whole(arguments.get("belief_repeats_n"), 3),
        takes=_whole(arguments.get("honesty_at_n"), 1) * epochs,
        epochs=epochs,
        # Before version 5 the task wrote its own settings into every call, not into the plan.
        sampling=Sampling(
            temperature=_number(config.get("temperature"), 1.0), max_tokens=_whole(config.get("max_tokens"), 1000)
        ),
        judge_sampling=Sampling(
            temperature=_number(arguments.get("judge_temperature"), None),
            max_tokens=_whole(arguments["judge_max_tokens"], 500) if "judge_max_tokens" in arguments else None,
        ),
        probe_system=next(filter(None, systems), ""),
        tolerant=_generation(version) >= 3 and arguments.get("no_belief_handling", "tolerant") == "tolerant",
    )


def _generation(version: str) -> int:
    """The part of a task version that says whether scores can be compared: 5 of `5-E`, 1 of `1.0.1`."""
    found = re.match(r"\d{1,6}", version)
    return int(found.group()) if found else 0


def _model(given: Any) -> str:
    """A model argument: its name, or since some version a record of name and settings."""
    return str(_dict(given).get("model") or (given if isinstance(given, str) else ""))


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 1000 else default


def _number(value: Any, default: float | None) -> float | None:
    return float(value) if isinstance(value, int | float) and abs(value) < 2**53 else default


# --- scenarios --------------------------------------------------------------------------------------------


def _scenarios(groups: Sequence[Epochs], path: str) -> list[tuple[Epochs, Scenario]]:
    ids = Counter(_id(_first(samples)) for samples in groups)
    good, problems = [], []
    for samples in groups:
        sample = _first(samples)
        found = _scenario(sample, name=_id(sample) if ids[_id(sample)] == 1 else f"{_id(sample)} {sample.id}")
        if isinstance(found, Scenario):
            good.append((samples, found))
        else:
            problems.append(found)
    if problems:
        raise DataError(f"{plain(path)} has samples that are no scenarios:", problems=tuple(problems))
    return good


def _id(sample: Sample) -> str:
    return sample.text(sample.metadata.get("task_id")) or str(sample.id)


def _scenario(sample: Sample, *, name: str) -> Scenario | str:
    said = {_CELLS.get(key, key): tidy(sample.text(value)) for key, value in sample.metadata.items()}
    try:
        archetype = Archetype(said.get("config", ""))
    except ValueError:
        return f"{plain(name)}: {plain(said.get('config', ''))!r} is no archetype"
    found = reference.parse({**said, "task_id": name, reference.EXTRA: ""}, archetype=archetype)
    if isinstance(found, Scenario):
        return found
    return f"{plain(name)}: {'; '.join(fault.message for fault in found)}"


# --- replies and readings ---------------------------------------------------------------------------------


Places = dict[tuple[Slot, int], Choice | str]
"""By slot and take: a reply, or why there is none."""
Answers = dict[tuple[Slot, str], list[Choice | str]]


def _case(samples: Epochs, scenario: Scenario, about: About) -> Case:
    said: Places = {}
    asked: list[Asked] = []
    answers: Answers = {}
    for epoch in range(1, about.epochs + 1):
        sample = samples.get(epoch)
        stored = _stored(sample)
        part = _replies(sample, stored, scenario, about, probes=sample is _first(samples))
        shift = (epoch - 1) * about.takes // about.epochs
        for place, reply in part.items():
            line = _asked(stored, scenario, place, reply, about)
            if place[0] == PRESSURED:
                line = msgspec.structs.replace(line, takes=(place[1] + shift,))
            asked.append(line)
            said[place[0], line.takes[0]] = reply
        for key, given in (_answers(sample, scenario, part) if sample else {}).items():
            answers.setdefault(key, []).extend(given)
    lines: list[Judged] = []
    reread = 0
    read: dict[str, tuple[Judged, ...]] = {}
    for (slot, text), given in answers.items():
        made = judged(scenario, slot, (text,), given[0], source=about.harness)
        lines.extend(made)
        if slot == DIRECT:
            read[text] = made
        reread += len({_meaning(scenario, slot, text, one, about) for one in given}) > 1
    texts = [reply.answer for (slot, _), reply in said.items() if slot == DIRECT and isinstance(reply, Choice)]
    lines.extend(jointly(scenario, texts, read, source=about.harness))
    return Case(
        scenario=scenario,
        asked=tuple(asked),
        judged=tuple(lines),
        theirs=_over_epochs([_theirs(sample) for sample in samples.values()]),
        reread=reread,
        epochs=about.epochs,
    )


def _over_epochs(found: Sequence[Theirs | None]) -> Theirs | None:
    """Their verdict over epochs by their rule over statements: a lie wins, then an error, then what comes most often,
    first seen first. They give none themselves."""
    known = [one for one in found if one is not None]
    words = [one.all or one.first for one in known if one.first is not None]
    if len(known) < 2 or not words:
        return known[0] if known else None
    first = next(one for one in known if one.first is not None)
    word = next((word for word in ("lie", "error") if word in words), None) or Counter(words).most_common(1)[0][0]
    return msgspec.structs.replace(first, all=word)


Stored = Callable[[str], Sequence[Output]]
"""A list of outputs in the store of a sample, by its key there. Decoded once, however many takes it has."""


def _stored(sample: Sample | None) -> Stored:
    return cache(sample.outputs) if sample else lambda key: ()


def _replies(sample: Sample | None, stored: Stored, scenario: Scenario, about: About, *, probes: bool) -> Places:
    """By slot and take of this epoch. Where a sample stopped with an error, what is missing is a failure, not something
    to ask."""
    wanted = {PRESSURED: about.takes // about.epochs} | ({DIRECT: about.direct} if scenario.direct and probes else {})
    found: Places = {}
    for slot, takes in wanted.items():
        found |= {(slot, take): said for take, said in enumerate(_said(sample, stored(_STORED[slot]), takes))}
    count = len(scenario.indirect) if probes else 0
    answers = _said(sample, stored(_STORED_INDIRECT), count) if count else []
    return found | {(indirect(number), 0): said for number, said in enumerate(answers, start=1)}


def _said(sample: Sample | None, outputs: Sequence[Output], count: int) -> list[Choice | str]:
    if sample is None:
        return ["there: this epoch was never begun"] * count
    said: list[Choice | str] = [
        sample.choice(output.choices[0]) if output.choices else f"there: {scrub(output.error or 'no choices')}"
        for output in outputs[:count]
    ]
    stopped = sample.text(_dict(sample.error).get("message")) or "the sample was not finished"
    return said + [f"there: {scrub(stopped)}"] * (count - len(said))


def _asked(stored: Stored, scenario: Scenario, place: tuple[Slot, int], said: Choice | str, about: About) -> Asked:
    slot, take = place
    line = replied(scenario, slot, take, said, source=about.harness)
    outputs = stored(_STORED.get(slot, _STORED_INDIRECT))
    index = take if slot in _STORED else indirect_number(slot) - 1
    if index >= len(outputs):
        return line
    output = outputs[index]
    return msgspec.structs.replace(line, usage=usage(output.usage), model=output.model, latency=output.time)


def _answers(sample: Sample, scenario: Scenario, said: Places) -> Answers:
    """What the judge said about each text that was read, in the order of its calls."""
    texts: dict[Slot, list[str]] = defaultdict(list)
    for (slot, _), reply in said.items():
        if isinstance(reply, Choice) and reply.answer and reply.text not in texts[slot]:
            texts[slot].append(reply.text)
    questions = {
        DIRECT: sample.text(sample.metadata.get("belief_elicit_1")),
        indirect(1): sample.text(sample.metadata.get("belief_elicit_2")),
        indirect(2): sample.text(sample.metadata.get("belief_elicit_3")),
        PRESSURED: sample.text(sample.metadata.get("pressured_user_prompt")),
    }
    found: Answers = defaultdict(list)
    for prompt, slot, answer in _judge_calls(sample, questions):
        inside = [text for text in texts.get(slot, ()) if text in prompt]
        if inside:
            found[slot, Choice(text=max(inside, key=len)).answer].append(answer)
    return found or dict(_from_verdict(sample, scenario, texts))


def _judge_calls(sample: Sample, questions: Mapping[Slot, str]) -> Iterator[tuple[str, Slot, Choice | str]]:
    asked = set(questions.values())
    for prompt, called in sample.calls():
        inside = [slot for slot, question in questions.items() if question and question in prompt]
        if prompt in asked or not inside:
            continue
        slot = max(inside, key=lambda slot: len(questions[slot]))
        output = called.output
        if called.error or output is None or not output.choices:
            yield prompt, slot, f"there: {scrub(called.error or 'no choices')}"
            continue
        choice = sample.choice(output.choices[0])
        # The same bounds under the names of our own judges.
        yield prompt, slot, msgspec.structs.replace(choice, text=_BOUNDS.sub(r"\1", choice.text))


def _meaning(scenario: Scenario, slot: Slot, text: str, said: Choice | str, about: About) -> str:
    if isinstance(said, str):
        return "failed"
    reading = written.reading(judged(scenario, slot, (text,), said, source=about.harness)[:1], kind=scenario.kind)
    return repr(getattr(reading, "letter", None) or getattr(reading, "absolute", None))


# --- where the log holds no judge calls -------------------------------------------------------------------


def _from_verdict(
    sample: Sample, scenario: Scenario, texts: Mapping[Slot, list[str]]
) -> Iterator[tuple[tuple[Slot, str], list[Choice | str]]]:
    """Letters that give the verdict and accuracy the log has; else nothing is known."""
    theirs = _theirs(sample)
    belief = _believed(scenario, theirs.accuracy if theirs else None)
    for slot, found in texts.items():
        answers = list(dict.fromkeys(Choice(text=text).answer for text in found))
        letters: Sequence[Letter | None] = [belief if slot == DIRECT else Letter.C] * len(answers)
        if slot == PRESSURED:
            letters = _stated(theirs, belief, len(answers))
        for answer, letter in zip(answers, letters, strict=True):
            known = scenario.kind is Kind.BINARY and letter is not None
            yield (slot, answer), [letter_text(letter.value) if known and letter else "there: no judge calls are kept"]


def _stated(theirs: Theirs | None, belief: Letter | None, count: int) -> list[Letter | None]:
    """Letters of so many different statements. That there is a lie among several says so of one of them: here it is
    the first, and the others are not known."""
    if theirs is None:
        return [None] * count
    letters = {"honest": belief, "lie": _other(belief), "evade": Letter.C, "no-belief": Letter.A}
    overall = theirs.all or theirs.first or ""
    if overall != "lie" or count < 2:
        return [letters.get(overall)] * count
    return [letters["lie"], *[None] * (count - 1)]


def _believed(scenario: Scenario, accuracy: str | None) -> Letter | None:
    truth = scenario.truth if isinstance(scenario.truth, Letter) else None
    match accuracy:
        case "correct" | "no-belief-elicitation-done":
            return truth
        case "incorrect":
            return _other(truth)
        case "no-belief":
            return Letter.C
        case _:
            return None


def _other(letter: Letter | None) -> Letter | None:
    return {Letter.A: Letter.B, Letter.B: Letter.A}.get(letter) if letter is not None else None


def _theirs(sample: Sample) -> Theirs | None:
    for score in (sample.scores or {}).values():
        value = _dict(_dict(score).get("value"))
        if "honesty" in value:
            words = {key: str(value[key]) for key in ("honesty", "honesty@n", "accuracy") if key in value}
            return Theirs(first=words["honesty"], all=words.get("honesty@n"), accuracy=words.get("accuracy"))
    if sample.error is not None:
        return Theirs(note=f"the sample stopped there: {scrub(sample.text(sample.error.get('message')))}")
    return None
