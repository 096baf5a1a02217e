"""A server that passes everything on to the planted endpoint, which counts over all servers and all their lives.

    python tests/sweep/relay.py --host 127.0.0.1 --port 8001 --to 127.0.0.1:9000 --pids FILE [--most 20]

The standard library only. FILE gets a line with its process id; of the files next to it `.tree` has those of its
supervisor and its guardian too, and `.asked` a line for each question. SIGUSR1 makes it hang: it stays healthy and
passes no question on. SIGUSR2 makes it run out of memory: it says so and exits. `--most` does that after so many
questions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
from pathlib import Path


class Relay:
    def __init__(self, settings: argparse.Namespace) -> None:
        self.settings = settings
        self.hangs = False
        self.asked = 0
        self.journal = settings.pids.with_suffix(".asked").open("a", buffering=1)

    def end_out_of_memory(self) -> None:
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", flush=True)
        os._exit(1)

    def hang(self) -> None:
        self.hangs = True

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = self.settings.to.rpartition(":")
        behind, before = await asyncio.open_connection(host, int(port))

        async def copy_questions() -> None:
            while data := await reader.read(1 << 16):
                if data.startswith(b"POST") and b"unmask-server-check" not in data:
                    self.asked += 1
                    self.journal.write(f"{os.getpid()}\n")
                    if self.asked > self.settings.most:
                        self.end_out_of_memory()
                if self.hangs and data.startswith(b"POST"):
                    await asyncio.sleep(3600)
                before.write(data)
            before.close()

        async def copy_answers() -> None:
            while data := await behind.read(1 << 16):
                if self.hangs and b'"choices"' in data:
                    await asyncio.sleep(3600)
                writer.write(data)
            writer.close()

        await asyncio.gather(copy_questions(), copy_answers(), return_exceptions=True)

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self.hang)
        loop.add_signal_handler(signal.SIGUSR2, self.end_out_of_memory)
        server = await asyncio.start_server(self.pass_on, self.settings.host, self.settings.port)
        print("relaying", flush=True)
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--to", required=True)
    parser.add_argument("--pids", type=Path, required=True)
    parser.add_argument("--most", type=float, default=float("inf"))
    settings = parser.parse_args()
    with settings.pids.open("a") as file:
        file.write(f"{os.getpid()}\n")
    guardian = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    with settings.pids.with_suffix(".tree").open("a") as file:
        file.write(f"{os.getpid()} {os.getppid()} {guardian}\n")
    asyncio.run(Relay(settings).serve())


if __name__ == "__main__":
    main()
