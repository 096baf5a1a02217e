"""The scheduler of a sweep by a simulated clock: no server is started, and an hour takes a millisecond."""

from __future__ import annotations

import random
from heapq import heappop, heappush
from typing import NamedTuple

from unmask.sweep.schedule import ServerJob, pick_next


class Cluster(NamedTuple):
    """Machines with GPUs. A server has all of its GPUs on one of them, and may stay so many seconds."""

    nodes: int = 8
    gpus_each: int = 8
    walltime: float = 4 * 3600.0

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_each


class Load(NamedTuple):
    """A model that is to be swept."""

    job: ServerJob
    loading: float


class Makespan(NamedTuple):
    seconds: float
    bound: float
    servers: int

    @property
    def ratio(self) -> float:
        return self.seconds / self.bound


def draw_loads(count: int, *, seed: int) -> list[Load]:
    """Models of 1 to 8 GPUs. The larger ones take longer to load and to answer; work varies tenfold."""
    rng = random.Random(seed)
    loads = []
    for number in range(count):
        gpus = rng.choices([1, 2, 4, 8], weights=[50, 25, 15, 10])[0]
        seconds = rng.lognormvariate(0.0, 0.7) * 1800 * gpus**0.5
        loads.append(Load(ServerJob(name=f"m{number}", gpus=gpus, seconds=seconds), rng.uniform(60, 240) * gpus**0.5))
    return loads


def bound_makespan(loads: list[Load], cluster: Cluster) -> float:
    """No schedule is shorter: all GPU-seconds side by side, or the longest model alone, with every load that the
    walltime makes necessary."""

    def need(load: Load) -> float:
        return load.job.seconds + load.loading * -(-load.job.seconds // (cluster.walltime - load.loading))

    return max(sum(load.job.gpus * need(load) for load in loads) / cluster.gpus, *map(need, loads))


def simulate(loads: list[Load], cluster: Cluster, *, noise: float = 0.3, seed: int = 0) -> Makespan:
    """Work through all models. What is expected of a model is wrong by a factor of `noise` (lognormal), so that the
    scheduler does not know more here than it does in a sweep."""
    rng = random.Random(seed)
    loading = {load.job.name: load.loading for load in loads}
    left = {load.job.name: load.job.seconds for load in loads}
    waiting = {
        load.job.name: ServerJob(
            name=load.job.name, gpus=load.job.gpus, seconds=load.job.seconds * rng.lognormvariate(0.0, noise)
        )
        for load in loads
    }
    ends: list[tuple[float, str, int, ServerJob, float]] = []
    now, free, servers = 0.0, [cluster.gpus_each] * cluster.nodes, 0
    while waiting or ends:
        refused: set[str] = set()
        while True:
            candidates = [job for name, job in waiting.items() if name not in refused]
            job = pick_next(candidates, {"gpus": float(sum(free))})
            if job is None:
                break
            node = min(
                (place for place in range(cluster.nodes) if free[place] >= job.gpus), key=free.__getitem__, default=-1
            )
            if node < 0:  # as a fleet that says NoRoom
                refused.add(job.name)
                continue
            del waiting[job.name]
            work = min(left[job.name], cluster.walltime - loading[job.name])
            heappush(ends, (now + loading[job.name] + work, job.name, node, job, work))
            free[node] -= job.gpus
            servers += 1
        now, name, node, job, work = heappop(ends)
        free[node] += job.gpus
        left[name] -= work
        if left[name] > 1e-9:  # the walltime has ended: what was answered is kept, and says how fast the model is
            waiting[name] = ServerJob(name=name, gpus=job.gpus, seconds=left[name])
    return Makespan(now, bound_makespan(loads, cluster), servers)
