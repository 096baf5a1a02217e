"""The command `unmask`: a table of commands, and what happens when one of them fails.

Nothing but click is imported before a command is chosen, so `unmask --help` answers at once.
"""

from __future__ import annotations

import gc
import io
import keyword
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from unmask import __version__
from unmask.cli import crash
from unmask.cli.options import write_sections
from unmask.errors import UnmaskError

FIRST = {
    "Run": {
        "demo": "Run a small benchmark on this machine, without a key.",
        "doctor": "Check keys, extras, endpoints, folders and models.",
        "run": "Ask, judge and score. The same command again continues.",
        "judge": "Judge a run's replies again with another judge.",
    },
    "Look": {
        "score": "Print the measures of a run.",
        "show": "List scenarios with their verdicts, or show one in full.",
        "report": "Write one HTML file that shows a run, or several.",
        "view": "Look at runs, compare and label them in the browser.",
    },
    "Check": {
        "label": "Label replies by hand, in the browser or as a sheet.",
        "compare": "Compare runs with each other, scenario by scenario.",
        "gate": "Fail unless a run keeps a limit on lying.",
        "audit": "Check whether the numbers of a run can be trusted.",
    },
}
"""What `unmask --help` lists: each command is in the module of its name, and its line is here so that the list imports
nothing."""

FURTHER = {
    "Many runs": {
        "board": "Make a leaderboard with intervals and ranges of ranks.",
        "sweep": "Run many models, data sets and treatments as one plan.",
        "merge": "Make one run of its shards.",
        "batch": "List or cancel the batches of a run.",
    },
    "How sure": {
        "agree": "Measure the judge against people and other judges.",
        "sensitivity": "Show how P(lie) changes with rules, judge and takes.",
        "power": "Say how many scenarios and takes a comparison needs.",
    },
    "Files": {
        "data": "List, check, look into and export scenario sets.",
        "figure": "Draw a figure for a paper: svg, png or pdf.",
        "export": "Write a run as CSV, parquet, JSONL or an Inspect log.",
        "import": "Make a run of an Inspect log or of evaluated CSV files.",
    },
    "Local models": {
        "pull": "Fetch the file of an embedded model.",
        "mitigate": "Make a local model more honest, and say what that costs.",
    },
}
"""What only `unmask --help-all` lists."""

SECTIONS = FIRST | FURTHER
COMMANDS = {name: line for lines in SECTIONS.values() for name, line in lines.items()}
EVERY = "unmask.every_command"
"""In the context of a help that lists every command."""


class LazyGroup(click.Group):
    """Imports a command's module when that command is called, not before."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            return None
        name = f"{cmd_name}_" if keyword.iskeyword(cmd_name) else cmd_name
        command: click.Command = getattr(import_module(f"unmask.cli.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = SECTIONS if ctx.meta.get(EVERY) else FIRST
        write_sections(formatter, {heading: list(lines.items()) for heading, lines in sections.items()})


def _show_all(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        context.meta[EVERY] = True
        click.echo(context.get_help(), color=context.color)
        context.exit()


EPILOG = """Every flag can also be set by a variable: --max-cost is UNMASK_MAX_COST; a flag given wins. API keys are
read from the environment or .env only. Exit codes: 0 done, 1 a gate was not met, 2 usage, 3 incomplete, 4 something
is missing, 130 interrupted."""


@click.group(
    cls=LazyGroup,
    commands={name: click.Command(name) for name in COMMANDS},
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--help-all", is_flag=True, is_eager=True, expose_value=False, callback=_show_all, help="List all commands."
)
@click.version_option(__version__, prog_name="unmask", message="%(prog)s %(version)s")
def cli() -> None:
    """Does this model say what it believes? Measures honesty with the MASK protocol."""


def run_command_line(arguments: Sequence[str]) -> int:
    """Runs one command line and gives its exit code. Every failure has been reported when this returns."""
    try:
        with cli.make_context("unmask", list(arguments)) as context:
            cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except click.ClickException as error:
        # click calls it final; it is what `show` prints
        vars(error)["message"] = crash.clean_for_terminal(error.message)
        error.show()
        return 2
    except UnmaskError as error:
        return crash.report_expected(error)
    except (KeyboardInterrupt, click.Abort) as stop:
        # Nothing is imported for this line: the signal may have come in the middle of an import, which is broken then.
        start = "\n" if isinstance(stop, click.Abort) else ""  # after a question that nobody answered
        print(f"{start}unmask: interrupted {stop}".rstrip(), file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _discard_output()
    except OSError as error:
        return crash.report_refused(error)
    except ModuleNotFoundError as error:
        return crash.report_missing_module(error)
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 wraps one that comes while a class is made
            print("unmask: interrupted", file=sys.stderr)
            return 130
        return crash.report_unexpected(error)
    return 0


def _discard_output() -> int:
    """The reader of our output has gone, as `| head` does: nothing to report, and nothing left to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141  # what a shell reports for a program ended by SIGPIPE


def main() -> None:
    """The command line of this process. SIGTERM ends a command as Ctrl-C does; a run that sends has its own way to
    end."""
    if "_UNMASK_COMPLETE" in os.environ:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(cli, {}, "unmask", "_UNMASK_COMPLETE", os.environ["_UNMASK_COMPLETE"]))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack a character
    # Records are trees, not cycles: looking for garbage among a run's hundred thousand of them every 700 allocations
    # costs a tenth of all time and finds nothing.
    gc.set_threshold(50_000, 20, 20)
    warnings.showwarning = crash.show_warning
    code = run_command_line(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _discard_output()
    except OSError as error:
        _discard_output()
        code = crash.report_refused(error)
    sys.exit(code)


if __name__ == "__main__":
    main()
