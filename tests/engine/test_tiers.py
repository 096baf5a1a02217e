"""Service tiers against providers on loopback: what is asked, what is really used, what is billed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unmask
from tests.engine.test_bill import complete, run_billed
from tests.models.billed import GROQ_FULL, OPENAI_FULL, BilledProvider
from tests.models.loopback import loopback_in_thread
from tests.shown import show
from unmask.errors import FatalModelError, UsageError
from unmask.models.limiter import Limiter
from unmask.runs.folder import Folder

NAME = "openai/gpt-5.6"


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setenv("UNMASK_API_KEY", "k")
    monkeypatch.setenv("UNMASK_JUDGE_API_KEY", "k")
    monkeypatch.setattr(Limiter, "_backoff_delay", lambda self, failed: 0.01)


def both(tier: str) -> dict[str, str]:
    return {"set": {"tier": tier, "judge.tier": tier}}


def test_flex_is_asked_for_billed_at_half_and_shown(tmp_path):
    """The bill is the invoice, and the score says at which tier."""
    provider = BilledProvider(write=5.0)
    with loopback_in_thread(provider) as server:
        run = run_billed(server.url, tmp_path / "run", **both("flex"))
    score = run.score()
    assert set(provider.tiers) == {"flex"}
    assert score.spent.cost_usd == pytest.approx(provider.invoice)
    assert score.to_json()["tiers"]["flex"]["cost_usd"] == pytest.approx(provider.invoice)
    assert re.search(r"\n  flex +\$", show(score, width=100, every=True))
    assert "<dt>flex</dt><dd>$" in unmask.report(run)
    assert {line.tier for line in Folder(tmp_path / "run").asked()} == {"flex"}


def test_the_tier_that_was_used_counts_and_not_the_one_that_was_asked_for(tmp_path):
    """A provider that answers a flex request at the standard tier bills the standard price."""
    provider = BilledProvider()

    def ignore_tier(sent):
        sent.body.pop("service_tier", None)
        return provider(sent)

    with loopback_in_thread(ignore_tier) as server:
        score = run_billed(server.url, tmp_path / "run", **both("flex")).score()
    assert score.spent.cost_usd == pytest.approx(provider.invoice)
    assert "tiers" not in score.to_json()


@pytest.mark.parametrize("refusal", [OPENAI_FULL, GROQ_FULL])
def test_flex_without_room_is_waited_for(tmp_path, refusal):
    """Refusals are not billed and not failures: the request goes out again, at flex."""
    provider = BilledProvider(refuses_flex=lambda number: number % 3 != 0, refusal=refusal)
    with loopback_in_thread(provider) as server:
        score = run_billed(server.url, tmp_path / "run", max_connections=2, **both("flex")).score()
    assert set(provider.tiers) == {"flex"}
    assert score.spent.cost_usd == pytest.approx(provider.invoice)
    assert not any(line.error for line in Folder(tmp_path / "run").asked())


def test_a_model_without_flex_stops_the_run_at_the_first_answer(tmp_path):
    with loopback_in_thread(BilledProvider(flex=None)) as server:
        with pytest.raises(FatalModelError, match="refuses the tier flex"):
            run_billed(server.url, tmp_path / "a", max_connections=1, **both("flex"))
        assert len(server.sent) == 2  # the first was refused for prompt_cache_options


def test_a_run_may_go_on_at_another_tier(tmp_path):
    """The tier does not define a run."""
    provider = BilledProvider()
    with loopback_in_thread(provider) as server:
        run_billed(server.url, tmp_path / "run", limit=2)
        score = run_billed(server.url, tmp_path / "run", limit=4, **both("flex")).score()
    assert {"default", "flex"} == set(score.spent.tiers)
    assert score.spent.cost_usd == pytest.approx(provider.invoice)


def test_the_price_of_a_tier_that_nobody_knows_is_unknown(tmp_path):
    """An account may be set to a dearer tier by itself: then the answers say so."""
    with loopback_in_thread(BilledProvider(standard="priority")) as server:
        score = run_billed(server.url, tmp_path / "run").score()
    assert score.spent.cost_usd is None
    assert score.to_json()["tiers"]["priority"]["cost_usd"] is None


@pytest.mark.parametrize("standard", ["default", "standard", "auto", "on_demand", None])
def test_the_standard_tier_has_many_names(standard):
    answers, _ = complete(BilledProvider(standard=standard), "groq/x")
    assert answers[0].tier is None


@pytest.mark.parametrize("name", ["anthropic/c", "vllm/m", "scripted/honest", "inspect/openai/gpt-4o"])
def test_a_provider_without_flex_is_refused_before_anything_is_sent(tmp_path: Path, name):
    with pytest.raises(UsageError, match="has no such tier") as refusal:
        unmask.run(data="tiny", model=name, judge="scripted/judge", out=tmp_path / "run", set={"tier": "flex"})
    assert "openai, google, groq" in str(refusal.value.advice)


def test_a_tier_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"--set judge\.tier=cheap: .* has no such tier"):
        unmask.run(data="tiny", model="scripted/honest", judge=NAME, out=tmp_path / "run", set={"judge.tier": "cheap"})
