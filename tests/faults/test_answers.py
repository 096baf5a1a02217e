"""What an endpoint can do to an answer: refuse it, break it, withhold it. Verdicts stay, or the scenario is named."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from bench import faulty
from bench.fault import Fault, Faults, Seen
from bench.planted import write_jsonl
from tests.faults.served import Served, flags, journal, judged_as_planted, kept_once, ran, serving, settled, unjudged
from tests.faults.watched import finished
from tests.shown import show
from unmask.cli.finish import list_reasons
from unmask.engine.scenario import MOST_FAILURES_IN_A_ROW
from unmask.records import Verdict
from unmask.runs.run import Run

SCENARIOS, FEW = 20, 12
RATE = 0.25
"""Bytes that are no text become three each: an answer within the limit of answers, a line beyond that of lines."""

Finished = tuple[Served, Path]


def schedules() -> dict[str, Faults]:
    """One run each: every fault alone, and all of them mixed."""
    alone = {name: faulty.schedule([name], rate=RATE) for name in (*faulty.PASSING, *faulty.HARMLESS)}
    return {**alone, "mixed": faulty.mixed("rate=0.4,seed=5")}


def once(name: str, faults: Faults, folder: Path) -> Finished:
    with serving(FEW, faults) as served:
        ran(served, folder / name, max_connections=20)
        return served, folder / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Finished]]]:
    """All runs at the same time: most of what they do is wait for their next try."""
    folder = tmp_path_factory.mktemp("runs")
    with ThreadPoolExecutor(len(schedules())) as pool:
        yield {name: pool.submit(once, name, faults, folder) for name, faults in schedules().items()}


@pytest.mark.parametrize("name", [*faulty.PASSING, "mixed"])
def test_a_passing_fault_leaves_every_verdict_as_it_was_and_buys_nothing_twice(runs, name: str):
    """Tried again until the answer is there; nothing of the broken one is taken for an answer."""
    served, out = runs[name].result()
    assert served.stats()["faulted"] > 10
    settled(served, out)


@pytest.mark.parametrize("name", faulty.HARMLESS)
def test_a_whole_answer_in_a_strange_coat_is_used_and_not_asked_again(runs, name: str):
    """The content type is wrong, the connection dies after the last byte: the answer is paid for and complete."""
    served, out = runs[name].result()
    stats = served.stats()
    assert stats["faulted"] > 10
    settled(served, out)
    assert sum(stats["calls"].values()) - served.answered <= stats["faulted"] // 2


def subject_met_by(name: str, victims: set[str]) -> Faults:
    return faulty.to(lambda _: faulty.EVERY[name], role="subject", scenarios=victims)


@pytest.mark.parametrize("name", faulty.WITHHELD)
def test_a_withheld_reply_makes_its_scenario_unjudged_by_name_and_no_other(tmp_path: Path, name: str):
    """A filter, `null`, reasoning without an answer: none of them is an evasion, and none of them is honesty."""
    with serving(FEW) as served:
        victims = {one.scenario.id for one in served.plants[::4]}
        served.endpoint.faults = subject_met_by(name, victims)
        ran(served, tmp_path / "run")
        assert unjudged(tmp_path / "run").keys() == victims
        judged_as_planted(served, tmp_path / "run", named=victims)
        kept_once(tmp_path / "run")


@pytest.mark.parametrize("name", faulty.WITHHELD)
def test_a_judge_that_withholds_its_answer_leaves_the_scenario_unjudged_by_name(tmp_path: Path, name: str):
    """Asked twice, then unread: nothing is read into an answer that is none."""
    with serving(FEW) as served:
        victims = {one.scenario.id for one in served.plants[::4]}
        served.endpoint.faults = faulty.to(lambda _: faulty.EVERY[name], role="judge", scenarios=victims)
        ran(served, tmp_path / "run")
        found = unjudged(tmp_path / "run")
        assert found
        assert found.keys() <= victims
        judged_as_planted(served, tmp_path / "run", named=victims)


def test_what_fails_every_time_is_named_and_the_next_run_asks_only_that(tmp_path: Path):
    """An error line each; the same run again asks for nothing else and ends as planted."""
    with serving(SCENARIOS) as served:
        victims = {one.scenario.id for one in served.plants[::6]}
        refused = Fault(422, b'{"error": {"message": "this request cannot be processed"}}')
        served.endpoint.faults = faulty.to(lambda _: refused, role="subject", scenarios=victims)
        ran(served, tmp_path / "run")
        assert unjudged(tmp_path / "run").keys() == victims
        assert all("failed" in why for why in unjudged(tmp_path / "run").values())
        asked_about: set[str] = set()
        served.endpoint.faults = lambda seen: asked_about.add(seen.scenario)
        ran(served, tmp_path / "run")
        assert asked_about == victims
        settled(served, tmp_path / "run")


def test_half_an_emoji_in_an_error_message_is_one_failed_request_and_no_more(tmp_path: Path):
    """A server that repeats a prompt, cut anywhere, sends what no journal can hold."""
    with serving(SCENARIOS) as served:
        victim = served.plants[3].scenario.id
        refused = Fault(400, b'{"error": {"message": "bad prompt: well \\ud83d"}}')
        served.endpoint.faults = faulty.to(lambda _: refused, role="subject", scenarios={victim})
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        assert finished("run", *command).process.returncode == 0
        assert unjudged(tmp_path / "run").keys() == {victim}
        assert "bad prompt: well \ufffd" in unjudged(tmp_path / "run")[victim]
        asked_about: set[str] = set()
        served.endpoint.faults = lambda seen: asked_about.add(seen.scenario)
        assert finished("run", *command).process.returncode == 0
        assert asked_about == {victim}
        settled(served, tmp_path / "run")


TOO_LONG = Fault(400, b'{"error": {"message": "This model\'s maximum context length is 4096 tokens."}}')


@pytest.mark.parametrize("refusal", [TOO_LONG, faulty.EVERY["filter_400"]], ids=["too long", "filter"])
def test_a_finished_run_with_many_refused_requests_is_the_same_when_repeated(tmp_path: Path, refusal: Fault):
    """Only those are asked again. Nothing else is, so no answer comes back; that is no sign of a wrong setting, and
    what was refused before stops no run."""
    with serving(120) as served:
        victims = {one.scenario.id for one in served.plants[::3]}
        asked_about: set[str] = set()

        def faults(seen: Seen) -> Fault | None:
            asked_about.add(seen.scenario)
            is_victim = seen.scenario in victims and seen.slot == "pressured"
            return refusal if is_victim else None

        served.endpoint.faults = faults
        command = ("run", *flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run", "--json"))
        first = finished(*command)
        refused = unjudged(tmp_path / "run").keys()
        assert refused <= victims
        assert len(refused) > MOST_FAILURES_IN_A_ROW
        judged_as_planted(served, tmp_path / "run", named=refused)
        asked_about.clear()
        second = finished(*command)
        assert asked_about == refused
        assert json.loads(second.printed)["overall"] == json.loads(first.printed)["overall"]
        assert (second.process.returncode, unjudged(tmp_path / "run").keys()) == (first.process.returncode, refused)


def test_answers_that_stall_or_come_too_late_are_asked_again_and_the_verdicts_stay(tmp_path: Path):
    """Nothing, half of it, or all of it after the time-out: the client has gone and asks once more."""
    with serving(SCENARIOS, faulty.schedule(faulty.WAITING, rate=0.12)) as served:
        ran(served, tmp_path / "run", set={"timeout": 1.5, "judge.timeout": 1.5})
        assert served.stats()["abandoned"] > 5
        judged_as_planted(served, tmp_path / "run")
        kept_once(tmp_path / "run")


PRICED = ("--set", "price=0.01/0.01", "--set", "judge.price=0.01/0.01", "--max-cost", "5")


@pytest.mark.parametrize("role", ["subject", "judge"])
def test_a_cost_limit_stops_a_run_whose_answers_do_not_say_what_they_cost(tmp_path: Path, role: str):
    """After the first of them, and before more is spent; without the limit the same command goes on to the end."""
    with serving(SCENARIOS, faulty.to(lambda _: faulty.HARMLESS["no_usage"], role=role)) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished("run", *command, *PRICED, "--max-connections", "1")
        assert child.process.returncode == 3
        assert f"the {role} does not say how many tokens" in child.errors
        assert "--max-cost $5 cannot be kept" in child.errors
        assert served.endpoint.answered[role] == 1
        assert finished("run", *command).process.returncode == 0
        settled(served, tmp_path / "run")


@pytest.mark.parametrize(
    "fault", [faulty.WITHHELD["filter_400"], Fault(422, b'{"error": {"message": "this cannot be processed"}}')]
)
def test_a_cost_limit_does_not_stop_a_run_for_what_has_no_tokens_to_count(tmp_path: Path, fault: Fault):
    """A filter, and a failure: neither is an answer that hides its price."""
    with serving(SCENARIOS) as served:
        victim = served.plants[3].scenario.id
        served.endpoint.faults = faulty.to(lambda _: fault, role="subject", scenarios={victim})
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        assert finished("run", *command, *PRICED).process.returncode == 0
        assert unjudged(tmp_path / "run").keys() == {victim}


@pytest.mark.parametrize("role", ["subject", "judge"])
def test_what_a_filter_refused_keeps_the_words_of_the_provider_and_is_asked_again(tmp_path: Path, role: str):
    """By its status it is a failure: the next run asks for it once more, and for nothing else."""
    with serving(SCENARIOS) as served:
        victims = {one.scenario.id for one in served.plants[::6]}
        refusal = faulty.refusing(400, "Rephrase it: content management policy")
        served.endpoint.faults = faulty.to(lambda _: refusal, role=role, scenarios=victims)
        ran(served, tmp_path / "run")
        failed = [line for lines in journal(tmp_path / "run") for line in lines if "error" in line]
        assert failed
        assert all("HTTP 400: Rephrase it: content management policy" in line["error"] for line in failed)
        asked_about: set[str] = set()
        served.endpoint.faults = lambda seen: asked_about.add(seen.scenario)
        ran(served, tmp_path / "run")
        assert asked_about
        assert asked_about <= victims
        settled(served, tmp_path / "run")


def shown(printed: str) -> str:
    """What a terminal shows, without the ends of lines."""
    return " ".join(printed.split())


def test_an_endpoint_that_says_nothing_to_everything_ends_with_3_and_a_line_that_says_why(tmp_path: Path):
    """An empty reply asserts nothing, so P(lie) is 0: nobody may take that for honesty, nor a script."""
    with serving(SCENARIOS, faulty.to(lambda _: faulty.answering(""), role="subject")) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished("run", *command)
        again = finished("score", str(tmp_path / "run"), "--json")
    replies = Run(tmp_path / "run").score().guards["empty"].total
    for made in (child, again):
        assert made.process.returncode == 3
        assert f"unmask: the model said nothing: all {replies} replies are empty" in made.errors


def test_a_run_without_one_answer_from_the_judge_scores_nothing(tmp_path: Path):
    """Every scenario a judge is needed for is unjudged: an outage is not honesty."""
    with serving(SCENARIOS, faulty.to(lambda _: faulty.answering("I have read it twice."), role="judge")) as served:
        run = ran(served, tmp_path / "run")
        rows = run.rows()
    assert {row.verdict for row in rows} <= {Verdict.UNJUDGED, Verdict.NO_BELIEF}
    assert all("unreadable" in (row.why or "") for row in rows if row.verdict is Verdict.UNJUDGED)
    assert Run(tmp_path / "run").score().unjudged_reasons.keys() == {"unreadable"}


@pytest.mark.parametrize("tags", ["rule", "judge"])
def test_a_judge_that_always_picks_the_first_option_is_named_before_any_number(tmp_path: Path, tags: str):
    """Nobody can tell right from wrong among its readings, so the whole score carries the warning, and exit code 3."""
    with serving(SCENARIOS, faulty.to(lambda _: faulty.answering("Answer: A"), role="judge")) as served:
        score = ran(served, tmp_path / "run", tags=tags).score()
    assert list_reasons(score, 0.05)
    assert show(score).startswith("WARNING: the judge gave A for every one of")
