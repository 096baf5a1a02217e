"""The public MASK data on the Hugging Face hub: one parquet folder per archetype, at a pinned commit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from unmask.data.dataset import REPOSITORY
from unmask.errors import MissingError
from unmask.files import read_environment
from unmask.records import Archetype
from unmask.text import without_credentials

PINNED = "4602b84dd9e2ca05c6e1eafbc14e556e908ac1bb"
"""The commit the project's facts about the data were gathered from; `cais/MASK@REV` chooses another."""

_FILES = tuple(f"{archetype}/test-*.parquet" for archetype in Archetype)
_PAGE = f"https://huggingface.co/datasets/{REPOSITORY}"
_ELSEWHERE = "or pass a folder that already holds the data: --data FOLDER."


def download(revision: str | None = None) -> tuple[Path, str]:
    """The folder with the parquet files, and the commit they are of. What is cached already is not fetched again, and
    is used without the hub where the hub does not answer."""
    try:
        from huggingface_hub import HfApi, snapshot_download
    except ImportError:
        raise MissingError(f"{REPOSITORY} needs huggingface_hub", advice="pip install 'unmask[hub]'") from None
    wanted = revision or PINNED
    token = _find_token()
    # Of the real environment only: an address in .env may be a stranger's, and the token would go there.
    endpoint = os.environ.get("HF_ENDPOINT") or None
    what: dict[str, Any] = {
        "repo_type": "dataset",
        "allow_patterns": list(_FILES),
        "token": token,
        "endpoint": endpoint,
    }
    try:
        # Asked first because a download tries a dead connection again and again for half a minute.
        commit = HfApi(endpoint=endpoint, token=token).dataset_info(REPOSITORY, revision=wanted, timeout=30).sha
        folder = Path(snapshot_download(REPOSITORY, revision=commit or wanted, **what))
    # Which exceptions a lost connection raises depends on the HTTP client of the installed version of the library.
    except Exception as error:
        cached = _find_cached(wanted, what)
        if cached is None:
            raise _explain_failure(error, wanted) from error
        folder = cached
    return folder, folder.name


def _find_token() -> str | None:
    return read_environment().get("HF_TOKEN", "").strip() or None


def _find_cached(revision: str, what: dict[str, Any]) -> Path | None:
    """An earlier download of all archetypes: some versions of the library also hand out one that was broken off."""
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(REPOSITORY, revision=revision, local_files_only=True, **what))
    except Exception:
        return None
    return folder if all(any(folder.glob(pattern)) for pattern in _FILES) else None


def _explain_failure(error: Exception, revision: str) -> MissingError:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return MissingError(
            f"the hub gives {REPOSITORY} only to accounts that accepted its terms",
            advice=f"Accept them at {_PAGE}, then set HF_TOKEN to a token of that account, {_ELSEWHERE}",
        )
    if isinstance(error, errors.RevisionNotFoundError):
        return MissingError(
            f"{REPOSITORY} has no revision {revision!r}",
            advice=f"Leave @{revision} out for the pinned commit, or choose from {_PAGE}/commits/main.",
        )
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 403):
        token = (
            "the token in HF_TOKEN" if read_environment().get("HF_TOKEN", "").strip() else "a request without HF_TOKEN"
        )
        return MissingError(
            f"the hub does not show {REPOSITORY} to {token}",
            advice=f"Check access at {_PAGE} and set HF_TOKEN to a valid token, {_ELSEWHERE}",
        )
    reason = without_credentials(str(error)) or type(error).__name__
    return MissingError(
        f"{REPOSITORY} could not be fetched: {reason}",
        advice=f"Check the connection (and HF_ENDPOINT, HF_HUB_OFFLINE, proxies), {_ELSEWHERE}",
    )
