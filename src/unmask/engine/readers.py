"""The judge of a command, opened: its model, and the one that reads numbers in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from unmask.engine.define import NO_MODEL, judge_spec
from unmask.engine.work import JUDGE, NUMERIC_JUDGE
from unmask.errors import UsageError
from unmask.judges.base import LETTERS_ONLY, PANEL
from unmask.models.base import Model
from unmask.models.keys import Role, spell_setting
from unmask.models.providers import check_tier, open_model
from unmask.models.settings import ModelSettings
from unmask.models.user_params import refuse_unknown_additions
from unmask.runs.definition import JudgeSpec
from unmask.runs.options import Options

if TYPE_CHECKING:
    from unmask.models.own import AnyModel


def open_asked(settings: ModelSettings, role: Role, *, asks_for_key: bool = True) -> Model:
    """The model behind these settings."""
    if isinstance(settings.model, str):
        opened = open_model(
            settings.model,
            role=role,
            base_url=settings.base_url,
            timeout=settings.timeout,
            asks_for_key=asks_for_key,
            tier=settings.tier,
        )
    else:
        from unmask.models.own import as_model

        opened = as_model(settings.model)
    refuse_unknown_additions(opened, settings.sampling, role=role)
    return opened


def open_judge(settings: ModelSettings, role: Role = "judge", *, asks_for_key: bool = True) -> Model | str:
    """The model behind a judge, or the name of a judge that needs none."""
    judge = settings.model
    if judge == NO_MODEL:
        refuse_unknown_additions(judge, settings.sampling, role=role)
        return str(judge)
    if isinstance(judge, str) and judge.startswith(PANEL):
        raise UsageError(
            f"{spell_setting(role, 'model', judge)}: a panel asks nobody itself",
            advice="Name one judge. A panel is for `unmask score`, of judges that have read everything themselves.",
        )
    return open_asked(settings, role, asks_for_key=asks_for_key)


class OpenedJudge(NamedTuple):
    """A judge as a command asks it. A judge without a model is its own name."""

    spec: JudgeSpec
    reader: Model | str
    numeric: Model | str | None = None

    @property
    def models(self) -> dict[str, Model]:
        """By role."""
        roles = {JUDGE: self.reader, NUMERIC_JUDGE: self.numeric}
        return {role: model for role, model in roles.items() if model is not None and not isinstance(model, str)}


def open_judges(
    options: Options, *, in_use: Sequence[tuple[str | AnyModel, Model]] = (), asks_for_key: bool = True
) -> OpenedJudge:
    """Open the judge and the model for numbers, if there is one. A model of this process that is `in_use` already is
    not loaded twice: the weights are the same, and so is the queue."""

    def opened(settings: ModelSettings, role: Role) -> Model | str:
        for name, model in in_use:
            in_process = model.endpoint == model.name and model.capabilities.supports_options
            if name == settings.model and (not isinstance(name, str) or in_process):
                check_tier(settings.tier, name, flag=spell_setting(role, "tier"))
                refuse_unknown_additions(model, settings.sampling, role=role)
                return model
        return open_judge(settings, role, asks_for_key=asks_for_key)

    reader = opened(options.judge, "judge")
    if options.numeric_judge.model is None:
        _refuse_lone_settings(options)
        return OpenedJudge(judge_spec(reader, options.judge), reader)
    numeric = opened(options.numeric_judge, "numeric_judge")
    second = judge_spec(numeric, options.numeric_judge)
    if second.style in LETTERS_ONLY:
        raise UsageError(
            f"--numeric-judge {second.model} reads letters, not numbers",
            advice="Name a model that writes, such as openai/NAME or vllm/NAME.",
        )
    return OpenedJudge(judge_spec(reader, options.judge, numeric=second), reader, numeric)


def _refuse_lone_settings(options: Options) -> None:
    """Refuse what was given for a judge for numbers without naming one."""
    usual = ModelSettings(temperature=options.judge.temperature, max_tokens=options.judge.max_tokens)
    for field in ModelSettings.__struct_fields__:
        if getattr(options.numeric_judge, field) != getattr(usual, field):
            raise UsageError(
                f"{spell_setting('numeric_judge', field)} is about a judge for numbers, and none is named",
                advice="Name it: --numeric-judge NAME",
            )
