"""A grid as units: what their names are made of, and everything that is wrong with a grid at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bench.planted import plant, write_jsonl
from tests.golden_files import FOLDER as GOLDEN
from tests.golden_files import check_golden
from unmask.errors import UsageError
from unmask.sweep.grid import read_grid
from unmask.sweep.specs import key_of_server, make_spec
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
    max_costs = 1
    [locl]
    gpus = [0]
    [[data]]
    sorce = "core"
    [[subject]]
    modl = "openai/a"
    [[subject]]
    serve = { engine = "vllm", model = "org/x", tensor_paralel = 2 }
    [[judge]]
    model = "openai/j"
    max_tokens = "many"
    [[judge]]
    model = "openai/k"
    for.n = [1]
    [matrix]
    sed = [1]
    exclude = [{ sed = 1 }]
    """
    lines = refusal(tmp_path, text)
    for wanted in (
        "swep: there is no such table. Did you mean sweep?",
        "locl: there is no such table. Did you mean local?",
        "sweep.max_costs: there is no such key. Did you mean max_cost?",
        "data 1.sorce: there is no such key. Did you mean source?",
        "subject 1.modl: there is no such key. Did you mean model?",
        "subject 2.serve.tensor_paralel: there is no such key. Did you mean tensor_parallel",
        "judge 1.max_tokens: Expected `int | null`, got `str`",
        "judge 2.for: there is no such key.",
        "matrix.sed: there is no such key. Did you mean seed?",
        "matrix.exclude 1.sed: there is no such key. Did you mean seed?",
    ):
        assert any(line.startswith(wanted) for line in lines), (wanted, lines)


def test_a_checkpoint_that_is_missing_beside_the_grid_is_named_and_a_name_on_the_hub_is_none(tmp_path):
    """A path that is relative to the grid looks like a name on the hub where it has one slash."""
    (tmp_path / "ckpt" / "step_1").mkdir(parents=True)
    lines = refusal(tmp_path, served_steps("ckpt/step_{step}") + served_steps("run7/old/step_{step}", name="b"))
    assert [line.partition("checkpoint ")[2] for line in lines] == [
        f"{tmp_path / path}" for path in ("ckpt/step_2", "run7/old/step_1", "run7/old/step_2")
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
        commands = (make_spec([row], expansion.grid.folder).command for row in expansion.grid.subjects)
        seen.add((*(unit.name for unit in expansion.units), *commands))
    ((_, _, first, _),) = seen
    assert first[2] == str(tmp_path / "ckpt" / "step_1")


def served_steps(model: str, name: str = "a") -> str:
    """A subject on two checkpoints; the first one brings the other tables."""
    head = '[local]\n[[data]]\nsource = "tiny"\n[[judge]]\nmodel = "verbatim"\n' if name == "a" else ""
    return (
        f'{head}[[subject]]\nname = "{name}-{{step}}"\nfor.step = [1, 2]\n'
        f'serve = {{ engine = "vllm", model = "{model}" }}\n'
    )


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[local]\ngpus = 2", "local.gpus: Expected `array`, got `int`"),
        ("[local]\ngpus = [-1]", "local.gpus[0]: Expected `int` >= 0"),
        ("[ray]\ngpus = [0]", "ray.gpus: Expected `int | null`, got `array`"),
        ("[ray]\npartition = 'gpu'", "ray.partition: there is no such key."),
        ("[local]\n[ray]", "servers run either on this machine, [local], or on a cluster, [ray]"),
        ("", "serve needs a place for its servers: [local] with gpus = […], or [ray]"),
    ],
)
def test_where_servers_run_is_checked_with_the_grid(tmp_path, table, words):
    (line,) = refusal(tmp_path, served_steps("org/model-{step}").replace("[local]", table))
    assert line.startswith(words)


def test_a_server_with_less_than_no_gpus_or_no_time_is_refused(tmp_path):
    text = served_steps("org/model").replace('"org/model"', '"org/model", gpus = -1, ready_within = 0')
    assert refusal(tmp_path, text) == ["subject 1.serve.gpus: Expected `int` >= 0"]
    text = served_steps("org/model").replace('"org/model"', '"org/model", ready_within = 0')
    assert refusal(tmp_path, text) == ["subject 1.serve.ready_within: Expected `float` > 0.0"]


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


def test_adapters_on_one_base_share_a_server_and_checkpoints_do_not():
    grid = read_grid(GOLDEN / "sweep" / "grid.toml")
    adapters = [row for row in grid.subjects if row.name.startswith("lora-")]
    checkpoints = [row for row in grid.subjects if row.name.startswith("llama-")]
    assert len({key_of_server(row) for row in adapters}) == 1
    assert len({key_of_server(row) for row in checkpoints}) == 2
    command = make_spec(adapters, grid.folder).command
    assert command[command.index("--lora-modules") + 1 :] == ("lora-a=org/adapter-a", "lora-b=org/adapter-b")
    spec = make_spec(checkpoints[:1], grid.folder)
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


@pytest.mark.parametrize("argument", ["--api-key", "--port=80", "--lora-modules", "-dp"])
def test_arguments_of_vllm_that_the_sweep_gives_itself_are_refused(tmp_path, argument):
    text = served_steps("org/model").replace('"org/model"', f'"org/model", args = ["{argument}"]')
    flag = argument.partition("=")[0]
    assert any(line.startswith(f"{flag} cannot be an argument of server a-1") for line in refusal(tmp_path, text))


def test_a_server_of_a_unit_has_the_gpus_of_all_its_replicas(tmp_path):
    """Replicas are vLLM's: one address, and one server of the sweep."""
    text = served_steps("org/model").replace('"org/model"', '"org/model", tensor_parallel = 2, data_parallel = 3')
    grid = expand(tmp_path, text).grid
    spec = make_spec(grid.subjects[:1], grid.folder)
    assert spec.gpus == 6
    assert " ".join(spec.command).endswith(
        "--tensor-parallel-size 2 --distributed-executor-backend mp --data-parallel-size 3"
    )


def test_data_of_a_grid_is_looked_for_beside_it(tmp_path, monkeypatch):
    write_jsonl(plant(3, seed=1), tmp_path / "mine.jsonl")
    monkeypatch.chdir("/")
    assert expand(tmp_path, SMALLEST.replace('"core"', '"mine.jsonl"')).units[0].data_name == "mine"
