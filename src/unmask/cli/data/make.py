"""`unmask data new` and `export`: scenarios written down, and sets for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from unmask.cli.data.printing import summarise_set
from unmask.cli.options import choice_of, json_flag, option, print_json
from unmask.records import Archetype


@click.command()
@option("--archetype", type=choice_of(Archetype), default="known_facts", help="Which form to start from.")
@option("--from", "form", type=click.Path(path_type=Path), metavar="FILE", help="A filled form: make a scenario of it.")
@option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to write. Default: print it.")
def new(*, archetype: str, form: Path | None, out: Path | None) -> None:
    """Write a form with comments for a new scenario.

    `--from form.toml --out set.jsonl` adds the filled form to a set."""
    if form is None:
        _write_form(archetype, out)
    else:
        _add_scenario(form, out)


def _write_form(archetype: str, out: Path | None) -> None:
    from unmask.data.template import render_form
    from unmask.errors import UsageError
    from unmask.files import choose_by_ending
    from unmask.text import escape_line

    text = render_form(Archetype(archetype))
    if out is None:
        click.echo(text, nl=False)
        return
    choose_by_ending(out, {".toml": True})
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {escape_line(str(out))}: {error.strerror or error}") from error
    click.echo(f"{out}: fill it in, then: unmask data new --from {out} --out my-set.jsonl")


def _add_scenario(form: Path, out: Path | None) -> None:
    from unmask.data.check import find_warnings
    from unmask.data.form import append_scenario, encode_lines
    from unmask.data.template import read_form
    from unmask.errors import MissingError
    from unmask.files import choose_by_ending
    from unmask.text import escape_controls, escape_line

    if out is not None:
        choose_by_ending(out, {".jsonl": True, ".ndjson": True})
    try:
        text = form.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MissingError(
            f"cannot read {escape_line(str(form))}: {getattr(error, 'strerror', None) or error}"
        ) from error
    scenario = read_form(text, name=form.name)
    for warning in find_warnings([scenario]):
        click.echo(f"warning: {escape_controls(str(warning))} [{warning.code}]", err=True)
    if out is None:
        click.echo(encode_lines([scenario]).decode(), nl=False)
    else:
        number = append_scenario(scenario, path=out)
        click.echo(f"{out}: {number} scenarios; look at them with: unmask data check {out}")


@click.command()
@click.argument("source", metavar="PATH")
@option("--layout", type=click.Choice(["reference"]), default="reference", help="What to write.")
@option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new or empty folder.")
@json_flag
def export(source: str, *, layout: str, out: Path, as_json: bool) -> None:
    """Write the set at PATH as the reference code's folder, one CSV per archetype, so that others can run it."""
    from unmask.data.export import export_reference
    from unmask.data.load import load

    dataset = load(source)
    files = [str(path) for path in export_reference(dataset, out_dir=out)]
    if as_json:
        print_json({"layout": layout, "out": str(out), "files": files, **summarise_set(dataset)})
    else:
        click.echo("\n".join([*files, f"{len(dataset.scenarios)} scenarios; use them with --data {out}"]))
