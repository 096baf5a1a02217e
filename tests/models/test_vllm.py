"""Models behind vLLM, against a server that behaves as vLLM does: choices in one token, and servers that know none."""

from __future__ import annotations

import asyncio
import json

import pytest

import unmask
from tests.sweep.vllm_like import SHARES, VllmLike
from tests.sweep.vllm_like import serve_in_thread as serve
from unmask.engine.define import style_of
from unmask.errors import FatalModelError
from unmask.judges.base import Style
from unmask.models.providers import open_model
from unmask.records import Completion, Message, Request, Role, Sampling, Stop

OPTIONS = ("1", "2", "3", "4")


def ask(server: VllmLike, request: Request, name: str = "vllm/tiny") -> Completion:
    async def story() -> Completion:
        model = open_model(name, base_url=server.url)
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(story())


def question(*options: str, **sampling) -> Request:
    return Request(
        (Message(Role.USER, "Which line?"),), sampling=Sampling(temperature=0.0, **sampling), options=options
    )


def test_a_choice_costs_one_token_and_brings_the_probability_of_each_option():
    with serve() as server:
        completion = ask(server, question(*OPTIONS, max_tokens=300))
        (sent,) = server.asked
    (choice,) = completion.choices
    assert choice.text == "1"
    assert choice.stop is Stop.END
    assert choice.probabilities == pytest.approx(dict(zip(OPTIONS, SHARES, strict=True)))
    assert completion.usage.output == 1
    assert sent["structured_outputs"] == {"choice": list(OPTIONS)}
    assert sent["max_tokens"] == 1
    assert sent["top_logprobs"] == 20


def test_an_option_of_several_tokens_is_known_by_its_first():
    with serve() as server:
        (choice,) = ask(server, question("yes", "no")).choices
    assert choice.text == "yes"
    assert choice.probabilities == pytest.approx({"yes": 0.7 / 0.9, "no": 0.2 / 0.9})


def test_a_model_that_thinks_is_told_not_to_before_it_chooses():
    with serve("thinker") as server:
        (choice,) = ask(server, question(*OPTIONS), "vllm/thinker").choices
        assert choice.text == "1"
        told = {"chat_template_kwargs": {"enable_thinking": True}}
        with pytest.raises(FatalModelError, match="answered '<think>'"):
            ask(server, question(*OPTIONS, params=told), "vllm/thinker")


def test_a_server_without_choices_is_refused_by_the_judge_that_picks():
    with serve(fault="no-choices") as server:
        with pytest.raises(FatalModelError, match="was asked for one of 1, 2, 3, 4 and answered") as caught:
            ask(server, question(*OPTIONS))
        assert "vLLM 0.11 or newer" in (caught.value.advice or "")
        assert ask(server, question()).choices[0].text == "Well, that depends."


def test_a_plain_request_has_nothing_of_choices():
    with serve() as server:
        ask(server, question())
        (sent,) = server.asked
    assert not {"structured_outputs", "logprobs", "chat_template_kwargs"} & set(sent)


def test_the_trained_judge_behind_vllm_picks_and_its_base_answers_what_it_was_not_trained_for():
    name = "vllm/judge-1.5b"
    assert style_of(open_model(name, base_url="http://127.0.0.1:9/v1")) is Style.PICKS
    assert style_of(open_model("vllm/tiny", base_url="http://127.0.0.1:9/v1")) is Style.LETTERS
    with serve("base", adapter=["judge-1.5b"]) as server:
        ask(server, question(*OPTIONS), name)
        ask(server, question(), name)
        assert [sent["model"] for sent in server.asked] == ["judge-1.5b", "base"]
    with serve("judge-1.5b") as server:  # weights with the adapter in them
        ask(server, question(), name)
        assert [sent["model"] for sent in server.asked] == ["judge-1.5b"]


def test_every_other_judge_behind_vllm_writes(tmp_path):
    """Reasons and a letter for statements, an object with bounds for figures."""
    with serve() as subject, serve() as server:  # the same name at two addresses is two models
        unmask.run(
            data="tiny",
            model="vllm/tiny",
            base_url=subject.url,
            judge="vllm/tiny",
            judge_base_url=server.url,
            out=tmp_path / "run",
        )
        assert not any("structured_outputs" in sent or "logprobs" in sent for sent in server.asked)
        assert {"response_format" in sent for sent in server.asked} == {True, False}
    definition = json.loads((tmp_path / "run/run.json").read_text())
    assert definition["judges"]["vllm_tiny"]["style"] == "letters"
    assert sum(definition["data"]["counts"].values()) == 12


def test_the_judge_that_picks_reads_a_whole_run_in_one_token_a_question(tmp_path):
    with serve() as subject, serve("judge-1.5b") as server:
        unmask.run(
            data="tiny",
            model="vllm/tiny",
            base_url=subject.url,
            judge="vllm/judge-1.5b",
            judge_base_url=server.url,
            out=tmp_path / "run",
        )
        assert server.asked
        assert all("structured_outputs" in sent for sent in server.asked)
    lines = (tmp_path / "run/readings/vllm_judge-1.5b.jsonl").read_text().splitlines()
    assert {json.loads(line)["usage"]["output"] for line in lines} == {1}
