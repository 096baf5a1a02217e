"""A server that behaves as vLLM 0.32 does towards a client, with the faults that servers have.

    python -m tests.sweep.vllm_like --host 127.0.0.1 --port 8000 --name tiny [--fault …]

The standard library only. `GET /health` needs no key, everything below `/v1` does where VLLM_API_KEY is set.
`structured_outputs.choice` constrains the answer, `logprobs` are those after the mask: options share the probability,
all others have -9999. Unknown fields are passed over, as vLLM does: a version without `structured_outputs`
(`--fault no-choices`) answers freely. More than 20 `top_logprobs`, several choices of a greedy answer, and a model that
is not served are refused in vLLM's words. `--fault locked` refuses everybody but supervisors.

`--workers FILE` starts a tree: a helper, and a worker in a session of its own that ignores SIGTERM; the file gets all
process ids. `--switch FILE` is looked at before every completion: `hang` there makes completions wait for ever while
`/health` goes on, `stop` ends the answers with HTTP 500.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import log
from pathlib import Path
from typing import Any

FAULTS = ("no-choices", "out-of-memory", "never-ready", "no-health", "no-template", "no-answers", "strict", "locked")
SHARES = (0.7, 0.2, 0.06, 0.04)
"""Probabilities of the options in the order in which they are named."""


class VllmLike(ThreadingHTTPServer):
    """The state that requests share."""

    daemon_threads = True

    def __init__(self, settings: argparse.Namespace) -> None:
        super().__init__((settings.host, settings.port), Handler)
        self.settings = settings
        self.key = os.environ.get("VLLM_API_KEY", "")
        self.asked: list[dict[str, Any]] = []
        """Completions that were asked for, but for those of supervisors."""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: VllmLike
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(404 if self.server.settings.fault == "no-health" else 200, None)
        elif not self.may_enter():
            self.reply(401, {"error": "Unauthorized"})
        elif self.path == "/v1/models":
            names = [self.server.settings.name, *self.server.settings.adapter]
            cards = [{"id": name, "parent": names[0] if name != names[0] else None} for name in names]
            self.reply(200, {"object": "list", "data": cards})
        else:
            self.reply(404, {"detail": "Not Found"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        settings = self.server.settings
        switch = settings.switch.read_text() if settings.switch and settings.switch.exists() else ""
        if not self.may_enter():
            self.reply(401, {"error": "Unauthorized"})
            return
        if not self.headers["User-Agent"].startswith("unmask-server-check"):
            if settings.fault == "locked":
                self.reply(401, {"error": "Unauthorized"})
                return
            with self.server.lock:
                self.server.asked.append(body)
        if settings.fault == "no-answers" or switch == "hang":
            time.sleep(3600)
        if switch == "stop":
            self.refuse(500, "EngineCore encountered an issue.")
        elif (refusal := self.find_fault(body)) is not None:
            self.refuse(*refusal)
        else:
            self.reply(200, answer_chat(body, honours_choices=settings.fault != "no-choices"))

    def may_enter(self) -> bool:
        return not self.server.key or self.headers["Authorization"] == f"Bearer {self.server.key}"

    def find_fault(self, body: dict[str, Any]) -> tuple[int, str] | None:
        settings = self.server.settings
        if settings.fault == "no-template":
            return 400, "As of transformers v4.44, default chat template is no longer allowed."
        if body["model"] not in (settings.name, *settings.adapter):
            return 404, f"The model `{body['model']}` does not exist."
        if body.get("top_logprobs", 0) > 20:
            return 400, f"Requested sample logprobs of {body['top_logprobs']}, which is greater than max allowed: 20"
        if body.get("n", 1) > 1 and body.get("temperature", 1) == 0:
            return 400, f"n must be 1 when using greedy sampling, got {body['n']}."
        if settings.fault == "strict" and "structured_outputs" in body:
            return 400, "Unrecognized request argument supplied: structured_outputs"
        return None

    def refuse(self, status: int, message: str) -> None:
        kind = "BadRequestError" if status == 400 else "NotFoundError" if status == 404 else "InternalServerError"
        self.reply(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})

    def reply(self, status: int, content: object) -> None:
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve_in_thread(name: str = "tiny", **settings: Any) -> Iterator[VllmLike]:
    """A server of this process, for as long as the block lasts."""
    usual = {"host": "127.0.0.1", "port": 0, "name": name, "adapter": [], "fault": None, "switch": None}
    server = VllmLike(argparse.Namespace(**{**usual, **settings}))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def answer_chat(body: dict[str, Any], *, honours_choices: bool = True) -> dict[str, Any]:
    options = (body.get("structured_outputs") or {}).get("choice") if honours_choices else None
    text = options[0] if options else "Well, that depends."
    thinks = (body.get("chat_template_kwargs") or {}).get("enable_thinking", True) and "thinker" in body["model"]
    if thinks:  # the constraint begins after the thoughts, and one token is over before
        text = "<think>"
    count = body.get("n") or 1
    choice: dict[str, Any] = {
        "message": {"role": "assistant", "content": text, "reasoning_content": None},
        "finish_reason": "stop" if options and len(text) == 1 else "length",
    }
    if body.get("logprobs"):
        tokens = list(options or [text.split()[0]])
        listed = [{"token": token, "logprob": log(share)} for token, share in zip(tokens, SHARES, strict=False)]
        others = [{"token": f"tok{number}", "logprob": -9999.0} for number in range(20)]
        top = [*listed, *others][: body.get("top_logprobs", 0)]
        choice["logprobs"] = {"content": [{**listed[0], "top_logprobs": top}]}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": number, **choice} for number in range(count)],
        "usage": {"prompt_tokens": 12, "completion_tokens": count, "total_tokens": 12 + count},
    }


def start_tree(file: Path) -> None:
    """A helper with a worker below it that has its own session and ignores SIGTERM."""
    worker = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    helper = (
        "import subprocess, sys, time; "
        f"worker = subprocess.Popen([sys.executable, '-c', {worker!r}], start_new_session=True); "
        "print(worker.pid, flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", helper], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    pids = [os.getpid(), process.pid, int(process.stdout.readline())]
    file.write_text(" ".join(map(str, pids)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--name", "--served-model-name", required=True)
    parser.add_argument("--adapter", action="append", default=[])
    parser.add_argument("--model")
    parser.add_argument("--enable-lora", action="store_true")
    parser.add_argument("--lora-modules", nargs="+", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("--workers", type=Path)
    parser.add_argument("--switch", type=Path)
    settings = parser.parse_args()
    if settings.enable_lora:
        settings.adapter += [part.partition("=")[0] for part in settings.lora_modules]
    print("listening soon", flush=True)
    if settings.workers:
        start_tree(settings.workers)
    if settings.fault == "never-ready":
        time.sleep(600)
    if settings.fault == "out-of-memory":
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", flush=True)
        sys.exit(1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    VllmLike(settings).serve_forever()


if __name__ == "__main__":
    main()
