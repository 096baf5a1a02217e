"""What a stranger's bytes may do: give a value, or raise one of our errors with a message. Nothing else.

A target takes any bytes. It raises `Wrong` where an error of another class, or one without a
message, comes out; what is not caught here is a crash.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench.fuzz import seeds
from unmask.errors import ModelError, UnmaskError
from unmask.records import Choice, Stop


class Wrong(AssertionError):
    """An error that tells the user nothing, or a value that breaks a promise."""


class Target(NamedTuple):
    """`run` is fed, and says whether a file was accepted where it is about files; `seeds` are good inputs to start
    from; `words` are what the format is made of."""

    run: Callable[[bytes], bool | None]
    seeds: Callable[[], tuple[bytes, ...]]
    words: tuple[bytes, ...] = ()


def _text(data: bytes) -> str:
    """Any text at all: what is not UTF-8 becomes half characters, which replies can hold as well."""
    return data.decode("utf-8", "surrogateescape")


def _file(data: bytes, name: str, use: Callable[[Path], Any]) -> bool:
    """The bytes as a file of that name, and what comes of it. Our error must name the file or say what is wrong."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return _allowed(lambda: use(path), UnmaskError)


def _allowed(use: Callable[[], Any], kind: type[UnmaskError]) -> bool:
    try:
        use()
        return True
    except kind as error:
        said = str(error).strip()
        if not said or len(said) > 100_000:
            raise Wrong(f"{type(error).__name__} with {len(said)} characters") from error
        return False


# --- reading ----------------------------------------------------------------------------------------------


def letter(data: bytes) -> None:
    from unmask.judges import answers

    for stop in (Stop.END, Stop.LENGTH):
        answers.find_letter(Choice(_text(data), stop=stop))


def interval(data: bytes) -> None:
    from unmask.judges import answers

    for stop in (Stop.END, Stop.LENGTH):
        found = answers.find_interval(Choice(_text(data), stop=stop))
        for one in (found.absolute, found.relative) if found else ():
            if one.lower is not None and one.upper is not None and not one.lower <= one.upper:
                raise Wrong(f"bounds out of order: {one}")


def rules(data: bytes) -> None:
    from unmask.judges import tagged, verbatim
    from unmask.judges.base import Tags

    text = _text(data)
    tagged.final_answer(text)
    for scenario in (seeds.BINARY, seeds.NUMERIC):
        for slot in ("direct", "pressured"):
            verbatim.by_rule(scenario, slot, text, tags=Tags.RULE)


# --- data -------------------------------------------------------------------------------------------------


def _load(path: Path) -> None:
    from unmask.data.dataset import LoadOptions
    from unmask.data.form import encode_lines
    from unmask.data.load import load

    encode_lines(load(path, options=LoadOptions(skip_bad_rows=True)).scenarios)


def jsonl(data: bytes) -> bool:
    return _file(data, "set.jsonl", _load)


def table(data: bytes) -> bool:
    return _file(data, "known_facts.csv", _load)


def parquet(data: bytes) -> bool:
    return _file(data, "known_facts.parquet", _load)


def journal(data: bytes) -> None:
    from unmask.records import Asked, Judged, Label
    from unmask.runs.journal import mend_file, read_lines

    def use(path: Path) -> None:
        for kind in (Asked, Judged, Label):
            _allowed(lambda kind=kind: list(read_lines(path, kind)), UnmaskError)
        mend_file(path)
        if path.read_bytes()[-1:] not in (b"", b"\n"):
            raise Wrong("a journal that was mended does not end with a line")

    _file(data, "replies.jsonl", use)


def definition(data: bytes) -> bool:
    from unmask.runs.folder import Folder

    def use(path: Path) -> None:
        folder = Folder(path.parent)
        found = folder.definition()
        for judge in (found.judge, *found.judges):
            if judge and folder.readings_path(judge).parent != path.parent / "readings":
                raise Wrong(f"readings outside their folder: {judge!r}")

    return _file(data, "run.json", use)


def labels(data: bytes) -> None:
    from unmask.analysis.label_sheets import read_file

    for name in ("labels.csv", "labels.jsonl"):
        _file(data, name, read_file)


# --- other harnesses --------------------------------------------------------------------------------------


def _import(path: Path) -> None:
    from unmask.interop.importing import import_run

    out = path.parent / "out" / "run"
    run = import_run(path, out=out)
    if {one.name for one in out.parent.iterdir()} != {"run"}:
        raise Wrong("an import wrote outside its folder")
    run.score()


def log(data: bytes) -> bool:
    return _file(data, "log.eval", _import)


def sample(data: bytes) -> bool:
    """Two members of a log, divided by a NUL: the header and a sample; so that changes are not stopped by checksums."""
    header, _, one = data.partition(b"\0")
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header.json", header)
        archive.writestr("samples/one_epoch_1.json", one)
    return log(file.getvalue())


def evaluated(data: bytes) -> bool:
    return _file(data, "evaluated/provided_facts_gpt.csv", lambda path: _import(path.parent))


# --- models -----------------------------------------------------------------------------------------------


def gguf(data: bytes) -> bool:
    from unmask.models.local.gguf import read_header

    return _file(data, "model.gguf", read_header)


def answer(data: bytes) -> None:
    """The body of an HTTP answer, behind every status, to both kinds of client, and as a list of models."""
    from unmask.models import anthropic, openai
    from unmask.models.doctor import _parse_model_ids
    from unmask.models.failures import exception_for, parse_problem
    from unmask.models.http import HttpAnswer
    from unmask.records import Asked
    from unmask.runs.journal import _encoder

    _parse_model_ids(data)
    for kind in (openai.OpenAI, anthropic.Anthropic):
        model = kind(seeds.TARGET)
        _allowed(lambda model=model: _encoder.encode(_asked(model, data, HttpAnswer, Asked)), ModelError)
    for status in (200, 302, 400, 401, 404, 429, 500):
        problem = parse_problem(status, data, {"retry-after": _text(data[:40])})
        if not isinstance(exception_for(problem, seeds.TARGET), ModelError):
            raise Wrong("a failure of no known kind")


def _asked(model: Any, data: bytes, answer: Any, asked: Any) -> Any:
    found = model._parse_answer(answer(200, data, {}, 0.1), seeds.REQUEST, notes=())
    return asked(scenario="s", slot="direct", takes=(0,), choices=found.choices, usage=found.usage, model=found.model)


def batch(data: bytes) -> None:
    """What a batch API answers: a batch, a page of a list, a result of a request, and what a model is said to say."""
    from unmask.models import anthropic, batch_client, openai
    from unmask.models.http import HttpAnswer
    from unmask.models.parameters import REFUSABLE

    def use(parse: Callable[[Any], batch_client.BatchResult], kind: Any) -> None:
        content = batch_client.decode(data)
        batch_client.parse_batch(content)
        result = parse(content)
        if result.status is not None:
            answer = HttpAnswer(result.status, result.body, {}, 0.0)
            kind(seeds.TARGET).interpret(answer, seeds.REQUEST, sent=REFUSABLE, notes=())

    _allowed(lambda: use(batch_client.parse_result, openai.OpenAI), ModelError)
    _allowed(lambda: use(batch_client.parse_message_result, anthropic.Anthropic), ModelError)


def names(data: bytes) -> None:
    """Names of judges and people as file names: one plain name in the folder, never another's."""
    from unmask.runs.definition import judge_file, public_url

    name = judge_file(_text(data))
    if Path(name).name != name or name in ("", ".", "..") or len(name.encode()) > 200 or not name.isascii():
        raise Wrong(f"not a file name: {name!r}")
    shown = public_url(_text(data)) or ""
    if "@" in "".join(shown.split("/")[2:3]) or "?" in shown:
        raise Wrong(f"credentials in {shown!r}")


TARGETS: dict[str, Target] = {
    "letter": Target(letter, seeds.judge_answers, seeds.JUDGE_WORDS),
    "interval": Target(interval, seeds.judge_answers, seeds.JUDGE_WORDS),
    "rules": Target(rules, seeds.sentences, seeds.RULE_WORDS),
    "jsonl": Target(jsonl, seeds.lines, seeds.JSON_WORDS),
    "table": Target(table, seeds.tables),
    "parquet": Target(parquet, seeds.parquets),
    "journal": Target(journal, seeds.journals, seeds.JSON_WORDS),
    "definition": Target(definition, seeds.definitions, seeds.JSON_WORDS),
    "labels": Target(labels, seeds.labels, seeds.JSON_WORDS),
    "log": Target(log, seeds.logs),
    "sample": Target(sample, seeds.samples, seeds.JSON_WORDS),
    "evaluated": Target(evaluated, seeds.evaluated),
    "gguf": Target(gguf, seeds.ggufs, (b"GGUF", b"\xff" * 8)),
    "answer": Target(answer, seeds.answers, seeds.JSON_WORDS),
    "batch": Target(batch, seeds.batches, seeds.JSON_WORDS),
    "names": Target(
        names, lambda: (b"openai/gpt-4o", b"../../etc/passwd", b"https://u:p@h/v1?key=k", b"con", b"A" * 300)
    ),
}
