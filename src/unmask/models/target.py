"""Where requests go and with which secrets, kept so that no secret can leave by a message, a name or a repr."""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

from unmask import __version__
from unmask.errors import UsageError
from unmask.models.keys import Key
from unmask.text import whole

ANTHROPIC_VERSION = "2023-06-01"
SHOWN = 300
"""Characters of a stranger's error text that are repeated to the user."""

_TOKEN = re.compile(r"(?i)\b(bearer|basic)\s+(?=\S*[\d=])[A-Za-z0-9._~+/=-]{6,}")
_KEY = re.compile(r"\b(?:(?:sk|rk|pk|gsk|xai|hf)[-_]|AIza)[-_A-Za-z0-9*.]{6,}")
_USERINFO = re.compile(r"(://)[^/\s]*@")
_HEADER = re.compile(
    r"(?i)\b((?:x-)?api[-_]?key|(?:proxy-)?authorization)(['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?)"
    r"(?!(?:bearer|basic|token)\b)[^\s'\",;&]{6,}"
)
_JSON_ESCAPE = re.compile(r"\\u(?![dD][89a-fA-F])([0-9a-fA-F]{4})")
"""Of a whole character: half of one could not be written down."""
_LAST_AT = re.compile("(.*)(?:@|%40|[\ufe6b\uff20])(.*)", re.DOTALL)
"""Also as it is escaped, and its wide and small forms, which no URL may hold but people paste."""
LONG = 16
"""Characters from which on a secret is no word that an answer may hold by chance."""
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
_URL = re.compile(r"\w+://\S+")
_SHORTEST = 6
"""Characters of a variable's value that is looked for: shorter ones are words that a message may need."""


def origin(url: str) -> str:
    """Scheme, host and port without credentials; the default port is left out. Empty for what is no URL, and where a
    part of the password could be taken for the host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host or is_ambiguous(parts):
        return ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")


def scrub(text: str, *, secrets: tuple[str, ...] = ()) -> str:
    """A stranger's text, fit to be shown: no key, no credentials, whole characters, one line of readable length."""
    text = " ".join(masked(without(whole(text), secrets)).split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def without(text: str, secrets: Sequence[str]) -> str:
    """The text with `***` for each secret, which come longest first. Where one only shows once escapes of JSON are
    undone, they are undone for the whole text: a server may quote what another one wrote."""
    text = _replaced(text, secrets)
    if "\\u" not in text:
        return text
    plain = _JSON_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text).replace("\\/", "/")
    return _replaced(plain, secrets) if any(secret in plain for secret in secrets) else text


def _replaced(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def masked(text: str) -> str:
    """Without what looks like a secret, whoever it belongs to: keys, authorisation headers, credentials in URLs."""
    text = _HEADER.sub(r"\1\2***", _TOKEN.sub(r"\1 ***", text))
    return _USERINFO.sub(r"\1", _KEY.sub("***", text))


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """One URL to post to. `shown` and `endpoint` are for people; `url` and `headers` may hold secrets."""

    name: str
    url: str
    shown: str
    endpoint: str
    headers: dict[str, str]
    key_source: str | None
    """The variable the key came from, or `the URL`; `None` when nothing is sent."""
    variables: tuple[str, ...]
    secrets: tuple[str, ...] = field(default=())
    long_secrets: tuple[bytes, ...] = field(default=())

    def __repr__(self) -> str:
        return f"Target({self.name} at {self.shown})"

    @property
    def authorised(self) -> bool:
        return self.key_source is not None

    def scrub(self, text: str) -> str:
        return scrub(text, secrets=self.secrets)

    def hide(self, body: bytes) -> bytes:
        """An answer without the secrets that were sent with its request, in case a proxy or a test server echoes them
        where a reply belongs: answers are kept as they come. Short ones stay, since they may be words of the reply."""
        for secret in self.long_secrets:
            if secret in body:
                body = body.replace(secret, b"***")
        return body

    @classmethod
    def build(
        cls,
        name: str,
        *,
        url: str,
        path: str,
        key: Key | None,
        variables: tuple[str, ...],
        speaks: Literal["openai", "anthropic"] = "openai",
    ) -> Target:
        """Credentials in the URL go out as Basic authorisation and take the place of a Bearer key, which would
        need the same header."""
        parts = _checked(url)
        basic = basic_of(parts)
        authority = parts.netloc.rpartition("@")[2]
        full = _join(parts.path, path)
        headers = _headers(key, basic=basic, speaks=speaks)
        sent = key is not None and (speaks == "anthropic" or basic is None)
        secrets = _secrets(key, basic=basic, parts=parts)
        return cls(
            name=name,
            url=urlunsplit((parts.scheme, authority, full, parts.query, "")),
            shown=urlunsplit((parts.scheme, authority, full, "", "")),
            endpoint=origin(url),
            headers=headers,
            key_source=key.source if key is not None and sent else "the URL" if basic or parts.query else None,
            variables=variables,
            secrets=secrets,
            long_secrets=tuple(_written(secret for secret in secrets if len(secret) >= LONG)),
        )


def _checked(url: str) -> SplitResult:
    if re.match(r"\s*https?://", url, re.IGNORECASE):
        refuse_ambiguous(url)  # also where what is taken for a port is none: that is no reason to call it no URL
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if usable and not re.search(r"\s", url.strip()):
        return parts
    raise UsageError(f"base URL {_showable(url)!r} is not an http or https URL", advice=f"{_IN_FULL}; {_ESCAPED}")


_IN_FULL = "write it in full, as in http://localhost:8000/v1"
_ESCAPED = "in a password / is %2F, ? is %3F, # is %23 and @ is %40"


def is_ambiguous(parts: SplitResult) -> bool:
    """Whether an @ stands after the first slash, ? or #: then one of those in the password was not escaped, it seems.
    What follows it would be taken for path, query or fragment, and shown; what precedes it for the host."""
    return any("@" in part for part in (parts.path, parts.query, parts.fragment))


def refuse_ambiguous(url: str) -> None:
    """Raise where a URL does not show for certain what of it is secret."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return
    if is_ambiguous(parts):
        raise UsageError(
            f"base URL {_showable(url)!r} has an @ after a /, ? or #, so nobody can tell where its password ends",
            advice=f"{_ESCAPED}; elsewhere @ is %40 as well",
        )


def _showable(url: str) -> str:
    """What a URL that cannot be used has behind its credentials, without its query. Nothing but the scheme where the @
    may belong to either."""
    scheme, _, rest = url.strip().partition("://")
    if not scheme.isalpha():
        scheme, rest = "", url.strip()
    if found := _LAST_AT.match(rest):
        rest = "…" if re.search("[?#]", found[1]) else found[2]
    return (f"{scheme}://" if scheme else "") + re.split("[?#]", rest, maxsplit=1)[0]


def _join(base: str, path: str) -> str:
    """The path of the API below the base, whether or not the base already has some of it."""
    base = base.rstrip("/").removesuffix(path.rstrip("/"))
    if path.startswith("/v1/") and base.endswith("/v1"):
        base = base.removesuffix("/v1")
    return base + path


def basic_of(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode()


def _headers(key: Key | None, *, basic: str | None, speaks: str) -> dict[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        # Answers are a few kilobytes: unpacking them would cost more time than it saves.
        "Accept-Encoding": "identity",
        "User-Agent": f"unmask/{__version__}",
    }
    if speaks == "anthropic":
        headers["anthropic-version"] = ANTHROPIC_VERSION
        if key is not None:
            headers["x-api-key"] = key.value
    elif key is not None:
        headers["Authorization"] = f"Bearer {key.value}"
    if basic is not None:
        headers["Authorization"] = f"Basic {basic}"
    return headers


def _secrets(key: Key | None, *, basic: str | None, parts: SplitResult) -> tuple[str, ...]:
    """Everything that must never be shown, the longest first so that no part of a longer one survives."""
    found = {basic or "", *_url_secrets(parts), *proxy_secrets()}
    if key is not None:
        found |= {key.value, quote(key.value, safe="")}
    return longest_first(found)


def longest_first(secrets: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({secret for secret in secrets if len(secret) >= 4}, key=len, reverse=True))


def url_secrets(url: str) -> frozenset[str]:
    """What a URL holds that must not be shown: user, password, both as a header carries them, and its query."""
    try:
        parts = urlsplit(url.strip())
        basic = basic_of(parts)
    except ValueError:
        return frozenset({url})
    user, _, password = url.partition("://")[2].rpartition("@")[0].partition(":")
    return frozenset({basic or "", user, password, *_url_secrets(parts)})


def known_secrets(variables: Mapping[str, str], *, arguments: Sequence[str] = ()) -> dict[str, str]:
    """Secrets a process was given, and what to show in their place: values of variables named like one, and what stands
    as credentials or query in a URL of a variable or of the command line."""
    given = [*variables.values(), *arguments]
    urls = {url for value in given if "://" in value for url in _URL.findall(value)}
    found = {secret: "hidden" for url in urls for secret in url_secrets(url)}
    found |= {value: name for name, value in variables.items() if _SECRET_NAME.search(name)}
    return {value: name for value, name in found.items() if len(value) >= _SHORTEST}


def _url_secrets(parts: SplitResult) -> Iterator[str]:
    yield parts.query
    yield from (value for _, value in parse_qsl(parts.query))
    for part in (parts.username, parts.password):
        yield from (part or "", unquote(part or ""))


def proxy_secrets() -> set[str]:
    """Credentials of proxies go out with requests as well; a short one is a word that messages may need."""
    return {secret for url in proxies().values() for secret in url_secrets(url) if len(secret) >= 8}


def proxies() -> dict[str, str]:
    """The proxies of this machine by scheme. Who knows them all takes longer to import than the rest of the client, and
    is not asked where only variables could name one and none does."""
    by_variables = sys.platform not in ("darwin", "win32")
    if by_variables and not any(name.lower().endswith("_proxy") for name in os.environ):
        return {}
    from urllib.request import getproxies

    return getproxies()


def _written(secrets: Iterable[str]) -> Iterator[bytes]:
    """Each secret as it stands in JSON, whose writers may put a backslash before a slash."""
    for secret in secrets:
        escaped = secret.replace("\\", "\\\\").replace('"', '\\"')
        yield from (form.encode() for form in dict.fromkeys((secret, escaped, escaped.replace("/", "\\/"))))
