"""Write the model's results into docs/scaling.md and its plots.

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
    """Return a number with two significant digits."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def span(seconds: float) -> str:
    """Return a duration with a readable unit."""
    if seconds >= 120:
        return f"{short(seconds / 60)} min"
    return f"{short(seconds)} s" if seconds >= 10 else f"{float(f'{seconds:.3g}'):g} s"


def total(variant: Variant, load: Load) -> float:
    """Return the cost of a million jobs in dollars."""
    return sum(cost(variant, load).values())


def lowest(variant: Variant, load: Load) -> tuple[str, float]:
    """Return the quota that is used up first, and the rate in jobs per second."""
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
        reached = "" if most >= rate else f"{short(most)} per second: {name}"
        cells = [f"{rate:,}", f"{work:g} s", reached, told, *times]
        rows.append([*cells, f"{total(variant, load):,.0f}"])
    head = ["Jobs per second", "Work per job", "Limit as generated", "Raise to", "p50 / p99, warm"]
    return table([*head, "p50 / p99, first 10 min", "Most waiting", "$ per million jobs"], rows)


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
    head = ["Quota", "Default", "If exceeded", *(f"{work:g} s" for work in WORK)]
    return table([*head, f"Source, read {CONSTANTS['read']}"], rows)


def summary() -> str:
    """Return the summary of the results."""
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
            f" {QUOTAS['WorkerConcurrency']['default']} workers complete {stops[0][0]} jobs per"
            f" second when each job takes 0.1 s, {stops[0][1]} when it takes 1 s, and"
            f" {stops[0][2]} when it takes 60 s. Further jobs wait in the queue.",
            f"- **Durable: at most {stops[1][0]} jobs start per second**, however long they take."
            f" Above that rate, `POST` answers 503. At {stops[1][2]} jobs per second that compute"
            " for 60 s each, the jobs use all of Lambda's concurrency, including the API's share.",
            "- **A queue adds workers slowly.** Suppose that"
            f" {some.rate:,} jobs of 1 s begin to arrive each second, with raised quotas. In the"
            f" first ten minutes, 1 % of the jobs take more than {slow[0]}. In the durable variant,"
            f" 1 % take more than {slow[1]}.",
            f"- **{much.rate:,} jobs per second** are possible if each computes for about 1 s. If"
            " each computes for 60 s, they keep"
            f" {short(needs(QUEUE, Load(10_000, 60))['WorkerConcurrency'])} sandboxes busy. Move"
            " the computation to another service, and let a durable job wait for the answer.",
            "- **Polling can cost more than the jobs.** If callers poll every two seconds, a job of"
            f" 60 s has {asked.gets} status requests. API Gateway then reaches its quota at"
            f" {short(ceilings(QUEUE, asked)['API Gateway requests'])} jobs per second, and a"
            f" million jobs cost {short(polling)} dollars more.",
            "- **Each write counts the whole job.** With"
            f" {large.data // 2_000} KB of payload and {large.data // 2_000} KB of result, a job"
            f" uses {write_units(QUEUE, large)} write units instead of {units}. One table reaches"
            f" its quota at {short(ceilings(QUEUE, large)['writes to a table'])} jobs per second,"
            f" and a million jobs cost {short(total(QUEUE, large))} dollars.",
            f"- **A new table doubles its capacity step by step.** It accepts {new:,} write units"
            f" per second at first, and {much.rate:,} jobs per second need {much.rate * units:,}."
            f" Raise the load over {growing:g} minutes, or set the table's warm throughput before.",
        )
    )


def paces() -> str:
    """Return how fast workers are added, and what the plots assume."""
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
        f"The event source mapping of a queue starts with {first} workers and adds {added} per"
        f" minute, up to `WorkerConcurrency`, which is at most {most['most']:,}. The load of the"
        f" first plot needs {needs(QUEUE, SUDDEN)['WorkerConcurrency']:,.0f} workers. Provisioned"
        f" pollers add {by_pollers} workers per minute, and you can pay for more of them from the"
        f" start. A function that is invoked asynchronously has {sandboxes} sandboxes at once and"
        f" adds {sandboxes} every 10 s. The first plot assumes that all other quotas are raised. In"
        f" the second plot, {starts['default']} executions start per second, and callers repeat"
        " requests that were answered with 503."
    )


def ceiling_chart(variant: Variant) -> str:
    """Draw the rate at which each quota is used up, over the work time."""
    works = [0.1 * 1.1**n for n in range(97)]
    reached = [ceilings(variant, Load(1, work)) for work in works]
    lines = [
        Line(name, [(work, rates[name]) for work, rates in zip(works, reached, strict=True)])
        for name in QUOTAS  # those of both variants first, so in the same colours
        if name in reached[0] and name not in ("SNS messages", "reads of a new table")
    ]
    x = Axis("seconds of work per job", (0.1, 1, 10, 100, 900), logarithmic=True)
    y = Axis("jobs per second", (0.01, 0.1, 1, 10, 100, 1_000, 10_000, 100_000), logarithmic=True)
    return chart(f"Rate at which each default quota is used up, {variant.name}", x, y, lines)


def ramp_chart() -> str:
    """Draw how many jobs wait after a load begins."""
    load, lines, most = SUDDEN, [], QUOTAS["WorkerConcurrency"]["most"]
    for name, variant, limit, opens in (
        (f"queue, {most:,} workers", QUEUE, most, of_queue),
        ("queue, 2 to 140 pollers", QUEUE, 1_400, of_pollers(2)),
        ("queue, 50 to 140 pollers", QUEUE, 1_400, of_pollers(50)),
        ("durable, 1,400 sandboxes", DURABLE, 1_400, of_function),
    ):
        run = play(load, load.work + variant.aside, limit, opens, FIRST)
        lines.append(Line(name, [(at / 60, run.waiting(at)) for at in range(0, 601, 5)]))
    y = Axis("waiting jobs", range(0, 140_001, 20_000))
    return chart(
        "From no load to 1,000 jobs per second, 1 s of work each",
        Axis("minutes", range(11)),
        y,
        lines,
    )


def burst() -> dict[str, Run]:
    """Run a burst: a queue accepts it at once, executions start at the quota's rate."""
    starts, runs = QUOTAS["starts of executions"]["default"], {}
    for name, variant, gap, limit, opens in (
        ("queue, 10 workers", QUEUE, 0.0, 10, of_queue),
        ("queue, 100 workers", QUEUE, 0.0, 100, of_queue),
        ("queue, 1,000 workers", QUEUE, 0.0, 1_000, of_queue),
        (f"durable, {starts} starts per second", DURABLE, 1 / starts, 1_000, of_function),
    ):
        arrivals, took = (n * gap for n in range(10_000)), 1 + variant.aside
        runs[name] = simulate(arrivals, partial(float, took), limit, opens=opens)
    return runs


def burst_chart() -> str:
    """Draw how the unfinished jobs of a burst decrease."""
    lines = []
    for name, run in burst().items():
        left = [(end, 10_000 - n) for n, end in enumerate(sorted(run.ends), start=1)]
        lines.append(Line(name, [(1, 10_000), *left[::50], left[-1]]))
    x = Axis("seconds", (1, 10, 100, 1_000, 2_000), logarithmic=True)
    y = Axis("unfinished jobs", range(0, 10_001, 2_000))
    return chart("10,000 jobs at once, 1 s of work each", x, y, lines)


def made() -> dict[Path, str]:
    """Return the content of every generated file."""
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
