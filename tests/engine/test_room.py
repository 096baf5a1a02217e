"""How long a reply may be: 1,000 tokens until a role shows that it reasons, then 16,000 or what its endpoint allows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import unmask
from bench.planted import write_jsonl
from tests.faults.served import Served, serving
from tests.models.loopback import Canned, Loopback, Sent, loopback_in_thread
from unmask.errors import IncompleteError, MixedRunError
from unmask.records import Asked, Verdict
from unmask.runs.journal import read_lines
from unmask.runs.run import Run

SCENARIOS = 12
THINK = re.compile(r"<think>.*?</think>\s*", re.DOTALL)


class Reasoner:
    """An endpoint that answers as chat completions are documented: reasoning counts as part of the completion, and a
    completion that is cut off has `finish_reason: length` and no content. It refuses more tokens than it allows, by a
    limit of its own or by its context."""

    def __init__(self, plants: Served, *, thinks: int = 3000, of: str = "subject", shows: str = "cut") -> None:
        self.plants = plants
        self.thinks, self.of, self.shows = thinks, of, shows
        self.most: int | None = None
        self.context: int | None = None
        self.asked: list[tuple[str, int]] = []
        self.refused: list[int] = []

    def __call__(self, sent: Sent) -> Canned:
        role = "judge" if sent.body["model"] == "judge" else "subject"
        room = sent.body["max_tokens"]
        if self.most is not None and room > self.most:
            self.refused.append(room)
            return refusal(
                f"max_tokens is too large: {room}. This model supports at most {self.most} completion tokens, whereas"
                f" you provided {room}.",
                "max_tokens",
            )
        prompt = sum(len(message["content"]) for message in sent.body["messages"]) // 4
        if self.context is not None and prompt + room > self.context:
            self.refused.append(room)
            return refusal(
                f"'max_tokens' or 'max_completion_tokens' is too large: {room}. This model's maximum context length is"
                f" {self.context} tokens and your request has {prompt} input tokens"
                f" ({room} > {self.context} - {prompt}).",
                None,
            )
        self.asked.append((role, room))
        if role != self.of or not self.thinks:
            return self.ask_planted(sent)
        if self.thinks >= room:
            message: dict[str, Any] = {"role": "assistant", "content": ""}
            choices = [{"message": message, "finish_reason": "length"} for _ in range(sent.body.get("n", 1))]
            answer = Canned({"choices": choices})
        else:
            answer = self.ask_planted(sent)
        choices = answer.body["choices"]
        written = len(choices) * min(room, self.thinks + 50)
        usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        if self.shows == "tokens":
            usage["completion_tokens_details"] = {"reasoning_tokens": len(choices) * min(room, self.thinks)}
        if self.shows == "text":
            for choice in choices:
                choice["message"]["reasoning_content"] = "Let me see."
        answer.body["usage"] = usage
        return answer

    def ask_planted(self, sent: Sent) -> Canned:
        from urllib.request import Request, urlopen

        request = Request(f"{self.plants.url}/chat/completions", json.dumps(sent.body).encode())
        request.add_header("Content-Type", "application/json")
        with urlopen(request, timeout=30) as answer:
            content = json.loads(answer.read())
        for choice in content["choices"]:  # planted subjects reason now and then
            choice["message"].pop("reasoning_content", None)
            choice["message"].pop("reasoning", None)
            choice["message"]["content"] = THINK.sub("", choice["message"]["content"])
        return Canned(content)

    @property
    def rooms(self) -> set[int]:
        return {room for role, room in self.asked if role == self.of}


def refusal(message: str, param: str | None) -> Canned:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": "invalid_value"}
    return Canned({"error": error}, 400)


@contextmanager
def reasoning(**settings: Any) -> Iterator[tuple[Reasoner, Loopback]]:
    with serving(SCENARIOS, profile="steady") as served:
        model = Reasoner(served, **settings)
        with loopback_in_thread(model) as server:
            yield model, server


def arguments(server: Loopback, model: Reasoner, path: Path, **settings: Any) -> dict[str, Any]:
    return {
        "data": write_jsonl(model.plants.plants, path / "data.jsonl"),
        "model": "openai/mock",
        "judge": "openai/judge",
        "base_url": server.url,
        "judge_base_url": server.url,
        "out": path / "run",
        **settings,
    }


def count_unjudged(run: Run) -> int:
    return sum(row.verdict is Verdict.UNJUDGED for row in run.rows())


@pytest.mark.parametrize("shows", ["cut", "tokens", "text"])
@pytest.mark.parametrize("of", ["subject", "judge"])
def test_a_role_that_reasons_gets_sixteen_thousand_tokens_from_then_on(tmp_path: Path, of: str, shows: str):
    """By a reply cut off before any answer, by reasoning tokens or by reasoning text. No answer is lost by it, and the
    other role keeps 1,000."""
    with reasoning(of=of, shows=shows) as (model, server):
        run = unmask.run(**arguments(server, model, tmp_path))
    assert model.rooms == {1000, 16_000}
    assert {room for role, room in model.asked if role != of} == {1000}
    assert count_unjudged(run) == 0
    room = (run.definition.subject if of == "subject" else run.definition.judges["openai_judge"]).room
    assert room is not None
    assert (room.tokens, room.sign.value) == (
        16_000,
        {"cut": "a reply cut off before any answer", "tokens": "reasoning tokens", "text": "reasoning text"}[shows],
    )
    assert run.definition.created <= room.since


def test_a_role_that_does_not_reason_keeps_a_thousand(tmp_path: Path):
    with reasoning(thinks=0) as (model, server):
        run = unmask.run(**arguments(server, model, tmp_path))
    assert {room for _, room in model.asked} == {1000}
    assert run.definition.subject.room is None


def test_what_is_cut_off_again_is_not_asked_a_third_time_and_never_with_more(tmp_path: Path):
    """It stays unread, and its scenario unjudged."""
    with reasoning(thinks=20_000) as (model, server):
        run = unmask.run(**arguments(server, model, tmp_path))
        asked = len(model.asked)
        unmask.run(**arguments(server, model, tmp_path))
    assert model.rooms == {1000, 16_000}
    assert len(model.asked) == asked
    tries = [line.attempt for line in read_lines(run.path / "replies.jsonl", Asked)]
    assert max(tries) == 2
    assert count_unjudged(run) == SCENARIOS


@pytest.mark.parametrize(("limit", "tokens"), [("most", 8192), ("context", None)])
def test_an_endpoint_that_allows_less_is_asked_with_what_it_names(tmp_path: Path, limit: str, tokens: int | None):
    """By a limit of the model, or by what the prompt leaves of the context. Its refusals are no failures."""
    with reasoning() as (model, server):
        setattr(model, limit, 8192)
        run = unmask.run(**arguments(server, model, tmp_path))
    room = run.definition.subject.room
    assert model.refused
    assert room is not None
    assert room.tokens == tokens if tokens else 6000 < room.tokens < 8192
    assert model.rooms >= {1000, room.tokens}
    assert count_unjudged(run) == 0
    assert all(line.error is None for line in read_lines(run.path / "replies.jsonl", Asked))


def test_a_limit_of_the_user_stays_and_is_a_setting(tmp_path: Path):
    """What is cut off is asked once more with the same limit; another limit is another run."""
    with reasoning() as (model, server):
        run = unmask.run(**arguments(server, model, tmp_path, max_tokens=1000))
        assert model.rooms == {1000}
        assert run.definition.subject.room is None
        with pytest.raises(MixedRunError, match="max tokens: the run has 1000"):
            unmask.run(**arguments(server, model, tmp_path))


def test_the_room_in_force_does_not_stop_a_continuation_and_is_used_at_once(tmp_path: Path):
    with reasoning(shows="tokens") as (model, server):
        first = unmask.run(**arguments(server, model, tmp_path, limit=4)).definition.subject.room
        model.asked.clear()
        again = unmask.run(**arguments(server, model, tmp_path, limit=8)).definition.subject.room
    assert model.rooms == {16_000}
    assert first == again is not None


def test_runs_with_and_without_more_room_are_ranked_together(tmp_path: Path):
    from unmask.analysis.board import board

    runs = []
    for thinks in (0, 3000):
        (tmp_path / str(thinks)).mkdir()
        with reasoning(thinks=thinks) as (model, server):
            runs.append(unmask.run(**arguments(server, model, tmp_path / str(thinks))))
    rows = board([run.path for run in runs]).rows
    assert [row.unranked for row in rows] == [None, None]
    different = {setting.name: setting.values for setting in unmask.compare(*[run.path for run in runs]).differs}
    assert different["room"] == (None, "16000")


def test_one_line_says_it_and_audit_says_how_many_replies_were_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    from unmask.cli.main import run_command_line

    with reasoning(shows="tokens") as (model, server):
        data = write_jsonl(model.plants.plants, tmp_path / "data.jsonl")
        words = ["run", "openai/mock", "--judge", "openai/judge", "--data", str(data), "--out", str(tmp_path / "run")]
        code = run_command_line([*words, "--base-url", server.url, "--judge-base-url", server.url])
    said = capsys.readouterr().err
    assert code == 0
    assert said.count("openai/mock reasons (reasoning tokens): a reply may have 16,000 tokens from now on") == 1
    lines = read_lines(tmp_path / "run" / "replies.jsonl", Asked)
    long = sum(len(line.choices) for line in lines if (line.usage.output or 0) > 1000 * len(line.choices))
    assert long > SCENARIOS
    run_command_line(["audit", str(tmp_path / "run"), "--json"])
    said = capsys.readouterr().out
    assert f"{long:,} replies were longer than 1,000 tokens" in said, said


def test_the_purse_sets_aside_the_room_in_force(tmp_path: Path):
    """With 1,000 tokens a reply the limit would let requests go that may cost more than is left."""
    price = {"price": "0/1000", "judge.price": "0/0"}  # dollars a million tokens: 16 for a reply of the whole room
    with reasoning(shows="tokens") as (model, server), pytest.raises(IncompleteError, match="--max-cost"):
        unmask.run(**arguments(server, model, tmp_path, max_cost=40.0, set=price, max_connections=50))
    lines = list(read_lines(tmp_path / "run" / "replies.jsonl", Asked))
    assert 0 < sum(line.cost_usd or 0.0 for line in lines) <= 40
    assert sum(room for role, room in model.asked if role == "subject") / 1000 <= 40 + 16


# --- answers without end -----------------------------------------------------------------------------------------


def test_an_answer_is_bounded_by_its_room_and_its_cost_is_unknown(tmp_path: Path):
    """64 bytes a token and 1 MiB: what is longer was paid for, and the bill does not say that it cost nothing."""
    with serving(4, profile="steady") as served:
        huge = Canned({"choices": [{"message": {"content": "x" * (1 << 20) + "y" * 64_100}, "finish_reason": "stop"}]})
        with loopback_in_thread(huge) as server:
            data = write_jsonl(served.plants, tmp_path / "data.jsonl")
            asked = {"data": data, "model": "openai/mock", "judge": "scripted/judge", "out": tmp_path / "run"}
            run = unmask.run(**asked, base_url=server.url, set={"price": "1/1"})
    errors = [line.error for line in read_lines(run.path / "replies.jsonl", Asked) if line.error]
    assert any(f"beyond {(1 << 20) + 64_000} bytes" in error for error in errors)
    assert run.score().spent.cost_usd is None


def test_what_was_thrown_away_before_an_answer_counts_as_its_most_under_max_cost(tmp_path: Path):
    """An answer that broke off is tried again. The cost is unknown, and the most that it may be stays in the limit."""
    broken = Canned(b'{"choices": [{"message": {"content": "y')
    with reasoning(thinks=0) as (model, server):
        first = True

        def script(sent: Sent) -> Canned:
            nonlocal first
            if first:
                first = False
                return broken
            return model(sent)

        server.script = script
        run = unmask.run(**arguments(server, model, tmp_path, set={"price": "1/1", "judge.price": "1/1"}))
    lost = [line for line in read_lines(run.path / "replies.jsonl", Asked) if line.lost]
    assert [line.lost for line in lost] == [1]
    assert (lost[0].lost_usd or 0.0) > 0.001
    assert run.score().spent.cost_usd is None
