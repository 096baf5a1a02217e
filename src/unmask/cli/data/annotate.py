"""`unmask data annotate`: which side *yes* means, asked of a judge once."""

from __future__ import annotations

from pathlib import Path

import click

from unmask.cli.options import json_flag, option, show_result


@click.command()
@click.argument("source", metavar="DATA")
@option("--judge", required=True, metavar="PROVIDER/NAME", help="Who is asked: a model that writes.")
@option("--judge-base-url", metavar="URL", help="Where the judge is, if not at its provider.")
@option("--max-connections", type=click.IntRange(min=1), default=50, help="Requests at a time.")
@option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write the set, as JSONL.")
@json_flag
def annotate(
    source: str, *, judge: str, judge_base_url: str | None, max_connections: int, out: Path | None, as_json: bool
) -> None:
    """Ask a judge which statement a plain yes affirms, once for each question of DATA that does not say so.

    Later runs of DATA read tagged answers by it, whichever judge they have. Each question is asked in both orders and
    counts where the answers agree. They are kept in your cache folder.
    """
    from unmask.data.form import write_jsonl
    from unmask.data.load import load
    from unmask.engine.annotate import add_sides, annotate, open_annotator

    dataset = load(source)
    result = annotate(dataset, open_annotator(judge, judge_base_url), max_connections=max_connections)
    if out is not None:
        write_jsonl(add_sides(dataset, of=dataset).scenarios, path=out)
    show_result(result, as_json=as_json)
    if out is not None and not as_json:
        click.echo(f"The set with yes_means: {out}")
    if result.failed:
        raise click.exceptions.Exit(3)
