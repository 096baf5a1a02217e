"""Keys and addresses: where they come from, how they are sent, and how they stay out of every message and file.

Both come from the environment and from `.env` in the working directory; the real environment wins. A key goes out as a
header and is in no URL: a base URL with credentials is refused. The working directory may be a stranger's, so an
address that only its `.env` names gets no key from elsewhere.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

from unmask import __version__
from unmask.errors import UsageError
from unmask.files import read_dotenv
from unmask.models.settings import Role, spell_setting
from unmask.text import replace_surrogates

KEY_VARIABLE: dict[Role, str] = {
    "subject": "UNMASK_API_KEY",
    "judge": "UNMASK_JUDGE_API_KEY",
    "numeric_judge": "UNMASK_NUMERIC_JUDGE_API_KEY",
}
URL_VARIABLE: dict[Role, str] = {
    "subject": "UNMASK_BASE_URL",
    "judge": "UNMASK_JUDGE_BASE_URL",
    "numeric_judge": "UNMASK_NUMERIC_JUDGE_BASE_URL",
}

SHOWN = 300
"""Characters of a stranger's error text that are repeated to the user."""
_SHORTEST = 6
"""Characters of a variable's value that is looked for: shorter ones are words that a message may need."""

_TOKEN = re.compile(r"(?i)\b(bearer|basic)\s+(?=\S*[\d=])[A-Za-z0-9._~+/=-]{6,}")
_KEY = re.compile(
    r"\b(?:(?:sk|rk|pk|gsk|xai|hf)[-_]|AIza)[-_A-Za-z0-9*.]{6,}"
    r"|\b(?:eyJ[\w-]{10,}\.[\w.-]*|gh[pousr]_\w{20,}|glpat-[\w-]{10,}|xox[abp]-\S{10,}|AKIA[A-Z0-9]{12,})"
)
"""Of models, and those that gateways take: JWT, GitHub, GitLab, Slack, AWS."""
_USERINFO = re.compile(r"(://)[^/\s]*@")
_HEADER = re.compile(
    r"(?i)\b((?:x-)?api[-_]?key|(?:proxy-)?authorization)(['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token)\s+)?)"
    r"(?!(?:bearer|basic|token)\b)[^\s'\",;&]{6,}"
)
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|SIGNATURE|\b(?:SIG|CODE)\b", re.IGNORECASE)
_URL = re.compile(r"\w+://\S+")
_PLAIN_ADDRESS = re.compile(r"(?:\w+://)?[\w.-]*(?::\d+)?[\w./-]*")
"""An address that can hold no password: one that cannot be used is repeated only like this."""


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A secret and the variable it came from. Shows only the latter, so that no log or traceback has the former."""

    value: str
    source: str

    def __repr__(self) -> str:
        return f"Key(from {self.source})"


def find_variable(variables: Iterable[str], *, environ: Mapping[str, str]) -> str | None:
    """The first of `variables` that is set and not blank."""
    return next((variable for variable in variables if environ.get(variable, "").strip()), None)


def find_key(variables: Iterable[str], *, environ: Mapping[str, str]) -> Key | None:
    """The key in the first of `variables` that is set and not blank."""
    variable = find_variable(variables, environ=environ)
    if variable is None:
        return None
    value = environ[variable].strip()
    if not value.isascii() or not value.isprintable():
        raise UsageError(
            f"the key in {variable} has characters that no HTTP header may carry",
            advice=f"Copy the key again into {variable}, without quotes, line breaks or an ellipsis",
        )
    return Key(value, variable)


def refuse_stray_key(key: Key, *, variable: str, url: str, role: Role) -> None:
    """Raise where a key would go to an address that only `.env` names, unless it is in that `.env` too, or the address
    is one of this machine."""
    dotenv = read_dotenv()
    if is_this_machine(url) or variable in os.environ or dotenv.get(key.source, "").strip() == key.value:
        return
    own_key = f"put its own key into .env ({key.source}=…)"
    if key.source in dotenv:
        own_key = f"unset {key.source}, so that the key of .env is used"
    raise UsageError(
        f"{variable} in .env names {origin(url)}, and the key in {key.source} does not come from that .env: it is not"
        " sent there",
        advice=f"If you know the address, name it yourself ({spell_setting(role, 'base_url')}, or export"
        f" {variable}=…), or {own_key}. If you do not, delete {variable} from .env",
    )


def is_this_machine(url: str) -> bool:
    """Whether an address is one of this machine, by its number or as `localhost`."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """One URL to post to. `shown` and `endpoint` are for people; `url` and `headers` may hold secrets."""

    name: str
    url: str
    shown: str
    endpoint: str
    headers: dict[str, str]
    key_source: str | None
    """The variable the key came from; `None` when no key is sent."""
    variables: tuple[str, ...]
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Target({self.name} at {self.shown})"

    def scrub(self, text: str) -> str:
        return scrub(text, secrets=self.secrets)

    @classmethod
    def build(
        cls,
        name: str,
        *,
        url: str,
        path: str,
        key: Key | None,
        variables: tuple[str, ...],
        key_header: str = "Authorization",
        headers: Mapping[str, str] | None = None,
    ) -> Target:
        """`variables` are those that may hold the key, the one to recommend first. The key goes out as `Bearer KEY` in
        the header `Authorization`, and alone in any other."""
        parts = check_base_url(url, key_variable=variables[0])
        full = _join(parts.path, path)
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            # Answers are a few kilobytes: unpacking them would cost more time than it saves.
            "Accept-Encoding": "identity",
            "User-Agent": f"unmask/{__version__}",
            **(headers or {}),
        }
        secrets = {*_parts_to_hide(parts), *proxy_secrets()}
        if key is not None:
            sent[key_header] = f"Bearer {key.value}" if key_header == "Authorization" else key.value
            secrets |= {key.value, quote(key.value, safe="")}
        return cls(
            name=name,
            url=urlunsplit((parts.scheme, parts.netloc, full, parts.query, "")),
            shown=urlunsplit((parts.scheme, parts.netloc, full, "", "")),
            endpoint=origin(url),
            headers=sent,
            key_source=None if key is None else key.source,
            variables=variables,
            secrets=longest_first(secrets),
        )


def check_base_url(url: str, *, key_variable: str) -> SplitResult:
    """The parts of a URL that can be used. Raises where it holds credentials, or is none; the message shows nothing
    that may be a secret."""
    advice = f"Put the key into {key_variable} and leave it out of the URL"
    if "@" in url:  # behind a slash, ? or # nobody can tell what is password and what is host
        raise UsageError(
            "the base URL holds credentials, or an @ that may end them; they are not taken from there",
            advice=f"{advice}; an @ that belongs to the path is written %40",
        )
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", url.strip()):
        shown = f" {url!r}" if _PLAIN_ADDRESS.fullmatch(url) else ""
        raise UsageError(
            f"the base URL{shown} is not an http or https URL",
            advice="Write it in full, as in http://localhost:8000/v1",
        )
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if SECRET_NAME.search(name) or mask_likely_secrets(f"{name} {value}") != f"{name} {value}":
            raise UsageError("the query of the base URL holds what looks like a key", advice=advice)
    return parts


def _join(base: str, path: str) -> str:
    """The path of the API below the base, whether or not the base already has some of it."""
    base = base.rstrip("/").removesuffix(path.rstrip("/"))
    if path.startswith("/v1/") and base.endswith("/v1"):
        base = base.removesuffix("/v1")
    return base + path


def origin(url: str) -> str:
    """Scheme, host and port without credentials; the default port is left out. Empty for what is no URL, and where a
    part of the password could be taken for the host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if not host or any("@" in part for part in (parts.path, parts.query, parts.fragment)):
        return ""
    host = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")


def scrub(text: str, *, secrets: Sequence[str] = ()) -> str:
    """A stranger's text, fit to be shown: no key, no credentials, whole characters, one line of readable length.
    `secrets` come longest first."""
    text = replace_surrogates(text)
    for secret in secrets:  # also as JSON may escape it, in an answer that breaks off and cannot be decoded
        letters = (rf"(?:\\?{re.escape(sign)}|\\u{ord(sign):04x})" for sign in secret)
        text = re.sub("".join(letters), "***", text, flags=re.IGNORECASE)
    text = " ".join(mask_likely_secrets(text).split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def mask_likely_secrets(text: str) -> str:
    """Without what looks like anybody's secret: keys, authorisation headers, credentials in URLs."""
    text = _HEADER.sub(r"\1\2***", _TOKEN.sub(r"\1 ***", text))
    return _USERINFO.sub(r"\1", _KEY.sub("***", text))


def longest_first(secrets: Iterable[str]) -> tuple[str, ...]:
    """In this order no part of a longer secret survives when they are replaced one after the other."""
    return tuple(sorted({secret for secret in secrets if len(secret) >= 4}, key=len, reverse=True))


def known_secrets(variables: Mapping[str, str], *, arguments: Sequence[str] = ()) -> dict[str, str]:
    """Secrets a process was given, and what to show in their place: values of variables named like one, and the
    credentials and query of a URL of a variable or of the command line."""
    values = [*variables.values(), *arguments]
    urls = {url for value in values if "://" in value for url in _URL.findall(value)}
    secrets = {secret: "hidden" for url in urls for secret in url_secrets(url)}
    secrets |= {value: name for name, value in variables.items() if SECRET_NAME.search(name)}
    return {value: name for value, name in secrets.items() if len(value) >= _SHORTEST}


def url_secrets(url: str) -> frozenset[str]:
    """What a URL holds that must not be shown: user, password, both as a header carries them, and its query."""
    try:
        parts = urlsplit(url.strip())
        basic = basic_credentials(parts)
    except ValueError:
        return frozenset({url})
    user, _, password = url.partition("://")[2].rpartition("@")[0].partition(":")
    return frozenset({basic, user, password, *_parts_to_hide(parts)})


def _parts_to_hide(parts: SplitResult) -> Iterator[str]:
    yield parts.query
    yield from (value for _, value in parse_qsl(parts.query))
    for part in (parts.username, parts.password):
        yield from (part or "", unquote(part or ""))


def basic_credentials(parts: SplitResult) -> str:
    """User and password of a URL as the header carries them; a proxy may have them."""
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return base64.b64encode(pair.encode()).decode()


def proxy_secrets() -> set[str]:
    """Credentials of proxies go out with requests as well; a short one is a word that messages may need."""
    proxies = [url for name, url in os.environ.items() if name.lower().endswith("_proxy")]
    return {secret for url in proxies for secret in url_secrets(url) if len(secret) >= 8}
