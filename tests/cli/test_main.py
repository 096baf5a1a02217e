"""The command `unmask`: what it lists, what it imports, how it fails."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import click
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import docs_cli
from tests.analysis.labelled import dataset, made
from tests.cli.terminal import unmask
from unmask import __version__, errors
from unmask.cli import crash, main
from unmask.cli.mitigate import parse_layers
from unmask.cli.options import RARE, SectionedCommand, flag_variable, option
from unmask.runs.options import load_developer_prompt

HEAVY = (
    "aiohttp",
    "msgspec",
    "numpy",
    "scipy",
    "rich",
    "torch",
    "pyarrow",
    "platformdirs",
    "asyncio",
    "unmask.records",
)

FAILING = """
import sys, click
from unmask import errors
from unmask.cli import main

@click.command()
def broken():
    {body}

main.cli.sections = {{"Run": {{"broken": main.CommandEntry("__main__:broken", "fails")}}}}
sys.argv = ["unmask", "broken"]
main.main()
"""


class Shown(NamedTuple):
    """How a command ended that ran in this process."""

    code: int
    stderr: str


@pytest.fixture
def failing(tmp_path, monkeypatch, capsys) -> Callable[..., Shown]:
    """Runs a command that raises this error, in `tmp_path` and with none of the caller's variables. That the code is
    the one of the process is held by tests below that start one."""

    def run(error: BaseException, **env: str) -> Shown:
        @click.command()
        def broken() -> None:
            raise error

        module = ModuleType("broken_command")
        vars(module)["broken"] = broken
        monkeypatch.setitem(sys.modules, module.__name__, module)
        entry = main.CommandEntry(f"{module.__name__}:broken", "fails")
        monkeypatch.setattr(main.cli, "sections", {"Run": {"broken": entry}})
        monkeypatch.setattr(sys, "argv", ["unmask", "broken"])
        monkeypatch.setattr(tempfile, "tempdir", None)  # TMPDIR is read again
        for name in list(os.environ):
            monkeypatch.delenv(name)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(tmp_path)
        return Shown(main.run_command_line(sys.argv[1:]), capsys.readouterr().err)

    return run


def fail_in_a_process(body: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A process whose one command runs `body`, without any variable."""
    program = FAILING.format(body=body)
    return subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, env={}, capture_output=True, text=True, timeout=60, check=False
    )


def test_help_lists_every_command(tmp_path):
    """`unmask --help-all` names all commands with their lines and exits 0; `unmask --help` those of every day."""
    done = unmask("--help-all", cwd=tmp_path)
    assert done.returncode == 0
    first = unmask("--help", cwd=tmp_path).stdout
    for name, entry in main.COMMANDS.items():
        assert (f"\n  {name} " in first) == any(name in entries for entries in main.FIRST.values())
        assert re.search(rf"^  {name} +{re.escape(entry.help)}$", done.stdout, re.MULTILINE)
    headings = re.findall(r"^(\w[\w ]*):$", done.stdout, re.MULTILINE)
    assert headings == ["Options", *main.SECTIONS]


def test_help_imports_only_click(tmp_path):
    """Nothing heavy is loaded to print the help, which is what keeps it under 150 ms."""
    program = (
        "import sys; from unmask.cli import main; main.run_command_line(['--help']);"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "click" in loaded
    assert not loaded & set(HEAVY)
    assert {name for name in loaded if name.startswith("unmask.cli.")} == {
        "unmask.cli.main",
        "unmask.cli.crash",
        "unmask.cli.options",
    }


@pytest.mark.parametrize("name", main.COMMANDS)
def test_every_command_of_the_table_exists(name):
    """Each row of the table leads to a command whose name is the one listed."""
    with click.Context(main.cli) as context:
        command = main.cli.get_command(context, name)
    assert command is not None
    assert command.name == name


def every_command() -> dict[str, click.Command]:
    return {name: command for name, command in docs_cli.commands() if not isinstance(command, click.Group)}


@pytest.mark.parametrize("name", sorted(every_command()))
def test_the_help_of_a_command_fits_a_screen_before_its_rare_flags(name):
    """40 lines of 80 columns."""
    with click.Context(every_command()[name], info_name=name, terminal_width=80) as context:
        shown = context.get_help().partition(f"\n{RARE}:")[0]
    assert len(shown.splitlines()) <= 40, shown


def test_a_flag_that_takes_a_value_takes_one_in_every_command():
    """A flag is learnt once."""
    takes_value: dict[str, set[bool]] = {}
    for command in every_command().values():
        for flag in command.params:
            if isinstance(flag, click.Option):
                takes_value.setdefault(max(flag.opts, key=len), set()).add(not flag.is_flag)
    assert [flag for flag, found in takes_value.items() if len(found) > 1] == []


def test_version(tmp_path):
    """`--version` prints the version of the package."""
    assert unmask("--version", cwd=tmp_path).stdout == f"unmask {__version__}\n"


@pytest.mark.parametrize("line", [("nonsense",), ("doctor", "--nonsense"), ("doctor", "surplus"), ()])
def test_usage_errors_exit_2(tmp_path, line):
    """A wrong command line exits 2 and explains itself on stderr."""
    done = unmask(*line, cwd=tmp_path)
    assert done.returncode == 2
    assert "Usage: unmask" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("kind", ["UsageError", "GateNotMet", "IncompleteError", "MissingError", "FatalModelError"])
def test_expected_failures_are_one_line_and_advice(failing, kind):
    """An UnmaskError shows its message and advice, no traceback, and gives its own exit code."""
    done = failing(getattr(errors, kind)("the cat is out", advice="type: cat in"))
    assert done.code == getattr(errors, kind).exit_code
    assert done.stderr == "unmask: the cat is out\ntype: cat in\n"


def test_line_breaks_of_a_message_stay(tmp_path):
    """Bad rows stand below each other, and texts in any script as they are."""
    body = "raise errors.DataError('two bad rows:', problems=('one: é', 'two:\\t語'), advice='a\\nb')"
    done = fail_in_a_process(body, tmp_path)
    assert done.returncode == errors.DataError.exit_code
    assert done.stderr == "unmask: two bad rows:\n  one: é\n  two:\t語\na\nb\n"


def test_control_characters_of_a_bug_are_shown_as_text(tmp_path, failing):
    """On the terminal and in the file of the traceback."""
    error = RuntimeError("\x1b[2J\u202e")
    error.__cause__ = ValueError("\x1b[2J\u202e")
    done = failing(error, TMPDIR=str(tmp_path))
    (kept,) = tmp_path.glob("unmask-traceback-*.txt")
    assert not {"\x1b", "\u202e"} & set(done.stderr + kept.read_text())
    assert r"ValueError: \x1b[2J\u202e" in kept.read_text()


@pytest.mark.parametrize("kind", ["ClickException", "UsageError", "BadParameter"])
def test_control_characters_of_a_wrong_command_line_are_shown_as_text(failing, kind):
    done = failing(getattr(click, kind)("bad\nvalue \x07\u202e"))
    assert done.code == 2
    assert "bad\nvalue \\x07\\u202e\n" in done.stderr


def test_unexpected_failures_name_the_file_of_the_traceback(tmp_path, failing):
    """A bug exits 70, shows one line, and the traceback lies where the message says."""
    done = failing(KeyError("lost"), TMPDIR=str(tmp_path))
    assert done.code == crash.INTERNAL
    assert "Traceback" not in done.stderr
    (kept,) = tmp_path.glob("unmask-traceback-*.txt")
    assert str(kept) in done.stderr
    assert "KeyError: 'lost'" in kept.read_text()


def test_traceback_on_request(tmp_path, failing):
    """`UNMASK_TRACEBACK=1` shows the traceback and writes no file."""
    done = failing(KeyError("lost"), TMPDIR=str(tmp_path), UNMASK_TRACEBACK="1")
    assert "Traceback (most recent call last)" in done.stderr
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


@given(st.text(alphabet="abcdefghij KLM:/@._-[]()", max_size=60))
def test_scrub_leaves_ordinary_text_alone(text):
    """Text without a URL and without the beginning of a key is shown as it is."""
    assume("://" not in text and not re.search("hf[-_]", text))
    assert crash.hide_secrets(text) == text


@pytest.mark.parametrize("key", ["hf_KKKKKK", "sk-123456", "sk-proj-abcdefghijklmnop", "AIzaabcdefghij"])
def test_scrub_masks_what_begins_like_a_key_also_a_short_one(key):
    """Proxies of one's own hand out keys of a few characters."""
    assert crash.hide_secrets(f"refused {key}, go away") == "refused ***, go away"


@pytest.mark.parametrize("word", ["skip-what-was-answered-before", "hfaaaaaaaaaaaaaaaaaaaa", "sketches_of_models_2026"])
def test_scrub_leaves_long_words_alone_that_only_share_letters_with_a_key(word):
    """A folder may be called so, and the message has to name it."""
    assert crash.hide_secrets(f"no run in {word}") == f"no run in {word}"


def test_closed_pipe_is_quiet(tmp_path):
    """A reader that hangs up, as `| head` does, causes no message."""
    command = [sys.executable, "-m", "unmask.cli.main", "--help"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


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


@pytest.mark.parametrize(
    ("flag", "name"),
    [("--data", "UNMASK_DATA"), ("--max-cost", "UNMASK_MAX_COST"), ("--rows/--no-rows", "UNMASK_ROWS")],
)
def test_variable_of_a_flag(flag, name):
    """The variable is the flag in capitals with underscores."""
    assert flag_variable(flag) == name


def test_option_without_long_flag_is_refused():
    """A short flag alone has no variable, so it is a mistake of whoever writes the command."""
    with pytest.raises(ValueError, match="long flag"):
        option("-m")


@pytest.mark.parametrize(
    ("terminal", "env", "coloured"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
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


@pytest.mark.parametrize(
    ("text", "wanted"), [(None, None), ("3", (3,)), ("8-10", (8, 9, 10)), ("5, 1-2,1", (1, 2, 5)), ("0-0", (0,))]
)
def test_layers_are_named_by_ranges_and_numbers(text, wanted):
    """As `--layers` of the mitigations takes them."""
    assert parse_layers(text) == wanted


@pytest.mark.parametrize("text", ["", "a", "-1", "5-3", "1,", "1--2", "1.5", "99999"])
def test_what_names_no_layers_is_a_usage_error(text):
    with pytest.raises(click.BadParameter, match="names no layers"):
        parse_layers(text)


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (OSError(28, "x", "/data/run.json"), "unmask: /data/run.json: No space left on device\n"),
        (PermissionError(13, "x", "/data"), "unmask: /data: Permission denied\n"),
        (OSError(30, "x"), "unmask: the output: Read-only file system\n"),
        (OSError(24, "x"), "unmask: the output: Too many open files\n"),
        (FileNotFoundError(2, "x", "no/x.csv"), "unmask: no/x.csv: No such file or directory\n"),
        (NotADirectoryError(20, "x", "x.csv/a"), "unmask: x.csv/a: Not a directory\n"),
        (IsADirectoryError(21, "x", "runs"), "unmask: runs: Is a directory\n"),
        (FileExistsError(17, "x", "x.csv"), "unmask: x.csv: File exists\n"),
        (OSError(36, "x", "n" * 999), f"unmask: {'n' * 300}…: File name too long\n"),
        (OSError(40, "x", "round"), "unmask: round: Too many levels of symbolic links\n"),
    ],
    ids=repr,
)
def test_what_the_machine_refuses_is_no_bug(failing, raised, said):
    """One line that names the place, what to do, exit code 4."""
    done = failing(raised)
    assert done.code == 4
    assert done.stderr.startswith(said)
    assert "bug" not in done.stderr


LONG = "n" * 300


@pytest.mark.parametrize(
    "line",
    [
        ("data", "check", LONG),
        ("score", "run", "--labels", LONG),
        ("import", LONG, "--out", "made"),
        ("export", "run", "--format", "csv", "--out", LONG),
        ("export", "run", "--format", "inspect", "--out", "file/x.eval"),
        ("run", "--data", LONG, "scripted/liar", "--judge", "verbatim", "--out", "made"),
    ],
    ids=lambda line: " ".join(line[:1] + line[2:]).replace(LONG, "LONG"),
)
def test_a_path_that_no_disk_takes_is_no_bug(tmp_path, line):
    """Names of 300 characters, and a file where a folder should be. Some versions of Python refuse such a path, others
    say that nothing is there; either way the message names it and says what to do."""
    made(tmp_path / "run", dataset(2), lies=set())
    (tmp_path / "file").touch()
    done = unmask(*line, cwd=tmp_path)
    assert done.returncode in (2, 4)
    said, advice = done.stderr.split("\n", 1)
    assert said.startswith("unmask: ")
    assert (LONG[:100] if LONG in line else "unmask: file") in said
    assert advice.strip()
    assert "bug" not in done.stderr


@pytest.mark.parametrize(
    "value", ["Say only what is true. " * 15, "latin.txt", "zero\0byte"], ids=["text", "latin", "0"]
)
def test_an_instruction_that_is_no_file_of_text_is_a_usage_error(tmp_path, monkeypatch, value):
    """The text itself in place of a file's name, a file in another encoding, and what no name can hold."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.txt").write_bytes("Lüge nicht.".encode("latin-1"))
    with pytest.raises(errors.UsageError) as caught:
        load_developer_prompt(value)
    assert str(caught.value).startswith(f"--developer-prompt {value[:80]!r}"[:-1])
    assert len(str(caught.value)) < 180


def test_a_terminal_that_lacks_a_character_is_shown_its_number(tmp_path):
    """A table holds dashes that Latin-1 has not."""
    done = unmask("data", "stats", "core", cwd=tmp_path, env={"PYTHONIOENCODING": "latin-1"})
    assert done.returncode == 0, done.stderr
    assert r"\u2013" in done.stdout


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_outside_a_run_ends_a_command_in_one_line(tmp_path, number):
    """While data is loaded or a score is computed, Ctrl-C and SIGTERM are the same: exit code 130."""
    # Short sleeps: a signal that comes just before one does not end it.
    body = "import time; print('here', flush=True); any(time.sleep(0.1) for _ in range(600))"
    program = FAILING.format(body=body)
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(number)
        _, errors_shown = process.communicate(timeout=60)
    assert (process.returncode, errors_shown) == (130, "unmask: interrupted\n")


DROPPED = """
import time, weakref
from unmask.cli import main, start

class Released: pass

def interrupt(_):
    raise KeyboardInterrupt

def work():
    released = Released()
    reference = weakref.ref(released, interrupt)
    del released
    any(time.sleep(0.1) for _ in range(300))

main.main = work
start.main()
"""


def test_an_interrupt_that_python_drops_in_a_callback_ends_the_command_all_the_same(tmp_path):
    """As one does that comes while the lock of an import is released: in one line, without Python's own message."""
    done = subprocess.run(
        [sys.executable, "-c", DROPPED], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, "unmask: interrupted\n")


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


def test_every_command_can_be_the_first_thing_that_is_imported(tmp_path):
    """Each in a process where nothing of unmask was imported before: no module relies on another command's imports."""
    body = """
import os, sys
from importlib import import_module
from unmask.cli.main import COMMANDS
for entry in COMMANDS.values():
    if not (child := os.fork()):
        import_module(entry.target.partition(":")[0])
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, entry.target
"""
    done = subprocess.run([sys.executable, "-c", body], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_interruption_in_the_middle_of_an_import_is_said_without_another_import(monkeypatch, capsys):
    """What was being imported is broken then."""
    from unmask.cli import main

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "unmask.models.keys", None)
    monkeypatch.setattr(main.cli, "invoke", interrupt)
    assert main.run_command_line(["doctor"]) == 130
    assert capsys.readouterr().err == "unmask: interrupted\n"


def test_an_interruption_while_a_class_is_made_is_one(monkeypatch, capsys):
    """Python 3.11 makes a RuntimeError of it, later versions do not."""
    from unmask.cli import main

    def interrupt(_: object) -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(main.cli, "invoke", interrupt)
    assert main.run_command_line(["doctor"]) == 130
    assert capsys.readouterr().err == "unmask: interrupted\n"


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (("scores",), "Did you mean 'score'?"),
        (("data", "lst"), "Did you mean 'list'?"),
        (("mitigate", "stear"), "Did you mean 'steer'?"),
        (("run", "--judgee", "openai/x"), "Did you mean '--judge'?"),
        (("doctor", "--base_url", "http://x"), "Did you mean '--base-url'?"),
    ],
    ids=" ".join,
)
def test_a_mistyped_name_gets_the_one_that_was_meant(tmp_path, line, meant):
    done = unmask(*line, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f"{meant}\n")


def test_a_name_like_none_gets_no_suggestion(tmp_path):
    assert unmask("xyzzy", cwd=tmp_path).stderr.endswith("No such command 'xyzzy'.\n")


def test_a_flag_that_no_section_names_is_listed_all_the_same():
    """Under a heading of its own, before what every command has."""

    @click.command(cls=SectionedCommand, sections={"First": "b"}, examples="unmask x \\\n    --b 1")
    @option("--a", help="Of no section.")
    @option("--b", help="Of a section.")
    @option("--json", is_flag=True, help="Everywhere.")
    def command(**_: object) -> None: ...

    with click.Context(command, info_name="x") as context:
        text = command.get_help(context)
        headings = {
            heading: [flag.opts[-1] for flag in flags] for heading, flags in command.group_options(context).items()
        }
    assert headings == {"First": ["--b"], "More": ["--a"], "Output": ["--json", "--help"]}
    assert text.endswith("Examples:\n  unmask x \\\n      --b 1")


@pytest.mark.parametrize("columns", ["80", "120"])
def test_help_fits_the_terminal(tmp_path, columns):
    """Every line of the longest help, also its examples."""
    for name in ("run", "label", "gate"):
        lines = unmask(name, "--help", cwd=tmp_path, env={"COLUMNS": columns}).stdout.splitlines()
        assert max(map(len, lines)) <= int(columns), name


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


def test_python_dash_m_is_the_same_command(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "unmask", "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"unmask {__version__}\n"
