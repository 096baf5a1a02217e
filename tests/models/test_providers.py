from __future__ import annotations

import subprocess
import sys
from typing import ClassVar

import pytest

from unmask.errors import MissingError, UsageError
from unmask.models.base import Capabilities, Model
from unmask.models.openai import ChatModel
from unmask.models.providers import PROVIDERS, Provider, open_model

VARIABLES = {
    "UNMASK_API_KEY",
    "UNMASK_JUDGE_API_KEY",
    "UNMASK_BASE_URL",
    "UNMASK_JUDGE_BASE_URL",
    *(name for row in PROVIDERS.values() for name in (*row.keys, *row.url_variables)),
}


@pytest.fixture(autouse=True)
def _bare(monkeypatch, tmp_path):
    """No key and no URL from wherever the tests happen to run."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("provider", sorted(PROVIDERS))
def test_every_provider_of_the_table_opens(provider, monkeypatch):
    """With its own key variable set, each row gives a model at its own address under its own name."""
    row = PROVIDERS[provider]
    monkeypatch.setenv(row.keys[0], "k-123456")
    model = open_model(f"{provider}/some/name")
    assert isinstance(model, Model)
    assert model.name == f"{provider}/some/name"
    assert row.url.startswith(model.endpoint)
    assert model.capabilities.max_n == row.max_n


@pytest.mark.parametrize("provider", [name for name, row in PROVIDERS.items() if row.needs_key])
def test_a_missing_key_is_named(provider):
    """Without a key the provider's own host is not even tried: exit 4, and the advice names the variable."""
    with pytest.raises(MissingError) as caught:
        open_model(f"{provider}/name")
    assert caught.value.exit_code == 4
    assert PROVIDERS[provider].keys[0] in (caught.value.advice or "")


@pytest.mark.parametrize(
    ("name", "url", "endpoint"),
    [
        ("vllm/name", None, "http://localhost:8000"),
        ("ollama/name", None, "http://localhost:11434"),
        ("openai/name", "http://127.0.0.1:9/v1", "http://127.0.0.1:9"),
        ("openai/name", "https://models.example.org/v1", "https://models.example.org"),
    ],
)
def test_a_key_is_only_insisted_on_at_the_providers_own_host(name, url, endpoint):
    assert open_model(name, base_url=url).endpoint == endpoint


class Native(ChatModel):
    chat_path = "/api/chat"
    key_header = "x-key"
    headers: ClassVar = {"x-version": "2"}
    capabilities = Capabilities()


def test_an_api_of_ones_own_is_a_class_that_a_row_names(monkeypatch):
    """Path and headers come from the class; nothing else has to know of it."""
    row = Provider("http://localhost:9", ("NATIVE_KEY",), api=f"{__name__}:Native")
    monkeypatch.setitem(PROVIDERS, "native", row)
    monkeypatch.setenv("NATIVE_KEY", "k-123456")
    model = open_model("native/x", base_url="http://127.0.0.1:81/base")
    assert isinstance(model, Native)
    assert model.target.url == "http://127.0.0.1:81/base/api/chat"
    headers = model.target.headers
    assert (headers["x-key"], headers["x-version"], "Authorization" in headers) == ("k-123456", "2", False)


def test_the_base_url_flag_beats_the_variables(monkeypatch):
    """Flag, then UNMASK_BASE_URL, then the provider's own variable."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://own.example/v1")
    assert open_model("openai/x").endpoint == "http://own.example"
    monkeypatch.setenv("UNMASK_BASE_URL", "http://ours.example/v1")
    assert open_model("openai/x").endpoint == "http://ours.example"
    assert open_model("openai/x", base_url="http://flag.example:81/v1").endpoint == "http://flag.example:81"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("opnai/gpt-4o", "openai/gpt-4o"),
        ("gpt-4o", "openai/gpt-4o"),
        ("meta-llama/Llama-3.1-8B", "vllm/meta-llama/Llama-3.1-8B"),
    ],
    ids=["mistyped", "bare", "of the hub"],
)
def test_the_advice_has_the_name_as_it_was_probably_meant(name, meant):
    with pytest.raises(UsageError, match=name) as caught:
        open_model(name)
    assert meant in (caught.value.advice or "")
    assert "anthropic" in (caught.value.advice or "")


@pytest.mark.parametrize("name", ["", "/", "openai/", "openai", "gguf:", " openai/x", "openai/x\n", "scripted/"])
def test_malformed_names_are_refused(name):
    """Nothing that lacks a part or has stray space in it opens."""
    with pytest.raises(UsageError):
        open_model(name)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://x/v1", "http://", "http://a b/v1", "http://x:port/v1"])
def test_a_base_url_that_is_none_is_refused(url):
    """The advice shows one in full."""
    with pytest.raises(UsageError) as caught:
        open_model("openai/x", base_url=url)
    assert "http://localhost:8000/v1" in (caught.value.advice or "")


def test_a_model_in_this_process_takes_no_base_url():
    """Giving one is a mistake and is said."""
    with pytest.raises(UsageError, match="base URL"):
        open_model("scripted/honest", base_url="http://localhost:8000/v1")


def test_importing_the_package_loads_no_http_client():
    """Opening a scripted model leaves aiohttp unloaded."""
    code = (
        "import sys, unmask; unmask.open_model('scripted/honest'); from unmask.models.limiter import Limits; Limits();"
        "sys.exit(any(n in sys.modules for n in ('aiohttp', 'genai_prices', 'inspect_ai')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
