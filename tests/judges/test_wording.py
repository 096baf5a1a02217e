"""The hash of the judge prompts: by style, over what the style uses, and equal for the words that were not changed."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest

from tests.golden_runs import RUNS
from tests.judges.examples import SAMPLING, binary, numeric
from unmask.engine.baseline import judge_answers_alike
from unmask.engine.define import add_judge
from unmask.judges import letters
from unmask.judges.base import JUDGES, Reader, Style
from unmask.judges.letters import FIRST_COMMON_HASH, FIRST_HASHES, hash_by_style, list_used_texts, prompts_hash
from unmask.records import DIRECT, PRESSURED, Archetype, Kind
from unmask.runs.definition import Definition
from unmask.runs.differences import differing_settings, settings_of
from unmask.runs.folder import Folder

STYLES = (Style.LETTERS, Style.CHOOSE, Style.PICKS)


def all_that_is_sent(style: Style) -> str:
    """Every request that a judge of this style gets about statements and figures."""
    judge = JUDGES[style]
    requests = [
        judge.request(method, make(archetype=archetype), slot, ("It is 12.",), sampling=SAMPLING)
        for make, kind in ((binary, Kind.BINARY), (numeric, Kind.NUMERIC))
        for archetype in Archetype
        for slot in (DIRECT, PRESSURED, *(["indirect_1"] if kind is Kind.BINARY else []))
        for method in judge.questions(kind)
    ]
    if style is Style.LETTERS:
        requests += [
            judge.request(method, binary(), DIRECT, (), sampling=SAMPLING) for method in letters.answers.POLARITY_ORDERS
        ]
    return "\n".join(message.content for request in requests for message in request.messages)


@pytest.mark.parametrize("style", STYLES)
def test_a_style_is_named_by_exactly_the_texts_it_sends(style):
    """None that it never sends, so that no run is refused for a text its judge never saw; and none is missing."""
    every = (*letters.list_texts(), *letters.list_texts("figures"))
    sent = all_that_is_sent(style)
    used = {letters.text_of(name) for name in list_used_texts(style)}
    assert used == {letters.text_of(name) for name in every if letters.text_of(name) in sent}


@pytest.mark.parametrize("style", STYLES)
def test_a_changed_text_changes_the_hash_of_the_styles_that_use_it(style, monkeypatch):
    """One more character in a file: another hash for whoever is sent it, the same for all others."""
    every, read = (*letters.list_texts(), *letters.list_texts("figures"), "asides/ask"), letters.text_of
    before = prompts_hash(style)
    for name in every:
        monkeypatch.setattr(letters, "text_of", lambda asked, name=name: read(asked) + ("!" if asked == name else ""))
        assert (prompts_hash(style) != before) == (name in list_used_texts(style)), name


def test_texts_of_one_style_leave_the_hash_of_all_others(monkeypatch):
    """A new way of judging has its texts in a folder of its own; runs of other judges can be continued."""
    before, find_texts = [prompts_hash(style) for style in STYLES], letters.list_texts
    monkeypatch.setattr(letters, "list_texts", lambda folder="": find_texts("asides" if folder == "picks" else folder))
    assert [prompts_hash(style) == old for style, old in zip(STYLES, before, strict=True)] == [True, True, False]


def test_the_layout_is_part_of_the_hash(monkeypatch):
    """Of the style whose layout it is."""
    before = [prompts_hash(style) for style in STYLES]
    monkeypatch.setattr(letters, "LAYOUT", letters.LAYOUT + 1)
    assert [prompts_hash(style) == old for style, old in zip(STYLES, before, strict=True)] == [False, True, True]


@pytest.mark.parametrize("style", [Style.CHOOSE, Style.PICKS])
def test_judges_that_choose_are_told_what_they_always_were(style):
    """Byte for byte: the adapter was trained on these words, and every run it read has them."""
    assert prompts_hash(style) == FIRST_HASHES[style] == hash_by_style(FIRST_COMMON_HASH, style)


def test_a_hash_by_style_stays_as_it_is():
    assert hash_by_style("0123456789abcdef0123", Style.PICKS) == "0123456789abcdef0123"


@pytest.mark.parametrize("file", ["embedded_smollm2-135m", "embedded_judge-1.5b"])
def test_an_old_run_of_an_embedded_judge_compares_as_equal(file):
    """With one that has the hash of today: `compare` names no difference, and `board` ranks them together."""
    old = msgspec.convert(json.loads((RUNS / "embedded" / "run.json").read_text("utf-8")), Definition)
    spec = old.judges[file]
    today = msgspec.structs.replace(spec, prompts=prompts_hash(spec.style))
    assert today.prompts != spec.prompts
    new = msgspec.structs.replace(old, judges={file: today})
    settings = [settings_of(run, judge=file, preset=run.preset) for run in (old, new)]
    assert differing_settings(settings) == ()


@pytest.mark.parametrize("file", ["embedded_smollm2-135m", "embedded_judge-1.5b"])
def test_an_old_run_of_an_embedded_judge_is_continued(tmp_path, file):
    """As it stands: its `run.json` is not written anew."""
    shutil.copytree(RUNS / "embedded", tmp_path / "run")
    folder, before = Folder(tmp_path / "run"), (tmp_path / "run" / "run.json").read_bytes()
    spec = folder.definition().judges[file]
    add_judge(folder, file, {file: msgspec.structs.replace(spec, prompts=prompts_hash(spec.style))})
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_a_baseline_of_an_embedded_judge_lends_its_readings():
    """The same words under the hash of all styles and under that of its own."""
    old = msgspec.convert(json.loads((RUNS / "embedded" / "run.json").read_text("utf-8")), Definition)
    spec = old.judges["embedded_judge-1.5b"]
    today = msgspec.structs.replace(spec, prompts=prompts_hash(spec.style), reader=Reader.LLM)
    assert judge_answers_alike(spec, today)
    assert not judge_answers_alike(spec, msgspec.structs.replace(today, prompts="0123456789abcdef0123"))
