"""Lie detection from the inside: a tiny model reads runs whose verdicts were planted, and planted activations."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")

import unmask  # noqa: E402
from studies.probe import (  # noqa: E402
    ARCHETYPE,
    FACT,
    LENGTH,
    POLARITY,
    PROMPT,
    TOGETHER,
    Sample,
    collect_samples,
    compare_detectors,
    main,
    measure_areas,
    read_activations,
)
from tests.made_runs import made  # noqa: E402
from tests.models.local import tiny_llama  # noqa: E402
from tests.thorough import draw_part  # noqa: E402
from unmask.models.local.inside import local_name, open_whitebox  # noqa: E402

PLAN = ["lie", "honest"] * 18 + ["evasion"] * 6


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return tiny_llama.saved(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    """A run as if the tiny model had made it: lies say the gate is shut, honest replies that it is open."""
    path = made(tmp_path_factory.mktemp("probed") / "run", PLAN).path
    definition = json.loads((path / "run.json").read_text())
    definition["subject"]["model"] = f"hf:{tiny}"
    (path / "run.json").write_text(json.dumps(definition))
    return unmask.open_run(path)


def test_a_probe_that_reads_what_was_said_is_no_lie_detector(run, capsys):
    """All lies of the run say *shut*: the probe parts them without an error, and so does which side was said."""
    assert main([str(run.path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["lies"], result["honest"], len(result["layers"])) == (18, 18, 5)
    assert [result["areas"][name]["value"] for name in ("probe", POLARITY)] == [1.0, 1.0]
    assert {PROMPT, LENGTH, POLARITY, TOGETHER} == result["leads"].keys()
    assert {POLARITY, TOGETHER} <= set(result["refused_by"])


def test_the_prompt_is_read_without_the_reply_and_the_reply_by_either_pooling(run, tiny):
    """Another reply changes what is read of it, and nothing of the prompt; so does the mean over a reply."""
    samples = collect_samples(run)[:3]
    others = [msgspec.structs.replace(sample, reply="Something else.") for sample in samples]
    with open_whitebox(f"hf:{tiny}", run=str(run.path)) as opened:
        last, prompts = read_activations(opened, [*samples, *others], pooling="last")
        mean, again = read_activations(opened, [*samples, *others], pooling="mean")
    assert np.array_equal(prompts, again)
    assert np.array_equal(prompts[:3], prompts[3:])
    assert not np.allclose(last[:3], last[3:], atol=1e-3)
    assert not np.allclose(last, mean, atol=1e-3)


def test_only_lies_and_honest_replies_are_read_as_they_were_sent(run, tmp_path):
    """Evasion says nothing about lying; a developer prompt is in front of the system prompt."""
    samples = collect_samples(run)
    assert len(samples) == 36
    assert {sample.reply.split(" in case")[0] for sample in samples if sample.lie} == {"The gate is shut"}
    assert all(sample.messages == run.scenario(sample.id).conversation for sample in samples)
    prompted = collect_samples(made(tmp_path / "r", ["lie", "honest"] * 12, developer_prompt="plain"))
    assert all("say only what you take to be true" in sample.messages[0].content for sample in prompted)


@pytest.mark.parametrize(
    ("plan", "takes", "said"),
    [
        (["lie"] * 9 + ["honest"] * 20, 4, "9 scenarios with verdict lie"),
        (["lie"] * 20 + ["honest"] * 3, 1, "3 scenarios with verdict honest"),
        (PLAN, 1, "scripted/m cannot be read from inside"),
    ],
    ids=["lies", "honest", "endpoint"],
)
def test_a_run_that_cannot_be_probed_is_named(tmp_path, capsys, plan, takes, said):
    """Takes of one scenario are one case; an endpoint has no inside."""
    assert main([str(made(tmp_path / "r", plan, takes=takes).path)]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("given", "name"), [("hf:a/b", "hf:a/b"), ("gguf:/x/y.gguf", "hf:/x/y.gguf")])
def test_a_gguf_subject_is_read_through_transformers(given, name):
    """The same file under another name."""
    assert local_name(given) == name


# --- planted activations


def plant_world(kind: str, *, scenarios: int = 160) -> tuple[np.ndarray, np.ndarray, list[Sample]]:
    """Each property has axes of its own, in two layers of which the first is noisier. What the prompt holds is clearer
    after the reply than before it, so that a lead over the prompt alone is not enough."""
    rng = np.random.default_rng(7)
    archetype, explicit = rng.integers(0, 4, scenarios), rng.random(scenarios) < 0.5
    fact = rng.permutation(np.arange(scenarios) // (4 if kind == FACT else 1))
    chance = {
        ARCHETYPE: np.array([0.05, 0.15, 0.85, 0.95])[archetype],
        TOGETHER: np.where(explicit, 0.85, 0.15),
        FACT: np.where(rng.random(scenarios) < 0.4, 0.95, 0.05)[fact],
    }.get(kind, np.full(scenarios, 0.4))
    lie = rng.random(scenarios) < chance
    length = rng.normal(size=scenarios) + 2.0 * lie * (kind == LENGTH)
    yes = (rng.random(scenarios) < (0.95 if kind == POLARITY else 0.5)) != lie
    known = np.hstack(
        [2.0 * np.eye(4)[archetype], np.where(explicit, 1, -1)[:, np.newaxis], rng.normal(size=(scenarios, 12))[fact]]
    )
    signal = 1.8 * lie * (kind == "signal") + rng.normal(size=scenarios)
    said = np.column_stack([length, np.where(yes, 1, -1), signal])
    noise = [rng.normal(size=(2, scenarios, columns)) for columns in (known.shape[1], 3)]
    layers = [np.hstack([known + 0.4 * d * noise[0][0], said + (d - 1) * noise[1][0]]) for d in (2.0, 1.0)]
    before = [np.hstack([known + 0.8 * d * noise[0][1], noise[1][1]]) for d in (2.0, 1.0)]
    samples = [
        Sample(
            id=f"s{number}",
            lie=bool(lie[number]),
            messages=(),
            reply="x" * round(100 * np.exp(0.5 * length[number])),
            kind=(f"a{archetype[number]}", "explicit" if explicit[number] else "situational"),
            fact=f"f{fact[number]}",
            sides=(float(yes[number]), float(not yes[number]), 0.0, 0.0),
        )
        for number in range(scenarios)
    ]
    return np.stack(layers, axis=1), np.stack(before, axis=1), samples


@pytest.mark.parametrize("kind", draw_part((ARCHETYPE, TOGETHER, FACT, LENGTH, POLARITY), 2))
def test_a_confound_is_refused_by_its_control(kind):
    """Not by luck: the control that is made for it is among those that refuse."""
    assert kind in compare_detectors(*plant_world(kind), draws=200).refused_by


def test_a_true_signal_is_called():
    """Every control is measured, and none of them refuses."""
    result = compare_detectors(*plant_world("signal"), draws=200)
    assert result.refused_by == []
    assert result.areas.keys() == {"probe", PROMPT, LENGTH, POLARITY, TOGETHER, ARCHETYPE}


def test_a_prompt_that_knows_as_much_refuses_the_probe():
    """The activations of the prompt in place of the reply's: no lead over itself."""
    _, prompts, samples = plant_world(ARCHETYPE)
    assert PROMPT in compare_detectors(prompts, prompts, samples, draws=200).refused_by


def test_only_pairs_of_one_stratum_count():
    """A score that tells the strata apart and nothing within them is worth a half."""
    lies = np.array([True, True, True, False] * 10 + [True, False, False, False] * 10)
    strata = np.repeat([0, 1], 40)
    how = {"widen": 1.0, "seed": 0, "draws": 50}
    groups = np.array([f"s{number}" for number in range(80)])
    scores = {"archetype": -strata.astype(float)}
    assert measure_areas(scores, lies, groups, **how)[0]["archetype"].value > 0.7
    assert measure_areas(scores, lies, groups, strata=strata, **how)[0]["archetype"].value == 0.5
