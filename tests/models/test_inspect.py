"""`inspect/PROVIDER/NAME` through the real package, with the mock provider it ships."""

from __future__ import annotations

import asyncio
import base64
import importlib.util
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.models.loopback import request
from unmask.errors import FatalModelError, MissingError, RequestRefusedError, TransientModelError, UsageError
from unmask.models.inspect import InspectModel
from unmask.models.providers import open_model
from unmask.records import Message, Request, Sampling, Stop, Usage

HERE = importlib.util.find_spec("inspect_ai") is not None
needs_inspect = pytest.mark.skipif(not HERE, reason="the extra `inspect` is not installed")


def test_without_the_extra_the_install_line_is_named():
    """Where the package is missing, the error says what to type; no matter what is installed here."""
    code = (
        "import sys; sys.modules['inspect_ai'] = None\n"
        "from unmask.models.providers import open_model\n"
        "from unmask.errors import MissingError\n"
        "try: open_model('inspect/mockllm/model')\n"
        "except MissingError as error: sys.exit(0 if \"pip install 'unmask[inspect]'\" in error.advice else 1)\n"
        "sys.exit(2)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def wrapped(outputs: Any, *, timeout: float = 30.0) -> InspectModel:
    """Inspect's mock model with outputs of its own kind behind our protocol."""
    from inspect_ai.model import get_model

    model = get_model("mockllm/model", custom_outputs=outputs)
    return InspectModel(model, name="mockllm/model", timeout=timeout)


def output(text: str = "x", stop: Any = "stop", **counts: int) -> Any:
    """An output of Inspect's kind. It counts its tokens itself, or the mock would fetch a tokenizer to do so."""
    from inspect_ai.model import ModelOutput, ModelUsage

    made = ModelOutput.from_content("mock-1", text, stop_reason=stop)
    made.usage = ModelUsage(**{"input_tokens": 5, "output_tokens": 7, **counts})
    return made


def raising(error: Exception) -> InspectModel:
    def fail(*_: Any) -> Any:
        raise error

    return wrapped(fail)


def complete(model: Any, one: Request | None = None) -> Any:
    async def go() -> Any:
        try:
            return await model.complete(one or request())
        finally:
            await model.close()

    return asyncio.run(go())


@needs_inspect
def test_the_mock_provider_answers():
    """Opened by name, asked once, with text, usage and model in place."""
    model = open_model("inspect/mockllm/model")
    model._model.api.outputs = iter([output("hello")])
    completion = complete(model)
    assert (model.name, model.endpoint, model.capabilities.max_n) == ("inspect/mockllm/model", "inspect/mockllm", 1)
    assert (completion.choices[0].text, completion.choices[0].stop) == ("hello", Stop.END)
    assert (completion.usage, completion.model) == (Usage(input=5, output=7), "mock-1")


@needs_inspect
def test_messages_and_settings_arrive():
    """Roles in order, and each sampling setting under Inspect's name for it."""
    seen: list[Any] = []

    def listen(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        seen.append(([message.role for message in messages], config))
        return output()

    turns = (Message("system", "s"), Message("user", "u"), Message("assistant", "a"), Message("user", "v"))
    complete(wrapped(listen), Request(turns, Sampling(temperature=0.3, max_tokens=9, top_p=0.8, seed=4)))
    roles, config = seen[0]
    assert roles == ["system", "user", "assistant", "user"]
    assert (config.temperature, config.max_tokens, config.top_p, config.seed) == (0.3, 9, 0.8, 4)


@needs_inspect
def test_reasoning_stop_and_usage_are_mapped():
    """Reasoning apart from the text, the stop reason in our words, cached input counted in."""
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
        ModelUsage,
    )

    content = [ContentReasoning(reasoning="thought"), ContentText(text="the "), ContentText(text="answer")]
    made = ModelOutput(
        model="mock-1",
        choices=[ChatCompletionChoice(message=ChatMessageAssistant(content=content), stop_reason="max_tokens")],
        usage=ModelUsage(input_tokens=5, output_tokens=7, input_tokens_cache_read=10, reasoning_tokens=3),
    )
    completion = complete(wrapped([made]))
    choice = completion.choices[0]
    assert (choice.text, choice.reasoning, choice.stop) == ("the answer", "thought", Stop.LENGTH)
    assert completion.usage == Usage(input=15, output=7, reasoning=3, cached=10)
    assert completion.model == "mock-1"


class _Http(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"status {status} for key sk-abcdefghijk")
        self.status_code = status


@needs_inspect
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, FatalModelError),
        (404, FatalModelError),
        (400, RequestRefusedError),
        (429, TransientModelError),
        (500, TransientModelError),
    ],
)
def test_errors_with_a_status_are_sorted_by_it(status, kind):
    """Whatever the provider raises, with nothing secret in the message."""
    with pytest.raises(kind) as caught:
        complete(raising(_Http(status)))
    assert "abcdefghijk" not in str(caught.value)
    assert getattr(caught.value, "throttled", False) == (status == 429)


@needs_inspect
@pytest.mark.parametrize("status", [400, 422, 429])
def test_a_spent_budget_is_fatal(status):
    """Also with a status that is worth another try otherwise."""
    error = _Http(status)
    error.args = ("Budget has been exceeded! Max budget: 1.0",)
    with pytest.raises(FatalModelError, match="Budget has been exceeded"):
        complete(raising(error))


PROXY = "proxy-password-0123456789"
SECRETS = {
    "OPENAI_API_KEY": "openai/key+of=0123456789",
    "MISTRAL_API_KEY": "mistral-key-0123456789",
    "AWS_SECRET_ACCESS_KEY": "aws-secret-0123456789",
    "UNMASK_API_KEY": "unmask-key-0123456789",
    "OPENAI_BASE_URL": "https://user:url-password-0123456789@gw.example/v1",
    "https_proxy": f"http://proxy:{PROXY}@127.0.0.1:9",
    "FROM_DOTENV_TOKEN": "dotenv-token-0123456789",
}
ECHO = " ".join(
    [
        *(value for name, value in SECRETS.items() if name not in ("OPENAI_BASE_URL", "https_proxy")),
        "url-password-0123456789",
        base64.b64encode(f"proxy:{PROXY}".encode()).decode(),
        PROXY,
        "openai%2Fkey%2Bof%3D0123456789",
    ]
)
"""What Inspect's provider or a proxy sends, and so may come back. Which keys it reads only the provider knows."""


@pytest.fixture
def echoing(tmp_path, monkeypatch) -> InspectModel:
    for name, value in SECRETS.items():
        if name != "FROM_DOTENV_TOKEN":
            monkeypatch.setenv(name, value)
    (tmp_path / ".env").write_text(f"FROM_DOTENV_TOKEN={SECRETS['FROM_DOTENV_TOKEN']}\n")
    monkeypatch.chdir(tmp_path)
    return open_model("inspect/mockllm/model")


@needs_inspect
def test_secrets_that_come_back_are_not_in_errors(echoing):
    def fail(*_: Any) -> Any:
        raise ValueError(f"refused {ECHO}")

    echoing._model.api.outputs = fail
    with pytest.raises(RequestRefusedError, match=r"refused \*\*\*") as caught:
        complete(echoing)
    assert "0123456789" not in str(caught.value)


@needs_inspect
def test_a_slow_answer_times_out():
    """By our clock, whatever Inspect's own settings are."""

    async def dawdle(*_: Any) -> Any:
        await asyncio.sleep(60)

    with pytest.raises(TransientModelError, match=r"^timeout: no answer within 0\.1 s"):
        complete(wrapped(dawdle, timeout=0.1))


@needs_inspect
@pytest.mark.parametrize(
    ("name", "kind"), [("inspect/nosuch/x", UsageError), ("inspect/mockllm", UsageError), ("inspect/none/", UsageError)]
)
def test_what_inspect_does_not_know_is_a_usage_error(name, kind):
    """Unknown provider, or none at all."""
    with pytest.raises(kind):
        open_model(name)


@needs_inspect
def test_a_key_in_dotenv_is_lent_and_taken_back(tmp_path, monkeypatch):
    """Inspect reads keys from the environment only; `.env` counts for it too, and leaves no trace there. A proxy and
    certificates of `.env` are not lent: they could read what is sent."""
    from unmask.models import inspect as ours

    seen: list[str | None] = []
    real = ours.import_module

    class Spy:
        def __init__(self, module: Any) -> None:
            self._module = module

        def __getattr__(self, name: str) -> Any:
            return getattr(self._module, name)

        def get_model(self, *args: Any, **kwargs: Any) -> Any:
            seen.extend(os.environ.get(name) for name in ("MOCK_PROVIDER_KEY", "HTTPS_PROXY", "SSL_CERT_FILE"))
            return self._module.get_model(*args, **kwargs)

    monkeypatch.setattr(ours, "import_module", lambda name: Spy(real(name)))
    monkeypatch.chdir(tmp_path)
    for name in ("HTTPS_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".env").write_text("MOCK_PROVIDER_KEY=abc\nHTTPS_PROXY=http://10.0.0.1\nSSL_CERT_FILE=own.pem\n")
    open_model("inspect/mockllm/model")
    assert seen == ["abc", None, None]
    assert "MOCK_PROVIDER_KEY" not in os.environ


@needs_inspect
@pytest.mark.parametrize(
    ("variable", "key"),
    [
        ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("AZUREAI_ENDPOINT_URL", "AZUREAI_API_KEY"),
        ("INSPECT_EVAL_MODEL_BASE_URL", "MISTRAL_API_KEY"),
        ("OPENAI_BASE_URL", "UNMASK_API_KEY"),
    ],
)
def test_an_address_in_dotenv_gets_no_key_of_the_environment(tmp_path, monkeypatch, variable, key):
    """Which key Inspect would send is known to its provider only: any that may be it counts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"{variable}=http://models.example/v1\n")
    open_model("inspect/mockllm/model")
    monkeypatch.setenv(key, "key-0123456789")
    with pytest.raises(UsageError, match=rf"{variable} in \.env names .* the key in {key} does not come from"):
        open_model("inspect/mockllm/model")
    open_model("inspect/mockllm/model", base_url="http://models.example/v1")
    (tmp_path / ".env").write_text(f"{variable}=http://127.0.0.1:9/v1\n")
    open_model("inspect/mockllm/model")


@needs_inspect
def test_a_provider_whose_package_is_missing_is_a_missing_prerequisite(monkeypatch):
    """Inspect's own sentence about what to install, without its markup."""
    for name in ("OPENAI_API_KEY", "UNMASK_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingError) as caught:
        open_model("inspect/openai/gpt-4o")
    assert "[bold]" not in str(caught.value)


@needs_inspect
def test_parameters_and_headers_become_settings_of_inspect():
    """Those that Inspect has a name for."""
    seen: list[Any] = []

    def answer(messages: Any, tools: Any, choice: Any, config: Any) -> Any:
        seen.append(config)
        return output()

    params = {"reasoning_effort": "low", "extra_body": {"provider": {"only": ["a"]}}}
    complete(wrapped(answer), request(params=params, headers={"X-Title": "unmask"}))
    assert (seen[0].reasoning_effort, seen[0].extra_body) == ("low", {"provider": {"only": ["a"]}})
    assert seen[0].extra_headers == {"X-Title": "unmask"}


@needs_inspect
def test_a_value_that_inspect_refuses_ends_the_run():
    with pytest.raises(FatalModelError, match="reasoning_effort"):
        complete(wrapped([output()]), request(params={"reasoning_effort": 7}))


@needs_inspect
def test_a_parameter_that_the_provider_behind_inspect_refuses_ends_the_run():
    class Refused(Exception):
        status_code = 400

    with pytest.raises(FatalModelError, match="top_k"):
        complete(raising(Refused("Unrecognized request argument supplied: top_k")), request(params={"top_k": 5}))


@needs_inspect
def test_inspect_takes_what_it_has_a_name_for():
    """A list of ours that names what Inspect does not have would be sent into the void."""
    from inspect_ai.model import GenerateConfig

    model = wrapped([output()])
    assert set(model.capabilities.params or ()) <= set(GenerateConfig.model_fields)
