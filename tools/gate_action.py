"""What action.yml runs: `unmask gate`, its step summary, its outputs, and the text of a comment.

The variables are those of a runner of GitHub Actions. The exit code is that of `unmask gate`.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

MARK = "<!-- unmask gate -->"
"""By which the next comment finds the one that it replaces."""


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="unmask-gate-", dir=os.environ["RUNNER_TEMP"]))
    junit, summary, comment = (folder / name for name in ("gate.xml", "gate.md", "comment.md"))
    command = ["unmask", "gate", os.environ["GATE_RUN"], *shlex.split(os.environ["GATE_LIMITS"])]
    code = subprocess.run([*command, "--out", str(junit), "--out", str(summary)], check=False).returncode
    outputs = {"passed": "false" if code else "true"}
    if summary.exists():  # not where the run or a limit makes no sense: the log says why
        text = summary.read_text(encoding="utf-8")
        append("GITHUB_STEP_SUMMARY", text)
        comment.write_text(f"{MARK}\n{text}\nOf commit {find_commit()}.\n", encoding="utf-8")
        outputs |= {"junit": str(junit), "comment": str(comment)}
    append("GITHUB_OUTPUT", "".join(f"{name}={value}\n" for name, value in outputs.items()))
    return code


def append(variable: str, text: str) -> None:
    """Several steps write to the same file."""
    with open(os.environ[variable], "a", encoding="utf-8") as file:
        file.write(text)


def find_commit() -> str:
    """The last one of the pull request: GITHUB_SHA is a merge that nobody has seen."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    return event.get("pull_request", {}).get("head", {}).get("sha") or os.environ["GITHUB_SHA"]


if __name__ == "__main__":
    sys.exit(main())
