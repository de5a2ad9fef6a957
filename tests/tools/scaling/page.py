"""Write what the model answers into docs/scaling.md and its plots.

python -m tests.tools.scaling.page
"""

from collections.abc import Iterable
from functools import partial
from itertools import product
from math import ceil, log2
from pathlib import Path

from tests import KIT
from tests.tools.scaling.model import (
    CONSTANTS,
    DURABLE,
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
    out_of_reach,
    plan,
    play,
    raises,
    simulate,
    write_units,
)
from tests.tools.scaling.plots import Axis, Line, chart

FOLDER = KIT / "docs" / "scaling"
PAGE = FOLDER.with_suffix(".md")
RATES = (1, 10, 100, 1_000, 10_000)
WORK = (0.1, 1, 60)
FIRST = 600.0
SUDDEN = Load(1_000, 1)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    head = list(head)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def short(value: float) -> str:
    """Return two digits of a number."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def span(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds >= 120:
        return f"{short(seconds / 60)} min"
    return f"{short(seconds)} s" if seconds >= 10 else f"{float(f'{seconds:.3g}'):g} s"


def total(variant: Variant, load: Load) -> float:
    """Return the dollars for a million jobs."""
    return sum(cost(variant, load).values())


def lowest(variant: Variant, load: Load) -> tuple[str, float]:
    """Return the quota that is used up first, and at which rate."""
    return next(iter(ceilings(variant, load).items()))


def answers(variant: Variant) -> str:
    """Return the table of answers for one variant."""
    rows = []
    for rate, work in product(RATES, WORK):
        load = Load(rate, work)
        name, most = lowest(variant, load)
        raised = raises(variant, load)
        told, times = ", ".join(f"{n} {value:,}" for n, value in raised.items()), [""] * 3
        if unable := out_of_reach(raised):
            told = f"out of reach: {', '.join(unable)}"
        else:
            (limit, opens), took = plan(variant, load), work + variant.aside
            first = play(load, took, limit, opens, FIRST)
            runs = (play(load, took, limit), first)
            times = [f"{span(run.percentile(50))} / {span(run.percentile(99))}" for run in runs]
            times.append(short(max(first.waiting(moment) for moment in range(int(FIRST)))))
        reached = "" if most >= rate else f"{short(most)} a second: {name}"
        cells = [f"{rate:,}", f"{work:g} s", reached, told, *times]
        rows.append([*cells, f"{total(variant, load):,.0f}"])
    head = ["Jobs a second", "Work", "As generated, stops at", "Raise to", "p50 / p99, warm"]
    return table([*head, "p50 / p99, first 10 min", "Waiting then", "$ a million"], rows)


def quotas() -> str:
    """Return each quota with the rates at which it is used up."""
    rows = []
    for name, quota in QUOTAS.items():
        cells = [name, f"{quota['default']:,} {quota['unit']}", quota["excess"]]
        for load in (Load(1, work) for work in WORK):
            using = [variant for variant in (QUEUE, DURABLE) if name in needs(variant, load)]
            reached = [short(ceilings(variant, load)[name]) for variant in using]
            cells.append(" / ".join(dict.fromkeys(reached)))
        source = quota["source"]
        page = source.rpartition("/")[2].removesuffix(".html")
        rows.append([*cells, f"[{page}]({source})" if "//" in source else source])
    head = ["Quota", "Default", "What exceeds it", *(f"{work:g} s" for work in WORK)]
    return table([*head, f"Source, read {CONSTANTS['read']}"], rows)


def summary() -> str:
    """Return the answers in words."""
    stops = [[short(lowest(v, Load(1, w))[1]) for w in WORK] for v in (QUEUE, DURABLE)]
    some, much = SUDDEN, Load(10_000, 1)
    slow = [
        span(play(some, 1 + v.aside, *plan(v, some), FIRST).percentile(99))
        for v in (QUEUE, DURABLE)
    ]
    asked, large = Load(1, 60, gets=30), Load(1, 1, data=100_000)
    units, new = write_units(QUEUE, much), QUOTAS["writes to a new table"]["default"]
    growing = known("speed", "minutes in which a table may double its peak") * ceil(
        log2(much.rate * units / new)
    )
    polling = total(QUEUE, asked) - total(QUEUE, Load(1, 60))
    return "\n".join(
        (
            "- **Queue: raise `WorkerConcurrency` first.** As generated,"
            f" {QUOTAS['WorkerConcurrency']['default']} workers do {stops[0][0]} jobs a second of"
            f" 0.1 s, {stops[0][1]} of 1 s, {stops[0][2]} of 60 s. The rest waits in the queue.",
            f"- **Durable: {stops[1][0]} jobs a second** may start, whatever they do; beyond that,"
            f" `POST` answers 503. Of jobs that compute for 60 s, {stops[1][2]} a second use up"
            " Lambda's concurrency, and the API's with it.",
            "- **A queue takes its time to gather workers.** When"
            f" {some.rate:,} jobs of 1 s begin to arrive each second, 1 % of those of the first ten"
            f" minutes take more than {slow[0]}, with quotas raised; in the durable variant,"
            f" {slow[1]}.",
            f"- **{much.rate:,} jobs a second** are within reach if each computes for about a"
            " second. With 60 s they would keep"
            f" {short(needs(QUEUE, Load(10_000, 60))['WorkerConcurrency'])} sandboxes busy: let"
            " something else compute, and a durable job wait for its answer.",
            "- **Polling can cost more than jobs.** Asked for every two seconds, a job of 60 s has"
            f" {asked.gets} status requests. That fills API Gateway at"
            f" {short(ceilings(QUEUE, asked)['API Gateway requests'])} jobs a second, and costs"
            f" {short(polling)} dollars more for a million.",
            "- **Each write counts the whole job.** With"
            f" {large.data // 2_000} KB of payload and as much result, a job takes"
            f" {write_units(QUEUE, large)} write units instead of {units}: one table is full at"
            f" {short(ceilings(QUEUE, large)['writes to a table'])} jobs a second, and a million"
            f" jobs cost {short(total(QUEUE, large))} dollars.",
            f"- **A new table grows by doubling.** It takes {new:,} write units a second at once;"
            f" {much.rate:,} jobs need {much.rate * units:,}. That is {growing:g} minutes of"
            " rising load, or warm throughput bought beforehand.",
        )
    )


def paces() -> str:
    """Return how fast workers are added, and what the plots take for given."""
    first, added, by_pollers, sandboxes = (
        f"{known('speed', name):,.0f}"
        for name in (
            "workers that a queue starts with",
            "workers that a queue adds in a minute",
            "workers that provisioned pollers add in a minute",
            "sandboxes that a function adds in 10 s",
        )
    )
    most, starts = (QUOTAS[name] for name in ("WorkerConcurrency", "starts of executions"))
    return (
        f"A queue's mapping begins with {first} workers, adds {added} a minute, and ends at"
        f" `WorkerConcurrency`, {most['most']:,} at most; the load of the first plot needs"
        f" {needs(QUEUE, SUDDEN)['WorkerConcurrency']:,.0f}. Provisioned pollers add {by_pollers} a"
        " minute, and more of them are there from the beginning if you pay for them. A function"
        f" that is invoked asynchronously has {sandboxes} sandboxes at once, and {sandboxes} more"
        " every 10 s. In the first plot all other quotas are raised. In the second,"
        f" {starts['default']} executions may start in a second, and callers repeat what was"
        " answered with 503."
    )


def ceiling_chart(variant: Variant) -> str:
    """Draw up to which rate each quota is enough, over the work time."""
    works = [0.1 * 1.1**n for n in range(97)]
    reached = [ceilings(variant, Load(1, work)) for work in works]
    lines = [
        Line(name, [(work, rates[name]) for work, rates in zip(works, reached, strict=True)])
        for name in QUOTAS  # those of both variants first, so in the same colours
        if name in reached[0] and name not in ("SNS messages", "reads of a new table")
    ]
    x = Axis("seconds of work", (0.1, 1, 10, 100, 900), logarithmic=True)
    y = Axis("jobs a second", (0.01, 0.1, 1, 10, 100, 1_000, 10_000, 100_000), logarithmic=True)
    return chart(f"Where each default quota ends, {variant.name}", x, y, lines)


def ramp_chart() -> str:
    """Draw how many jobs wait when a load sets in."""
    load, lines, most = SUDDEN, [], QUOTAS["WorkerConcurrency"]["most"]
    for name, variant, limit, opens in (
        (f"queue, {most:,} workers", QUEUE, most, of_queue),
        ("queue, 2 to 140 pollers", QUEUE, 1_400, of_pollers(2)),
        ("queue, 50 to 140 pollers", QUEUE, 1_400, of_pollers(50)),
        ("durable, 1,400 sandboxes", DURABLE, 1_400, of_function),
    ):
        run = play(load, load.work + variant.aside, limit, opens, FIRST)
        lines.append(Line(name, [(at / 60, run.waiting(at)) for at in range(0, 601, 5)]))
    y = Axis("jobs that wait", range(0, 140_001, 20_000))
    return chart("From no load to 1,000 jobs of 1 s a second", Axis("minutes", range(11)), y, lines)


def burst() -> dict[str, Run]:
    """Run a burst: a queue takes it whole, executions start as fast as they may."""
    starts, runs = QUOTAS["starts of executions"]["default"], {}
    for name, variant, gap, limit, opens in (
        ("queue, 10 workers", QUEUE, 0.0, 10, of_queue),
        ("queue, 100 workers", QUEUE, 0.0, 100, of_queue),
        ("queue, 1,000 workers", QUEUE, 0.0, 1_000, of_queue),
        (f"durable, {starts} starts a second", DURABLE, 1 / starts, 1_000, of_function),
    ):
        arrivals, took = (n * gap for n in range(10_000)), 1 + variant.aside
        runs[name] = simulate(arrivals, partial(float, took), limit, opens=opens)
    return runs


def burst_chart() -> str:
    """Draw how a burst is worked off."""
    lines = []
    for name, run in burst().items():
        left = [(end, 10_000 - n) for n, end in enumerate(sorted(run.ends), start=1)]
        lines.append(Line(name, [(1, 10_000), *left[::50], left[-1]]))
    x = Axis("seconds", (1, 10, 100, 1_000, 2_000), logarithmic=True)
    y = Axis("jobs not finished", range(0, 10_001, 2_000))
    return chart("10,000 jobs of 1 s at a stroke", x, y, lines)


def made() -> dict[Path, str]:
    """Return every generated file with what belongs into it."""
    page = PAGE.read_text(encoding="utf-8")
    for name, text in (
        ("summary", summary()),
        ("queue", answers(QUEUE)),
        ("durable", answers(DURABLE)),
        ("quotas", quotas()),
        ("paces", paces()),
    ):
        before, start, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- /{name} -->")
        page = f"{before}{start}{text}{end}{after}"
    charts = {
        "ceilings-queue": ceiling_chart(QUEUE),
        "ceilings-durable": ceiling_chart(DURABLE),
        "ramp": ramp_chart(),
        "burst": burst_chart(),
    }
    return {PAGE: page, **{FOLDER / f"{name}.svg": svg for name, svg in charts.items()}}


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
