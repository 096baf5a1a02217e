"""The command `unmask`: what it lists, what it imports, how it fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import click
import pytest

from tests import docs_cli
from tests.analysis.labelled import dataset, made
from tests.cli.terminal import unmask
from unmask import __version__, errors
from unmask.cli import crash, main
from unmask.cli.options import RARE, Command, option

HEAVY = {"aiohttp", "msgspec", "numpy", "rich", "torch", "pyarrow", "platformdirs", "asyncio", "unmask.records"}

FAILING = """
import sys, types, click
from unmask.cli import main

@click.command()
def demo():
    {body}

sys.modules["unmask.cli.demo"] = types.SimpleNamespace(demo=demo)
sys.argv = ["unmask", "demo"]
main.main()
"""
"""A process whose one command runs a body."""


class Shown(NamedTuple):
    """How a command ended that ran in this process."""

    code: int
    stderr: str


@pytest.fixture
def failing(tmp_path, monkeypatch, capsys) -> Callable[..., Shown]:
    """Runs a command that raises this error, in `tmp_path` and with none of the caller's variables."""

    def run(error: BaseException, **env: str) -> Shown:
        @click.command()
        def broken() -> None:
            raise error

        module = ModuleType("unmask.cli.demo")
        vars(module)["demo"] = broken
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(tempfile, "tempdir", None)  # TMPDIR is read again
        for name in list(os.environ):
            monkeypatch.delenv(name)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        return Shown(main.run_command_line(["demo"]), capsys.readouterr().err)

    return run


# --- help ---------------------------------------------------------------------------------------------------------


def test_help_lists_every_command(tmp_path):
    """`unmask --help-all` names all commands with their lines; `unmask --help` the twelve of every day."""
    every, first = (unmask(flag, cwd=tmp_path).stdout for flag in ("--help-all", "--help"))
    assert sum(map(len, main.FIRST.values())) == 12
    for name, line in main.COMMANDS.items():
        assert (f"\n  {name} " in first) == any(name in lines for lines in main.FIRST.values())
        assert re.search(rf"^  {name} +{re.escape(line)}$", every, re.MULTILINE)
    assert re.findall(r"^(\w[\w ]*):$", every, re.MULTILINE) == ["Options", *main.SECTIONS]


def test_help_imports_only_click(tmp_path):
    """Nothing heavy is loaded to print the help, which is what keeps it under 150 ms."""
    program = (
        "import sys; from unmask.cli.main import cli; cli.main(['-h'], standalone_mode=False); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & HEAVY
    assert {name.rpartition(".")[2] for name in loaded if name.startswith("unmask.cli.")} == {
        "main",
        "crash",
        "options",
    }


def test_every_command_can_be_the_first_thing_that_is_imported(tmp_path):
    """Each in a process where nothing of unmask was imported before, and under the name that is listed."""
    body = """
import os, sys
from unmask.cli.main import COMMANDS, cli
for name in COMMANDS:
    if not (child := os.fork()):
        os._exit(cli.get_command(None, name).name != name)
    assert os.waitpid(child, 0)[1] == 0, name
"""
    done = subprocess.run([sys.executable, "-c", body], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def every_command() -> dict[str, click.Command]:
    return {name: command for name, command in docs_cli.commands() if not isinstance(command, click.Group)}


@pytest.mark.parametrize("name", sorted(every_command()))
def test_the_help_of_a_command_fits_a_screen_before_its_rare_flags(name):
    """40 lines of 80 columns."""
    with click.Context(every_command()[name], info_name=name, terminal_width=80) as context:
        shown = context.get_help()
    assert max(map(len, shown.splitlines())) <= 80
    assert len(shown.partition(f"\n{RARE}:")[0].splitlines()) <= 40, shown


def test_a_flag_that_takes_a_value_takes_one_in_every_command():
    """A flag is learnt once."""
    takes_value: dict[str, set[bool]] = {}
    for command in every_command().values():
        for flag in command.params:
            if isinstance(flag, click.Option):
                takes_value.setdefault(max(flag.opts, key=len), set()).add(not flag.is_flag)
    assert [flag for flag, found in takes_value.items() if len(found) > 1] == []


def test_there_are_no_more_flags_than_anybody_can_learn():
    flags = [flag for command in every_command().values() for flag in command.params if isinstance(flag, click.Option)]
    assert len(flags) <= 220


def test_rare_flags_come_last_and_then_examples():
    @click.command(cls=Command, examples="unmask x \\\n    --b 1")
    @option("--a", rare=True, help="Now and then.")
    @option("--b", help="Often.")
    def command(**_: object) -> None: ...

    with click.Context(command, info_name="x") as context:
        text = command.get_help(context)
    assert text.index("--b") < text.index("--help") < text.index(f"{RARE}:") < text.index("--a")
    assert text.endswith("Examples:\n  unmask x \\\n      --b 1")


def test_option_reads_its_variable(monkeypatch):
    """A flag that is not given takes its value from UNMASK_ and its name; a flag given wins."""

    @click.command()
    @option("--max-cost", type=float)
    def command(max_cost: float | None) -> None:
        seen.append(max_cost)

    seen: list[float | None] = []
    monkeypatch.setenv("UNMASK_MAX_COST", "2.5")
    command.main([], standalone_mode=False)
    command.main(["--max-cost", "1"], standalone_mode=False)
    assert seen == [2.5, 1.0]


@pytest.mark.parametrize("start", ["unmask.cli.main", "unmask"])
def test_version(tmp_path, start):
    """However the program is started."""
    done = subprocess.run([sys.executable, "-m", start, "--version"], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode() == f"unmask {__version__}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
def test_bash_completes_commands_flags_and_values(tmp_path):
    """With the line that docs/reference.md gives, and the real script."""
    script = tmp_path / "unmask"
    script.write_text(f"#!{sys.executable}\nfrom unmask.cli.start import main\nmain()\n")
    script.chmod(0o755)
    typed = {
        "unmask sco": ["score"],
        "unmask data st": ["stats"],
        "unmask run --judge-b": ["--judge-base-url"],
        "unmask run --preset ''": ["paper", "inspect", "strict"],
    }
    complete = """COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=(); _unmask_completion unmask
echo "${{COMPREPLY[@]}}"
"""
    program = 'eval "$(_UNMASK_COMPLETE=bash_source unmask)"\n' + "".join(
        complete.format(words=words) for words in typed
    )
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", program], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert [line.split() for line in done.stdout.splitlines()] == list(typed.values())


# --- output -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terminal", "env", "coloured"),
    [(True, {}, True), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False), (False, {}, False)],
)
def test_colours_are_for_terminals_that_want_them(monkeypatch, terminal, env, coloured):
    """Not for files, and not where NO_COLOR says so."""
    from unmask.cli.options import in_colour

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    assert in_colour() is coloured


def test_a_terminal_that_lacks_a_character_is_shown_its_number(tmp_path):
    """A table holds dashes that Latin-1 has not."""
    done = unmask("data", "stats", "core", cwd=tmp_path, env={"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0, done.stderr
    assert r"\u2013" in done.stdout


def test_closed_pipe_is_quiet(tmp_path):
    """A reader that hangs up, as `| head` does, causes no message."""
    command = [sys.executable, "-m", "unmask.cli.main", "--help"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_output_that_finds_no_room_is_said_in_one_line(tmp_path):
    """/dev/full refuses every byte, as a full disk does."""
    program = FAILING.format(body="click.echo('x' * 9)")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 4
    assert done.stderr.startswith("unmask: the output: No space left on device\n")
    assert "Traceback" not in done.stderr


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [("nonsense",), ("doctor", "--nonsense"), ("doctor", "surplus"), ()])
def test_usage_errors_exit_2(tmp_path, line):
    """A wrong command line exits 2 and explains itself on stderr."""
    done = unmask(*line, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage: unmask" in done.stderr


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (("scores",), "score"),
        (("data", "lst"), "list"),
        (("mitigate", "stear"), "steer"),
        (("run", "--judgee", "openai/x"), "--judge"),
        (("doctor", "--base_url", "http://x"), "--base-url"),
    ],
    ids=" ".join,
)
def test_a_mistyped_name_gets_the_one_that_was_meant(tmp_path, line, meant):
    done = unmask(*line, cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(rf"Did you mean.*'{meant}'", done.stderr)


@pytest.mark.parametrize("kind", ["UsageError", "GateNotMet", "IncompleteError", "MissingError", "FatalModelError"])
def test_expected_failures_are_one_line_and_advice(failing, kind):
    """An UnmaskError shows its message and advice, no traceback, and gives its own exit code."""
    done = failing(getattr(errors, kind)("the cat is out", advice="type: cat in"))
    assert done == (getattr(errors, kind).exit_code, "unmask: the cat is out\ntype: cat in\n")


def test_line_breaks_of_a_message_stay(failing):
    """Bad rows stand below each other, and texts in any script as they are."""
    done = failing(errors.DataError("two bad rows:", problems=("one: é", "two:\t語"), advice="a\nb"))
    assert done.stderr == "unmask: two bad rows:\n  one: é\n  two:\t語\na\nb\n"


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (OSError(28, "x", "/data/run.json"), "unmask: /data/run.json: No space left on device\nFree some space"),
        (PermissionError(13, "x", "/data"), "unmask: /data: Permission denied\nCheck who may"),
        (OSError(30, "x"), "unmask: the output: Read-only file system\n"),
        (OSError(24, "x"), "unmask: the output: Too many open files\n"),
        (FileNotFoundError(2, "x", "no/x.csv"), "unmask: no/x.csv: No such file or directory\nCheck the path"),
        (OSError(36, "x", "n" * 999), f"unmask: {'n' * 300}…: File name too long\n"),
    ],
    ids=repr,
)
def test_what_the_machine_refuses_is_no_bug(failing, raised, said):
    """One line that names the place, what to do, exit code 4."""
    done = failing(raised)
    assert done.code == 4
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 2


LONG = "n" * 300


@pytest.mark.parametrize(
    "line",
    [
        ("data", "check", LONG),
        ("import", LONG, "--out", "made"),
        ("export", "run", "--format", "inspect", "--out", "file/x.eval"),
        ("run", "--data", LONG, "scripted/liar", "--judge", "verbatim", "--out", "made"),
    ],
    ids=lambda line: line[0],
)
def test_a_path_that_no_disk_takes_is_no_bug(tmp_path, line):
    """Names of 300 characters, and a file where a folder should be: the message names it and says what to do."""
    made(tmp_path / "run", dataset(2), lies=set())
    (tmp_path / "file").touch()
    done = unmask(*line, cwd=tmp_path)
    assert done.returncode in (2, 4)
    said, advice = done.stderr.split("\n", 1)
    assert (LONG[:100] if LONG in line else "unmask: file") in said
    assert advice.strip()
    assert "bug" not in done.stderr


@pytest.mark.parametrize("error", [RuntimeError, click.ClickException, click.BadParameter])
def test_control_characters_of_an_error_are_shown_as_text(tmp_path, failing, error):
    """On the terminal, and of a bug in the file of the traceback."""
    done = failing(error("\x1b[2J\u202e"), TMPDIR=str(tmp_path))
    kept = "".join(path.read_text() for path in tmp_path.glob("unmask-traceback-*.txt"))
    assert not {"\x1b", "\u202e"} & set(done.stderr + kept)
    assert r"\x1b[2J\u202e" in done.stderr
    assert (r"\x1b[2J\u202e" in kept) == (error is RuntimeError)


def test_unexpected_failures_name_the_file_of_the_traceback(tmp_path, failing):
    """A bug exits 70, shows one line, and the traceback lies where the message says; or on the terminal, on request."""
    done = failing(KeyError("lost"), TMPDIR=str(tmp_path))
    assert done.code == crash.INTERNAL
    assert "Traceback" not in done.stderr
    (kept,) = tmp_path.glob("unmask-traceback-*.txt")
    assert str(kept) in done.stderr
    assert "KeyError: 'lost'" in kept.read_text()
    kept.unlink()
    shown = failing(KeyError("lost"), TMPDIR=str(tmp_path), UNMASK_TRACEBACK="1")
    assert "Traceback (most recent call last)" in shown.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("failure", [KeyError, errors.UsageError])
def test_failures_never_show_a_key(tmp_path, failing, failure):
    """A key from the environment or from .env reaches neither the terminal nor the file of the traceback."""
    (tmp_path / ".env").write_text("OTHER_API_KEY=fromdotenv123\n")
    said = "topsecretvalue fromdotenv123 Bearer abcdef123 http://me:hunter22@host/ sk-abcdefghijklmnop1234"
    done = failing(failure(said), TMPDIR=str(tmp_path), OPENAI_API_KEY="topsecretvalue")
    shown = done.stderr + "".join(path.read_text() for path in tmp_path.glob("unmask-traceback-*"))
    for secret in ("topsecretvalue", "fromdotenv123", "abcdef123", "hunter22", "sk-abcdefghijklmnop1234"):
        assert secret not in shown
    assert "[OPENAI_API_KEY]" in shown
    assert "http://host/" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("refused hf_KKKKKK, go away", "refused ***, go away"),
        ("refused sk-123456, go away", "refused ***, go away"),
        ("refused AIzaabcdefghij, go away", "refused ***, go away"),
        ("no run in skip-what-was-answered-before", "no run in skip-what-was-answered-before"),
        ("no run in sketches_of_models_2026", "no run in sketches_of_models_2026"),
    ],
)
def test_what_begins_like_a_key_is_hidden_and_a_folder_is_not(text, shown):
    assert crash.hide_secrets(text) == shown


@pytest.mark.parametrize(
    ("module", "code", "said"),
    [
        ("torch.nn", 4, "unmask: this needs torch\npip install 'unmask[whitebox]'\n"),
        ("nonsense", crash.INTERNAL, "bug"),
    ],
)
def test_an_import_that_fails_in_the_middle_names_its_extra(tmp_path, failing, module, code, said):
    """Also where nobody has looked for the package before. A module of no extra is a bug."""
    done = failing(ModuleNotFoundError("no", name=module), TMPDIR=str(tmp_path))
    assert done.code == code
    assert said in done.stderr


# --- signals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_outside_a_run_ends_a_command_in_one_line(tmp_path, number):
    """While data is loaded or a score is computed, Ctrl-C and SIGTERM are the same: exit code 130."""
    # Short sleeps: a signal that comes just before one does not end it.
    body = "import time; print('here', flush=True); any(time.sleep(0.1) for _ in range(600))"
    with subprocess.Popen(
        [sys.executable, "-c", FAILING.format(body=body)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "here\n"
        process.send_signal(number)
        shown = process.communicate(timeout=60)[1]
    assert (process.returncode, shown) == (130, "unmask: interrupted\n")


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "wrapped"])
def test_an_interruption_in_the_middle_of_an_import_is_said_without_another_import(monkeypatch, capsys, wrapped):
    """What was being imported is broken then. Python 3.11 wraps an interruption that comes while a class is made."""

    def interrupt(_: object) -> None:
        if wrapped:
            raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "unmask.models.keys", None)
    monkeypatch.setattr(main.cli, "invoke", interrupt)
    assert main.run_command_line(["doctor"]) == 130
    assert capsys.readouterr().err == "unmask: interrupted\n"


COMPUTING = """
import asyncio, sys, time
from unmask.cli import main, start
from unmask.models.daemon import DaemonPool

async def give_up():
    answer = asyncio.create_task(DaemonPool(1, name="engine").run(lambda: time.sleep(600)))
    await asyncio.wait([answer], timeout=0.1)

def run():
    asyncio.run(give_up())
    print("done")
    sys.exit(3)

main.main = run
start.main()
"""


def test_a_command_that_has_ended_waits_for_no_engine(tmp_path):
    """It may work through a prompt that nobody waits for. What was printed is there, the exit code too."""
    done = subprocess.run(
        [sys.executable, "-c", COMPUTING], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "done\n", "")
