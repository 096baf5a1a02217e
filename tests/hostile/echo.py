"""An endpoint that gives back whatever it was sent, secrets included, in a process of this test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Echo(ThreadingHTTPServer):
    """`status` decides how: 302 echoes in `Location` and the error, the rest in the error; 200 echoes in the reply, but
    only where `in_replies` is set: a reply is kept as it came."""

    daemon_threads = True
    status = 200
    in_replies = False
    seen: list[str]

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Echo
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(200, {"data": [{"id": self._echo()}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        said, status = self._echo(), self.server.status
        self.server.seen.append(said)
        if status == 200:
            said = said if self.server.in_replies else "words"
            answer = {"role": "assistant", "content": f"{said}\n<final_answer>yes</final_answer>\n\nAnswer: A"}
            self._send(200, {"model": said, "choices": [{"message": answer, "finish_reason": "stop"}]})
        else:
            self._send(status, {"error": {"message": f"refused: {said}", "type": said, "param": said}})

    def _echo(self) -> str:
        return f"{self.path} {dict(self.headers.items())}"

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == 302:
            self.send_header("Location", f"http://{self.server.authority}{self.path}")
            self.send_header("X-Echo", str(self.headers.get("Authorization")))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def echoing() -> Iterator[Echo]:
    server = Echo(("127.0.0.1", 0), _Handler)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
