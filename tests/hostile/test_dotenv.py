"""A `.env` that came with a folder, an archive or a clone: it must not get the keys of the person who types there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import unmask
from tests.models.loopback import Canned, Loopback, loopback_in_thread
from tests.sweep.sweeping import write_grid
from unmask.errors import UsageError
from unmask.models.keys import KEY_VARIABLE, URL_VARIABLE
from unmask.models.providers import PROVIDERS, open_model

SECRET = "sk-of-the-person-who-types"
KEY = {"OPENAI_API_KEY": SECRET}
ELSEWHERE = "http://models.example/v1"
VARIABLES = {
    *KEY_VARIABLE.values(),
    *URL_VARIABLE.values(),
    *(name for row in PROVIDERS.values() for name in (*row.keys, *row.url_variables)),
}


class Stranger:
    """A server that refuses everything, and the Authorization headers that it saw."""

    def __init__(self, server: Loopback) -> None:
        self._server = server
        self.here = server.url
        self.elsewhere = f"http://0.0.0.0:{server.port}/v1"
        """An address that does not count as this machine, and leads here all the same."""

    @property
    def seen(self) -> list[str | None]:
        return [sent.headers.get("Authorization") for sent in self._server.sent]


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with loopback_in_thread(Canned(b"", 401)) as server:
        yield Stranger(server)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The working folder, with no key and no address from the environment."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands(folder: Path) -> dict[str, tuple[str, ...]]:
    """Commands that ask a model without naming an address."""
    models = ("openai/a", "--judge", "openai/b")
    grid = write_grid(folder, '[[subject]]\nmodel = "openai/a"', '[[judge]]\nmodel = "openai/b"')
    return {
        "run": ("run", "--data", "tiny", *models, "--out", "run"),
        "sweep": ("sweep", str(grid), "--out", "sweep"),
        "doctor": ("doctor", "--model", *models),
    }


@pytest.mark.parametrize("command", ["run", "sweep", "doctor"])
@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "UNMASK_BASE_URL"])
def test_a_key_of_the_environment_is_not_sent_to_an_address_that_only_dotenv_names(folder, stranger, command, variable):
    """The error names both variables. Nothing is sent, not even without the key."""
    (folder / ".env").write_text(f"{variable}={stranger.elsewhere}\n")
    done = unmask(*commands(folder)[command], cwd=folder, env=KEY)
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == (4 if "doctor" in command else 2), said
    assert f"{variable} in .env names {stranger.elsewhere.removesuffix('/v1')}" in said
    assert "the key in OPENAI_API_KEY does not come from that .env" in said
    assert "Asking" not in said
    assert stranger.seen == []


def test_a_bare_doctor_contacts_nobody(folder, stranger):
    """A model that is named is looked for with the key, as a run would ask it."""
    (folder / ".env").write_text(f"OPENAI_BASE_URL={stranger.here}\n")
    assert unmask("doctor", cwd=folder, env=KEY).returncode == 0
    assert stranger.seen == []
    unmask("doctor", "--model", "openai/a", cwd=folder, env=KEY)
    assert stranger.seen == [f"Bearer {SECRET}"]


@pytest.mark.parametrize(
    ("dotenv", "environment"),
    [
        (f"OPENAI_BASE_URL={ELSEWHERE}\nOPENAI_API_KEY=of-this-file", {}),
        (f"OPENAI_BASE_URL={ELSEWHERE}\nOPENAI_API_KEY={SECRET}", KEY),
        (f"OPENAI_BASE_URL={ELSEWHERE}\nUNMASK_API_KEY=of-this-file", KEY),
        (f"OPENAI_BASE_URL={ELSEWHERE}", {}),
        ("OPENAI_BASE_URL=http://localhost:8000/v1", KEY),
        ("OPENAI_BASE_URL=http://[::1]:8000/v1", KEY),
        ("OPENAI_BASE_URL=https://api.openai.com/v1", KEY),
        ("OPENAI_API_KEY=of-this-file", {"OPENAI_BASE_URL": ELSEWHERE}),
        (f"OPENAI_BASE_URL={ELSEWHERE}", {**KEY, "OPENAI_BASE_URL": "http://own.example/v1"}),
        (f"UNMASK_JUDGE_BASE_URL={ELSEWHERE}", KEY),
    ],
)
def test_an_address_of_dotenv_is_used_with_a_key_from_there_and_on_this_machine(
    folder, monkeypatch, dotenv, environment
):
    """And with no key at all, at the provider's own address, and where the environment names the address."""
    (folder / ".env").write_text(dotenv)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert open_model("openai/a", asks_for_key=False).endpoint


@pytest.mark.parametrize(
    ("dotenv", "way_out"),
    [
        (f"OPENAI_BASE_URL={ELSEWHERE}", "put its own key into .env (OPENAI_API_KEY=…)"),
        (f"OPENAI_BASE_URL={ELSEWHERE}\nOPENAI_API_KEY=of-this-file", "unset OPENAI_API_KEY"),
        ("OPENAI_BASE_URL=http://localhost.example/v1", "--base-url, or export OPENAI_BASE_URL=…"),
        ("OPENAI_BASE_URL=http://10.0.0.1/v1", "delete OPENAI_BASE_URL from .env"),
    ],
)
def test_an_address_that_is_refused_comes_with_the_ways_out(folder, monkeypatch, dotenv, way_out):
    (folder / ".env").write_text(dotenv)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(UsageError) as refused:
        open_model("openai/a")
    assert way_out in refused.value.advice
    assert SECRET not in f"{refused.value} {refused.value.advice}"
    assert open_model("openai/a", base_url="http://10.0.0.1/v1").endpoint == "http://10.0.0.1"


SAID: dict[str, tuple[str, dict[str, str], tuple[str, ...], list[str]]] = {
    "dotenv": (
        "OPENAI_BASE_URL={url}",
        {},
        (),
        ["Asking subject, judge at {at} (OPENAI_BASE_URL in .env)"],
    ),
    "environment": (
        "",
        {"OPENAI_BASE_URL": "{url}"},
        (),
        ["Asking subject, judge at {at} (OPENAI_BASE_URL)"],
    ),
    "variable of a flag": ("", {"UNMASK_BASE_URL": "{url}"}, (), ["Asking subject at {at} (UNMASK_BASE_URL)"]),
    "flag": (
        "UNMASK_JUDGE_BASE_URL={url}",
        {},
        ("--base-url", "{url}", "--quiet"),
        ["Asking subject at {at} (--base-url)", "Asking judge at {at} (UNMASK_JUDGE_BASE_URL in .env)"],
    ),
}
"""What `.env`, the environment and the command line hold, and the first lines of the run."""


@pytest.mark.parametrize("case", SAID)
def test_a_run_says_first_which_address_is_asked_and_what_names_it(folder, stranger, case):
    """Also with --quiet, which is about progress."""

    def fill(text: str) -> str:
        return text.format(url=stranger.here, at=stranger.here.removesuffix("/v1"))

    dotenv, environment, flags, lines = SAID[case]
    (folder / ".env").write_text(fill(dotenv))
    env = KEY | {name: fill(value) for name, value in environment.items()}
    done = unmask(*commands(folder)["run"], *map(fill, flags), cwd=folder, env=env)
    assert done.stderr.splitlines()[: len(lines)] == [fill(line) for line in lines]


def test_a_sweep_says_which_address_is_asked_and_what_names_it(folder, stranger):
    (folder / ".env").write_text(f"UNMASK_JUDGE_BASE_URL={stranger.here}\n")
    subject = f'[[subject]]\nmodel = "openai/a"\nbase_url = "{stranger.here}"'
    grid = write_grid(folder, subject, '[[judge]]\nmodel = "openai/b"', matrix="seed = [1, 2]")
    said = unmask("sweep", grid.name, "--out", "sweep", "--quiet", cwd=folder, env=KEY).stderr.splitlines()
    at = stranger.here.removesuffix("/v1")
    assert said[:2] == [
        f"Asking subject at {at} (grid.toml)",
        f"Asking judge at {at} (UNMASK_JUDGE_BASE_URL in .env)",
    ]


def test_an_address_that_nobody_named_is_the_providers_own(folder):
    done = unmask(*commands(folder)["run"], cwd=folder)
    assert done.stderr.startswith("Asking subject, judge at https://api.openai.com (the provider's own)\n")
    assert "needs a key for api.openai.com" in done.stderr
