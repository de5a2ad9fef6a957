"""What the API hands jobs over to: the queue of jobs."""

import pytest

import dispatch
from tests.unit.queues import Queue


class Receiver:
    """Receives jobs in a queue of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._queue = Queue("JobsQueue")
        monkeypatch.setattr(dispatch, "QUEUE_URL", self._queue.url)

    def handed_over(self) -> list[dict[str, object]]:
        """Return the references that were handed over since the last look, without tickets."""
        taken = self._queue.take()
        tickets = [reference.pop("ticket") for reference in taken]
        assert len(set(tickets)) == len(tickets)
        return taken

    def fail(self) -> None:
        """Let every hand-over fail from now on: the queue is gone."""
        self._monkeypatch.setattr(dispatch, "QUEUE_URL", f"{self._queue.url}-gone")
