"""How far a generated project scales, reckoned from AWS's documentation: docs/scaling.md.

What a load asks of a quota grows with its rate alone, so that part is arithmetic. How long jobs
wait while workers are too few, or not there yet, is simulated job by job: percentiles come out of
random arrivals, which a fluid would smooth away. Rates are per second, times in seconds, sizes in
bytes, prices in US dollars for a million.
"""

import heapq
import random
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, inf, log10
from pathlib import Path
from typing import Any

CONSTANTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("constants.toml").read_text(encoding="utf-8")
)
"""Each figure that comes from outside, with its source."""

QUOTAS: dict[str, dict[str, Any]] = CONSTANTS["quota"]
POLLERS = "MaximumPollers"
"""Of the event source mapping in provisioned mode."""


def known(kind: str, name: str) -> float:
    """Return a constant. Raises KeyError when there is none of this kind and name."""
    return float(CONSTANTS[kind][name]["value"])


@dataclass(frozen=True)
class Load:
    """Jobs that arrive, and what each of them is like."""

    rate: float
    work: float
    """Seconds of computing; waits of a durable function do not count."""
    data: int = 100
    """Bytes of payload and result, half each."""
    gets: float = known("assumed", "status requests of a job")


@dataclass(frozen=True)
class Variant:
    """What one job asks of AWS; tests/scaling/test_scaling.py counts it in the code."""

    name: str
    items: tuple[int, ...]
    """Size of the job's item after each write, without payload and result."""
    reads: int = 0
    """Reads of the job by its worker."""
    sqs: int = 0
    operations: int = 0
    checkpoints: int = 0

    @property
    def aside(self) -> float:
        """Seconds that a worker is busy with a job beside its work."""
        return known("assumed", f"seconds of a worker beside the work, {self.name}")


QUEUE = Variant("queue", items=(400, 500, 600), sqs=3)
DURABLE = Variant("durable", items=(400, 650, 700), reads=1, operations=4, checkpoints=4)
ONCE_WRITES = 2
"""Of the notification, in the table of side effects."""


# ------------------------------------------------------------------ quotas and cost


def write_units(variant: Variant, load: Load) -> int:
    """Return the write units of one job: each write counts the whole item, by the KB."""
    held = [load.data / 2] * (len(variant.items) - 1) + [load.data]
    return sum(ceil((size + more) / 1024) for size, more in zip(variant.items, held, strict=True))


def read_units(variant: Variant, load: Load) -> float:
    """Return the read units of one job: consistent reads, by 4 KB."""
    return (variant.reads + load.gets) * ceil((variant.items[-1] + load.data) / 4096)


def workers(variant: Variant, load: Load) -> float:
    """Return how many workers are busy on average, by Little's law."""
    return load.rate * (load.work + variant.aside)


def api(load: Load) -> float:
    """Return how many sandboxes of the API are busy on average."""
    return load.rate * (1 + load.gets) * known("assumed", "seconds of a request to the API")


def pollers(variant: Variant, load: Load) -> float:
    """Return how many provisioned pollers are busy; a poll is taken to fetch one batch of one."""
    held = workers(variant, load) / known("speed", "workers of a poller")
    return max(held, load.rate / known("speed", "polls of a poller in a second"))


def needs(variant: Variant, load: Load) -> dict[str, float]:
    """Return what the load asks of each quota. All of it is proportional to the rate."""
    busy, requests = workers(variant, load), load.rate * (1 + load.gets)
    synchronous = requests + (load.rate if variant.sqs else 0)
    served = known("speed", "synchronous invocations of a sandbox in a second")
    if variant.sqs:
        asked = {"WorkerConcurrency": busy, "messages in flight": busy}
    else:
        asked = {"starts of executions": load.rate, "running executions": busy}
        asked["checkpoints"] = load.rate * variant.checkpoints
    asked["Lambda concurrency"] = max(busy + api(load), synchronous / served)
    asked["API Gateway requests"] = requests
    for table in ("writes to a new table", "writes to a table"):
        asked[table] = load.rate * write_units(variant, load)
    asked["reads of a new table"] = load.rate * read_units(variant, load)
    return asked | {"SNS messages": load.rate}


def ceilings(variant: Variant, load: Load) -> dict[str, float]:
    """Return the rate at which each quota is used up, lowest first."""
    rates = {n: load.rate * QUOTAS[n]["default"] / need for n, need in needs(variant, load).items()}
    return dict(sorted(rates.items(), key=lambda pair: pair[1]))


def round_up(value: float) -> int:
    """Round up to two digits: 1,234 to 1,300."""
    step = int(10 ** max(0, floor(log10(value)) - 1))
    return ceil(value / step) * step


def raises(variant: Variant, load: Load) -> dict[str, int]:
    """Return the quotas to raise and to what, so that the load leaves some of each unused.

    Where WorkerConcurrency cannot be large enough, the maximum of provisioned pollers stands in
    its place. Either way there are sandboxes for all: a delivery that is throttled has failed.
    """
    share = known("assumed", "share of a quota to plan with")
    asked = {name: need / share for name, need in needs(variant, load).items()}
    raised: dict[str, int] = {}
    if asked.get("WorkerConcurrency", 0) > QUOTAS["WorkerConcurrency"]["most"]:
        del asked["WorkerConcurrency"]
        raised[POLLERS] = round_up(pollers(variant, load) / share)
        most = raised[POLLERS] * known("speed", "workers of a poller") + api(load)
        asked["Lambda concurrency"] = max(asked["Lambda concurrency"], most)
    return raised | {n: round_up(need) for n, need in asked.items() if need > QUOTAS[n]["default"]}


def out_of_reach(raised: dict[str, int]) -> list[str]:
    """Return what would have to be raised further than it can be."""
    most = {name: quota.get("most", inf) for name, quota in QUOTAS.items()}
    most[POLLERS] = known("speed", "pollers of a queue at most")
    return [name for name, value in raised.items() if value > most[name]]


def cost(variant: Variant, load: Load) -> dict[str, float]:
    """Return the dollars for a million jobs, by what is paid for."""
    requests = 1 + load.gets
    seconds = (workers(variant, load) + api(load)) / load.rate
    # An execution keeps what the work's step returns, the reference and the answer.
    kept = (load.data / 2 + 150) / 1024 if variant.operations else 0
    units = {
        "HTTP API, requests": requests,
        "Lambda, requests": requests + 1,
        "Lambda, GB-seconds": seconds * known("assumed", "GB of a sandbox"),
        "DynamoDB, write units": write_units(variant, load) + ONCE_WRITES,
        "DynamoDB, read units": read_units(variant, load),
        "DynamoDB, KB-months with recovery": ceil((variant.items[-1] + load.data) / 1024),
        "SQS, requests": variant.sqs,
        "SNS, messages": 1,
        "CloudWatch, KB of logs": known("assumed", "KB of logs of a job"),
        "X-Ray, traces": (requests + 1) * known("assumed", "traces of an invocation"),
        "durable operations": variant.operations,
        "durable KB written": kept,
        "durable KB-months": kept * known("assumed", "days that an execution is kept") / 30,
    }
    if POLLERS in raises(variant, load):
        units["poller-hours"] = pollers(variant, load) / load.rate / 3600
    return {name: n * known("price", name) for name, n in units.items() if n}


# ------------------------------------------------------------------ simulation

Opens = Callable[[int], float]
"""When the worker of this number may begin, counted from 0: how fast Lambda adds workers."""


def at_once(_: int) -> float:
    """Every worker is there from the beginning."""
    return 0.0


def of_function(n: int) -> float:
    """A function's sandboxes: so many at once, then more at the same rate."""
    step = known("speed", "sandboxes that a function adds in 10 s")
    return max(0.0, (n + 1 - step) / (step / 10))


def of_queue(n: int) -> float:
    """The workers of an SQS event source mapping."""
    added = known("speed", "workers that a queue adds in a minute")
    return max(0.0, (n + 1 - known("speed", "workers that a queue starts with")) * 60 / added)


def of_pollers(least: int) -> Opens:
    """The workers of a mapping in provisioned mode, with `least` pollers always there."""
    first = least * known("speed", "workers of a poller")
    added = known("speed", "workers that provisioned pollers add in a minute")
    return lambda n: max(of_function(n), (n + 1 - first) * 60 / added)


def plan(variant: Variant, load: Load) -> tuple[int, Opens]:
    """Return how many workers there may be once `raises` is heeded, and how fast they come."""
    raised = raises(variant, load)
    if POLLERS in raised:
        return raised[POLLERS] * int(known("speed", "workers of a poller")), of_pollers(2)
    if variant.sqs:
        return raised.get("WorkerConcurrency", QUOTAS["WorkerConcurrency"]["default"]), of_queue
    sandboxes = raised.get("Lambda concurrency", QUOTAS["Lambda concurrency"]["default"])
    return sandboxes - ceil(api(load)), of_function


@dataclass(frozen=True)
class Run:
    """Jobs that were run: when each arrived, started and ended, in order of arrival.

    Each of them stands for `grain` jobs.
    """

    arrivals: list[float]
    starts: list[float]
    ends: list[float]
    grain: int = 1

    @cached_property
    def latencies(self) -> list[float]:
        """Seconds from arrival to end, shortest first."""
        return sorted(end - began for began, end in zip(self.arrivals, self.ends, strict=True))

    def percentile(self, percent: float) -> float:
        """Return the latency that so many percent of the jobs do not exceed."""
        return self.latencies[max(0, ceil(len(self.latencies) * percent / 100) - 1)]

    def waiting(self, moment: float) -> int:
        """Return how many jobs have arrived and not started."""
        started = bisect_right(self.starts, moment)
        return self.grain * (bisect_right(self.arrivals, moment) - started)


def simulate(
    arrivals: Iterable[float],
    work: Callable[[], float],
    limit: int,
    *,
    opens: Opens = at_once,
    cold: float = 0.0,
    delay: float = 0.0,
    grain: int = 1,
) -> Run:
    """Run jobs, first come, first served, on at most `limit` workers.

    Args:
        arrivals: when jobs arrive, in order.
        work: draws how long a job keeps its worker busy.
        opens: when each worker may begin; the first job of each takes `cold` longer.
        delay: from a job's arrival until a worker could have it.
        grain: how many jobs one simulated job stands for; `limit` and `opens` count workers.
    """
    run = Run([], [], [], grain)
    busy: list[float] = []  # when each worker at work is free again
    idle = opened = 0
    for arrival in arrivals:
        now = arrival + delay
        while busy and busy[0] <= now:
            heapq.heappop(busy)
            idle += 1
        more = opens((opened + 1) * grain - 1) if opened < max(1, limit // grain) else inf
        if idle:
            idle, start, took = idle - 1, now, work()
        elif not busy or more <= busy[0]:
            opened, start, took = opened + 1, max(now, more), work() + cold
        else:
            start, took = heapq.heappop(busy), work()
        heapq.heappush(busy, start + took)
        run.arrivals.append(arrival)
        run.starts.append(start)
        run.ends.append(start + took)
    return run


def steadily(rate: float, seconds: float, grain: int = 1, seed: int = 1) -> Iterable[float]:
    """Yield independent arrivals at a rate; with a grain, every `grain`-th of them."""
    draw, moment = random.Random(seed), 0.0
    while (moment := moment + draw.gammavariate(grain, 1 / rate)) < seconds:
        yield moment


def play(
    load: Load, took: float, limit: int, opens: Opens | None = None, seconds: float = 0.0
) -> Run:
    """Run what arrives in so many seconds, or without `opens` 20,000 jobs on warm workers.

    Every job keeps its worker busy for `took`. Of very many workers, each simulated one stands
    for several that do the same; the arrivals keep their variance.
    """
    begin = 0.0 if opens else 3 * took
    grain = max(1, min(limit // 50, int(load.rate * (seconds or begin) / 20_000)))
    run = simulate(
        steadily(load.rate, seconds or begin + 20_000 * grain / load.rate, grain),
        lambda: took,
        limit,
        opens=opens or at_once,
        cold=known("assumed", "seconds of a cold start") if opens else 0.0,
        delay=known("assumed", "seconds between the 202 and a free worker"),
        grain=grain,
    )
    first = bisect_right(run.arrivals, begin)
    return Run(run.arrivals[first:], run.starts[first:], run.ends[first:], grain)
