"""A grid as units: what their names are made of, and everything that is wrong with a grid at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.planted import plant, write_jsonl
from tests.golden_files import FOLDER as GOLDEN
from tests.golden_files import check_golden
from unmask.errors import UsageError
from unmask.sweep.fleets import key_of_server, make_spec
from unmask.sweep.grid import read_grid
from unmask.sweep.units import Expansion, expand_grid

SMALLEST = """
[[data]]
source = "core"
[[subject]]
model = "openai/my-model"
base_url = "http://node1:8000/v1"
[[judge]]
model = "openai/my-judge"
base_url = "http://node2:8000/v1"
[matrix]
seed = [1, 2, 3]
"""


def expand(folder: Path, text: str) -> Expansion:
    path = folder / "grid.toml"
    path.write_text(text)
    return expand_grid(read_grid(path))


def names(folder: Path, text: str) -> list[str]:
    return [unit.name for unit in expand(folder, text).units]


def refusal(folder: Path, text: str) -> list[str]:
    """The lines of the one error that a grid gives."""
    with pytest.raises(UsageError) as caught:
        expand(folder, text)
    return [line.strip() for line in str(caught.value).splitlines()[1:]]


def test_the_names_of_the_golden_grid_stay():
    """The same grid finds its folders again."""
    expansion = expand_grid(read_grid(GOLDEN / "sweep" / "grid.toml"))
    check_golden("sweep/names.txt", "".join(f"{unit.name}\n" for unit in expansion.units))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("http://node1:8000", "http://node7:9000"),
        ("http://node2:8000", "http://node8:9000"),
        ("openai/my-judge", "openai/another-judge"),
        ("[[judge]]", 'tier = "flex"\n[[judge]]'),
        ("[[judge]]", 'price = "1/2"\n[[judge]]'),
        ("[matrix]", '[options]\neffort = "full"\npreset = "strict"\n[matrix]'),
        ('source = "core"', 'source = "core"\nlimit = 5'),
    ],
)
def test_what_changes_nothing_that_was_asked_changes_no_name(tmp_path, old, new):
    assert names(tmp_path, SMALLEST.replace(old, new)) == names(tmp_path, SMALLEST)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("openai/my-model", "openai/my-model-2"),
        ("[[judge]]", 'name = "mine"\n[[judge]]'),
        ("[[judge]]", 'params = { reasoning_effort = "low" }\n[[judge]]'),
        ("[[judge]]", "max_tokens = 2000\n[[judge]]"),
        ("[matrix]", "[matrix]\ntakes = 5"),
        ("[matrix]", "[matrix]\ntemperature = 0.5"),
        ("[matrix]", '[matrix]\ndeveloper_prompt = "plain"'),
        ("[1, 2, 3]", "[4, 5, 6]"),
        ('source = "core"', 'source = "core"\narchetype = "statistics"'),
    ],
)
def test_what_changes_the_questions_changes_every_name(tmp_path, old, new):
    assert not set(names(tmp_path, SMALLEST.replace(old, new))) & set(names(tmp_path, SMALLEST))


def test_everything_wrong_is_said_at_once_before_anything_starts(tmp_path):
    text = """
    [swep]
    [sweep]
    fleet = "locl"
    [[data]]
    sorce = "core"
    [[subject]]
    modl = "openai/a"
    [[subject]]
    serve = { engine = "vllm", model = "/no/such/step_{step}" }
    for.step = [1, 2]
    [[subject]]
    serve = { engine = "vllm", model = "org/x", tensor_paralel = 2 }
    [[judge]]
    model = "openai/j"
    [matrix]
    sed = [1]
    takes = [1, 1]
    """
    lines = refusal(tmp_path, text)
    for wanted in (
        "there is no table 'swep'. Did you mean sweep?",
        "there is no fleet 'locl'. Did you mean local?",
        "data 1: there is no key 'sorce'. Did you mean source?",
        "subject 1: there is no key 'modl'. Did you mean model?",
        "subject 2: there is no checkpoint /no/such/step_1 (model)",
        "subject 2: there is no checkpoint /no/such/step_2 (model)",
        "subject 3 serve: there is no key 'tensor_paralel'. Did you mean tensor_parallel?",
        "[matrix]: there is no key 'sed'. Did you mean seed?",
        "[matrix]: takes has a value twice",
    ):
        assert any(wanted in line for line in lines), (wanted, lines)


def test_a_checkpoint_that_is_missing_beside_the_grid_is_named_and_a_name_on_the_hub_is_none(tmp_path):
    """A path that is relative to the grid looks like a name on the hub where it has one slash."""
    (tmp_path / "ckpt" / "step_1").mkdir(parents=True)
    lines = refusal(tmp_path, served_steps("ckpt/step_{step}") + served_steps("run7/old/step_{step}", name="b"))
    assert [line.partition("checkpoint ")[2] for line in lines] == [
        f"{tmp_path / path} (model)" for path in ("ckpt/step_2", "run7/old/step_1", "run7/old/step_2")
    ]
    assert len(names(tmp_path, served_steps("org/model-{step}"))) == 2


def test_a_unit_has_one_name_and_its_server_one_path_wherever_the_grid_is_started_from(tmp_path, monkeypatch):
    for step in (1, 2):
        (tmp_path / "ckpt" / f"step_{step}").mkdir(parents=True)
    (tmp_path / "grid.toml").write_text(served_steps("ckpt/step_{step}"))
    seen = set()
    for folder, path in (
        (tmp_path, "grid.toml"),
        (tmp_path.parent, f"{tmp_path.name}/grid.toml"),
        ("/", tmp_path / "grid.toml"),
    ):
        monkeypatch.chdir(folder)
        expansion = expand_grid(read_grid(Path(path)))
        commands = (make_spec([subject]).command for subject in expansion.grid.subjects)
        seen.add((*(unit.name for unit in expansion.units), *commands))
    ((_, _, first, _),) = seen
    assert first[2] == str(tmp_path / "ckpt" / "step_1")


def served_steps(model: str, name: str = "a") -> str:
    """A subject on two checkpoints; the first one brings the other tables."""
    head = '[sweep]\nfleet = "local"\n[[data]]\nsource = "tiny"\n[[judge]]\nmodel = "verbatim"\n' if name == "a" else ""
    return (
        f'{head}[[subject]]\nname = "{name}-{{step}}"\nfor.step = [1, 2]\n'
        f'serve = {{ engine = "vllm", model = "{model}" }}\n'
    )


@pytest.mark.parametrize(
    ("fleet", "setting", "words"),
    [
        ("local", "gpus = 2", "[fleet]: Expected `array`, got `int` - at `$.gpus`"),
        ("local", "gpus = [-1]", "[fleet]: gpus has -1"),
        ("ray", "gpus = [0]", "[fleet]: Expected `int | null`, got `array` - at `$.gpus`"),
        ("ray", "partition = 'gpu'", "[fleet]: there is no key 'partition'"),
    ],
)
def test_a_wrong_value_for_a_fleet_is_said_with_the_grid(tmp_path, fleet, setting, words):
    text = served_steps("org/model-{step}").replace('"local"', f'"{fleet}"\n[fleet]\n{setting}')
    (line,) = refusal(tmp_path, text)
    assert line.startswith(words)


def test_a_server_with_less_than_no_gpus_or_no_time_is_refused(tmp_path):
    text = served_steps("org/model").replace('"org/model"', '"org/model", gpus = -1, ready_within = 0')
    assert refusal(tmp_path, text) == [
        "subject 1: gpus is -1; it is at least 0",
        "subject 1: ready_within and answers_within are seconds, and more than 0",
    ]


def test_missing_data_a_missing_prompt_and_a_value_out_of_range_are_named_together(tmp_path):
    text = SMALLEST.replace('"core"', '"nowhere.jsonl"') + 'developer_prompt = ["", "no-such-prompt"]\n'
    lines = refusal(tmp_path, text)
    assert any("data 1" in line and "nowhere.jsonl" in line for line in lines)
    assert any("no-such-prompt" in line for line in lines)
    assert any("--temperature 3 is out of range" in line for line in refusal(tmp_path, SMALLEST + "temperature = 3\n"))


def test_two_units_that_are_one_run_clash(tmp_path):
    twice = SMALLEST.replace(
        "[[judge]]", '[[subject]]\nmodel = "openai/my-model"\nbase_url = "http://n3/v1"\n[[judge]]'
    )
    lines = refusal(tmp_path, twice)
    assert len(lines) == 3
    assert all("two units are the same run" in line for line in lines)
    assert len(names(tmp_path, twice.replace('"http://n3/v1"', '"http://n3/v1"\nname = "b"'))) == 6


def test_two_judges_of_one_file_clash(tmp_path):
    twice = SMALLEST.replace("[matrix]", '[[judge]]\nmodel = "openai/my-judge"\n[matrix]')
    assert "openai_my-judge" in refusal(tmp_path, twice)[0]


def test_exclusions_leave_units_out_by_pattern_and_by_value(tmp_path):
    text = SMALLEST.replace("[[judge]]", '[[subject]]\nmodel = "openai/other"\n[[judge]]')
    text += 'exclude = [{ subject = "*/other", seed = [2, 3] }, { data = "nothing" }]\n'
    expansion = expand(tmp_path, text)
    assert [(unit.subject.name, unit.seed) for unit in expansion.units] == [
        *(("openai/my-model", seed) for seed in (1, 2, 3)),
        ("openai/other", 1),
    ]
    assert expansion.notes == ("exclude 2 matches no unit",)


def test_a_grid_that_serves_needs_a_fleet(tmp_path):
    served = SMALLEST.replace('model = "openai/my-model"\nbase_url = "http://node1:8000/v1"', SERVED)
    assert any("fleet = 'local'" in line for line in refusal(tmp_path, served))


SERVED = 'name = "m"\nserve = { engine = "vllm", model = "org/m" }'


def test_adapters_on_one_base_share_a_server_and_checkpoints_do_not():
    grid = read_grid(GOLDEN / "sweep" / "grid.toml")
    adapters = [row for row in grid.subjects if row.name.startswith("lora-")]
    checkpoints = [row for row in grid.subjects if row.name.startswith("llama-")]
    assert len({key_of_server(row) for row in adapters}) == 1
    assert len({key_of_server(row) for row in checkpoints}) == 2
    command = make_spec(adapters).command
    assert command[command.index("--lora-modules") + 1 :] == ("lora-a=org/adapter-a", "lora-b=org/adapter-b")
    spec = make_spec(checkpoints[:1])
    assert spec.gpus == 2
    assert spec.command[:3] == ("vllm", "serve", "org/llama-1000")
    assert spec.command[-2:] == ("--max-model-len", "8192")


def test_adapters_whose_servers_differ_do_not_share_one():
    grid = read_grid(GOLDEN / "sweep" / "grid.toml")
    first, second = (row for row in grid.subjects if row.name.startswith("lora-"))
    assert first.serve is not None
    labelled = msgspec.structs.replace(first, serve=msgspec.structs.replace(first.serve, labels={"pool": "large"}))
    assert key_of_server(labelled) != key_of_server(second) == key_of_server(first)


def test_units_of_a_group_ask_the_same_probes(tmp_path):
    text = SMALLEST + 'developer_prompt = ["", "plain"]\ntakes = [1, 5]\n'
    groups = {(unit.group, unit.seed) for unit in expand(tmp_path, text).units}
    assert len(groups) == 3


def test_data_of_a_grid_is_looked_for_beside_it(tmp_path, monkeypatch):
    write_jsonl(plant(3, seed=1), tmp_path / "mine.jsonl")
    monkeypatch.chdir("/")
    assert expand(tmp_path, SMALLEST.replace('"core"', '"mine.jsonl"')).units[0].data_name == "mine"
