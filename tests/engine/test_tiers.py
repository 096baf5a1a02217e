"""Service tiers against providers on loopback: what is asked, what is really used, what is billed."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

import unmask
from tests.engine.test_bill import complete, run_billed
from tests.models.billed import GROQ_FULL, OPENAI_FULL, BilledProvider, serve_in_thread
from tests.models.loopback import Canned, chat
from tests.shown import show
from unmask.errors import FatalModelError, TransientModelError, UsageError
from unmask.models.failures import exception_for, parse_problem
from unmask.models.keys import Target
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
    with serve_in_thread(provider) as server:
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

    with serve_in_thread(ignore_tier) as server:
        score = run_billed(server.url, tmp_path / "run", **both("flex")).score()
    assert score.spent.cost_usd == pytest.approx(provider.invoice)
    assert "tiers" not in score.to_json()


def test_the_subject_alone_may_be_asked_at_flex(tmp_path):
    provider = BilledProvider()
    with serve_in_thread(provider) as server:
        score = run_billed(server.url, tmp_path / "run", set={"tier": "flex"}).score()
    tiers = score.spent.tiers
    assert (tiers["flex"].calls["judge"], tiers["default"].calls["subject"]) == (0, 0)
    assert sum(part.cost_usd for part in tiers.values()) == pytest.approx(provider.invoice)


@pytest.mark.parametrize("refusal", [OPENAI_FULL, GROQ_FULL])
def test_flex_without_room_is_waited_for(tmp_path, refusal):
    """Refusals are not billed and not failures: the request goes out again, at flex."""
    provider = BilledProvider(refuses_flex=lambda number: number % 3 != 0, refusal=refusal)
    with serve_in_thread(provider) as server:
        score = run_billed(server.url, tmp_path / "run", max_connections=2, **both("flex")).score()
    assert set(provider.tiers) == {"flex"}
    assert score.spent.cost_usd == pytest.approx(provider.invoice)
    assert not any(line.error for line in Folder(tmp_path / "run").asked())


def test_a_model_without_flex_stops_the_run_at_the_first_answer(tmp_path):
    with serve_in_thread(BilledProvider(flex=None)) as server:
        with pytest.raises(FatalModelError, match="refuses the tier flex"):
            run_billed(server.url, tmp_path / "a", max_connections=1, **both("flex"))
        assert len(server.sent) == 2  # the first was refused for prompt_cache_options


def test_a_run_may_go_on_at_another_tier(tmp_path):
    """The tier does not define a run."""
    provider = BilledProvider()
    with serve_in_thread(provider) as server:
        run_billed(server.url, tmp_path / "run", limit=2)
        score = run_billed(server.url, tmp_path / "run", limit=4, **both("flex")).score()
    assert {"default", "flex"} == set(score.spent.tiers)
    assert score.spent.cost_usd == pytest.approx(provider.invoice)


def test_a_run_that_borrows_flex_probes_pays_nothing(tmp_path):
    provider = BilledProvider()
    with serve_in_thread(provider) as server:
        run_billed(server.url, tmp_path / "a", **both("flex"))
        before = provider.invoice
        run = run_billed(server.url, tmp_path / "b", beliefs_from=str(tmp_path / "a"), developer_prompt="plain")
    assert run.score().spent.cost_usd == pytest.approx(provider.invoice - before)


def test_the_price_of_a_tier_that_nobody_knows_is_unknown(tmp_path):
    """An account may be set to a dearer tier by itself: then the answers say so."""
    with serve_in_thread(BilledProvider(standard="priority")) as server:
        score = run_billed(server.url, tmp_path / "run").score()
    assert score.spent.cost_usd is None
    assert score.to_json()["tiers"]["priority"]["cost_usd"] is None


@pytest.mark.parametrize("standard", ["default", "standard", "auto", "on_demand", None])
def test_the_standard_tier_has_many_names(standard):
    answers, _ = complete(BilledProvider(standard=standard), "groq/x")
    assert answers[0].tier is None


def test_anthropic_names_its_tier_in_usage():
    usage = {"input_tokens": 1, "output_tokens": 1, "service_tier": "priority"}
    answers, _ = complete(Canned({"content": [{"type": "text", "text": "x"}], "usage": usage}), "anthropic/c")
    assert answers[0].tier == "priority"


@pytest.mark.parametrize("said", [3, ["flex"], {"a": 1}, True])
def test_a_tier_that_is_no_word_is_none(said):
    answers, _ = complete(Canned(chat("x") | {"service_tier": said}), NAME)
    assert answers[0].tier is None


@pytest.mark.parametrize("name", ["anthropic/c", "vllm/m", "scripted/honest", "inspect/openai/gpt-4o"])
def test_a_provider_without_flex_is_refused_before_anything_is_sent(tmp_path: Path, name):
    with pytest.raises(UsageError, match="has no such tier") as refusal:
        unmask.run(data="tiny", model=name, judge="scripted/judge", out=tmp_path / "run", set={"tier": "flex"})
    assert "openai, google, groq" in str(refusal.value.advice)


def test_a_model_in_this_process_that_also_judges_has_no_tier(tmp_path):
    def say_yes(messages):
        return "yes"

    with pytest.raises(UsageError, match=r"--set judge\.tier= flex: a model of a Python program"):
        unmask.run(data="tiny", model=say_yes, judge=say_yes, out=tmp_path / "run", set={"judge.tier": "flex"})


def test_a_tier_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"--set judge\.tier= cheap: .* has no such tier"):
        unmask.run(data="tiny", model="scripted/honest", judge=NAME, out=tmp_path / "run", set={"judge.tier": "cheap"})


@pytest.mark.parametrize("canned", [OPENAI_FULL, GROQ_FULL])
def test_no_room_is_transient(canned):
    problem = parse_problem(canned.status, msgspec.json.encode(canned.body), {})
    target = Target.build("groq/x", url="http://127.0.0.1:9", path="/x", key=None, variables=("KEY",))
    error = exception_for(problem, target)
    assert isinstance(error, TransientModelError)
    assert (error.throttled, "flex has no room" in (error.advice or "")) == (True, True)
