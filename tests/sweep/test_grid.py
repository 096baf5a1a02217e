"""A grid as units: what their names are made of, what is refused, and the servers it asks for."""

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


def served(serve: str, name: str = "a-{step}") -> str:
    """A grid with a server for each of two steps."""
    head = '[local]\n[[data]]\nsource = "tiny"\n[[judge]]\nmodel = "verbatim"\n'
    return f'{head}[[subject]]\nname = "{name}"\nfor.step = [1, 2]\nserve = {{ {serve} }}\n'


def test_the_names_of_the_golden_grid_stay():
    """The same grid finds its folders again."""
    expansion = expand_grid(read_grid(GOLDEN / "sweep" / "grid.toml"))
    check_golden("sweep/names.txt", "".join(f"{unit.name}\n" for unit in expansion.units))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("http://node1:8000", "http://node7:9000", True),
        ("openai/my-judge", "openai/another-judge", True),
        ("[[judge]]", 'tier = "flex"\nprice = "1/2"\n[[judge]]', True),
        ("[matrix]", '[options]\neffort = "full"\npreset = "strict"\n[matrix]', True),
        ('source = "core"', 'source = "core"\nlimit = 5', True),
        ("openai/my-model", "openai/my-model-2", False),
        ("[[judge]]", 'name = "mine"\n[[judge]]', False),
        ("[[judge]]", 'params = { reasoning_effort = "low" }\n[[judge]]', False),
        ("[[judge]]", "max_tokens = 2000\n[[judge]]", False),
        ("[matrix]", "[matrix]\ntakes = 5", False),
        ("[matrix]", "[matrix]\ntemperature = 0.5", False),
        ("[matrix]", '[matrix]\ndeveloper_prompt = "plain"', False),
        ("[1, 2, 3]", "[4, 5, 6]", False),
        ('source = "core"', 'source = "core"\narchetype = "statistics"', False),
    ],
)
def test_a_unit_has_another_name_if_what_is_asked_is_another(tmp_path, old, new, same):
    before, after = names(tmp_path, SMALLEST), names(tmp_path, SMALLEST.replace(old, new))
    assert before == after if same else not set(before) & set(after)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[matrix]", "[swep]\n[matrix]", "Object contains unknown field `swep`"),
        ("source", "sorce", "data 1: Object contains unknown field `sorce`"),
        ("[[judge]]", 'tiers = "flex"\n[[judge]]', "subject 1: Object contains unknown field `tiers`"),
        ("[[judge]]", "temperature = 1\n[[judge]]", "subject 1: Object contains unknown field `temperature`"),
        ("[[judge]]", '[[judge]]\nmax_tokens = "many"', "judge 1.max_tokens: Expected `int | null`, got `str`"),
        ("[[judge]]", "[[judge]]\nfor.n = [1]", "judge 1: Object contains unknown field `for`"),
        ("[matrix]", "[matrix]\nexclude = [{ sed = 1 }]", "matrix.exclude 1: Object contains unknown field `sed`"),
        ("[matrix]", "[local]\ngpus = 2\n[matrix]", "local.gpus: Expected `array`, got `int`"),
        ("[matrix]", "[local]\n[ray]\n[matrix]", "servers run either on this machine, [local], or on a cluster, [ray]"),
        ("[1, 2, 3]", "[1, 1]", "two units are the same run: openai/my-model, core, seed 1 and openai/my-model, core"),
        ("[matrix]", '[[judge]]\nmodel = "openai/my-judge"\n[matrix]', "two judges would write one file, openai_my-"),
        ("[[judge]]", "batch = true\n[[judge]]", "subject openai/my-model has batch = true and judge openai/my-judge"),
        ("[1, 2, 3]", "[1]\nexclude = [{ seed = 1 }]", "matrix: it leaves no unit"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(tmp_path, old, new, words):
    (line,) = refusal(tmp_path, SMALLEST.replace(old, new, 1))
    assert line.startswith(words)


@pytest.mark.parametrize(
    ("serve", "words"),
    [
        ('engine = "vllm"', "subject a-1: serve takes either engine and model, or command"),
        ('engine = "vllm", model = "org/x", gpus = -1', "subject 1.serve.gpus: Expected `int` >= 0"),
        ('engine = "vllm", model = "org/x", ready_within = 0', "subject 1.serve.ready_within: Expected `float` > 0.0"),
        ('engine = "vllm", model = "x", args = ["--port=80"]', "--port cannot be an argument of server a-1"),
        ('engine = "vllm", model = "x", args = ["--api-key"]', "--api-key cannot be an argument of server a-1"),
    ],
)
def test_a_server_that_cannot_be_started_is_refused(tmp_path, serve, words):
    assert refusal(tmp_path, served(serve))[0].startswith(words)


def test_servers_need_a_place_and_names_of_their_own(tmp_path):
    text = served('engine = "vllm", model = "org/model-{step}"')
    assert refusal(tmp_path, text.replace("[local]", "")) == [
        "serve needs a place for its servers: [local] with gpus = […], or [ray]"
    ]
    both = text.replace('name = "a-{step}"', 'name = "a-{step}"\nmodel = "openai/b"\nkey = "K"')
    assert [line.partition(":")[2].split()[0] for line in refusal(tmp_path, both)] == ["model", "key"] * 2
    assert any("two servers are called 'a'" in line for line in refusal(tmp_path, text.replace("a-{step}", "a")))


def test_a_checkpoint_that_is_missing_next_to_the_grid_is_named_and_a_name_on_the_hub_is_none(tmp_path):
    """A path that is relative to the grid looks like a name on the hub where it has one slash."""
    (tmp_path / "ckpt" / "step_1").mkdir(parents=True)
    for path, missing in (("ckpt/step_{step}", "ckpt/step_2"), ("run7/old/step_2", "run7/old/step_2")):
        lines = refusal(tmp_path, served(f'engine = "vllm", model = "{path}"'))
        assert lines[-1].partition("checkpoint ")[2] == str(tmp_path / missing)
    assert len(names(tmp_path, served('engine = "vllm", model = "org/model-{step}"'))) == 2


def test_paths_of_a_grid_are_relative_to_it_wherever_it_is_started_from(tmp_path, monkeypatch):
    """Its data is found, a unit has one name, and its server starts in the folder of the grid."""
    for step in (1, 2):
        (tmp_path / "ckpt" / f"step_{step}").mkdir(parents=True)
    write_jsonl(plant(3, seed=1), tmp_path / "mine.jsonl")
    grid = served('engine = "vllm", model = "./ckpt/step_{step}"').replace('"tiny"', '"mine.jsonl"')
    (tmp_path / "grid.toml").write_text(grid)
    seen = set()
    for folder, path in (
        (tmp_path, "grid.toml"),
        (tmp_path.parent, f"{tmp_path.name}/grid.toml"),
        ("/", tmp_path / "grid.toml"),
    ):
        monkeypatch.chdir(folder)
        expansion = expand_grid(read_grid(Path(path)))
        assert expansion.units[0].data_name == "mine"
        spec = make_spec(expansion.grid.subjects[:1], expansion.grid.folder)
        seen.add((*(unit.name for unit in expansion.units), spec.command[2], spec.folder))
    ((_, _, weights, folder),) = seen
    assert (weights, folder) == ("./ckpt/step_1", str(tmp_path))


def test_missing_data_a_missing_prompt_and_a_value_out_of_range_are_named(tmp_path):
    text = SMALLEST.replace('"core"', '"nowhere.jsonl"') + 'developer_prompt = ["", "no-such-prompt"]\n'
    lines = refusal(tmp_path, text)
    assert any("data 1" in line and "nowhere.jsonl" in line for line in lines)
    assert any("no-such-prompt" in line for line in lines)
    assert any("--temperature 3 is out of range" in line for line in refusal(tmp_path, SMALLEST + "temperature = 3\n"))


def test_exclusions_leave_units_out_by_pattern_and_by_value(tmp_path):
    text = SMALLEST.replace("[[judge]]", '[[subject]]\nmodel = "openai/other"\n[[judge]]')
    text += 'exclude = [{ subject = "*/other", seed = [2, 3] }, { data = "nothing" }]\n'
    expansion = expand(tmp_path, text)
    assert [(unit.subject.name, unit.seed) for unit in expansion.units] == [
        *(("openai/my-model", seed) for seed in (1, 2, 3)),
        ("openai/other", 1),
    ]
    assert expansion.notes == ("exclude 2 matches no unit",)


def test_adapters_on_one_base_share_a_server_unless_it_differs_and_checkpoints_do_not():
    grid = read_grid(GOLDEN / "sweep" / "grid.toml")
    adapters = [row for row in grid.subjects if row.name.startswith("lora-")]
    checkpoints = [row for row in grid.subjects if row.name.startswith("llama-")]
    assert len({key_of_server(row) for row in adapters}) == 1
    assert len({key_of_server(row) for row in checkpoints}) == 2
    assert adapters[0].serve is not None
    serve = msgspec.structs.replace(adapters[0].serve, labels={"pool": "large"})
    assert key_of_server(msgspec.structs.replace(adapters[0], serve=serve)) != key_of_server(adapters[1])
    command = make_spec(adapters, grid.folder).command
    assert command[command.index("--lora-modules") + 1 :] == ("lora-a=org/adapter-a", "lora-b=org/adapter-b")
    spec = make_spec(checkpoints[:1], grid.folder)
    assert spec.gpus == 2
    assert spec.command[:3] == ("vllm", "serve", "org/llama-1000")
    assert spec.command[-2:] == ("--max-model-len", "8192")


def test_replicas_are_one_server_with_the_gpus_of_all(tmp_path):
    """Replicas are vLLM's: one address, and one server of the sweep."""
    grid = expand(tmp_path, served('engine = "vllm", model = "x", tensor_parallel = 2, data_parallel = 3')).grid
    spec = make_spec(grid.subjects[:1], grid.folder)
    assert spec.gpus == 6
    assert " ".join(spec.command).endswith(
        "--tensor-parallel-size 2 --distributed-executor-backend mp --data-parallel-size 3"
    )


def test_units_of_a_group_ask_the_same_probes(tmp_path):
    text = SMALLEST + 'developer_prompt = ["", "plain"]\ntakes = [1, 5]\n'
    assert len({(unit.group, unit.seed) for unit in expand(tmp_path, text).units}) == 3
