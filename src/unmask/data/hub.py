"""The public MASK data on the Hugging Face hub: one parquet folder per archetype, at a pinned commit."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

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
    token = read_environment().get("HF_TOKEN", "").strip() or None
    # Of the real environment only: an address in .env may be a stranger's, and the token would go there.
    endpoint = os.environ.get("HF_ENDPOINT") or None
    fetch = partial(
        snapshot_download,
        REPOSITORY,
        repo_type="dataset",
        allow_patterns=list(_FILES),
        token=token,
        endpoint=endpoint,
    )
    try:
        # Asked first because a download tries a dead connection again and again for half a minute.
        commit = HfApi(endpoint=endpoint, token=token).dataset_info(REPOSITORY, revision=wanted, timeout=30).sha
        folder = Path(fetch(revision=commit))
    # Which exceptions a lost connection raises depends on the HTTP client of the installed version of the library.
    except Exception as error:
        try:
            folder = Path(fetch(revision=wanted, local_files_only=True))
        except Exception:
            raise _explain_failure(error, wanted) from error
    if missing := [pattern for pattern in _FILES if not any(folder.glob(pattern))]:
        raise MissingError(f"{REPOSITORY}@{wanted} has no {missing[0]} here", advice=f"Load it again, {_ELSEWHERE}")
    return folder, folder.name


def _explain_failure(error: Exception, revision: str) -> MissingError:
    from huggingface_hub import errors

    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, errors.RevisionNotFoundError):
        return MissingError(
            f"{REPOSITORY} has no revision {revision!r}",
            advice=f"Leave @{revision} out for the pinned commit, or choose from {_PAGE}/commits/main.",
        )
    if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 403):
        return MissingError(
            f"the hub gives {REPOSITORY} only to accounts that accepted its terms",
            advice=f"Accept them at {_PAGE}, then set HF_TOKEN to a valid token of that account, {_ELSEWHERE}",
        )
    reason = without_credentials(str(error)) or type(error).__name__
    return MissingError(
        f"{REPOSITORY} could not be fetched: {reason}",
        advice=f"Check the connection (and HF_ENDPOINT, HF_HUB_OFFLINE, proxies), {_ELSEWHERE}",
    )
