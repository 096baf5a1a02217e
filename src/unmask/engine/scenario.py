"""One scenario from its first request to its last."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from unmask.engine.work import Job, Workload
from unmask.models.limiter import QueuedCall
from unmask.records import Request

if TYPE_CHECKING:
    from unmask.engine.executor import Executor

Key = tuple[int, tuple[object, ...], int]
"""A scenario, what is asked of it, and how deep: what waits for its turn is queued anew where its depth changes."""


class Sending:
    """A request that waits for its turn or is under way."""

    __slots__ = ("call", "job", "sent")
    call: QueuedCall

    def __init__(self, job: Job) -> None:
        self.job = job
        self.sent: Request | None = None
        """Set when its turn has come."""

    @property
    def is_sent(self) -> bool:
        return self.sent is not None


async def ask_scenarios(group: Sequence[int], executor: Executor) -> None:
    """Ask everything about scenarios that share their probes, usually one: plan, start what is new, await the first
    answer, write it down, plan again.

    What waits for its turn and is no longer wanted is not sent. What is under way is awaited, also when the run is
    stopping: it is paid for. The connection of an answer is given back when what follows from it is queued.
    """
    sendings: dict[Key, Sending] = {}
    answered: list[Sending] = []
    try:
        while True:
            wanted = {} if executor.is_stopping else _list_wanted(group, executor.workload, sendings)
            for key in [key for key, one in sendings.items() if not one.is_sent and key not in wanted]:
                unwanted = sendings.pop(key).call
                unwanted.cancel()
                unwanted.release()
            sendings |= {key: executor.send(job) for key, job in wanted.items() if key not in sendings}
            while answered:
                answered.pop().call.release()
            if not sendings:
                break
            await asyncio.wait([one.call.result for one in sendings.values()], return_when=asyncio.FIRST_COMPLETED)
            answered = [sendings.pop(key) for key, one in list(sendings.items()) if one.call.result.done()]
            for sending in answered:
                executor.keep(sending)
    finally:
        for sending in (*sendings.values(), *answered):
            sending.call.cancel()
            sending.call.release()
    if not (executor.is_stopping and _list_wanted(group, executor.workload, {})):
        executor.workload.finished(group)


def _list_wanted(group: Sequence[int], work: Workload, sendings: dict[Key, Sending]) -> dict[Key, Job]:
    wanted: dict[Key, Job] = {}
    for scenario in group:
        sent = [keys for (owner, keys, _), sending in sendings.items() if owner == scenario and sending.is_sent]
        busy = {key for keys in sent for key in keys}
        wanted |= {(scenario, job.keys, job.depth): job for job in work.jobs(scenario, busy)}
    return wanted
