"""The documentation says what the program does: commands, flags, exit codes, presets, names, links."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib import import_module
from itertools import pairwise, takewhile
from pathlib import Path

import click
import pytest

from tests import docs_cli, docs_files
from unmask import errors
from unmask.cli import crash
from unmask.models.anthropic import PARAMS as ANTHROPIC_PARAMS
from unmask.models.inspect import PARAMS as INSPECT_PARAMS
from unmask.models.keys import KEY_VARIABLE, URL_VARIABLE
from unmask.models.local.llamacpp import PARAMS as EMBEDDED_PARAMS
from unmask.models.providers import IN_PROCESS, PROVIDERS
from unmask.models.scripted import Character
from unmask.models.settings import DEFINING, SETTABLE
from unmask.models.user_params import OWN_PARAMS
from unmask.protocol.presets import RULES, Ties, Tolerated
from unmask.records import (
    Accuracy,
    Archetype,
    Asked,
    Call,
    Judged,
    Preset,
    Scenario,
    UnreadReason,
    Verdict,
)
from unmask.scoring.measures import MEASURES

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "unmask"
PLACES = ("*.md", "docs/*.md", "bench/**/README.md", "studies/**/README.md")
PAGES = sorted(path for place in PLACES for path in ROOT.glob(place))
LINK = re.compile(r"\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def command_lines() -> list[tuple[str, str]]:
    """Every `unmask …` line inside a code block of the docs, with its page."""
    return [
        (name_of(path), line)
        for path in PAGES
        for _, block in BLOCK.findall(path.read_text(encoding="utf-8"))
        for line in block.replace("\\\n", " ").splitlines()
        if line.startswith("unmask ")
    ]


def anchors(text: str) -> set[str]:
    """Anchors of the headings, as the usual renderers make them."""
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def table(text: str, first: str) -> dict[str, list[str]]:
    """The table whose first column is headed `first`: its rows by their first cell."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith(f"| {first} |"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in takewhile(lambda x: x[:1] == "|", lines)]
    return {row[0]: row[1:] for row in rows[1:]}


@pytest.mark.parametrize("part", [docs_cli, docs_files])
def test_reference_is_the_commands_and_records_as_they_are(part):
    """docs/reference.md is what `make docs` writes now."""
    assert page("docs/reference.md") == part.text(), "run `make docs`"


def sections_of_reference() -> dict[str, str]:
    """The sections of the reference below its second level, by their headings."""
    text = page("docs/reference.md")
    return dict(re.findall(r"^### (.*?)\n(.*?)(?=^###? |\Z)", text, re.MULTILINE | re.DOTALL))


def test_reference_has_every_command_and_flag():
    """Each command has a heading, and names each of its flags. A flag without a line there has one where it says."""
    sections = sections_of_reference()
    shared = sections[docs_cli.SHARED_HEADING]
    for name, command in docs_cli.commands():
        for parameter in command.params:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                assert not flag.startswith("-") or f"`{flag}`" in sections[name]
        lines = "".join(re.findall(r"^- .*\n", sections[name], re.MULTILINE))
        also, as_run = (
            re.findall(rf"^{words}: (.*)\.$", sections[name], re.MULTILINE) for words in ("Also", "As in .*")
        )
        for named, place in ((also, shared), (as_run, sections["unmask run"])):
            for flag in re.findall(r"`(--[\w-]+)`", "".join(named)):
                assert f"- `{flag}`" in place
                assert f"- `{flag}`" not in lines


@pytest.mark.parametrize(("where", "line"), command_lines())
def test_command_lines_in_the_docs_can_be_typed(where, line):
    """Every command line shown has a command and flags that exist, and all that are required."""
    words = shlex.split(line, comments=True)
    known = dict(docs_cli.commands())
    name = next(name for size in (3, 2) if (name := " ".join(words[:size])) in known)
    command = known[name]
    with command.make_context(name, words[len(name.split()) :]) as context:
        assert isinstance(context, click.Context), where


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_links_lead_somewhere(path):
    """Relative links name files, and headings, that exist."""
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"\w+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file) if file else path
        assert there.exists(), target
        assert not anchor or anchor in anchors(there.read_text(encoding="utf-8")), target


def test_no_example_judges_a_model_with_itself():
    """As the README says: a judge is a strong model that is not the one you examine."""
    found = []
    for name, line in command_lines():
        words = shlex.split(line, comments=True)
        named = dict(pairwise(words))
        if words[1] in ("run", "doctor") and "--judge" in named:
            subject = named.get("--model") or words[2]
            found.append((name, subject, named["--judge"]))
    assert len(found) > 5
    assert [example for example in found if example[1] == example[2]] == []


def test_readme_python_runs(tmp_path):
    """The Python of the README runs as it stands, and the liar lies."""
    (program,) = (block for language, block in BLOCK.findall(page("README.md")) if language == "python")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("100.0 %")
    assert done.stdout.endswith("lie\n")


def test_exception_tree_is_that_of_the_code():
    """docs/reference.md shows the tree drawn in errors.py, and the tree is that of the classes."""
    assert errors.__doc__ is not None
    drawn = [line for line in errors.__doc__.splitlines() if line.startswith("    ")]
    assert "\n".join(drawn) in page("docs/reference.md")
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.UnmaskError):
            line = next(line for line in drawn if re.search(rf"\b{name}\b", line))
            depth = len(kind.__mro__) - len(errors.UnmaskError.__mro__)
            assert re.search(r"\w", line).start() == 4 + 4 * depth, name


def test_exit_codes_are_documented():
    """The table of exit codes has those of all exceptions, of success, a bug and a closed pipe, and no others."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.UnmaskError)]
    codes = {kind.exit_code for kind in kinds} | {0, crash.INTERNAL, 141}
    assert {int(code) for code in table(page("docs/reference.md"), "code")} == codes


def test_presets_table_is_that_of_the_code():
    """The rules of each preset in docs/protocol.md are those that decide."""
    rows = table(page("docs/protocol.md"), "rule")
    words = {
        "C readings a belief survives among the direct takes": lambda rules: {
            Tolerated.ONE: "one",
            Tolerated.UNDER_HALF: "fewer than half",
            Tolerated.NONE: "none",
        }[rules.tolerated],
        "D among the direct takes": lambda rules: "counts as C" if rules.direct_d_counts_as_c else "no belief",
        "an indirect reading that differs": lambda rules: (
            "no belief" + (f", unless {' or '.join(sorted(rules.indirect_passes))}" if rules.indirect_passes else "")
        ),
        "statement D": lambda rules: rules.stated_d.value,
        "statement C or D where there is no belief": lambda rules: rules.unbelieved_c_or_d.value,
        "several takes, none a lie": lambda rules: {
            Ties.MAJORITY: "majority, tie is evasion",
            Ties.FIRST_SEEN: "most common, first seen wins",
        }[rules.ties],
        "numeric belief": lambda rules: (
            "all direct takes in one reading" if rules.joint else "one reading each, all give a number and overlap"
        ),
        "inverted bounds, and numbers of a kind that not all direct takes give": lambda rules: (
            "as they are" if rules.literal_figures else "swapped, left out"
        ),
        "numeric comparison": lambda rules: "any pair of absolute and relative" if rules.any_pair else "like with like",
    }
    for rule, say in words.items():
        assert rows[rule] == [say(RULES[preset]) for preset in Preset], rule
    assert {rules.tolerance for rules in RULES.values()} == {0.05}


@pytest.mark.parametrize("word", [*MEASURES, "lying_at", *Verdict, *Accuracy, *Archetype, *Preset])
def test_protocol_page_has_every_word(word):
    """Measures, verdicts, accuracies, archetypes and presets are named as in the code."""
    assert f"`{word}`" in page("docs/protocol.md")


def test_unread_reasons_are_documented():
    """The first words of unread reasons in the code, those of the enum and those of docs/reference.md are the same."""
    paths = [path for room in ("judges", "protocol", "scoring") for path in (SOURCE / room).rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    words = set(re.findall(r"""(?:Unread\(\s*f?|return )"(\w+): """, code))
    assert {word.strip("`") for word in table(page("docs/reference.md"), "word")} == words == set(UnreadReason)


def test_models_page_has_every_provider_and_variable():
    """Providers, scripted models, key and URL variables are those of the code."""
    text = page("docs/models.md")
    for name in (*PROVIDERS, *IN_PROCESS):
        assert f"`{name}/" in text, name
    for character in Character:
        assert f"`scripted/{character}`" in text
    rows = PROVIDERS.values()
    variables = [*KEY_VARIABLE.values(), *URL_VARIABLE.values()]
    variables += [name for row in rows for name in (*row.keys, *row.url_variables)]
    for variable in variables:
        assert f"`{variable}`" in text, variable


def test_prices_in_the_docs_are_what_plan_says():
    from unmask.engine.plan import plan

    planned = plan(data="core", model="openai/gpt-4o-mini", judge="openai/gpt-4o")
    likely, least, most = (bound.cost_usd for bound in (planned.likely, planned.least, planned.most))
    assert f"likely ${likely:.2f}, from ${least:.2f} to ${most:.2f}" in page("README.md")
    assert f"likely {likely:.2f} dollars, from {least:.2f} to {most:.2f}" in page("docs/index.md")
    said = " ".join(str(planned).split())
    batches = re.findall(r"^    (Batches: .*)$", page("docs/models.md"), re.MULTILINE)
    assert len(batches) == 2
    assert all(line in said for line in batches)


@pytest.mark.parametrize(("title", "record"), docs_files.FILES.items())
def test_every_field_of_a_run_folder_has_a_line(title, record):
    """Of its own record, or of the record that it shares the field with."""
    named = set(re.findall(r"`(\w+)`", sections_of_reference()[title]))
    shared = Call.__struct_fields__ if record in (Asked, Judged) else ()
    assert {*record.__struct_fields__} - {*shared, "v"} <= named


def test_every_field_of_a_scenario_is_explained_to_its_author():
    """But for `delivery`, a column of the public data that is kept and not used."""
    explained = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", page("docs/data.md"), re.MULTILINE)))
    assert {*Scenario.__struct_fields__} - {*explained} == {"delivery"}


def test_a_line_says_what_the_string_below_the_field_says():
    """Its first sentence."""
    assert "- `error`: Why no answer came back, e.g. `timeout: no answer within 1800 s`\n" in page("docs/reference.md")


@pytest.mark.parametrize("names", [OWN_PARAMS, ANTHROPIC_PARAMS, INSPECT_PARAMS, EMBEDDED_PARAMS])
def test_names_of_parameters_are_listed(names):
    listed = page("docs/models.md").partition("## Parameters of the provider")[2].partition("## Limits")[0]
    assert not [name for name in names if f"`{name}`" not in listed]


LIMITS = {
    "a GGUF header 64 MiB": "unmask.models.local.gguf:MAX_HEADER",
    "an HTTP answer 1 MiB": "unmask.models.http:FIXED_BYTES",
}


@pytest.mark.parametrize("words", LIMITS)
def test_limits_on_the_evidence_page_are_those_of_the_program(words):
    """Numbers in prose go stale."""
    module, _, name = LIMITS[words].partition(":")
    *_, size, unit = words.split()
    assert words in " ".join(page("docs/evidence.md").split())
    assert getattr(import_module(module), name) == int(size) * {"MiB": 2**20, "GiB": 2**30}[unit]


def test_the_table_of_settings_is_that_of_the_program():
    """docs/models.md has every name that --set takes, and says which of them define a run."""
    table = page("docs/models.md").split("## Settings of a model")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .*? \| (yes|no) \|$", table, flags=re.MULTILINE))
    said = {name: defines == "yes" for names, defines in rows.items() for name in re.findall(r"\w+", names)}
    assert said.keys() == SETTABLE.keys()
    assert {name for name, defines in said.items() if defines} == {*DEFINING, "name"} - {"seed"}
