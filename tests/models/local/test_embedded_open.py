"""Opening embedded models: what is checked before any weight is loaded. Needs no model file."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import pytest

from tests.models.local.test_gguf import ENTRIES, made, saved
from unmask.errors import MissingError, UsageError
from unmask.models.local.catalogue import SMOLLM2
from unmask.models.local.embedded import default_setup, open_embedded
from unmask.models.local.llamacpp import Setup, option_probabilities


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("embedded/smollm2-135m", "smollm2-135m is not on this machine"),
        ("embedded/gpt-9", "no embedded model is called 'embedded/gpt-9'"),
        ("gguf:{tmp}/none.gguf", "No such file"),
        ("gguf:{tmp}", "cannot read"),
        ("gguf:{tmp}/text.gguf", "not a usable GGUF file"),
        ("gguf:{tmp}/model.gguf", "has no chat template"),
    ],
)
def test_a_name_that_no_model_can_be_opened_by_is_refused_before_anything_is_loaded(tmp_path, monkeypatch, name, said):
    """Half a file in the cache does not count."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / SMOLLM2.file).write_bytes(b"GGUF")
    (tmp_path / "text.gguf").write_text("once upon a time")
    saved(tmp_path, made(ENTRIES[:4]))
    with pytest.raises(MissingError, match=said) as caught:
        open_embedded(name.format(tmp=tmp_path))
    assert caught.value.exit_code == 4


def test_the_setup_follows_the_variables(monkeypatch):
    for variable, value in (("THREADS", "7"), ("SLOTS", "2"), ("CONTEXT", "1024")):
        monkeypatch.setenv(f"UNMASK_EMBEDDED_{variable}", value)
    assert default_setup() == Setup(threads=7, slots=2, context=1024)
    monkeypatch.setenv("UNMASK_EMBEDDED_SLOTS", "0")
    with pytest.raises(UsageError, match="UNMASK_EMBEDDED_SLOTS"):
        default_setup()


def test_without_the_extra_the_install_line_is_given(tmp_path):
    """In a process where xllamacpp cannot be found."""
    path = saved(tmp_path, made())
    code = f"""
import sys
sys.modules["xllamacpp"] = None
from unmask.errors import MissingError
from unmask.models.local.embedded import open_embedded
try:
    open_embedded("gguf:{path}")
except MissingError as error:
    print(error.exit_code, error.advice)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "4 pip install 'unmask[embedded]'"


def test_importing_the_engine_leaves_the_environment_as_it_was():
    """The variables that keep OpenMP from spinning are for the engine alone, not for child processes."""
    code = """
import os
before = dict(os.environ)
from unmask.models.local.llamacpp import engine
engine()
print(before == dict(os.environ))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


BUNDLED = """
from unmask.models.local.llamacpp import engine
engine()
print(*sorted({line.split("/", 1)[1].strip() for line in open("/proc/self/maps") if "libgomp" in line}), sep="\\n")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have OpenMP in the wheel of llama.cpp")
def test_where_the_system_has_no_openmp_that_of_a_wheel_serves(tmp_path):
    """The loader finds an empty file first, which it cannot load either."""
    (tmp_path / "libgomp.so.1").touch()
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", BUNDLED], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == ["memfd:libgomp (deleted)"]


def token(text: str, logprob: float) -> dict[str, object]:
    return {"token": text, "logprob": logprob}


def test_spellings_of_an_option_are_added_up():
    """`Yes`, ` yes` and `YES` are all yes; other words count for nothing."""
    weights = {"Yes": 0.3, " yes": 0.2, "YES": 0.1, "No": 0.2, "Maybe": 0.2}
    found = option_probabilities([token(text, math.log(weight)) for text, weight in weights.items()], ("yes", "no"))
    assert found == {"yes": pytest.approx(0.75), "no": pytest.approx(0.25)}
    assert option_probabilities([token("Maybe", -0.1)], ("yes", "no")) is None


def test_a_token_that_begins_two_options_counts_for_neither():
    assert option_probabilities([token("n", -0.5), token("no", -0.5), token("never", -9.0)], ("no", "never")) == {
        "no": pytest.approx(0.9998, abs=0.0001),
        "never": pytest.approx(0.0002, abs=0.0001),
    }
