"""Who gets in: every rule of the viewer's security, tried on a running server, and by a hostile page in a browser."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser, Page

import unmask
from tests.browser.chromium import REBOUND, blank_page
from tests.patience import PATIENCE
from tests.render.made_runs import HOSTILE, IDS, binary, hostile_run, small_run, write
from tests.thorough import draw_part
from tests.viewer.server import Viewer, opened, run_key, serving_app
from unmask.models.scripted import Scripted
from unmask.render.html.conversation import name_anchor
from unmask.viewer.access import HEADERS, LARGEST_POST

STYLED = re.compile(r"<style|\sstyle\s*=|\son[a-z]+\s*=|<script(?![^>]*\ssrc=)[^>]*>|javascript:", re.IGNORECASE)
"""What the policy forbids in a page: inline styles, handlers and scripts. Texts are taken out first."""
HUGE = "<b>huge</b> & \u202e" * 20_000
"""A reply of 300,000 characters, most of which grow when they are escaped."""
LARGEST_PAGE = 4_000_000
"""Characters of one page."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shown") / "runs"
    folder.mkdir()
    hostile_run(folder / "hostile <b>x<>")
    small_run(folder / "small")
    data = write([binary("huge")], folder.parent / "huge.jsonl")
    unmask.run(
        data=data, out=folder / "huge", model=Scripted(lambda _: HUGE, name="scripted/huge"), judge="scripted/judge"
    )
    return folder


@pytest.fixture(scope="module")
def viewer(runs, tmp_path_factory) -> Iterator[Viewer]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNMASK_CACHE", str(tmp_path_factory.mktemp("cache")))
        with serving_app(runs) as one:
            yield one


def hostile_addresses(runs: Path) -> list[str]:
    """Every page address of the viewer, for the hostile run."""
    hostile, small, huge = (run_key(runs / name) for name in ("hostile <b>x<>", "small", "huge"))
    pair = f"{hostile},{small}"
    pages = ["/", f"/row/{hostile}", f"/run/{hostile}", f"/run/{hostile}/live"]
    pages += [f"/compare?runs={pair}", "/label", f"/agreement?run={hostile}", f"/board?runs={pair}"]
    for name in (*IDS, *(f"plain-{number}" for number in range(len(HOSTILE) - len(IDS)))):
        at = name_anchor(name)
        pages += [f"/run/{hostile}/scenario/{at}", f"/compare/scenario/{at}?runs={pair}"]
    at = name_anchor("huge")
    pages += [f"/run/{huge}{path}" for path in ("", f"/scenario/{at}")]
    pages += [f"/compare?runs={huge},{small}", f"/compare/scenario/{at}?runs={huge},{small}"]
    return pages


# --- host


@pytest.mark.parametrize("path", ["/", "/static/viewer.css", "/nowhere", "/run/x/events", "/?token=wrong"])
@pytest.mark.parametrize(
    "host", ["evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""]
)
def test_another_host_is_refused_everywhere(viewer, path, host):
    """Styles, errors, events and pages: a name that is not ours gets none of them, cookie or not."""
    answer = viewer.ask(path, host=host.format(port=viewer.port))
    assert answer.status == 421
    assert "hostile" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_names_of_this_machine_are_let_in(viewer, host):
    assert viewer.ask("/", host=host.format(port=viewer.port)).status == 200


# --- token and cookie


@pytest.mark.parametrize("path", ["/", "/static/viewer.css", "/nowhere", "/board", "/row/x"])
def test_without_the_cookie_nothing_is_shown(viewer, path):
    answer = viewer.ask(path, with_cookie=False)
    assert answer.status == 403
    assert "unmask view printed" in answer.text
    assert viewer.token not in answer.text


def test_the_token_is_exchanged_for_a_cookie_that_scripts_cannot_read(viewer):
    """HttpOnly, SameSite=Strict, for the whole site and for no other name; the next address has no token."""
    answer = viewer.ask(f"/?sort=name&token={viewer.token}&order=asc", with_cookie=False)
    (cookie,) = answer.headers.get_all("Set-Cookie")
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert cookie.split(";")[0] == viewer.cookie
    assert parts == {"httponly", "samesite=strict", "path=/"}
    assert 'url=/?sort=name&amp;order=asc"' in answer.text
    assert viewer.token not in answer.text


@pytest.mark.parametrize("token", ["", "t", "T" * 43, "t" * 44, "%00", "t" * 42 + "%C3%A9"])
def test_a_wrong_token_is_no_token(viewer, token):
    answer = viewer.ask(f"/?token={token}", with_cookie=False)
    assert answer.status == 403
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("path", ["//evil.example/", "/%2F%2Fevil.example", "/%5C%5Cevil.example", "/%09/evil.example"])
def test_the_token_sends_nobody_elsewhere(viewer, path):
    """The address to go on to begins with one slash, whatever was asked for."""
    answer = viewer.ask(f"{path}?token={viewer.token}", with_cookie=False)
    (target,) = re.findall(r'<a href="([^"]*)"', answer.text)
    assert re.match(r"/[^/\\]", target)


def test_the_printed_address_opens_the_list(browser, viewer):
    """In a browser the token leaves the address, and no script can see the cookie."""
    with opened(browser, viewer) as page:
        assert page.url == f"{viewer.origin}/"
        assert page.get_by_role("heading", name="Runs").is_visible()
        assert page.evaluate("document.cookie") == ""
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


# --- writes


@pytest.mark.parametrize(
    "changed",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:1"},
        {"Sec_Fetch_Site": None},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "none"},
    ],
)
def test_only_our_own_pages_may_post(viewer, changed):
    assert viewer.post("/label", **changed).status == 403


def test_a_post_of_our_own_comes_through(viewer):
    """The door lets it in: what answers is the app, which has no such address."""
    assert viewer.post("/nowhere").status == 404


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", None])
def test_a_post_is_json(viewer, kind):
    """What a form of another page can send is none."""
    assert viewer.post("/label", Content_Type=kind).status == 415


@pytest.mark.parametrize("length", [str(LARGEST_POST + 1), "9" * 5000, "-1", "1e3", "٣"])
def test_a_long_body_is_refused_unread(viewer, length):
    """Also where its length is no number at all. The answer comes although not one byte was sent."""
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=PATIENCE) as connection:
        head = (
            f"POST /label HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\nCookie: {viewer.cookie}\r\n"
            f"Origin: {viewer.origin}\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\n"
            f"Content-Length: {length}\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert re.match(rb"HTTP/1.1 (413|400) ", connection.recv(4096))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods_are_refused(viewer, method):
    assert viewer.ask("/", method=method).status == 405
    assert viewer.ask("/", method=method, with_cookie=False).status == 403


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_other_pages_may_link_to_it_but_not_load_it(viewer, site):
    """A link that somebody follows is answered; a script, style, frame or fetch of another origin is not, whatever
    cookie the browser sends along."""
    for mode, dest in (("no-cors", "script"), ("cors", "empty"), ("navigate", "iframe"), ("no-cors", "image")):
        headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Dest", dest)]
        assert viewer.ask("/", headers=headers).status == 403
    link = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")]
    assert viewer.ask("/", headers=link).status == 200


# --- every answer


def test_every_answer_has_the_policy(viewer):
    """Pages, styles, refusals and errors; the policy allows nothing inline and nothing from elsewhere."""
    answers = [viewer.ask(path) for path in ("/", "/static/viewer.css", "/nowhere", "/row/x", "/run/x")]
    answers += [
        viewer.ask("/", host="evil.example"),
        viewer.ask("/", with_cookie=False),
        viewer.post("/", b"x" * 70_000),
    ]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers.get_all(name) == [value]
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "*" not in policy


@pytest.mark.parametrize(
    "path",
    [
        "/static/../serve.py",
        "/static/..%2fserve.py",
        "/static/%2e%2e/serve.py",
        "/static/%252e%252e%252fserve.py",
        "/static/..%5c..%5cserve.py",
        "/static//etc/passwd",
        "/static/%00viewer.css",
        "/static/.",
        "/static/viewer.css/",
        "/static/viewer.css%00",
        "//static/viewer.css",
        "/run/..%2f..%2fetc",
        "/run/%2e%2e",
        "/row/hostile",
        "/row/..",
        "/row/%2Ftmp",
        "/../../etc/passwd",
        "/static/con",
        "/" + "a" * 15_000,
    ],
)
def test_no_path_comes_from_the_browser(viewer, path):
    """Names of folders, dots, slashes and back slashes in every spelling name nothing."""
    answer = viewer.ask(path)
    assert answer.status in {307, 400, 404}
    assert "def " not in answer.text
    assert "root:" not in answer.text


def test_hostile_texts_do_nothing_on_any_page(browser, viewer, runs):
    """No page has anything inline or grows without bounds; in a browser nothing runs, is loaded from elsewhere, or is
    complained about. Of the pages of scenarios three are opened: another test opens each."""
    every = hostile_addresses(runs)
    for path in every:
        answer = viewer.ask(path)
        assert answer.status == 200, (path, answer.text[:2000])
        assert STYLED.findall(re.sub(r">[^<]*<", "><", answer.text)) == [], path
        assert len(answer.text) < LARGEST_PAGE, path
    scenarios = [path for path in every if "/scenario/" in path and run_key(runs / "huge") not in path]
    left_out = set(scenarios) - set(draw_part(scenarios, 3))
    with opened(browser, viewer) as page:
        for path in every:
            if path not in left_out:
                page.goto(viewer.origin + path, wait_until="load")
                assert page.evaluate("window.pwned") is None, path
                assert page.locator("img, iframe, object, embed, base, style").count() == 0, path


# --- a hostile page in the same browser


ATTACK = """
async (target) => {
  const tried = {};
  const ask = async (name, path, how) => {
    try {
      const answer = await fetch(target + path, {credentials: 'include', ...how});
      tried[name] = answer.type === 'opaque' ? 'opaque' : 'read ' + answer.status + ' ' + (await answer.text()).length;
    } catch { tried[name] = 'refused'; }
  };
  await ask('get', '/', {});
  await ask('opaque get', '/', {mode: 'no-cors'});
  await ask('json', '/label', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'});
  await ask('simple post', '/label', {method: 'POST', mode: 'no-cors', body: '{}'});
  const load = (tag, attribute) => new Promise((done) => {
    const part = document.createElement(tag);
    part.onload = () => done('loaded');
    part.onerror = () => done('refused');
    part[attribute] = target + '/static/' + (tag === 'link' ? 'viewer.css' : 'viewer.js');
    if (tag === 'link') part.rel = 'stylesheet';
    document.head.append(part);
  });
  tried.script = await load('script', 'src');
  tried.style = await load('link', 'href');
  const frame = document.createElement('iframe');
  frame.src = target + '/';
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; setTimeout(done, 1000); });
  return tried;
}"""


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_of_another_port_gets_nothing(browser, viewer, name):
    """Other ports of this machine are the same site to a browser, and the cookie goes along: still nothing is read,
    nothing is written, nothing is loaded or framed. `localhost` is another site altogether."""
    with attacked(browser, viewer) as page, hostile_site() as port:
        page.goto(f"http://{name}:{port}/")
        tried = page.evaluate(ATTACK, viewer.origin)
        assert tried == {
            "get": "refused",
            "opaque get": "refused",
            "json": "refused",
            "simple post": "refused",
            "script": "refused",
            "style": "refused",
        }
        assert page.frame_locator("iframe").get_by_role("heading", name="Runs").count() == 0
        assert not any(frame.url.startswith(viewer.origin) for frame in page.frames)


@pytest.mark.parametrize(("name", "said"), [("127.0.0.1", "own pages may write"), ("localhost", "needs the token")])
def test_a_form_of_another_page_cannot_post(browser, viewer, name, said):
    """From another port the cookie goes along and the origin is not ours; from another site there is no cookie."""
    with attacked(browser, viewer) as page, hostile_site() as port:
        page.goto(f"http://{name}:{port}/")
        with page.expect_navigation():
            page.evaluate(
                """(target) => {
                  const form = document.createElement('form');
                  form.method = 'post'; form.action = target + '/label'; form.enctype = 'text/plain';
                  document.body.append(form); form.submit();
                }""",
                viewer.origin,
            )
        assert said in page.get_by_role("alert").inner_text()


def test_a_rebound_name_gets_nothing(browser, viewer):
    """A name of the attacker leads to this machine and our port, so that to the browser the attacker's page and ours
    are of one origin. The server knows that the name is not ours."""
    with attacked(browser, viewer) as page, hostile_site() as port:
        page.goto(f"http://{REBOUND}:{port}/")
        assert page.title() == "x"
        answer = page.goto(f"http://{REBOUND}:{viewer.port}/?token={viewer.token}")
        assert answer is not None
        assert answer.status == 421
        statuses = page.evaluate(
            """async () => {
              const statuses = [];
              for (const path of ['/', '/static/viewer.css', '/label', '/nowhere']) {
                const how = {method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}};
                statuses.push((await fetch(path)).status, (await fetch(path, how)).status);
              }
              return statuses;
            }"""
        )
        assert set(statuses) == {421}
        assert {cookie["domain"] for cookie in page.context.cookies()} == {"127.0.0.1"}


# --- inside


@contextmanager
def attacked(browser: Browser, viewer: Viewer) -> Iterator[Page]:
    """A window that has opened the viewer by its printed address, and goes elsewhere."""
    with blank_page(browser) as page:
        page.goto(viewer.address)
        page.wait_for_url(f"{viewer.origin}/")
        yield page


@contextmanager
def hostile_site() -> Iterator[int]:
    """A second server on loopback, whose empty page is the attacker's."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><link rel=icon href='data:,'><title>x</title><body>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()
