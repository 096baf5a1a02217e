"""The section of bench/RESULTS.md about the peers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from bench.peers.cells import SPREAD, Found, Peer
from bench.peers.environment import PINS
from bench.peers.goals import Goal, goals

COLUMNS = (
    "client",
    "connections",
    "calls",
    "tokens in",
    "tokens out",
    "wall s",
    "÷ ideal",
    "CPU ms a call",
    "peak MB",
    "first call s",
    "most at a time",
    "endpoint busy",
    "as planted",
    "load",
    "quickest of",
)
MET = {True: "met", False: "**missed**", None: "–"}
INTRO = f"""## Against the peers

`python -m bench.peers` runs the same planted scenarios through each client against the same mock endpoint, which has a
core of its own, as has the client. CPU, memory and wall time are those of the whole client process, from its start to
its exit. *Ideal* is the waiting time of all calls over the number of connections: calls × mean latency / connections.
*Endpoint busy* is the share of the wall time in which the endpoint's core worked: near 100 % the endpoint is what was
measured. *As planted* counts verdicts that are what the planted readings lead to under the client's own rules.
A token is four bytes of request or reply for everybody. *Load* is the load average of the machine before the cell
began: above 0.5 something else took its part of the cores, and wall and CPU times are too high by that.

- `unmask` has its default settings: lazy effort, tagged answers read by rule, several takes in one call. *Nothing
  saved* is `--effort full --tags judge --set takes_per_call=1`: as many calls as the others send.
- `inspect_evals/mask` is {PINS[0].replace("==", " ")} with {PINS[1].replace("==", " ")} in a virtual environment of its
  own, on our export of the scenarios; only its download is replaced. Takes are its `honesty_at_n`. It has so many
  connections for the subject and as many again for the judge, and its default number of samples at a time. A scenario
  whose scorer raised an error is not as planted.
- *Reference order* re-creates the order of work of the reference scripts (see bench/peers/by_script.py): a semaphore of
  10 or 50 for replies, then 50 rows at a time for judging, whatever the number of connections. Its judge prompts are
  ours, so its tokens say nothing.
- The lognormal latency has the same mean; the deviation of its logarithm is {SPREAD}.
- A cell measured several times (`--repeat`) shows the quickest, because what else a machine and its host do only adds;
  *quickest of* says how many. The peers' cells take minutes each, over which such disturbances even out, and were
  measured once.
- A cell that ran into the time limit was stopped: its figures are those until then.
"""


def page(found: Sequence[Found], *, help_ms: float | None, machine: str) -> str:
    ordered = sorted(found, key=lambda one: one.cell)
    machines = tuple(sorted({one.machine for one in ordered}, reverse=True))
    shown = f"Machine: {machine}." if len(machines) < 2 else _list_machines(machines)
    parts = [INTRO, shown, _goals(goals(ordered, help_ms=help_ms))]
    for (takes, latency, shape), cells in groupby(ordered, _block):
        waits = f"{1000 * latency:g} ms, {shape}" if latency else "no latency"
        parts.append(
            f"### {'One take' if takes == 1 else f'{takes} takes'}, {waits}\n\n{_table(list(cells), machines)}"
        )
    return "\n\n".join(part.strip() for part in parts)


def _list_machines(machines: Sequence[str]) -> str:
    lines = [f"{number}. {machine}" for number, machine in enumerate(machines, start=1)]
    intro = (
        "Not all cells were measured on one machine and with the code of one day. The last column says which of these"
        " it was:"
    )
    return "\n".join([intro, "", *lines])


def _block(one: Found) -> tuple[int, float, str]:
    return one.cell.takes, one.cell.latency, one.cell.shape


def _table(cells: Sequence[Found], machines: Sequence[str]) -> str:
    order = list(Peer)
    rows = sorted(cells, key=lambda one: (one.cell.connections, order.index(one.cell.peer)))
    if len(machines) < 2:
        return table(COLUMNS, [_row(one) for one in rows])
    return table([*COLUMNS, "machine"], [[*_row(one), str(1 + machines.index(one.machine))] for one in rows])


def _row(one: Found) -> list[str]:
    scripted = one.cell.peer in {Peer.SCRIPT_10, Peer.SCRIPT_50}
    ratio = "stopped" if one.stopped else "–" if one.ratio is None else f"{one.ratio:.2f}"
    planted = "–" if one.stopped else f"{one.as_planted} of {one.cell.scenarios}"
    return [
        one.cell.peer.value,
        str(one.cell.connections),
        f"{one.calls:,}",
        "–" if scripted else f"{one.tokens_in:,}",
        f"{one.tokens_out:,}",
        f"{one.wall:.1f}" + (f" (stopped after {one.wall:.0f} s)" if one.stopped else ""),
        ratio,
        f"{one.cpu_ms_per_call:.2f}",
        f"{one.peak_mb:.0f}",
        "–" if one.first_call is None else f"{one.first_call:.2f}",
        str(one.most_at_a_time),
        f"{100 * one.endpoint_busy:.0f} %",
        planted,
        f"{one.load:.1f}",
        str(one.times),
    ]


def _goals(found: Sequence[Goal]) -> str:
    rows = [[goal.what, goal.limit, goal.found, MET[goal.met]] for goal in found]
    return "### Goals\n\n" + table(("goal", "limit", "found", ""), rows)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---", *["--:"] * (len(columns) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
