"""The scaling model: against closed forms, against the code that it speaks of, and its page."""

import itertools
import random
import re
from collections.abc import Callable
from math import ceil, factorial
from pathlib import Path
from statistics import fmean

import pytest

from tests.conftest import Oven
from tests.helpers.baked import QUESTIONS, calls_of_a_job
from tests.helpers.documents import read_yaml
from tests.helpers.markdown import Document
from tests.tools.scaling import page, plots
from tests.tools.scaling.model import (
    CONSTANTS,
    DURABLE,
    ONCE_WRITES,
    POLLERS,
    QUEUE,
    QUOTAS,
    Load,
    Run,
    Variant,
    ceilings,
    cost,
    known,
    needs,
    of_function,
    of_pollers,
    of_queue,
    plan,
    play,
    raises,
    round_up,
    simulate,
    steadily,
    workers,
    write_units,
)

VARIANTS = {variant.name: variant for variant in (QUEUE, DURABLE)}
LOADS = [Load(rate, work) for rate in (1, 100, 10_000) for work in (0.1, 1, 60)]
both = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def exponential(mean: float, seed: int = 2) -> Callable[[], float]:
    """Work times that know nothing of each other."""
    draw = random.Random(seed)
    return lambda: draw.expovariate(1 / mean)


def mean_wait(run: Run) -> float:
    """How long jobs wait on average, the first thousand left out."""
    pairs = zip(run.arrivals[1000:], run.starts[1000:], strict=True)
    return fmean(start - arrival for arrival, start in pairs)


# ---------------------------------------------------------------- the simulation


@pytest.mark.parametrize(("servers", "load"), [(1, 0.6), (4, 0.7), (20, 0.9)])
def test_random_work_waits_as_erlang_says(servers: int, load: float) -> None:
    """M/M/c: the mean wait by Erlang's C formula."""
    offered = servers * load
    last = offered**servers / factorial(servers) / (1 - load)
    all_busy = last / (sum(offered**n / factorial(n) for n in range(servers)) + last)
    run = simulate(steadily(offered, 100_000 / offered), exponential(1), servers)

    assert mean_wait(run) == pytest.approx(all_busy / (servers - offered), rel=0.1)


def test_equal_work_waits_as_pollaczek_and_khinchine_say() -> None:
    """M/D/1: half as long as with random work."""
    run = simulate(steadily(0.7, 100_000), lambda: 1.0, 1)

    assert mean_wait(run) == pytest.approx(0.7 / (2 * 0.3), rel=0.05)


def busy_over_time(run: Run, began: list[float]) -> tuple[float, int]:
    """The integral, and the maximum, of how many jobs have begun and not ended."""
    moments = sorted([(t, 1) for t in began] + [(t, -1) for t in run.ends])
    levels = list(itertools.accumulate(step for _, step in moments))
    gaps = itertools.pairwise(moment for moment, _ in moments)
    area = sum(n * (b - a) for n, (a, b) in zip(levels, gaps, strict=False))
    return area, max(levels)


@pytest.mark.parametrize("opens", [of_queue, of_function, of_pollers(2)])
def test_no_job_is_lost_and_no_worker_has_two(opens: Callable[[int], float]) -> None:
    """Conservation; the limit; first come, first served; and Little's law, which is exact here."""
    run = simulate(steadily(30, 200), exponential(1), 40, opens=opens, cold=0.5, delay=0.1)
    in_system, _ = busy_over_time(run, run.arrivals)
    _, most = busy_over_time(run, run.starts)

    assert len(run.arrivals) == len(run.starts) == len(run.ends) == len([*steadily(30, 200)])
    assert all(s >= a + 0.1 for a, s in zip(run.arrivals, run.starts, strict=True))
    assert run.starts == sorted(run.starts)
    assert most <= 40
    assert in_system == pytest.approx(sum(run.latencies))
    assert run.waiting(1e9) == 0


def test_a_burst_drains_as_arithmetic_says() -> None:
    """In rounds, if the workers are there; else with the last worker that opens."""
    rounds = simulate([0.0] * 103, lambda: 2.0, 10)
    opening = simulate([0.0] * 1_000, lambda: 900.0, 1_000, opens=of_queue, cold=0.5)

    assert rounds.percentile(100) == 2.0 * ceil(103 / 10)
    assert rounds.percentile(50) == 2.0 * ceil(52 / 10)
    assert rounds.waiting(0) == 93
    assert opening.percentile(100) == (1_000 - 5) / 5 + 0.5 + 900


def test_workers_open_as_aws_says() -> None:
    """Five and 300 a minute; 1,000 and 1,000 in 10 s; two pollers' and 1,000 a minute."""
    assert [of_queue(n) for n in (4, 304)] == [0, 60]
    assert [of_function(n) for n in (999, 1_999)] == [0, 10]
    assert [of_pollers(2)(n) for n in (19, 1_019)] == [0, 60]
    assert of_pollers(200)(1_999) == 10  # not faster than the function


def test_more_is_never_worse() -> None:
    """More workers, earlier workers, less work, fewer jobs: no job takes longer.

    Cold starts aside: a new worker can be slower than to wait for a warm one, and Lambda takes it.
    """
    arrivals = [*steadily(20, 100)]
    base = simulate(arrivals, lambda: 1.0, 22, opens=of_queue)
    better = [
        simulate(arrivals, lambda: 1.0, 23, opens=of_queue),
        simulate(arrivals, lambda: 1.0, 22),
        simulate(arrivals, lambda: 0.9, 22, opens=of_queue),
        simulate([2 * t for t in arrivals], lambda: 1.0, 22, opens=of_queue),
    ]

    for run in better:
        spent = [end - begin for begin, end in zip(run.arrivals, run.ends, strict=True)]
        before = [end - begin for begin, end in zip(base.arrivals, base.ends, strict=True)]
        assert all(a <= b + 1e-9 for a, b in zip(spent, before, strict=True))
        assert sum(spent) < sum(before)


def test_a_few_workers_stand_for_many() -> None:
    """A grain changes neither the backlog nor, much, the percentiles."""
    fine, coarse = (
        simulate(steadily(190, 400, n), lambda: 1.0, 200, opens=of_queue, grain=n) for n in (1, 4)
    )

    assert coarse.percentile(99) == pytest.approx(fine.percentile(99), rel=0.05)
    assert coarse.waiting(30) == pytest.approx(fine.waiting(30), rel=0.05)
    warm = [simulate(steadily(190, 400, n), lambda: 1.0, 200, grain=n) for n in (1, 4)]
    assert warm[1].percentile(99) == pytest.approx(warm[0].percentile(99), rel=0.05)


# ---------------------------------------------------------------- quotas and cost


def test_what_a_load_asks_for() -> None:
    """A hundred jobs of a second each second, reckoned by hand."""
    of_both = {
        "API Gateway requests": 300,
        "writes to a new table": 300,
        "writes to a table": 300,
        "SNS messages": 100,
    }
    assert needs(QUEUE, Load(100, 1)) == pytest.approx(
        {
            **of_both,
            "WorkerConcurrency": 105,
            "messages in flight": 105,
            "Lambda concurrency": 105 + 7.5,
            "reads of a new table": 200,
        }
    )
    assert needs(DURABLE, Load(100, 1)) == pytest.approx(
        {
            **of_both,
            "starts of executions": 100,
            "running executions": 110,
            "checkpoints": 400,
            "Lambda concurrency": 110 + 7.5,
            "reads of a new table": 300,
        }
    )
    # Ten synchronous invocations a second are the most that one sandbox serves.
    assert needs(QUEUE, Load(100, 0.01))["Lambda concurrency"] == (300 + 100) / 10


@both
@pytest.mark.parametrize("load", LOADS, ids=str)
def test_a_ceiling_is_where_a_quota_ends(variant: Variant, load: Load) -> None:
    for name, rate in ceilings(variant, load).items():
        there = needs(variant, Load(rate, load.work))[name]
        assert there == pytest.approx(QUOTAS[name]["default"]), name


@both
@pytest.mark.parametrize("load", LOADS, ids=str)
def test_what_is_raised_is_enough(variant: Variant, load: Load) -> None:
    """Every quota has room, and no delivery can be throttled for want of a sandbox."""
    raised = raises(variant, load)
    for name, need in needs(variant, load).items():
        if name != "WorkerConcurrency" or POLLERS not in raised:
            assert need <= 0.8 * raised.get(name, QUOTAS[name]["default"]) + 1e-6, name
    sandboxes = raised.get("Lambda concurrency", QUOTAS["Lambda concurrency"]["default"])
    assert 10 * raised.get(POLLERS, 0) + load.rate * 3 * 0.025 <= sandboxes
    assert raised.get("WorkerConcurrency", 0) <= 1_000
    if POLLERS in raised:
        assert 10 * raised[POLLERS] * 0.8 >= max(workers(variant, load), load.rate)


@both
def test_with_what_is_raised_the_warm_load_is_served(variant: Variant) -> None:
    load = Load(20, 1)
    limit, _ = plan(variant, load)
    run = play(load, 1 + variant.aside, limit)

    assert run.percentile(99) < 2 * run.percentile(1)


@pytest.mark.parametrize(("value", "up"), [(1, 1), (75.1, 76), (100, 100), (1_201, 1_300)])
def test_round_up(value: float, up: int) -> None:
    assert round_up(value) == up


def test_a_large_job_is_written_whole_each_time() -> None:
    """Three writes of an item of more than 50 KB, the last one with the result."""
    assert write_units(QUEUE, Load(1, 1, data=0)) == 3
    assert write_units(QUEUE, Load(1, 1, data=102_400)) == 51 + 51 + 101
    assert needs(QUEUE, Load(7, 1, data=102_400))["writes to a table"] == 7 * 203


# ---------------------------------------------------------------- the code and its templates


@pytest.mark.parametrize("name", QUESTIONS["worker"])
def test_a_job_asks_of_aws_what_the_model_says(name: str, baked: Oven) -> None:
    variant, job = VARIANTS[name], calls_of_a_job(baked.fresh(worker=name))
    run = job["run"]

    hand_over = "SendMessage" if variant.sqs else "invocations"
    assert job["post"] == {"PutItem JobsTable": 1, hand_over: 1}
    assert job["get"] == {"GetItem JobsTable": 1}
    assert run.pop("UpdateItem JobsTable") + 1 == len(variant.items)
    assert run.pop("GetItem JobsTable", 0) == variant.reads
    once = (run.pop("PutItem IdempotencyTable"), run.pop("UpdateItem IdempotencyTable"))
    assert sum(once) == ONCE_WRITES
    assert run == {"Publish": 1}
    assert variant.sqs in (0, 1 + 2)  # the send, and the mapping's receive and delete
    assert job.get("operations", 0) == variant.operations
    # A step of more than a second saves its start by itself.
    assert job.get("checkpoints", 0) in (variant.checkpoints, variant.checkpoints - 1)
    for stored, told in zip(job["items"], variant.items, strict=True):
        assert 0.75 * told < stored - job["data"] + 100 < told + 100


def test_the_defaults_are_those_of_the_template(baked: Oven) -> None:
    queue, durable = (read_yaml(baked(worker=w).read("template.yaml")) for w in VARIANTS)
    concurrency = queue["Parameters"]["WorkerConcurrency"]
    kept = durable["Resources"]["WorkerFunction"]["Properties"]["DurableConfig"]
    responses = baked(worker="queue").read("src/web/responses.py")
    polled = re.search(r"^POLL_SECONDS = (\d+)", responses, re.M)

    assert QUOTAS["WorkerConcurrency"]["default"] == concurrency["Default"]
    assert QUOTAS["WorkerConcurrency"]["most"] == concurrency["MaxValue"]
    assert known("assumed", "GB of a sandbox") * 1024 == queue["Globals"]["Function"]["MemorySize"]
    assert known("assumed", "days that an execution is kept") == kept["RetentionPeriodInDays"]
    assert polled
    assert f"every {('', 'one', 'two')[int(polled[1])]} seconds" in page.summary()
    assert queue["Parameters"]["BatchSize"]["Default"] == 1


@pytest.mark.parametrize("name", QUESTIONS["worker"])
def test_the_prices_are_those_of_the_reference(name: str, baked: Oven) -> None:
    """And the whole cost, where its job is the model's: a second of work, without waits."""
    head = ("What", "Units per job", "Price per million units", "Per million jobs")
    *items, (_, _, _, total) = Document(baked(worker=name).path / "docs/reference.md").table(*head)
    prices = {entry["value"] for entry in CONSTANTS["price"].values()}

    assert {float(price) for _, _, price, _ in items} <= prices
    if name == "queue":
        assert total == f"**{sum(cost(QUEUE, Load(1, 1)).values()):.3f}**"


# ---------------------------------------------------------------- the page


def test_every_figure_has_a_source() -> None:
    places = (
        "https://docs.aws.amazon.com/",
        "https://aws.amazon.com/",
        "docs/reference.md",
        "template",
    )
    for kind in ("quota", "speed", "price"):
        for name, entry in CONSTANTS[kind].items():
            assert entry["source"].startswith(places), name
    assert all(entry["source"] for entry in CONSTANTS["assumed"].values())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", CONSTANTS["read"])


def test_the_page_tells_what_is_assumed() -> None:
    hand_over = known("assumed", "seconds between the 202 and a free worker")
    queue, durable = (f"{hand_over + v.aside:.2g} s" for v in VARIANTS.values())

    assert f"to be {queue} with a queue and {durable} in the durable" in Document(page.PAGE).prose


def test_a_burst_starts_no_more_executions_than_may_start() -> None:
    """The last job of the plot, which has the quota in its legend."""
    starts = QUOTAS["starts of executions"]["default"]
    last = page.burst()[f"durable, {starts} starts per second"].ends[-1]

    assert last == pytest.approx((10_000 - 1) / starts + 1 + DURABLE.aside)


def test_the_page_and_its_plots_are_what_the_model_says() -> None:
    """If not: python -m tests.tools.scaling.page."""
    told = page.made()

    assert [p.name for p, text in told.items() if p.read_text(encoding="utf-8") != text] == []
    shown = re.findall(r"\]\(scaling/(\S+\.svg)\)", told[page.PAGE])
    assert sorted(shown) == sorted(path.name for path in Path(page.FOLDER).glob("*.svg"))
    assert {path.name for path in told} == {"scaling.md", *shown}


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, by WCAG."""

    def light(colour: str) -> float:
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("background", ["#ffffff", "#0d1117"])
def test_plots_can_be_read_on(background: str) -> None:
    """GitHub's backgrounds: letters by 3.8, and lines, as WCAG asks of graphics, by 3."""
    assert contrast(plots.INK, background) > 3.8
    for colour in plots.COLOURS:
        assert contrast(colour, background) > 3, colour
