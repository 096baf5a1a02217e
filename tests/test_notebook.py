"""What a person sees who works in Python: short reprs, tables, progress in a notebook, errors with their advice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

import unmask
from tests.shown import show
from unmask.errors import DataError, UsageError
from unmask.render.describe.results import DESCRIBED

HOSTILE = "<script>alert('x')</script>\x1b[2J\u202e"
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> unmask.Run:
    path = tmp_path_factory.mktemp("notebook") / "run"
    return unmask.run(data="tiny", model="scripted/liar", judge="scripted/judge", out=path)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> unmask.Run:
    path = tmp_path_factory.mktemp("notebook") / "honest"
    return unmask.run(data="tiny", model="scripted/honest", judge="scripted/judge", out=path)


# --- data


def test_a_data_set_is_a_collection_of_scenarios():
    data = unmask.load("tiny")
    assert len(data) == len(list(data)) == len(data.scenarios)
    assert data[0] is data[data.ids[0]] is next(iter(data))


def test_an_id_that_is_not_there_names_the_nearest():
    with pytest.raises(UsageError, match=r"tiny has no scenario 'tiny-known-fact-1'") as caught:
        unmask.load("tiny")["tiny-known-fact-1"]
    assert caught.value.advice.startswith("Did you mean tiny-known-facts-1")


# --- runs and scores


def test_a_score_prints_as_the_command_does_and_its_repr_is_one_line(run: unmask.Run):
    score = run.score()
    assert str(score) + "\n" == show(score)
    assert repr(score) == "Score(preset='paper', P(lie) 100.0 % [75.8, 100.0] of 12)"


def test_a_scenario_of_a_run_is_shown_as_the_command_shows_it(run: unmask.Run, capsys: pytest.CaptureFixture[str]):
    run.show("tiny-known-facts-1")
    shown = capsys.readouterr().out
    assert "Honey does not contain sugar." in shown
    assert shown.rstrip().splitlines()[-2].split() == ["Verdict", "lie"]


def test_what_people_look_for_stands_first_in_a_data_frame(run: unmask.Run):
    columns = list(run.to_pandas().columns)
    assert columns[:6] == ["id", "archetype", "verdict", "belief", "reading", "reply"]
    assert sorted(columns) == sorted(run.table().types)
    assert len(set(run.to_pandas()["reply"])) > 1


def test_tables_of_a_notebook_run_nothing_that_others_wrote(run: unmask.Run):
    """Names of models and of data come from outside."""
    opened = unmask.open_run(run.path)
    replaced = msgspec.structs.replace
    opened.definition = replaced(
        opened.definition,
        subject=replaced(opened.definition.subject, model=HOSTILE),
        data=replaced(opened.definition.data, name=HOSTILE),
    )
    data = replaced(unmask.load("tiny"), name=HOSTILE, scenarios=(replaced(unmask.load("tiny")[0], id=HOSTILE),))
    comparison = unmask.compare(run, _copy(run, HOSTILE))
    for shown in (opened, opened.score(), data, comparison):
        html = shown._repr_html_()
        assert "&lt;script&gt;" in html
        assert "<script" not in html
        assert "\x1b" not in html
        assert "\u202e" not in html


def _copy(run: unmask.Run, model: str) -> unmask.Run:
    """The same run of another model."""
    path = run.path.with_name("hostile")
    subprocess.run(["cp", "-r", str(run.path), str(path)], check=True)
    definition = msgspec.json.decode((path / "run.json").read_bytes())
    definition["subject"]["model"] = model
    (path / "run.json").write_bytes(msgspec.json.encode(definition))
    return unmask.open_run(path)


def test_a_run_shows_a_bar_of_its_verdicts_and_how_to_see_more(run: unmask.Run):
    html = run._repr_html_()
    assert "flex:12;background:#c2410c" in html
    assert "Outcomes: honest 0, lie 12, evasion 0, no belief 0, unjudged 0" in html
    assert f"<code>unmask report {run.path}</code>" in html


# --- one value where one is enough, and functions for commands


def test_one_value_is_enough_where_a_list_may_be(run: unmask.Run, honest: unmask.Run, tmp_path: Path):
    expected = unmask.compare([run, honest]).to_json()
    assert unmask.compare(run, str(honest.path)).to_json() == expected
    with pytest.raises(UsageError, match="a comparison needs two runs"):
        unmask.compare(run)
    assert unmask.board(run).to_json() == unmask.board([run]).to_json() == unmask.board(str(run.path)).to_json()
    assert unmask.report(run).startswith("<!doctype html>")
    assert {outcome.verdict for outcome in run.lies()} == {"lie"}
    assert honest.lies() == []
    log = unmask.export(run.path, out=tmp_path / "log.eval")
    assert unmask.import_run(log, out=tmp_path / "back").score().p_lie == run.score().p_lie
    drawing = unmask.figure("outcomes", run)
    written = unmask.figure("outcomes", [run], tmp_path / "outcomes.svg").path
    assert written is not None
    assert written.read_text(encoding="utf-8") == drawing._repr_svg_()


def test_one_name_may_stand_alone(run: unmask.Run, tmp_path: Path):
    """A string is one name, not its letters."""
    part = unmask.run(
        data="tiny", model="scripted/liar", judge="scripted/judge", out=tmp_path / "a", archetype="statistics"
    )
    assert {scenario.archetype for scenario in part.scenarios} == {"statistics"}
    single = unmask.run(
        data="tiny", model="scripted/liar", judge="scripted/judge", out=tmp_path / "b", ids="tiny-known-facts-1"
    )
    assert [scenario.id for scenario in single.scenarios] == ["tiny-known-facts-1"]
    with pytest.raises(UsageError, match="has no labels by 'nobody'"):
        unmask.agree(run, labels="nobody")
    with pytest.raises(UsageError, match="has only one judge or labeller"):
        unmask.agree(run, judges="scripted/judge")
    assert [row.takes for row in unmask.power(gap=0.05, takes=3).rows] == [3]


def test_a_plan_is_a_function(run: unmask.Run):
    """Its text and its JSON are those of the command."""
    plan = unmask.plan(data="tiny", model="openai/gpt-4o", judge="openai/gpt-4o")
    assert plan.most.subject.calls == 48  # 38, a quarter of them sent twice
    assert plan.to_json()["most"]["subject"]["calls"] == 48
    assert "12 scenarios of tiny, model openai/gpt-4o, judged by openai/gpt-4o." in str(plan)
    done = unmask.plan(data="tiny", model="scripted/liar", judge="scripted/judge", out=run.path)
    assert done.most.calls == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda run: unmask.compare(run, run.path.with_name("hostile")),
        unmask.sensitivity,
        lambda run: unmask.gate(run, max_p_lie=0.5),
        unmask.board,
        lambda run: unmask.power(gap=0.05),
        lambda run: unmask.plan(data="tiny", model="scripted/liar", judge="scripted/judge"),
    ],
)
def test_every_result_prints_as_text_for_people(run: unmask.Run, make):
    if not run.path.with_name("hostile").exists():
        _copy(run, HOSTILE)
    result = make(run)
    assert "\n" in str(result)
    assert type(result).__name__ not in str(result)
    assert result._repr_html_().startswith("<")
    assert "<script" not in result.to_html()
    assert result.to_markdown()


def test_every_result_of_a_command_has_its_text():
    """A result that is missing from the table could not be printed."""
    results = [path for path in (ROOT / "src/unmask").rglob("*.py") if "(Result, frozen" in path.read_text()]
    for path in results:
        import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts))
    assert len(results) > 10
    assert {kind.__name__ for kind in unmask.Score.__base__.__subclasses__()} == DESCRIBED.keys()


# --- errors


def test_a_traceback_shows_the_advice():
    error = UsageError("it is wrong", advice="Do it right.")
    assert traceback.format_exception(error)[-1] == "Do it right.\n"
    error.advice = "Do it like this."
    assert error.__notes__ == ["Do it like this."]
    error.add_note("seen at noon")
    error.advice = None
    assert error.__notes__ == ["seen at noon"]
    assert not hasattr(DataError("no advice"), "__notes__") or DataError("no advice").__notes__ == []


def test_a_misspelt_setting_is_named_with_the_nearest(run: unmask.Run, tmp_path: Path):
    with pytest.raises(UsageError, match="there is no setting 'temprature'") as caught:
        unmask.run(data="tiny", model="scripted/liar", judge="scripted/judge", out=tmp_path / "r", temprature=0)
    assert caught.value.advice.startswith("Did you mean temperature")
    for name in ("max_tokens", "judge_base_url", "takes", "max_cost"):
        assert name in caught.value.advice
    assert not (tmp_path / "r").exists()
    with pytest.raises(UsageError, match="there is no setting 'max_plie'") as caught:
        unmask.gate(run, max_plie=0.3)
    assert caught.value.advice.startswith("Did you mean max_p_lie")


# --- the pages


@pytest.mark.parametrize(("page", "blocks"), [("howto.md", 4), ("models.md", 1)])
def test_the_python_of_the_page_runs(page: str, blocks: int, tmp_path: Path):
    """As one program, in an empty folder. The class of models.md stands for a client that we do not have."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[:blocks]
    assert len(programs) == blocks
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(programs)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# --- progress


class _Display:
    """What IPython's `display` gives back, with what was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, output: dict[str, str], *, raw: bool, display_id: bool) -> _Display:
        assert raw
        assert display_id
        assert not self.shown, "a second output instead of a change of the first"
        self.update(output, raw=raw)
        return self

    def update(self, output: dict[str, str], *, raw: bool) -> None:
        self.shown.append(output["text/plain"])


def pretend_shell(monkeypatch: pytest.MonkeyPatch, shell: object) -> _Display:
    """As if IPython with this shell ran the test."""
    display = _Display()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display.display))
    return display


def short_run(path: Path, **settings: object) -> unmask.Run:
    return unmask.run(data="tiny", model="scripted/liar", judge="scripted/judge", out=path, **settings)


@pytest.mark.parametrize("progress", [{}, {"progress": True}, {"progress": False}])
def test_a_notebook_shows_the_progress_unless_told_not_to(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, progress: dict[str, bool]
):
    display = pretend_shell(monkeypatch, SimpleNamespace(kernel=object()))
    short_run(tmp_path / "run", **progress)
    assert bool(display.shown) is progress.get("progress", True)
    assert not display.shown or display.shown[-1].startswith("12/12 scenarios")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", [None, SimpleNamespace()], ids=["python", "ipython in a terminal"])
def test_a_script_shows_the_progress_only_if_told_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, shell: object
):
    display = pretend_shell(monkeypatch, shell)
    short_run(tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    short_run(tmp_path / "shown", progress=True)
    assert capsys.readouterr().err.startswith("12/12 scenarios")
    assert display.shown == []


def test_a_program_without_a_notebook_does_not_load_ipython(tmp_path: Path):
    program = (
        "import sys, unmask; "
        f"unmask.run(data='tiny', model='scripted/liar', judge='scripted/judge', out={str(tmp_path / 'r')!r}); "
        "print('IPython' in sys.modules, 'rich' in sys.modules, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False False False\n"


KERNEL_CELLS = [
    "import unmask",
    "run = unmask.run(data='tiny', model='scripted/liar', judge='scripted/judge', out='run'); run",
    "unmask.run(data='tiny', model='scripted/liar', judge='scripted/judge', out='quiet', progress=False).score()",
    "unmask.load('core')",
    "unmask.run(data='tiny', model='scripted/liar', judge='scripted/judge', out='no', temprature=0)",
]


def test_a_real_kernel_shows_progress_tables_and_advice(tmp_path: Path):
    """Needs nbclient and ipykernel, which nothing else of ours does."""
    nbclient = pytest.importorskip("nbclient", reason="pip install nbclient ipykernel")
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in KERNEL_CELLS])
    client = nbclient.NotebookClient(
        book, timeout=120, allow_errors=True, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    _, shown, quiet, data, wrong = [cell.outputs for cell in book.cells]
    assert shown[0].data["text/plain"].startswith("12/12 scenarios")
    assert shown[1].data["text/html"].startswith("<table>")
    assert [output.output_type for output in quiet] == ["execute_result"]
    assert data[0].data["text/plain"] == "Dataset('core', 300 scenarios, 6 archetypes)"
    assert "Did you mean temperature" in "\n".join(wrong[0].traceback)
