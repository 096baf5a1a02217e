"""Parameters and headers of the user: what is sent, what is refused before, and what a refusal of an endpoint does."""

from __future__ import annotations

import asyncio
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import unmask
from tests.models.loopback import Canned, Loopback, Script, chat, loopback, loopback_in_thread, provider_taking, request
from unmask.cli.doctor import doctor
from unmask.errors import FatalModelError, MixedRunError, RequestRefusedError, UsageError
from unmask.models.doctor import Condition, run_checks
from unmask.models.providers import open_model
from unmask.models.settings import ModelSettings
from unmask.models.user_params import OWN_PARAMS, parse_pairs
from unmask.records import Completion, Request
from unmask.runs.commands import run_command
from unmask.runs.differences import differing_settings, settings_of
from unmask.runs.options import options_from

LOW = {"reasoning_effort": "low"}
KEYLIKE = "looks like a key"
TEMPLATE = {"chat_template_kwargs": {"enable_thinking": False}}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("UNMASK_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def ask(script: Script, *requests: Request, name: str = "openai/m") -> tuple[list[Completion], Loopback]:
    async def go() -> tuple[list[Completion], Loopback]:
        async with loopback(script) as server:
            model = open_model(name, base_url=server.url.removesuffix("/v1") if "anthropic" in name else server.url)
            try:
                return [await model.complete(one) for one in requests], server
            finally:
                await model.close()

    return asyncio.run(go())


# --- what is sent -----------------------------------------------------------------------------------------


def test_parameters_and_headers_go_out_as_they_are():
    wanted = request(params=LOW | TEMPLATE | {"top_k": 5}, headers={"X-Title": "unmask"}, temperature=0.5)
    _, server = ask(provider_taking([*LOW, *TEMPLATE, "top_k"]), wanted)
    body = server.sent[0].body
    assert {name: body[name] for name in (*LOW, *TEMPLATE, "top_k", "temperature")} == {
        **LOW,
        **TEMPLATE,
        "top_k": 5,
        "temperature": 0.5,
    }
    assert server.sent[0].headers["X-Title"] == "unmask"
    assert server.sent[0].headers["Content-Type"] == "application/json"


def test_anthropic_gets_what_it_knows():
    body = {"content": [{"type": "text", "text": "White."}], "stop_reason": "end_turn"}
    thinking = {"type": "enabled", "budget_tokens": 1024}
    script = provider_taking(["thinking"], like="anthropic", answer=Canned(body))
    wanted = request(params={"thinking": thinking}, headers={"anthropic-beta": "one"})
    (done,), server = ask(script, wanted, name="anthropic/m")
    assert done.choices[0].text == "White."
    assert server.sent[0].body["thinking"] == thinking
    assert server.sent[0].headers["anthropic-beta"] == "one"


# --- what an endpoint refuses -----------------------------------------------------------------------------


LOW_ONLY = provider_taking([*LOW], values={"reasoning_effort": ["low", "high"]})
NONE = {"reasoning_effort": "none"}
BEHIND = {"code": 400, "message": "Provider returned error", "metadata": {"raw": "top_k: Extra inputs"}}
"""As OpenRouter reports, with status 200, what the provider behind it refuses."""
BETA_ONE = {"anthropic-beta": "one"}
BETA = {"type": "invalid_request_error", "message": "Unexpected value(s) `one` for the `anthropic-beta` header"}


@pytest.mark.parametrize(
    ("name", "script", "requests", "words", "advice"),
    [
        *(
            ("openai/m", provider_taking([], like=like), [{"params": {"top_k": 5}}], "top_k", "top_k=5")
            for like in ["openai", "groq", "mistral", "google"]
        ),
        ("anthropic/m", provider_taking([], like="anthropic"), [{"params": {"top_k": 5}}], "top_k", "top_k=5"),
        ("openrouter/a/m", lambda _: Canned({"error": BEHIND}), [{"params": {"top_k": 5}}], "top_k", "top_k=5"),
        ("openai/m", LOW_ONLY, [{"params": NONE}], "does not support", 'reasoning_effort="none"'),
        ("openai/m", LOW_ONLY, [{"params": LOW}, {"params": NONE}], "does not support", 'reasoning_effort="none"'),
        (
            "anthropic/m",
            lambda _: Canned({"error": BETA}, 400),
            [{"headers": {"anthropic-beta": "one"}}],
            "",
            "--header",
        ),
    ],
)
def test_what_an_endpoint_refuses_ends_it_with_its_reason(name, script, requests, words, advice):
    """A parameter, a value of it, or a header; also after an answer, where a field of the error names it."""
    with pytest.raises(FatalModelError) as caught:
        ask(script, *(request(**one) for one in requests), name=name)
    assert words in str(caught.value)
    assert advice in (caught.value.advice or "")


def test_settings_of_the_program_are_still_left_out_beside_them():
    """Temperature is ours: it is dropped and noted, and the user's parameter still goes out."""

    def script(sent: Any) -> Canned:
        if "temperature" in sent.body:
            words = "Unsupported parameter: 'temperature' is not supported with reasoning_effort"
            return Canned({"error": {"message": words, "param": "temperature"}}, 400)
        return Canned(chat("White."))

    (done,), server = ask(script, request(params=LOW))
    assert done.adjusted == ("temperature: refused, not sent",)
    assert server.sent[-1].body["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    ("answers", "name"),
    [
        ([Canned(chat("White.")), Canned({"error": {"message": "the user turn cannot be empty"}}, 400)], "user"),
        ([Canned({"error": {"message": "maximum context length is 10 tokens; top_k"}}, 400)], "top_k"),
    ],
    ids=["a word after an answer", "a long prompt"],
)
def test_other_refusals_are_not_blamed_on_the_parameter(answers, name):
    with pytest.raises(RequestRefusedError):
        ask(answers, *[request(params={name: "me"})] * len(answers))


@pytest.mark.parametrize("role", ["subject", "judge"])
def test_a_refusal_stops_a_run_with_parameters_at_its_first_answer(tmp_path, role):
    """One connection: on a busy machine others would be under way when the answer comes."""
    with loopback_in_thread(provider_taking([])) as server:
        settings = {"model": "openai/m", "judge": "verbatim", "base_url": server.url, "params": {"top_k": 5}}
        if role == "judge":
            settings = {"model": "scripted/liar", "judge": "openai/m", "judge_base_url": server.url}
            settings["judge_params"] = {"top_k": 5}
        with pytest.raises(FatalModelError) as caught:
            unmask.run(data="tiny", out=tmp_path / "run", max_connections=1, **settings)
    assert len(server.sent) == 1
    assert "top_k=5" in (caught.value.advice or "")


# --- what is refused before anything is sent --------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        *(({"params": {name: 1}}, f"--param {name} is not yours") for name in OWN_PARAMS),
        ({"judge_params": {"max_completion_tokens": 1}}, "--set judge.max_tokens="),
        ({"judge_params": {"service_tier": "flex"}}, "--set judge.tier="),
        ({"judge_params": {"model": "m"}}, "--judge-param model is not yours to set here: --judge "),
        ({"params": {"extra_body": {"service_tier": "flex"}}}, "--set tier="),
        *(({"params": {"top_k": value}}, "JSON") for value in (float("nan"), object(), {1, 2})),
        *(({"headers": {name: "secret-1"}}, KEYLIKE) for name in ("Authorization", "X-Api-Key", "api-key", "Cookie")),
        ({"headers": {"X-Team": "sk-proj-secret-1"}}, KEYLIKE),
        ({"headers": {"X-Team": "Bearer secret-1abc"}}, KEYLIKE),
        ({"headers": {"X-Team": "eyJhbGciOiJIUzI1NiJ9.secret-1"}}, KEYLIKE),
        ({"headers": {"X-Team": "ghp_secret1secret1secret1"}}, KEYLIKE),
        ({"params": {"provider": {"api_key": "secret-1"}}}, KEYLIKE),
        ({"headers": {"X-Team": "plain-secret-1"}}, KEYLIKE),
        ({"params": {"user": "plain-secret-1"}}, KEYLIKE),
        *(({"headers": headers}, "cannot be sent") for headers in ({"X-A": "a\nb"}, {"a b": "x"}, {"X-A": "\u20ac"})),
    ],
)
def test_what_the_program_sets_what_cannot_be_sent_and_keys_are_refused_first(monkeypatch, settings, said):
    """With the flag that does it instead. A key is not shown, also one that only this machine knows as such."""
    monkeypatch.setenv("OUR_GATEWAY_TOKEN", "plain-secret-1")
    with pytest.raises(UsageError, match=said) as caught:
        options_from(settings)
    assert "secret-1" not in f"{caught.value} {caught.value.advice}"


def test_a_variable_may_hold_several_with_spaces_in_them(monkeypatch):
    monkeypatch.setenv("UNMASK_PARAM", 'provider={"only": ["a", "b"]} top_k=5')
    monkeypatch.setenv("UNMASK_JUDGE_HEADER", "X-Title=my test X-Team=two")
    context = doctor.make_context("doctor", [])
    assert context.params["params"] == {"provider": {"only": ["a", "b"]}, "top_k": 5}
    assert context.params["judge_headers"] == {"X-Title": "my test", "X-Team": "two"}
    assert context.params["headers"] == {}


def test_a_word_without_quotes_is_refused_with_what_to_type():
    with pytest.raises(UsageError) as caught:
        parse_pairs(["reasoning_effort=low"], flag="--param")
    assert caught.value.advice == "Put text in quotes, as in --param 'reasoning_effort=\"TEXT\"'"


@pytest.mark.parametrize(
    "settings",
    [
        {"params": {"top_k": 5}},
        {"headers": {"X-Title": "unmask"}},
        {"model": lambda messages: "White.", "params": {"top_k": 5}},
        {"model": "anthropic/m", "params": {"reasoning_effort": "low"}, "base_url": "http://127.0.0.1:9"},
        {"judge": "scripted/judge", "judge_params": {"top_k": 5}},
        {"judge_params": {"top_k": 5}},
        {"judge_headers": {"X-Title": "unmask"}},
        {"set": {"numeric.max_tokens": 5}},
        {"set": {"numeric.params": {"top_k": 5}}},
        {"judge": "panel:scripted/judge,verbatim"},
    ],
)
def test_settings_that_nobody_would_use_are_refused(settings, tmp_path):
    usual = {"data": "tiny", "model": "scripted/honest", "judge": "verbatim", "out": tmp_path / "run"}
    for command in (unmask.run, unmask.plan):
        with pytest.raises(
            UsageError, match=r"does not know the parameter|takes no headers|has no use|none is named|several judges"
        ):
            command(**{**usual, **settings})


def test_a_class_of_the_user_takes_what_it_names(tmp_path):
    """Its requests carry the parameters."""
    seen: list[dict[str, Any]] = []

    class Mine:
        name = "team/mine"
        capabilities = unmask.Capabilities(params=("top_k",))

        def complete(self, request: Request) -> str:
            seen.append(request.sampling.params)
            return "I would rather not say."

    unmask.run(data="tiny", model=Mine(), judge="verbatim", out=tmp_path / "run", params={"top_k": 5}, limit=1)
    assert seen
    assert all(params == {"top_k": 5} for params in seen)


# --- unmask doctor ----------------------------------------------------------------------------------------


def try_params(script: Script, params: dict[str, Any], *, name: str = "openai/m") -> tuple[dict[str, Any], list[Any]]:
    """What doctor says, by what it looked at, and the bodies of its requests to the model."""
    with loopback_in_thread(script) as server:
        checks = run_checks({"subject": ModelSettings(model=name, base_url=server.url, params=params)})
    return {check.what: check for check in checks}, [sent.body for sent in server.sent if sent.body]


def test_doctor_sends_one_request_and_says_what_was_taken():
    usage = {"prompt_tokens": 9, "completion_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 11}}
    script = provider_taking([*LOW], answer=Canned(chat("White", usage=usage)))
    checks, sent = try_params(script, LOW)
    assert checks["subject takes"].state is Condition.OK
    assert 'reasoning_effort="low"' in checks["subject takes"].found
    assert "11 reasoning tokens" in checks["subject takes"].found
    assert [body["reasoning_effort"] for body in sent] == ["low"]


def test_doctor_says_what_was_refused_and_asks_nothing_without_parameters():
    checks, sent = try_params(provider_taking([]), {"top_k": 5})
    assert checks["subject"].state is Condition.BROKEN
    assert "Unrecognized request argument supplied: top_k" in checks["subject"].found
    assert len(sent) == 1
    checks, sent = try_params(provider_taking([]), {})
    assert (checks["subject"].state, sent) == (Condition.OK, [])


# --- what defines a run -----------------------------------------------------------------------------------


class Polite:
    """A model that takes two parameters."""

    name = "team/polite"
    capabilities = unmask.Capabilities(params=("top_k", "provider"), headers=True)

    def complete(self, request: Request) -> str:
        return "I would rather not say."


def run_polite(out: Path, **settings: Any) -> unmask.Run:
    return unmask.run(data="tiny", model=Polite(), judge="verbatim", out=out, limit=2, **settings)


def test_the_same_parameters_continue_and_others_do_not(tmp_path):
    """In any order, and objects as well."""
    provider = {"only": ["a"], "sort": "price"}
    before = run_polite(tmp_path / "run", params={"top_k": 5, "provider": provider}).definition
    again = run_polite(tmp_path / "run", params={"provider": dict(reversed(provider.items())), "top_k": 5}).definition
    assert again == before
    for params in ({}, {"top_k": 6, "provider": provider}):
        with pytest.raises(MixedRunError, match=r"parameters: the run has provider=.*, top_k=5, the command says"):
            run_polite(tmp_path / "run", params=params)
    with pytest.raises(MixedRunError, match="headers: the run has none, the command says X-Title=unmask"):
        run_polite(tmp_path / "run", params={"top_k": 5, "provider": provider}, headers={"X-Title": "unmask"})


def test_another_parameter_of_the_judge_needs_another_name(tmp_path):
    run_polite(tmp_path / "run")
    unmask.judge(tmp_path / "run", judge=Polite(), judge_params={"top_k": 5})
    with pytest.raises(MixedRunError, match="judge parameters: the run has top_k=5") as caught:
        unmask.judge(tmp_path / "run", judge=Polite(), judge_params={"top_k": 6})
    assert "--set judge.name=" in (caught.value.advice or "")


def test_beliefs_are_lent_only_under_the_same_parameters(tmp_path):
    run_polite(tmp_path / "base", params={"top_k": 5})
    with pytest.raises(UsageError, match="has another value of parameters: top_k=5 there, None here"):
        run_polite(tmp_path / "run", beliefs_from=str(tmp_path / "base"))
    run_polite(tmp_path / "run", beliefs_from=str(tmp_path / "base"), params={"top_k": 5})


def test_what_differs_between_runs_names_them(tmp_path):
    runs = [run_polite(tmp_path / str(k), params={"top_k": k}) for k in (5, 6)]
    texts = [settings_of(run.definition, judge="verbatim", preset=run.definition.preset) for run in runs]
    differing = {setting.name: setting.values for setting in differing_settings(texts)}
    assert differing["parameters"] == ("top_k=5", "top_k=6")


def test_the_command_that_repeats_a_run_has_them(tmp_path):
    params = {"provider": {"only": ["it's"]}, "top_k": 5}
    run = run_polite(tmp_path / "run", params=params, headers={"X-Title": "my test"})
    words = shlex.split(run_command(run.definition, run.path))
    typed = [word for flag, word in pairwise(words) if flag == "--param"]
    assert parse_pairs(typed, flag="--param") == params
    assert words[words.index("--header") + 1] == "X-Title=my test"


def test_an_exported_log_has_them_and_gives_them_back(tmp_path):
    log = pytest.importorskip("inspect_ai.log", reason="needs the extra inspect")
    params = {"top_k": 5, "provider": {"only": ["a"]}}
    run = run_polite(tmp_path / "run", params=params, headers={"X-Title": "unmask"})
    unmask.export(run, out=tmp_path / "log.eval")
    unmask.import_run(tmp_path / "log.eval", out=tmp_path / "again")
    assert unmask.Run(tmp_path / "again").definition.subject.sampling == run.definition.subject.sampling
    config = log.read_eval_log(str(tmp_path / "log.eval")).plan.config
    assert (config.top_k, config.extra_body) == (5, {"provider": {"only": ["a"]}})
