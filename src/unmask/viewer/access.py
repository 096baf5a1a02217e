"""Who may see a page, and who may write: every request goes through `Access` before any page is made.

A hostile page that is open in the same browser can send requests to this server. It is stopped five times: the `Host`
must be one of ours (so another name that resolves to this machine is refused), a secret cookie must be there (which
browsers never send along from another site; other ports of this machine are the same site), other pages may link to
ours but not load them, whatever writes must come from our own pages, and every answer forbids the browser to load, run
or embed anything that is not ours.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unmask.viewer.templating import render_template

LARGEST_POST = 64 * 1024
"""Bytes of what a page sends, such as a label with its note: a longer body is refused unread."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Access:
    """The door of the app: an ASGI app around another one.

    `hosts` are all values of `Host` that are let in, `token` is the secret of the printed address, `cookie` the name
    under which the browser keeps it: cookies do not know ports, so it holds the port.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str], cookie: str) -> None:
        self._app = app
        self._token = token.encode("ascii")
        self._hosts = frozenset(hosts)
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self._refuse_or_admit(scope)
        await (self._app if answer is None else answer)(scope, receive, send_guarded)

    def _refuse_or_admit(self, scope: Scope) -> Response | None:
        """The answer to a request that goes no further; `None` for one that does."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return _refuse_with_page(
                421, "This is not the address of the viewer.", "Open the address that unmask view printed."
            )
        method = scope["method"]
        if _is_loaded_elsewhere(headers):
            return _refuse_with_page(
                403, "Another page may not load this one.", "Open the address that unmask view printed."
            )
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if method in {"GET", "HEAD"} and any(name == "token" and self._is_token(value) for name, value in query):
            return self._give_cookie(scope["path"], [pair for pair in query if pair[0] != "token"])
        if not self._is_token(self._read_cookie(headers)):
            return _refuse_with_page(
                403,
                "This page needs the token of the viewer that is running now.",
                "Open the address that unmask view printed. A tab of a viewer that has ended cannot go on; "
                "what was labelled in it is on disk.",
            )
        if method == "POST":
            return self._refuse_foreign_post(headers, hosts[0].lower())
        if method not in {"GET", "HEAD"}:
            return _refuse_with_page(
                405, f"The viewer takes no {method}.", "Pages are read with GET, labels are sent with POST."
            )
        return None

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token)

    def _read_cookie(self, headers: Headers) -> str:
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        return cookies[self._cookie].value if self._cookie in cookies else ""

    def _give_cookie(self, path: str, query: list[tuple[str, str]]) -> Response:
        """The same address without its token. Not a redirect: to one that follows a link from another page, a browser
        would not send the new cookie; a page that sends the reader on is our own."""
        target = quote("/" + path.lstrip("/\\")) + (f"?{urlencode(query)}" if query else "")
        answer = HTMLResponse(render_template("enter.html", target=target))
        answer.set_cookie(self._cookie, self._token.decode("ascii"), path="/", httponly=True, samesite="strict")
        return answer

    def _refuse_foreign_post(self, headers: Headers, host: str) -> Response | None:
        """Browsers say where a POST comes from. To plain http on another machine they send no Sec-Fetch-Site."""
        sites = headers.getlist("sec-fetch-site")
        is_loopback = host.rpartition(":")[0] in LOOPBACK
        if headers.getlist("origin") != [f"http://{host}"] or (sites != ["same-origin"] and (is_loopback or sites)):
            return _refuse_with_page(403, "Only the viewer's own pages may write.", "Nothing was written.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _refuse_with_page(415, "What is sent is JSON.", "Nothing was written.")
        length = headers.get("content-length", "")
        if not re.fullmatch("[0-9]{1,9}", length, re.ASCII) or int(length) > LARGEST_POST:
            return _refuse_with_page(413, f"What is sent has at most {LARGEST_POST} bytes.", "Nothing was written.")
        return None


def _is_loaded_elsewhere(headers: Headers) -> bool:
    """Whether a page of another origin asks for this as a part of itself. A link that somebody follows is no part."""
    if headers.get("sec-fetch-site", "none") in {"none", "same-origin"}:
        return False
    return (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) != ("navigate", "document")


def _refuse_with_page(status: int, text: str, advice: str) -> Response:
    """A page that asks for nothing else: a refused visitor gets no styles either."""
    return HTMLResponse(render_template("refused.html", text=text, advice=advice), status_code=status)
