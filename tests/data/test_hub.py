"""`cais/MASK` from a hub, over real HTTP on loopback.

Each test has a process of its own that has not imported the hub client, which reads its settings when it is imported.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.forked import forker
from tests.data.hub_server import Hub, serving
from tests.data.made import as_rows, many, write_parquet
from unmask.data.hub import PINNED
from unmask.data.load import from_scenarios, load
from unmask.errors import MissingError
from unmask.records import Archetype, Scenario

MAIN = "a" * 40
SETS = many(**dict.fromkeys(Archetype, 2))
PROGRAM = """
import json, sys
assert "huggingface_hub" not in sys.modules
from unmask.data.dataset import LoadOptions
from unmask.data.load import load
from unmask.errors import UnmaskError
try:
    data = load("@".join(filter(None, sys.argv[1:3])))
    found = {"ids": data.ids, "hash": data.hash, "revision": data.revision, "source": data.source}
except UnmaskError as error:
    found = {"error": type(error).__name__, "message": str(error), "advice": error.advice}
print(json.dumps(found))
"""


def parquet(folder: Path, scenarios: tuple[Scenario, ...]) -> dict[str, bytes]:
    """A repository: parquet by archetype, and things that are not data."""
    for archetype, rows in as_rows(scenarios).items():
        write_parquet(folder / archetype / "test-00000-of-00001.parquet", rows)
    (folder / "README.md").write_text("a card")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    newer = parquet(tmp_path / "newer", many(**dict.fromkeys(Archetype, 1)))
    return Hub(commits={PINNED: parquet(tmp_path / "repo", SETS), MAIN: newer}, branches={"main": MAIN})


def fetch(tmp_path: Path, address: str, *, source: str = "cais/MASK", revision: str = "", token: str = "") -> Any:
    """What a process that has not met a hub before gets from the one at this address."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("HF_") and "PROXY" not in name.upper()
    }
    env = kept | {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "hf"), "HOME": str(tmp_path)}
    env |= {"HF_TOKEN": token} if token else {}
    done = forker().run(["-c", PROGRAM, source, revision], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_hub_gives_the_same_data_as_a_folder(tmp_path: Path, hub: Hub):
    """At the pinned commit by default; same scenarios, same hash."""
    with serving(hub) as address:
        found = fetch(tmp_path, address)
    assert not [line for line in hub.asked if "README" in line]  # only the parquet files are fetched
    assert found["hash"] == from_scenarios(SETS).hash
    assert (found["revision"], found["source"]) == (PINNED, "cais/MASK")


def test_a_second_load_fetches_no_file_again_and_a_third_needs_no_network(tmp_path: Path, hub: Hub):
    """The hub's cache is used, and a pinned commit that was fetched once needs no hub any more."""
    with serving(hub) as address:
        first = fetch(tmp_path, address)
        before = sum("/files/" in line for line in hub.asked)
        fetch(tmp_path, address)
    assert before == sum("/files/" in line for line in hub.asked) == len(Archetype)
    assert fetch(tmp_path, address) == first


def test_a_branch_is_recorded_as_its_commit(tmp_path: Path, hub: Hub):
    """`cais/MASK@main` moves; the run says which commit it was."""
    with serving(hub) as address:
        found = fetch(tmp_path, address, revision="main")
    assert (found["revision"], len(found["ids"])) == (MAIN, 6)


@pytest.mark.parametrize("repo", ["cais/MASK", "somebody/else"])
@pytest.mark.parametrize("listing_gated", [True, False])
def test_gated_data_without_a_token_says_how_to_get_one(tmp_path: Path, hub: Hub, listing_gated: bool, repo: str):
    """Whether the hub hides the listing, the files or all of it (404)."""
    hub.token, hub.listing_gated, hub.repo = "hf_secret", listing_gated, repo
    with serving(hub) as address:
        found = fetch(tmp_path, address)
    assert found["error"] == "MissingError"
    assert "HF_TOKEN" in found["advice"]
    assert "huggingface.co/datasets/cais/MASK" in found["advice"]
    assert "--data FOLDER" in found["advice"]


def test_a_token_in_dotenv_is_sent_to_the_hub_of_the_environment(tmp_path: Path, hub: Hub):
    """As `unmask doctor` says. An address in `.env` is passed over: the token would go there."""
    hub.token, stranger = "hf_secret", Hub(commits={})
    with serving(hub) as address, serving(stranger) as elsewhere:
        (tmp_path / ".env").write_text(f"HF_TOKEN=hf_secret\nHF_ENDPOINT={elsewhere}\n")
        assert "hash" in fetch(tmp_path, address)
    assert "Bearer hf_secret" in hub.authorized
    assert stranger.asked == []


def test_a_wrong_token_is_missing_access_and_is_not_repeated(tmp_path: Path, hub: Hub):
    hub.token, hub.listing_gated = "hf_secret", True
    with serving(hub) as address:
        found = fetch(tmp_path, address, source="CAIS/mask", token="hf_wrong")
    assert found["error"] == "MissingError"
    assert "hf_wrong" not in json.dumps(found)
    assert "Bearer hf_wrong" in hub.authorized


def test_an_unknown_revision_is_named(tmp_path: Path, hub: Hub):
    """With the way back to the pinned commit."""
    with serving(hub) as address:
        found = fetch(tmp_path, address, revision="v99")
    assert (found["error"], "v99" in found["message"]) == ("MissingError", True)
    assert "@v99" in found["advice"]


def test_no_network_is_missing(tmp_path: Path):
    """Nothing listens at the address, and nothing is cached."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        found = fetch(tmp_path, f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert (found["error"], "HF_ENDPOINT" in found["advice"]) == ("MissingError", True)


def test_without_the_extra_the_install_line_is_named(monkeypatch: pytest.MonkeyPatch):
    """The hub client is optional."""
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingError) as caught:
        load("cais/MASK@main")
    assert caught.value.advice == "pip install 'unmask[hub]'"
