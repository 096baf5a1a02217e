"""The judges of a command, opened: the first, and the partner that reads figures in its place."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from unmask.engine.define import NO_MODEL, judge_spec, refuse_same_file
from unmask.errors import UsageError
from unmask.judges.base import LETTERS_ONLY, PANEL
from unmask.models.base import Model
from unmask.models.keys import FLAG_PREFIX, URL_VARIABLE, Role
from unmask.models.providers import check_tier, open_model
from unmask.models.user_params import refuse_unknown_additions
from unmask.runs.definition import JudgeSpec, judge_file, public_url
from unmask.runs.folder import Folder
from unmask.runs.options import Options

if TYPE_CHECKING:
    from unmask.models.own import AnyModel


def open_judge(
    judge: str | AnyModel, options: Options, *, asks_for_key: bool = True, role: Role = "judge"
) -> Model | str:
    """The model behind a judge, or the name of a judge that needs none. `options` have those of this judge."""
    prefix = FLAG_PREFIX[role]
    check_tier(options.judge_tier, judge, flag=f"--{prefix}tier")
    if judge == NO_MODEL:
        refuse_unknown_additions(judge, options.judge_sampling, prefix=prefix)
        return judge
    if isinstance(judge, str):
        if judge.startswith(PANEL):
            raise UsageError(
                f"--{prefix.removesuffix('-')} {judge}: a panel asks nobody itself",
                advice="Name one judge. A panel is for scoring, of judges that have read everything themselves:"
                " unmask score RUN --judge panel:A,B,C",
            )
        opened = open_model(
            judge,
            role=role,
            base_url=options.judge_base_url,
            timeout=options.timeout,
            asks_for_key=asks_for_key,
            tier=options.judge_tier,
        )
    else:
        from unmask.models.own import as_model

        opened = as_model(judge)
    refuse_unknown_additions(opened, options.judge_sampling, prefix=prefix)
    return opened


class Partner(NamedTuple):
    """The judge that reads figures in the place of another; without a spec there is none."""

    options: Options
    """Those of the command, with what the run has recorded of a partner that the command does not name."""
    reader: Model | str | None = None
    spec: JudgeSpec | None = None
    news: str = ""
    """Said where the folder, and not the command, names the partner."""


def open_partner(
    numeric_judge: str | AnyModel | None,
    options: Options,
    *,
    folder: Folder | None,
    judge: JudgeSpec,
    in_use: Sequence[tuple[str | AnyModel, Model]] = (),
    asks_for_key: bool = True,
) -> Partner:
    """Open the second judge: the one that is named, or the one that the run has recorded for this judge. A model in
    this process that is `in_use` already is not loaded twice."""
    recorded = numeric_judge is None
    if numeric_judge is None:
        numeric_judge, options = _find_partner(options, folder, options.judge_name or judge_file(judge.model))
    if numeric_judge is None:
        _refuse_lone_settings(options)
        return Partner(options)
    if isinstance(numeric_judge, str):
        refuse_same_file(numeric_judge, options.judge_name or judge_file(judge.model), options)
    own = options.numeric_judge_options
    for name, model in in_use:
        if name == numeric_judge and (not isinstance(name, str) or model.capabilities.supports_options):
            check_tier(own.judge_tier, numeric_judge, flag="--numeric-judge-tier")
            refuse_unknown_additions(model, own.judge_sampling, prefix="numeric-judge-")
            return Partner(options, model, _partner_spec(model, own))
    try:
        reader = open_judge(numeric_judge, own, asks_for_key=asks_for_key, role="numeric_judge")
    except UsageError as error:
        if not recorded:
            raise
        raise UsageError(
            f"{judge.model} leaves figures to {numeric_judge} in this run, which cannot be opened by its name: {error}",
            advice="Pass it again: numeric_judge=… in Python.",
        ) from error
    news = f"figures are read by {numeric_judge}, as {folder.path} has it" if recorded and folder is not None else ""
    return Partner(options, reader, _partner_spec(reader, own), news)


def _partner_spec(reader: Model | str, options: Options) -> JudgeSpec:
    spec = judge_spec(reader, options)
    if spec.style in LETTERS_ONLY:
        raise UsageError(
            f"--numeric-judge {spec.model} reads letters, not figures",
            advice="Name a model that writes, such as openai/NAME or vllm/NAME.",
        )
    return spec


def _find_partner(options: Options, folder: Folder | None, file: str) -> tuple[str | None, Options]:
    """The partner that a run has recorded for a judge, as the command would have named it. Settings that the command
    gives stay. No key is ever sent to an address that only a folder names, which may be a stranger's."""
    definition = folder.definition() if folder is not None and folder.exists else None
    second = definition.partners.get(file) if definition is not None else None
    if definition is None or second is None:
        return None, options
    spec = definition.judges[second]
    variable = os.environ.get(URL_VARIABLE["numeric_judge"])  # not that of .env: it may have come with the folder
    typed = {public_url(url) for url in (options.base_url, options.judge_base_url, variable)}
    if spec.base_url and not options.numeric_judge_base_url and spec.base_url not in typed:
        raise UsageError(
            f"{definition.judges[file].model} leaves figures to {spec.model} at {spec.base_url} in this run, an address"
            " that the command does not name",
            advice=f"Say it again if you know it: --numeric-judge-base-url {shlex.quote(spec.base_url)}",
        )
    filled = msgspec.structs.replace(
        options,
        numeric_judge_name=options.numeric_judge_name or second,
        numeric_judge_base_url=options.numeric_judge_base_url or spec.base_url,
        numeric_judge_max_tokens=options.numeric_judge_max_tokens or spec.sampling.max_tokens,
        numeric_judge_params=options.numeric_judge_params or spec.sampling.params,
        numeric_judge_headers=options.numeric_judge_headers or spec.sampling.headers,
    )
    return spec.model, filled


def _refuse_lone_settings(options: Options) -> None:
    """Refuse what somebody typed for a second judge without naming one. A variable that is always set says nothing."""
    fields = (
        name for name in Options.__struct_fields__ if name.startswith("numeric_judge_") and getattr(options, name)
    )
    for name in fields:
        flag = name.replace("_", "-").removesuffix("s" if name.endswith(("params", "headers")) else "")
        if not os.environ.get(f"UNMASK_{flag.replace('-', '_').upper()}"):
            raise UsageError(
                f"--{flag} is about a second judge, and none is named",
                advice="Name the judge for figures: --numeric-judge NAME",
            )
