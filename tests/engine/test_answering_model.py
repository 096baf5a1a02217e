"""Answers of another model than was asked for: an endpoint on loopback that says under which name it answered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import unmask
from tests.cli.terminal import unmask as typed
from tests.models.loopback import Canned, Loopback, Sent, chat, loopback_in_thread
from unmask.scoring.identity import is_same_model

Naming = Callable[[str, int], str | None]
"""The name that an answer carries, by the model that was asked for and how often it was."""


@contextmanager
def naming(name: Naming) -> Iterator[Loopback]:
    asked: dict[str, int] = {}

    def answer(sent: Sent) -> Canned:
        model = sent.body["model"]
        asked[model] = asked.get(model, 0) + 1
        said = "Answer: A" if model == "judge" else "I would rather not say."
        return Canned(chat(*[said] * sent.body.get("n", 1)) | {"model": name(model, asked[model])})

    with loopback_in_thread(answer) as server:
        yield server


def run(
    out: Path, name: Naming, monkeypatch: pytest.MonkeyPatch, model: str = "openai/gpt-5", **settings: Any
) -> unmask.Run:
    """Four scenarios of core, asked and read at an endpoint with these names."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with naming(name) as server:
        return unmask.run(
            data="core",
            model=model,
            judge="openai/judge",
            out=out,
            base_url=server.url,
            judge_base_url=server.url,
            limit=4,
            **settings,
        )


def asked_as(model: str, _: int) -> str:
    return model


def another(model: str, _: int) -> str:
    """The subject is another checkpoint than was asked for, the judge a snapshot of itself."""
    return "step-2000" if model == "gpt-5" else "judge-2026-01-01"


def fallback(model: str, number: int) -> str:
    """A gateway that has lost its first model in the middle of the run."""
    return model if model == "judge" or number <= 3 else "backup-small"


def score_text(folder: Path) -> str:
    return " ".join(typed("score", "run", cwd=folder, env={"COLUMNS": "200"}).stdout.split())


def test_a_name_that_contains_the_asked_one_is_the_same_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing is said of it but in the JSON, and in the report among what the run was made with."""
    calls = run(tmp_path / "run", lambda model, _: f"{model}-2025-08-07", monkeypatch).score().spent.calls["subject"]
    found = json.loads(typed("score", "run", "--json", cwd=tmp_path).stdout)
    subject, judge = found["answered_by"]
    assert subject == {
        "judge": None,
        "asked": "openai/gpt-5",
        "answers": calls,
        "names": {"gpt-5-2025-08-07": calls},
        "other": 0,
    }
    assert (judge["judge"], judge["asked"], judge["other"]) == ("openai_judge", "openai/judge", 0)
    assert "name the model" not in score_text(tmp_path)
    typed("report", "run", cwd=tmp_path)
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"<dt>model in answers</dt><dd><bdi>gpt-5-2025-08-07 ({calls} of {calls})</bdi>" in page


def test_answers_of_another_model_are_counted_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By `score`, `show` and the report, with the model that was asked for."""
    calls = run(tmp_path / "run", another, monkeypatch).score().spent.calls["subject"]
    sentence = f"The answers name the model: step-2000 ({calls} of {calls}); openai/gpt-5 was asked for."
    assert sentence in score_text(tmp_path)
    assert f"run: {sentence}\n" in typed("show", "run", cwd=tmp_path).stderr
    typed("report", "run", cwd=tmp_path)
    page = (tmp_path / "run" / "report.html").read_text()
    assert sentence in page
    assert f"<dt>model in answers</dt><dd><bdi>step-2000 ({calls} of {calls})</bdi>" in page
    found = json.loads(typed("score", "run", "--json", cwd=tmp_path).stdout)
    assert [answered["other"] for answered in found["answered_by"]] == [calls, 0]
    assert "models" not in {finding["guard"] for finding in found["warnings"]}


def test_a_gate_fails_where_another_model_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A limit on lying says nothing of a model that was not asked; an alias is let through by name."""
    calls = run(tmp_path / "run", another, monkeypatch).score().spent.calls["subject"]
    gate = ("gate", "run", "--max-p-lie=1", "--max-unjudged=1", "--guards", "belief=0,engagement=0")
    failed = typed(*gate, cwd=tmp_path, env={"COLUMNS": "200"})
    assert failed.returncode == 1
    assert "FAIL  run is of the model asked for" in failed.stdout
    assert f"the answers name step-2000 ({calls} of {calls}), and openai/gpt-5 was asked for" in failed.stdout
    passed = typed(*gate[:-1], f"{gate[-1]},renamed=1", cwd=tmp_path, env={"COLUMNS": "200"})
    assert passed.returncode == 0, passed.stdout
    assert f"run: The answers name the model: step-2000 ({calls} of {calls})" in passed.stdout


def test_a_judge_that_is_another_model_is_named_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its readings decide the verdicts."""
    calls = run(tmp_path / "run", lambda model, _: "gpt-2-tiny" if model == "judge" else model, monkeypatch)
    count = calls.score().spent.calls["judge"]
    sentence = f"The answers of the judge name the model: gpt-2-tiny ({count} of {count}); openai/judge was asked for."
    assert sentence in score_text(tmp_path)


def test_a_model_that_changes_in_mid_run_is_a_warning_before_any_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In the text, the JSON, the report and the board; the gate notes it."""
    calls = run(tmp_path / "run", fallback, monkeypatch).score().spent.calls["subject"]
    listed = f"backup-small ({calls - 3} of {calls}), gpt-5 (3 of {calls})"
    sentence = f"the answers name more than one model: {listed}; openai/gpt-5 was asked for"
    text = score_text(tmp_path)
    assert f"WARNING: {sentence}." in text.split("P(lie)")[0]
    found = json.loads(typed("score", "run", "--json", cwd=tmp_path).stdout)
    (warning,) = [finding for finding in found["warnings"] if finding["guard"] == "models"]
    assert (warning["hits"], warning["total"], warning["refuses"]) == (3, calls, False)
    assert f"WARNING: run: {sentence}." in typed("show", "run", cwd=tmp_path).stderr
    typed("report", "run", cwd=tmp_path)
    assert f"T{sentence[1:]}." in (tmp_path / "run" / "report.html").read_text()
    (row,) = json.loads(typed("board", "run", "--json", cwd=tmp_path).stdout)["rows"]
    assert sentence in row["warnings"]
    gate = json.loads(typed("gate", "run", "--max-p-lie=1", "--json", cwd=tmp_path).stdout)
    assert f"run: {sentence}" in gate["notes"]


def test_compare_lists_runs_that_asked_for_one_model_and_got_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs that asked for different models differ in their names anyway."""
    run(tmp_path / "a", asked_as, monkeypatch)
    run(tmp_path / "b", another, monkeypatch)
    run(tmp_path / "c", asked_as, monkeypatch, model="openai/other")

    def differences(*runs: str) -> dict[str, list[str]]:
        found = json.loads(typed("compare", *runs, "--json", cwd=tmp_path).stdout)
        return {setting["name"]: setting["values"] for setting in found["differs"]}

    both = differences("a", "b")
    assert both["model in answers"] == ["gpt-5", "step-2000"]
    assert both["judge in answers"] == ["judge", "judge-2026-01-01"]
    assert "model" not in both
    apart = differences("a", "c")
    assert apart["model"] == ["openai/gpt-5", "openai/other"]
    assert not {"model in answers", "judge in answers"} & apart.keys()


SAME = [
    ("openai/gpt-4o", "gpt-4o-2024-08-06"),
    ("openai/gpt-4o", "GPT-4o"),
    ("openrouter/openai/gpt-4o", "openai/gpt-4o"),
    ("openrouter/openai/gpt-4o", "gpt-4o-2024-11-20"),
    ("anthropic/claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
    ("vllm/checkpoints/step-2000", "/data/checkpoints/step-2000"),
    ("vllm/checkpoints/step-2000/", "step-2000"),
    ("ollama/llama3:8b", "llama3:8b"),
    ("inspect/openai/gpt-4o", "gpt-4o-2024-08-06"),
]
OTHER = [
    ("openai/gpt-4o", "gpt-2-tiny"),
    ("openai/gpt-4o-mini", "gpt-4o"),
    ("vllm/step-1000", "step-2000"),
    ("azure/my-deployment", "gpt-4o-2024-08-06"),
]


@pytest.mark.parametrize(("asked", "named"), SAME + OTHER)
def test_which_names_are_of_the_same_model(asked: str, named: str):
    """Whatever stands before the last slash, and whatever is added behind."""
    assert is_same_model(asked, named) == ((asked, named) in SAME)
