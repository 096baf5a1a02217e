"""The names other people's code depends on: public Python names, console script, extras, versions."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import click
import pytest

import unmask
from tests.docs_cli import inner_commands
from unmask import errors
from unmask.cli import main
from unmask.cli.options import RARE
from unmask.runs.options import Options, RunSettings

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

NAMES = {
    "__version__",
    "Capabilities",
    "Choice",
    "Completion",
    "Dataset",
    "GuardLimits",
    "Model",
    "Options",
    "Outcome",
    "Request",
    "Run",
    "Scenario",
    "Score",
    "UnmaskError",
    "Usage",
    "audit",
    "agree",
    "board",
    "compare",
    "export",
    "figure",
    "gate",
    "import_run",
    "judge",
    "label",
    "load",
    "merge",
    "open_model",
    "open_run",
    "plan",
    "power",
    "report",
    "run",
    "sensitivity",
}
"""Taking one away breaks somebody's script."""


def test_public_names():
    """`unmask` offers these names and no others."""
    assert set(unmask.__all__) == NAMES
    assert set(dir(unmask)) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_public_names_exist_and_are_documented(name):
    """Each public name can be had, and says what it is."""
    found = getattr(unmask, name)
    assert isinstance(found, str) or inspect.getdoc(found)


def test_unknown_names_are_attribute_errors():
    """A wrong name fails as in any module."""
    with pytest.raises(AttributeError, match="nonsense"):
        _ = unmask.nonsense


RUN_FLAGS = """data judge out plan base-url judge-base-url numeric-judge preset takes direct effort tags control also
temperature max-tokens seed param judge-param header judge-header set batch no-wait limit archetype ids sample-seed
shard max-connections requests-per-minute max-cost developer-prompt beliefs-from quiet json"""


def flags_of(name: str) -> dict[str, click.Option]:
    with click.Context(main.cli) as context:
        command = main.cli.get_command(context, name)
    return {param.opts[0].lstrip("-"): param for param in command.params if isinstance(param, click.Option)}


def test_run_has_these_flags():
    """And no other: what is about one model is given with --set."""
    assert flags_of("run").keys() == set(RUN_FLAGS.split())


def test_flags_are_keyword_arguments_of_the_same_name():
    """Of `unmask.run`, with the defaults of Options. `judge` has some of them."""
    ours = {"data", "judge", "out", "numeric_judge", "only_plan", "quiet", "as_json"}
    settings = {option.name: option for option in flags_of("run").values() if option.name not in ours}
    assert settings.keys() == set(RunSettings.__annotations__)
    usual = Options()
    for name, option in settings.items():
        if name in ("temperature", "max_tokens"):
            assert option.default == getattr(usual.subject, name)
        elif name in Options.__struct_fields__ and not option.multiple and name not in ("also", "tags"):
            given = option.get_default(click.Context(click.Command("run")))
            assert (given if type(given) in (str, int) and given else None) == (getattr(usual, name) or None)
    assert {option.name for option in flags_of("judge").values()} <= {
        option.name for option in flags_of("run").values()
    }


def test_the_common_flags_of_run_fit_a_screen():
    """40 lines at 80 columns; the others follow under a heading of their own."""
    with click.Context(main.cli, info_name="unmask") as context:
        command = main.cli.get_command(context, "run")
        with click.Context(command, info_name="run", parent=context, terminal_width=80) as inner:
            common, _, rare = command.get_help(inner).partition(f"{RARE}:")
    assert common.count("\n") <= 40
    assert rare


@pytest.mark.parametrize(
    "name", ["score", "show", "export", "report", "figure", "gate", "sensitivity", "compare", "board"]
)
def test_every_command_that_reads_a_run_says_the_same_of_the_judge_it_takes(name):
    with click.Context(main.cli) as context:
        command = main.cli.get_command(context, name)
    (text,) = (parameter.help for parameter in command.params if parameter.name == "judge")
    assert text.endswith("of the last `unmask run` unless given.")


def test_every_flag_has_its_variable():
    """flag = argument = `UNMASK_…` variable, for every command."""
    for name in main.COMMANDS:
        with click.Context(main.cli) as context:
            command = main.cli.get_command(context, name)
            inner = [found for _, found in inner_commands(command, context)]
        for one in inner or [command]:
            for parameter in one.params:
                if isinstance(parameter, click.Option):
                    flag = max(parameter.opts, key=len)
                    assert parameter.envvar == "UNMASK_" + flag.lstrip("-").replace("-", "_").upper(), (name, flag)


def test_dev_extra_is_the_dependency_groups():
    """A pip without `--group` installs the same tools."""
    groups = [line for group in PROJECT["dependency-groups"].values() for line in group]
    assert sorted(PROJECT["project"]["optional-dependencies"]["dev"]) == sorted(groups)


def test_constraints_pin_every_direct_dependency():
    """constraints.txt has plain `name==version` lines, one of them for each package the project names."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9.-]+==[\w.!+]+", line) for line in pins)
    pinned = {line.partition("==")[0] for line in pins}
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [*PROJECT["project"]["dependencies"], *(line for extra in extras for line in extra)]
    named = {re.split(r"[<>=!~\[; ]", line)[0].lower().replace("_", "-") for line in wanted}
    assert named <= pinned


def test_every_exception_is_in_the_tree_of_the_docstring():
    """The tree drawn in errors.py has every class with its exit code."""
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.UnmaskError):
            line = next(line for line in errors.__doc__.splitlines() if re.search(rf"\b{name}\b", line))
            code = re.search(rf"{name}\s+(\d+)\b", line)
            assert code is None or int(code[1]) == kind.exit_code
