"""Runs a campaign: sends the jobs, follows them, and collects what is known at the end."""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from local.stack import Stack
from local.template import FUNCTION
from tests import KIT
from tests.tools.prove.client import Client
from tests.tools.prove.effect_log import NOBODY, EffectLog, Entry
from tests.tools.prove.engine import Engine
from tests.tools.prove.fault_plan import scenarios
from tests.tools.prove.faults import (
    CLOCK_OFF,
    DEAD_LETTERS,
    DELIVERED_AGAIN,
    TIMED_OUT,
    TOO_SLOW,
    FaultCase,
)
from tests.tools.prove.observed_job import ObservedJob
from tests.tools.prove.project import copy

WORKERS = 10
"""The concurrency of the template. Twice as many sandboxes serve repeated deliveries."""
AT_ONCE = 100
"""Unfinished jobs at a time: the emulated queue slows down with its depth."""
SILENCE_SECONDS = 100
"""The campaign ends after this time without progress: longer than a wait of any fault case."""


class Campaign:
    """One job for each fault case, on a laptop stack of its own.

    Args:
        engine: Of the project.
        cases: One for each job.
        say: Receives a line of progress every few seconds.
    """

    def __init__(self, engine: Engine, cases: list[FaultCase], say: Callable[[str], None]) -> None:
        by_name = scenarios(engine)
        self.jobs = [
            ObservedJob(number, case, by_name[case.scenario]) for number, case in enumerate(cases)
        ]
        self.unnamed: list[str] = []
        """AWS calls that points.py does not name and that belong to no job."""
        self.seconds = 0.0
        self._engine = engine
        self._say = say
        self._room = threading.Semaphore(AT_ONCE)
        self._ended: set[int] = set()
        self._posted: set[int] = set()
        self._acted: set[tuple[int, str]] = set()
        self._tasks: list[Future[None]] = []
        self._announced: list[dict[str, Any]] = []
        self._timed_out: set[str] = set()  # invocations
        self._over = False

    def run(self, project: Path, parameters: Mapping[str, str]) -> None:
        """Run a copy of the project until no job changes any more.

        Args:
            project: The generated project; its `local` is the one imported.
            parameters: Template parameters beside the engine's.
        """
        self._started = self._heard = time.monotonic()
        with (
            tempfile.TemporaryDirectory(prefix="prove-") as name,
            ThreadPoolExecutor(4) as posting,
            ThreadPoolExecutor(8) as self._acting,
        ):
            self._folder = Path(name)
            self._log = EffectLog(self._folder / "effects.jsonl")
            plan = [
                {"faults": [asdict(f) for f in job.case.faults], "clocks": job.case.clocks}
                for job in self.jobs
            ]
            (self._folder / "numbers").mkdir()
            (self._folder / "counts").mkdir()
            (self._folder / "plan.json").write_text(json.dumps(plan))
            with _stack(project, self._folder, self._engine, parameters) as self._stack:
                self._topic = _listen(self._stack)
                self._client = Client(self._stack.url)
                self._tasks += [posting.submit(self._post, job) for job in self.jobs]
                try:
                    self._watch()
                finally:  # end the threads that wait
                    self._over = True
                    self._room.release(len(self.jobs))
                self._collect()
                self._client.close()
        self.seconds = time.monotonic() - self._started

    def _watch(self) -> None:
        """Follow what happens, and let the client act on it, until nothing is left to do."""
        said = 0.0
        while time.monotonic() - self._heard < SILENCE_SECONDS:
            if time.monotonic() - said > 5:
                said = time.monotonic()
                self._tell_progress()
            self._follow()
            self._receive_announcements()
            self._note_timeouts()
            if all(task.done() for task in self._tasks) and not self._engine.busy(self._stack):
                letters = self._dead_letters()
                self._follow()
                if not any(job.job_id for job in letters):
                    return
            time.sleep(0.2)

    def _follow(self) -> None:
        for entry in self._log.read_new():
            if entry.ends_job or (entry.kind in ("run", "fault") and entry.what != CLOCK_OFF):
                self._heard = entry.t  # a dead letter that is received again and again is none
            if entry.job == NOBODY:
                if entry.kind == "unnamed":
                    self.unnamed.append(f"{entry.function} {entry.name}")
                continue
            job = self.jobs[entry.job]
            job.entries.append(entry)
            if entry.ends_job:
                self._make_room(job)
                self._act(self._client.look, job)
            if (entry.kind, entry.name) == job.scenario.cue and self._first(job, "client acts"):
                self._act(self._client.act, job)
            if entry.accepted and entry.name == job.case.copies and self._first(job, "copies"):
                sent = [e.what for e in job.entries if (e.kind, e.name) == ("sent", "send")]
                self._log.write(Entry("fault", entry.name, DELIVERED_AGAIN, job.number))
                self._engine.deliver_again(self._stack, sent[::-1])

    def _first(self, job: ObservedJob, what: str) -> bool:
        first = (job.number, what) not in self._acted
        self._acted.add((job.number, what))
        return first

    def _act(self, act: Callable[[ObservedJob], None], job: ObservedJob) -> None:
        def when_accepted() -> None:
            while job.number not in self._posted and not self._over:
                time.sleep(0.05)
            if job.job_id:
                act(job)

        self._tasks.append(self._acting.submit(when_accepted))

    def _post(self, job: ObservedJob) -> None:
        self._room.acquire()
        if self._over:
            return
        self._client.post(job)
        self._posted.add(job.number)
        if not job.job_id:
            self._make_room(job)

    def _make_room(self, job: ObservedJob) -> None:
        if job.number not in self._ended:
            self._ended.add(job.number)
            self._room.release()

    def _receive_announcements(self) -> None:
        sqs = self._stack.aws.client("sqs")
        while messages := sqs.receive_message(
            QueueUrl=self._topic, MaxNumberOfMessages=10, WaitTimeSeconds=0
        ).get("Messages"):
            self._announced += [json.loads(json.loads(m["Body"])["Message"]) for m in messages]
            entries = [
                {"Id": str(n), "ReceiptHandle": m["ReceiptHandle"]} for n, m in enumerate(messages)
            ]
            sqs.delete_message_batch(QueueUrl=self._topic, Entries=entries)

    def _collect(self) -> None:
        """Complete the jobs with what is stored at the end, and what the client sees."""
        self._note_timeouts()
        for job in self._dead_letters():
            job.dead_letters += 1
        items = {item["job_id"]: item for item in self._stack.jobs()}
        for job in self.jobs:
            job.item = items.get(job.job_id)
        self._receive_announcements()
        for told in self._announced:
            if announced := self._find(told["job_id"]):
                announced.announced.append(told.get("finished_at", ""))
        looks = [self._acting.submit(self._client.look, job) for job in self.jobs if job.job_id]
        for task in (*self._tasks, *looks):
            task.result()
        self._follow()

    def _note_timeouts(self) -> None:
        """Log timeouts that were not planned; they are faults, too."""
        for invocation in list(self._stack.invocations):
            error, request = invocation.error or {}, invocation.request_id
            if error.get("errorType") != "Sandbox.Timedout" or request in self._timed_out:
                continue
            self._timed_out.add(request)
            for job in self.jobs:
                its = [entry for entry in job.entries if entry.invocation == request]
                if its and not any(entry.what == TIMED_OUT for entry in its):
                    slow = Entry("fault", "", TOO_SLOW, job.number, 0, its[0].function, request)
                    self._log.write(slow)

    def _dead_letters(self) -> list[ObservedJob]:
        """Return the jobs in the kit's dead-letter queue. Waits until all of it is visible."""

        def hidden() -> bool:
            queues = (q for q in self._stack.queues() if q["name"] == "DeadLetterQueue")
            return any(queue["in_flight"] or queue["delayed"] for queue in queues)

        with self._stack.paused(DEAD_LETTERS):
            while hidden():
                time.sleep(0.2)
            letters = [m for m in self._stack.dead_letters() if m["queue"] == "DeadLetterQueue"]
        found = (self._find(json.loads(letter["body"])["job_id"]) for letter in letters)
        return [job for job in found if job]

    def _find(self, job_id: str) -> ObservedJob | None:
        """Return the campaign's job of that id; functions of the user may make others."""
        with suppress(FileNotFoundError):
            return self.jobs[int((self._folder / "numbers" / job_id).read_text())]
        return None

    def _tell_progress(self) -> None:
        accepted = sum(bool(job.job_id) for job in self.jobs)
        faults = sum(len(job.faults) for job in self.jobs)
        self._say(
            f"{time.monotonic() - self._started:4.0f} s: {accepted} of {len(self.jobs)} jobs"
            f" accepted, {len(self._ended)} ended, {faults} faults"
        )


@contextmanager
def _stack(
    project: Path, folder: Path, engine: Engine, parameters: Mapping[str, str]
) -> Iterator[Stack]:
    """Run a copy of the project. The fault injector runs the handlers of the kit's functions."""
    path = copy(project, folder, engine.name)
    stack = Stack(path, {**engine.parameters, **parameters}, concurrency=2 * WORKERS)
    for name, _, properties in stack.template.resources(FUNCTION):
        if name not in engine.calls:
            continue  # one of the user's own
        variables = properties.setdefault("Environment", {}).setdefault("Variables", {})
        variables |= {
            "PROVE_ENGINE": engine.name,
            "PROVE_FOLDER": str(folder),
            "PROVE_FUNCTION": name,
            "PROVE_HANDLER": properties["Handler"],
            "PYTHONPATH": str(KIT),
        }
        properties["Handler"] = "tests.tools.prove.fault_injector.handler"
    with stack:
        for queue, seconds in engine.visibility_seconds.items():
            stack.aws.client("sqs").set_queue_attributes(
                QueueUrl=stack.aws.queue_url(queue), Attributes={"VisibilityTimeout": str(seconds)}
            )
        yield stack


def _listen(stack: Stack) -> str:
    """Subscribe a queue to the topic of finished jobs, and return its URL."""
    sqs = stack.aws.client("sqs")
    url: str = sqs.create_queue(QueueName="announced")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    stack.aws.client("sns").subscribe(
        TopicArn=stack.template.arn("JobEventsTopic"), Protocol="sqs", Endpoint=arn["QueueArn"]
    )
    return url
