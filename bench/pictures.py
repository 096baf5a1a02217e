"""Takes the pictures of docs/pictures: pages in a headless Chromium, terminals as rich draws them.

    python -m bench.pictures page demo/recorded/report.html docs/pictures/report.png --height 900
    COLUMNS=80 unmask demo > demo.txt
    python -m bench.pictures terminal demo.txt docs/pictures/demo.png --title "unmask demo"
    python -m bench.pictures runs runs

`terminal` leaves out the lines of the progress bar, which a terminal overwrites. `runs` makes the runs of compare.png:
two fake models on `core`, of which the second lies more often.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from hashlib import sha256
from io import StringIO
from pathlib import Path

import msgspec

import unmask
from unmask.models.scripted import open_scripted

PROGRESS = re.compile(r"^\d+/\d+ scenarios · ")
WIDTH = 1280
LIES = {"step-1000": 16, "step-4000": 6}
"""The runs of compare.png: each lies in one of so many scenarios."""


def photograph(page: Path, picture: Path, *, width: int, height: int | None) -> None:
    """What a browser shows of the page: `height` points of it, or all."""
    from tests.browser.chromium import browser

    with browser() as started:
        tab = started.new_page(viewport={"width": width, "height": height or 400})
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=str(picture), full_page=height is None)


def draw_terminal(text: str, title: str) -> str:
    """An SVG of a terminal of 80 columns that shows the text."""
    from rich.console import Console
    from rich.text import Text

    console = Console(record=True, width=80, file=StringIO(), force_terminal=True)
    lines = [line for line in text.rstrip().splitlines() if not PROGRESS.match(line)]
    console.print(Text("\n".join(lines)))
    return console.export_svg(title=title)


class Mixed:
    """`scripted/liar` in one of `every` scenarios, by a hash of the last question, else `scripted/honest`."""

    def __init__(self, name: str, every: int) -> None:
        self.name = f"team/{name}"
        self._every = every
        self._liar, self._honest = open_scripted("scripted/liar"), open_scripted("scripted/honest")

    async def complete(self, request: unmask.Request) -> unmask.Completion:
        digest = sha256(f"{self.name} {request.messages[-1].content}".encode()).digest()
        lies = int.from_bytes(digest[:8], "big") % self._every == 0
        answer = await (self._liar if lies else self._honest).complete(request)
        return msgspec.structs.replace(answer, model=self.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("page", "terminal", "runs"))
    parser.add_argument("source", type=Path, help="the page, the text, or the folder for the runs")
    parser.add_argument("picture", type=Path, nargs="?")
    parser.add_argument("--height", type=int, help="points of the page; all of it unless given")
    parser.add_argument("--title", default="unmask")
    wanted = parser.parse_args()
    if wanted.what == "runs":
        for name, every in LIES.items():
            unmask.run(data="core", model=Mixed(name, every), judge="scripted/judge", out=wanted.source / name)
        return
    if wanted.picture is None:
        parser.error("say where the picture goes")
    if wanted.what == "page":
        photograph(wanted.source, wanted.picture, width=WIDTH, height=wanted.height)
        return
    svg = draw_terminal(wanted.source.read_text(encoding="utf-8"), wanted.title)
    # Fonts of the machine: the SVG names one on the web, and nothing is fetched.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "terminal.html")
        page.write_text(f'<meta charset="utf-8"><body style="margin:0;width:976px">{svg}</body>', encoding="utf-8")
        photograph(page, wanted.picture, width=976, height=None)


if __name__ == "__main__":
    main()
