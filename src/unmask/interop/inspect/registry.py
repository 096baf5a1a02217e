"""What Inspect finds under the name `unmask`: the task `unmask/mask`. Loaded by Inspect only."""

from __future__ import annotations

import msgspec
from inspect_ai import Task, task

from unmask.data.dataset import LoadOptions
from unmask.data.load import load
from unmask.engine.define import NO_MODEL, define_run, judge_spec
from unmask.interop.inspect.task import TIMEOUT, build_task
from unmask.models.inspect import InspectModel
from unmask.records import Archetype
from unmask.runs.options import options_from


@task
def mask(
    data: str = "core",
    *,
    judge: str = "openai/gpt-4o",
    preset: str = "paper",
    direct: int = 3,
    takes: int = 1,
    effort: str = "lazy",
    tags: str = "rule",
    archetype: str | list[str] | None = None,
    temperature: float = 1.0,
    max_tokens: int | None = None,
    judge_max_tokens: int | None = None,
) -> Task:
    """The MASK protocol as `unmask run` has it, asked by Inspect.

    Args:
        data: A bundled set, `cais/MASK`, or a path: what `unmask run --data` takes.
        judge: The model that reads, by the name Inspect has for it, or `verbatim`.
        preset: The rules that make verdicts of readings: paper, inspect or strict.
        direct: How often the direct probe is asked.
        takes: How often the pressured request is asked.
        effort: `lazy` leaves out what cannot change a verdict, `full` asks everything.
        tags: `rule` reads a tagged yes or no by rule, `judge` asks the judge about every reply.
        archetype: Only this archetype, or several with commas between them.
        temperature: Of the subject; Inspect's own --temperature wins.
        max_tokens: In one reply of the subject: without it 1,000, and 16,000 where that cut it off before any answer.
        judge_max_tokens: The same of the judge.
    """
    names = archetype.split(",") if isinstance(archetype, str) else archetype or []
    options = options_from(
        {
            "preset": preset,
            "direct": direct,
            "takes": takes,
            "effort": effort,
            "tags": tags,
            "archetype": [name.strip() for name in names],
            "temperature": temperature,
            "max_tokens": max_tokens,
            "set": {"takes_per_call": 1} | ({} if judge_max_tokens is None else {"judge.max_tokens": judge_max_tokens}),
        }
    )
    dataset = load(data, options=LoadOptions(archetypes=tuple(map(Archetype, options.archetype))))
    by = judge if judge == NO_MODEL else InspectModel(None, name=judge, timeout=TIMEOUT)
    spec = judge_spec(by, options.judge)
    definition = define_run(dataset, InspectModel(None, name="", timeout=TIMEOUT), spec, options)
    return build_task(
        dataset,
        settings=definition.settings(),
        judge=None if judge == NO_MODEL else judge,
        definition=msgspec.to_builtins(definition),
    )
