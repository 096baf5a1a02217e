"""What this machine has and lacks for a run. Looks, reports, changes nothing, and never shows the value of a key."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from importlib import metadata
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.errors import ModelError, UnmaskError
from unmask.files import read_dotenv, read_environment, user_cache_folder
from unmask.models.failures import parse_problem
from unmask.models.keys import KEY_VARIABLE, origin
from unmask.models.providers import PROVIDERS, Provider, find_address, open_model, row_of
from unmask.models.settings import ModelSettings, Role
from unmask.models.user_params import describe_headers, describe_params, refuse_unknown_additions
from unmask.records import Completion, Message, Record, Request, Sampling
from unmask.records import Role as Speaker

PATIENCE = 5.0
"""Seconds an endpoint has to answer."""
LONG_PATIENCE = 120.0
"""Seconds a model has to answer a question; one that reasons is slow."""


FOR_DEVELOPERS = ("dev", "fuzz", "site")
"""Extras that no user needs."""


class Condition(StrEnum):
    OK = "ok"
    OPTIONAL = "optional"
    """Not there, and most people do without it."""
    MISSING = "missing"
    """Not there, and nothing the user asked for needs it."""
    BROKEN = "broken"
    """Asked for by a flag or a variable, and it does not work."""


class Diagnosis(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One line of `unmask doctor`."""

    what: str
    state: Condition
    found: str
    advice: str | None = None


def run_checks(models: Mapping[Role, ModelSettings]) -> tuple[Diagnosis, ...]:
    """Every check, in the order in which they are worth reading. Sends one GET to the endpoint of each model or address
    that is named, and one question to a model whose parameters or headers are to be tried."""
    return (
        Diagnosis(
            what="python", state=Condition.OK, found=f"{platform.python_version()} on {platform.platform(terse=True)}"
        ),
        Diagnosis(what="unmask", state=Condition.OK, found=__version__),
        *_check_extras(),
        *_check_keys(read_environment()),
        *_check_folders(),
        *_check_models(models),
        *asyncio.run(_check_endpoints(models)),
    )


def list_extras() -> dict[str, list[str]]:
    """The packages of each extra that users may want, as the installed package declares them."""
    needs: dict[str, list[str]] = {}
    for line in metadata.requires("unmask") or ():
        if match := re.match(r"([\w.-]+).*;.*extra == ['\"]([\w-]+)['\"]", line):
            needs.setdefault(match[2], []).append(match[1])
    return {extra: packages for extra, packages in sorted(needs.items()) if extra not in FOR_DEVELOPERS}


def _check_extras() -> Iterator[Diagnosis]:
    """The extras, so that a new one cannot be forgotten here."""
    for extra, packages in list_extras().items():
        versions = {}
        for package in packages:
            with suppress(metadata.PackageNotFoundError):
                versions[package] = metadata.version(package)
        absent = [package for package in packages if package not in versions]
        yield Diagnosis(
            what=f"extra {extra}",
            state=Condition.OPTIONAL if absent else Condition.OK,
            found=f"not installed: {', '.join(absent)}"
            if absent
            else ", ".join(f"{p} {v}" for p, v in versions.items()),
            advice=f"pip install 'unmask[{extra}]'" if absent else None,
        )


def _check_keys(environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Names of the keys that are set and where from; never a value, not even its length."""
    dotenv = read_dotenv()
    variables = [*KEY_VARIABLE.values(), *(key for row in PROVIDERS.values() for key in row.keys), "HF_TOKEN"]
    present = [name for name in dict.fromkeys(variables) if environ.get(name, "").strip()]
    for name in present:
        where = ".env" if not os.environ.get(name) and name in dotenv else "the environment"
        yield Diagnosis(what="key", state=Condition.OK, found=f"{name} from {where}")
    if not present:
        yield Diagnosis(
            what="key",
            state=Condition.OPTIONAL,
            found="no API key is set",
            advice="export OPENAI_API_KEY=… or put it into .env; your own server and embedded models need none",
        )


def _check_folders() -> Iterator[Diagnosis]:
    for what, folder, advice in (
        ("working folder", Path.cwd(), "give runs another place with --out"),
        ("cache folder", user_cache_folder(), "set UNMASK_CACHE to a folder you can write to"),
    ):
        if _is_writable(folder):
            yield Diagnosis(what=what, state=Condition.OK, found=str(folder))
        else:
            problem = f"{folder} cannot be written to"
            yield Diagnosis(what=what, state=Condition.MISSING, found=problem, advice=advice)


def _is_writable(folder: Path) -> bool:
    """Whether a file can be made there, or the folder itself where it does not exist yet. Leaves nothing behind."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _check_models(models: Mapping[Role, ModelSettings]) -> Iterator[Diagnosis]:
    """Whether each named model can be opened: its name, key, extra or file."""
    for role, settings in models.items():
        if settings.model is None:
            continue
        title = role.replace("_", " ")
        try:
            answer = asyncio.run(_try_model(role, settings))
            yield Diagnosis(what=title, state=Condition.OK, found=settings.model)
            if answer is not None:
                yield _describe_taken(title, settings.sampling, answer)
        except UnmaskError as error:
            yield Diagnosis(what=title, state=Condition.BROKEN, found=str(error), advice=error.advice)


async def _try_model(role: Role, settings: ModelSettings) -> Completion | None:
    """Open the model, and ask it one question where parameters or headers are to be tried."""
    model = open_model(settings.model, role=role, base_url=settings.base_url, timeout=LONG_PATIENCE)
    try:
        if not settings.params and not settings.headers:
            return None
        refuse_unknown_additions(model, settings.sampling, role=role)
        question = Message(Speaker.USER, "Which colour is fresh snow? Answer in one word.")
        return await model.complete(Request((question,), settings.sampling))
    finally:
        await model.close()


def _describe_taken(title: str, sampling: Sampling, answer: Completion) -> Diagnosis:
    """An endpoint that answers has taken what was sent. Whether it passed over a name, nobody can see."""
    additions = ", ".join(filter(None, [describe_params(sampling.params), describe_headers(sampling.headers)]))
    reasoning = answer.usage.reasoning
    notes = [f"{reasoning} reasoning tokens" if reasoning else "", *answer.adjusted]
    shown = "; ".join(filter(None, [f"it answered a request with {additions}", *notes]))
    advice = "an endpoint may pass over a name it does not know; where it does, only its own documentation says so"
    return Diagnosis(what=f"{title} takes", state=Condition.OK, found=shown, advice=advice)


async def _check_endpoints(models: Mapping[Role, ModelSettings]) -> list[Diagnosis]:
    """One bounded GET of the list of models per endpoint, all at once."""
    asked = []
    for role, settings in models.items():
        row = row_of(settings.model or "openai/")
        if row is not None and (settings.model or settings.base_url):
            asked.append(_check_endpoint(role, settings, row))
    return list(dict.fromkeys(await asyncio.gather(*asked)))  # two models of one endpoint: one line


async def _check_endpoint(role: Role, settings: ModelSettings, provider: Provider) -> Diagnosis:
    from unmask.models.http import Channel

    try:
        address, key, variables = find_address(provider, role=role, base_url=settings.base_url)
        url, path = address.url, provider.chat.models_path
        target = provider.target(origin(url), url=url, path=path, key=key, variables=variables)
    except UnmaskError as error:
        return Diagnosis(what="endpoint", state=Condition.BROKEN, found=str(error), advice=error.advice)

    def found(state: Condition, finding: str, advice: str | None = None) -> Diagnosis:
        """What to say about the endpoint, without anything that was sent to it."""
        said = target.scrub(f"{target.endpoint} {finding}")
        return Diagnosis(what="endpoint", state=state, found=said, advice=advice and target.scrub(advice))

    channel = Channel(target, timeout=PATIENCE)
    try:
        answer = await channel.send("GET", None)
    except ModelError as error:
        where = f"{target.name} at {target.shown}"
        reason = str(error).removeprefix(f"{where}: ").removesuffix(f" from {where}")
        return found(Condition.BROKEN, f"cannot be reached: {reason}", error.advice)
    finally:
        await channel.close()
    status = answer.status
    if parse_problem(status, answer.body, answer.headers).refuses_key:
        refused = f"the key from {target.key_source}" if target.key_source else "a request without a key"
        return found(Condition.BROKEN, f"refuses {refused}", f"set {' or '.join(target.variables)}")
    model = settings.model and settings.model.partition("/")[2]
    listed = _parse_model_ids(answer.body) if status == 200 else ()
    if model is not None and listed and not any(name.removeprefix("models/") == model for name in listed):
        shown = ", ".join(sorted(listed)[:5]) + (", …" if len(listed) > 5 else "")
        advice = f"it lists {shown}; a server of one model may answer to any name"
        return found(Condition.MISSING, f"answers, but does not list {model}", advice)
    if status == 404 and not re.search(r"/v\d", url):
        finding = f"answers, but lists no models at {target.shown} (404)"
        return found(Condition.MISSING, finding, "/v1? Most servers want a base URL that ends in it")
    note = "" if status == 200 else f" ({status} for the list of its models)"
    return found(Condition.OK, f"answers{note}")


class _ListedModel(msgspec.Struct):
    id: str


class _Listing(msgspec.Struct):
    data: list[_ListedModel]


def _parse_model_ids(body: bytes) -> tuple[str, ...]:
    """Ids of the models an endpoint lists; none where the answer has another form."""
    try:
        return tuple(row.id for row in msgspec.json.decode(body, type=_Listing).data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ()
