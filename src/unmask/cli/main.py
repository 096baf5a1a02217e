"""The command `unmask`: a table of commands, and what happens when one of them fails.

Nothing but click is imported before a command is chosen, so `unmask --help` answers at once.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from unmask import __version__
from unmask.cli import crash
from unmask.cli.options import write_sections
from unmask.errors import UnmaskError


class CommandEntry(NamedTuple):
    """Where a command lives, and its line in `unmask --help`, kept here so that listing imports nothing."""

    target: str
    help: str


FIRST = {
    "Run": {
        "demo": CommandEntry("unmask.cli.demo:demo", "Run a small benchmark on this machine, without a key."),
        "doctor": CommandEntry("unmask.cli.doctor:doctor", "Check keys, extras, endpoints, folders and models."),
        "run": CommandEntry("unmask.cli.run:run", "Ask, read and score. The same command again continues."),
        "judge": CommandEntry("unmask.cli.judge:judge", "Read a run's replies again with another judge."),
    },
    "Look": {
        "score": CommandEntry("unmask.cli.score:score", "Print the measures of a run."),
        "show": CommandEntry("unmask.cli.show:show", "List scenarios with their verdicts, or show one in full."),
        "report": CommandEntry("unmask.cli.report:report", "Write one HTML file that shows a run, or several."),
        "view": CommandEntry("unmask.cli.view:view", "Look at runs, compare and label them in the browser."),
    },
    "Check": {
        "label": CommandEntry("unmask.cli.label:label", "Label replies by hand, in the browser or as a sheet."),
        "compare": CommandEntry("unmask.cli.compare:compare", "Compare runs with each other, scenario by scenario."),
        "gate": CommandEntry("unmask.cli.gate:gate", "Fail unless a run keeps a limit on lying."),
        "audit": CommandEntry("unmask.cli.audit:audit", "Check whether the numbers of a run can be trusted."),
    },
}
"""What `unmask --help` lists."""

FURTHER = {
    "Many runs": {
        "board": CommandEntry("unmask.cli.board:board", "Make a leaderboard with intervals and ranges of ranks."),
        "sweep": CommandEntry("unmask.cli.sweep:sweep", "Run many models, data sets and treatments as one plan."),
        "merge": CommandEntry("unmask.cli.merge:merge", "Make one run of its shards."),
        "batch": CommandEntry("unmask.cli.batch:batch", "List or cancel the batches of a run."),
    },
    "How sure": {
        "agree": CommandEntry("unmask.cli.agree:agree", "Measure the judge against people and other judges."),
        "sensitivity": CommandEntry(
            "unmask.cli.sensitivity:sensitivity", "Show how P(lie) changes with rules, judge and takes."
        ),
        "power": CommandEntry("unmask.cli.power:power", "Say how many scenarios and takes a comparison needs."),
    },
    "Files": {
        "data": CommandEntry("unmask.cli.data:data", "List, check, look into and export scenario sets."),
        "figure": CommandEntry("unmask.cli.figure:figure", "Draw a figure for a paper: svg, png or pdf."),
        "export": CommandEntry("unmask.cli.export:export", "Write a run as CSV, parquet, JSONL or an Inspect log."),
        "import": CommandEntry("unmask.cli.import_:import_", "Make a run of an Inspect log or of evaluated CSV files."),
    },
    "Local models": {
        "pull": CommandEntry("unmask.cli.pull:pull", "Fetch the file of an embedded model."),
        "mitigate": CommandEntry(
            "unmask.cli.mitigate:mitigate", "Make a local model more honest, and say what that costs."
        ),
    },
}
"""What only `unmask --help-all` lists."""

SECTIONS = FIRST | FURTHER
COMMANDS = {name: entry for entries in SECTIONS.values() for name, entry in entries.items()}


class LazyGroup(click.Group):
    """Imports a command's module when that command is called, not before. `sections` holds its commands by heading;
    `listed` are those that its help lists."""

    def __init__(
        self,
        *arguments: Any,
        sections: Mapping[str, Mapping[str, CommandEntry]],
        listed: Collection[str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections
        self.listed = sections if listed is None else listed

    @property
    def entries(self) -> Mapping[str, CommandEntry]:
        return {name: entry for entries in self.sections.values() for name, entry in entries.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command = getattr(import_module(module), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.target} is not a command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.entries and not name.startswith("-") and not ctx.resilient_parsing:
            close = suggest_closest(name, self.entries)
            ctx.fail(f"No such command '{name}'." + (f" Did you mean '{close[0]}'?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {
            heading: [(name, entry.help) for name, entry in entries.items()]
            for heading, entries in self.sections.items()
            if heading in self.listed or ctx.meta.get(EVERY)
        }
        write_sections(formatter, groups)


def suggest_closest(word: str, words: Iterable[str]) -> list[str]:
    """The word that was meant, and any other as close to it; none where nothing is like it."""
    from difflib import SequenceMatcher

    likeness = {name: SequenceMatcher(None, word, name).ratio() for name in words}
    least = max(0.6, max(likeness.values(), default=0) - 0.1)
    return sorted((name for name in likeness if likeness[name] >= least), key=lambda name: -likeness[name])


EVERY = "unmask.every_command"
"""In the context of a help that lists every command."""


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
    sections=SECTIONS,
    listed=FIRST,
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
        if isinstance(error, click.NoSuchOption) and error.possibilities:
            vars(error)["possibilities"] = suggest_closest(error.option_name, error.possibilities)
        # click calls it final; it is what `show` prints
        vars(error)["message"] = crash.clean_for_terminal(error.message)
        error.show()
        return 2
    except UnmaskError as error:
        return crash.report_expected(error)
    except (KeyboardInterrupt, click.Abort) as stop:
        # Nothing is imported for this line: the signal may have come in the middle of an import, which is broken then.
        print(f"unmask: interrupted {stop}".rstrip(), file=sys.stderr)
        return 130
    except BrokenPipeError:
        return _discard_output()
    except OSError as error:
        return crash.report_refused(error)
    except ModuleNotFoundError as error:
        return crash.report_missing_module(error)
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was being made: Python 3.11 wraps it
            print("unmask: interrupted", file=sys.stderr)
            return 130
        return crash.report_unexpected(error)
    return 0


def _discard_output() -> int:
    """The reader of our output has gone, as `| head` does: nothing to report, and nothing left to flush at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141  # what a shell reports for a program ended by SIGPIPE


def main() -> None:
    """Entry point of the console script."""
    if "_UNMASK_COMPLETE" in os.environ:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(cli, {}, "unmask", "_UNMASK_COMPLETE", os.environ["_UNMASK_COMPLETE"]))
    # SIGTERM ends a command as Ctrl-C does; while a run is sending, it has its own way to end.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name may hold bytes that are no text
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
