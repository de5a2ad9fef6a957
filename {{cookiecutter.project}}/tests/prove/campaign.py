"""Runs a campaign: accepts the jobs, plays their owner, and collects what is known at the end."""

import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from local.stack import Stack
from local.template import FUNCTION
from tests.prove import engine
from tests.prove.deck import SCENARIOS
from tests.prove.faults import CLOCK_OFF, DELIVERED_AGAIN, TIMED_OUT, TOO_SLOW, Card
from tests.prove.owner import Owner
from tests.prove.story import ENDINGS, Story
from tests.prove.witness import NOBODY, Line, Witness

PROJECT = Path(__file__).parents[2]
WORKERS = 10
"""What the template allows; as many sandboxes more serve deliveries that come twice."""
AT_ONCE = 100
"""Jobs under way at a time; the emulated queue slows down with its depth."""
SILENCE_SECONDS = 100
"""Without progress, after which a campaign ends: longer than any wait that a card leads to."""


class Campaign:
    """One job for each card, on a laptop stack of its own.

    Args:
        cards: What the jobs have to bear.
        say: Receives a line of progress every few seconds.
    """

    def __init__(self, cards: list[Card], say: Callable[[str], None]) -> None:
        self.stories = [Story(number, card) for number, card in enumerate(cards)]
        self.odd: list[str] = []
        """What the witness saw and could not put down to a job."""
        self.seconds = 0.0
        self._say = say
        self._room = threading.Semaphore(AT_ONCE)
        self._ended: set[int] = set()
        self._posted: set[int] = set()
        self._acted: set[tuple[int, str]] = set()
        self._tasks: list[Future[None]] = []
        self._announced: list[dict[str, Any]] = []
        self._timed_out: set[str] = set()  # invocations
        self._over = False

    def run(self) -> None:
        """Run until every message is gone, or will never go."""
        self._started = self._heard = time.monotonic()
        with (
            tempfile.TemporaryDirectory(prefix="prove-") as name,
            ThreadPoolExecutor(4) as posting,
            ThreadPoolExecutor(8) as self._acting,
        ):
            self._folder = Path(name)
            self._witness = Witness(self._folder / "witness.jsonl")
            plan = [
                {"faults": [asdict(f) for f in s.card.faults], "clocks": s.card.clocks}
                for s in self.stories
            ]
            (self._folder / "marks").mkdir()
            (self._folder / "plan.json").write_text(json.dumps(plan))
            with _stack(self._folder) as self._stack:
                self._topic = _listen(self._stack)
                self._owner = Owner(self._stack.url)
                self._tasks += [posting.submit(self._post, story) for story in self.stories]
                try:
                    self._watch()
                finally:  # nobody waits any more
                    self._over = True
                    self._room.release(len(self.stories))
                self._collect()
                self._owner.close()
        self.seconds = time.monotonic() - self._started

    def _watch(self) -> None:
        """Follow what happens, and let the owner act on it, until nothing happens any more."""
        said = 0.0
        while time.monotonic() - self._heard < SILENCE_SECONDS:
            if time.monotonic() - said > 5:
                said = time.monotonic()
                self._tell_progress()
            self._follow()
            self._receive_announcements()
            self._note_timeouts()
            if all(task.done() for task in self._tasks) and not engine.busy(self._stack):
                letters = _dead_letters(self._stack)
                self._follow()
                if not any(self._story(letter).job_id for letter in letters):
                    return
            time.sleep(0.2)

    def _follow(self) -> None:
        for line in self._witness.news():
            ending = line.accepted and (line.function, line.name) in ENDINGS
            if ending or (line.kind in ("run", "fault") and line.what != CLOCK_OFF):
                self._heard = line.t  # looking at a dead letter for ever is no progress
            if line.job == NOBODY:
                if line.kind == "odd":
                    self.odd.append(f"{line.function} {line.name}")
                continue
            story = self.stories[line.job]
            story.lines.append(line)
            if ending:
                self._make_room(story)
                self._act(self._owner.look, story)
            scenario = SCENARIOS[story.card.scenario]
            if (line.kind, line.name) == scenario.cue and self._first(story, "owner acts"):
                self._act(self._owner.act, story)
            if line.accepted and line.name == story.card.copies and self._first(story, "copies"):
                sent = [
                    line.what for line in story.lines if (line.kind, line.name) == ("sent", "send")
                ]
                self._witness.write(Line("fault", line.name, DELIVERED_AGAIN, story.number))
                engine.deliver_again(self._stack, sent[::-1])

    def _first(self, story: Story, what: str) -> bool:
        first = (story.number, what) not in self._acted
        self._acted.add((story.number, what))
        return first

    def _act(self, act: Callable[[Story], None], story: Story) -> None:
        def when_told() -> None:
            while story.number not in self._posted and not self._over:
                time.sleep(0.05)
            if story.job_id:
                act(story)

        self._tasks.append(self._acting.submit(when_told))

    def _post(self, story: Story) -> None:
        self._room.acquire()
        if self._over:
            return
        self._owner.post(story)
        self._posted.add(story.number)
        if not story.job_id:
            self._make_room(story)

    def _make_room(self, story: Story) -> None:
        if story.number not in self._ended:
            self._ended.add(story.number)
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
        """Complete the stories with what is stored at the end, and what the owner is told."""
        self._note_timeouts()
        for letter in _dead_letters(self._stack):
            self._story(letter).dead_letters += 1
        items = {item["job_id"]: item for item in self._stack.jobs()}
        for story in self.stories:
            story.item = items.get(story.job_id)
        self._receive_announcements()
        for told in self._announced:
            self._story(told["job_id"]).announced.append(told.get("finished_at", ""))
        looks = [self._acting.submit(self._owner.look, s) for s in self.stories if s.job_id]
        for task in (*self._tasks, *looks):
            task.result()
        self._follow()

    def _note_timeouts(self) -> None:
        """Write down those that nobody planned: faults, too."""
        for invocation in list(self._stack.invocations):
            error, request = invocation.error or {}, invocation.request_id
            if error.get("errorType") != "Sandbox.Timedout" or request in self._timed_out:
                continue
            self._timed_out.add(request)
            for story in self.stories:
                its = [line for line in story.lines if line.invocation == request]
                if its and not any(line.what == TIMED_OUT for line in its):
                    slow = Line("fault", "", TOO_SLOW, story.number, 0, its[0].function, request)
                    self._witness.write(slow)

    def _story(self, job_id: str) -> Story:
        return self.stories[int((self._folder / "marks" / job_id).read_text())]

    def _tell_progress(self) -> None:
        accepted = sum(bool(story.job_id) for story in self.stories)
        faults = sum(len(story.faults) for story in self.stories)
        self._say(
            f"{time.monotonic() - self._started:4.0f} s: {accepted} of {len(self.stories)} jobs"
            f" accepted, {len(self._ended)} ended, {faults} faults"
        )


@contextmanager
def _stack(folder: Path) -> Iterator[Stack]:
    """The project's stack with the campaign's work.py, each handler run by `sandbox.py`."""
    shutil.copytree(PROJECT / "src", folder / "src")
    shutil.copy(PROJECT / "template.yaml", folder)
    shutil.copy(Path(__file__).with_name("work.py"), folder / "src")
    (folder / "src" / "payload.schema.json").write_text('{"type": "object"}')
    stack = Stack(folder, engine.PARAMETERS, concurrency=2 * WORKERS)
    for name, _, properties in stack.template.resources(FUNCTION):
        variables = properties.setdefault("Environment", {}).setdefault("Variables", {})
        variables |= {
            "PROVE_FOLDER": str(folder),
            "PROVE_FUNCTION": name,
            "PROVE_HANDLER": properties["Handler"],
            "PYTHONPATH": str(PROJECT),
        }
        properties["Handler"] = "tests.prove.sandbox.handler"
    with stack:
        # What was not deleted is soon back.
        for queue, seconds in engine.VISIBILITY_SECONDS.items():
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


def _dead_letters(stack: Stack) -> list[str]:
    """Return the job ids in the dead-letter queue. Waits until all of it is visible."""

    def hidden() -> bool:
        dead = (queue for queue in stack.queues() if queue["dead_letter"])
        return any(queue["in_flight"] or queue["delayed"] for queue in dead)

    with stack.paused("DeadLetterFunction"):
        while hidden():
            time.sleep(0.2)
        return [json.loads(letter["body"])["job_id"] for letter in stack.dead_letters()]
