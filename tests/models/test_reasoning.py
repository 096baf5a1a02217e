"""Models that reason are noticed by name, by reasoning tokens and by what they wrote, and more room is proposed."""

from __future__ import annotations

import pytest

from unmask.models.reasoning import NoticedBy, propose_room, reasons_by_name
from unmask.records import Asked, Choice, Stop, Usage


@pytest.mark.parametrize(
    "name",
    [
        *("openai/o1", "openai/o3-mini", "openai/o4-mini-2025-04-16", "openai/gpt-5", "openai/gpt-5.1-mini"),
        *("openai/gpt-oss-120b", "deepseek/deepseek-reasoner", "ollama/deepseek-r1:14b", "hf:Qwen/QwQ-32B"),
        *("hf:deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "hf:Qwen/Qwen3-8B", "ollama/qwen3:8b", "google/gemini-2.5-pro"),
        *("xai/grok-4", "mistral/magistral-medium", "zai/glm-4.6", "moonshot/kimi-k2-thinking"),
        *("hf:Qwen/Qwen3-30B-A3B-Thinking-2507", "hf:microsoft/Phi-4-reasoning-plus", "hf:allenai/Olmo-3-32B-Think"),
    ],
)
def test_names_of_models_that_reason(name):
    """Unless they are told not to."""
    assert reasons_by_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "openai/gpt-4o",
            "openai/gpt-4.1-mini",
            "openai/gpt-5-chat-latest",
            "anthropic/claude-opus-4-7",
            "xai/grok-3",
        ),
        *("hf:Qwen/Qwen2.5-1.5B-Instruct", "hf:Qwen/Qwen3-30B-A3B-Instruct-2507", "google/gemini-2.0-flash"),
        *("embedded/judge-1.5b", "scripted/honest", "hf:google/gemma-3-27b-it", "xai/grok-4-fast-non-reasoning"),
        *("hf:org/bar1", "openai/o200k", "hf:org/proto-o1x", "verbatim"),
    ],
)
def test_names_of_models_that_do_not(name):
    """Numbers and letters that only look alike."""
    assert not reasons_by_name(name)


def replies(*choices: Choice, usage: Usage = Usage()) -> list[Asked]:  # noqa: B008  frozen
    return [Asked(scenario="s", slot="direct", takes=tuple(range(len(choices))), choices=choices, usage=usage)]


@pytest.mark.parametrize(
    ("calls", "noticed"),
    [
        (replies(Choice("yes"), usage=Usage(reasoning=700)), NoticedBy.TOKENS),
        (replies(Choice("<think>well</think>yes")), NoticedBy.THINK),
        (replies(Choice("yes", reasoning="well")), NoticedBy.THINK),
    ],
)
def test_what_a_model_wrote_shows_that_it_reasons(calls, noticed):
    """Whatever its name."""
    assert propose_room("subject", "openai/mine", 1000, calls).noticed_by is noticed
    assert propose_room("subject", "openai/mine", 1000, replies(Choice("yes"), usage=Usage(reasoning=0))) is None


def test_the_proposal_says_what_was_cut_and_what_to_type():
    """For the subject and for the judge."""
    found = propose_room("subject", "openai/o3", 1000, replies(Choice("", stop=Stop.LENGTH), Choice("yes")))
    assert "the default of 1,000 tokens would cut off" in found.finding
    assert found.finding.endswith("1 of 2 replies were cut off so far")
    assert found.flag == "--max-tokens 16000"
    assert propose_room("judge", "openai/o3", 2000).flag == "--set judge.max_tokens=16000"


@pytest.mark.parametrize("room", [16_000, 32_000, None])
def test_enough_room_needs_no_proposal(room):
    """`None` leaves it to the endpoint."""
    assert propose_room("subject", "openai/o3", room) is None
