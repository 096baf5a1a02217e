"""The command behind a run, rebuilt from its definition: what is printed so that a run can be continued or repeated."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from unmask.models.user_params import format_value
from unmask.records import Preset, Sampling
from unmask.runs.definition import Definition, JudgeSpec, judge_file
from unmask.runs.options import Options

_DEFAULT = Options()


def run_command(run: Definition, path: Path, *, judge: str | None = None, preset: Preset | None = None) -> str:
    """`unmask run …` with every setting that differs from its default."""
    reader = run.settings(judge).reader  # `run` sets it for its judge, so the judge's own has to be said again
    reader_flag = _flags_off_default(("--reader", reader.value, _DEFAULT.reader.value))
    words = ["unmask", "run", *_subject_flags(run), *_judge_flags(run, judge), *reader_flag]
    return shlex.join([*words, "--out", str(path), "--preset", (preset or run.preset).value])


def judge_command(run: Definition, path: Path, *, judge: str | None = None, preset: Preset | None = None) -> str:
    """`unmask judge …` for one of the run's judges."""
    spec = run.judges.get(judge or run.judge or "")
    reader_flag = _flags_off_default(("--reader", spec.reader.value if spec and spec.reader else None, None))
    words = ["unmask", "judge", str(path), *_judge_flags(run, judge), *reader_flag]
    return shlex.join([*words, "--preset", (preset or run.preset).value])


def _subject_flags(run: Definition) -> Iterator[str]:
    yield from ("--data", run.data.source, "--model", run.subject.model)
    sampling, prompt = run.subject.sampling, run.developer_prompt
    yield from _flags_off_default(
        ("--base-url", run.subject.base_url, None),
        ("--revision", run.data.revision if "/" in run.data.source else None, None),
        ("--limit", run.data.limit, None),
        ("--sample-seed", run.data.seed, 0),
        ("--shard", run.data.shard or None, None),
        ("--temperature", sampling.temperature, _DEFAULT.temperature),
        ("--max-tokens", sampling.max_tokens, _DEFAULT.max_tokens),
        ("--top-p", sampling.top_p, None),
        ("--seed", sampling.seed, None),
        ("--direct", run.direct, _DEFAULT.direct),
        ("--takes", run.takes, _DEFAULT.takes),
        ("--effort", run.effort.value, _DEFAULT.effort.value),
        ("--developer-prompt", prompt and (prompt.path or prompt.name), None),
        ("--beliefs-from", run.beliefs_from and run.beliefs_from.path, None),
    )
    yield from _addition_flags(sampling)
    for name in run.data.archetypes:
        yield from ("--archetype", name)
    for name in run.data.ids:
        yield from ("--ids", name)
    flags = (
        ("--check-provided", run.check),
        ("--self-report", run.self_report is not None),
        ("--skip-bad-rows", bool(run.data.skipped)),
    )
    yield from (flag for flag, on in flags if on)


def _judge_flags(run: Definition, judge: str | None) -> Iterator[str]:
    file = judge or run.judge or ""
    spec: JudgeSpec | None = run.judges.get(file)
    if spec is None:
        return
    yield from ("--judge", spec.model)
    yield from _flags_off_default(
        ("--judge-name", file, judge_file(spec.model)),
        ("--judge-base-url", spec.base_url, None),
        ("--judge-temperature", spec.sampling.temperature, _DEFAULT.judge_temperature),
        ("--judge-max-tokens", spec.sampling.max_tokens, _DEFAULT.judge_max_tokens),
    )
    yield from _addition_flags(spec.sampling, prefix="judge-")
    partner = run.judges.get(spec.numeric_judge or "")
    if partner is not None:
        yield from ("--numeric-judge", partner.model)
        yield from _flags_off_default(
            ("--numeric-judge-name", spec.numeric_judge, judge_file(partner.model)),
            ("--numeric-judge-base-url", partner.base_url, None),
            ("--numeric-judge-max-tokens", partner.sampling.max_tokens, spec.sampling.max_tokens),
        )
        yield from _addition_flags(partner.sampling, prefix="numeric-judge-")
    if file in run.role_play:
        yield "--role-play"


def _addition_flags(sampling: Sampling, *, prefix: str = "") -> Iterator[str]:
    for name, value in sampling.params.items():
        yield from (f"--{prefix}param", f"{name}={format_value(value)}")
    for name, value in sampling.headers.items():
        yield from (f"--{prefix}header", f"{name}={value}")


def _flags_off_default(*rows: tuple[str, object, object]) -> Iterator[str]:
    for flag, value, default in rows:
        if value is not None and value != default:
            yield from (flag, str(value))
