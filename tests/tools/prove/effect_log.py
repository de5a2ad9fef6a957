"""The effect log: a file to which every sandbox appends what it does, before it goes on.

Each entry is one write to a file opened for appending. A sandbox that is killed leaves whole
entries, and their order is the order of events.
"""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

NOBODY = -1
"""The number of no job."""


@dataclass(frozen=True)
class Entry:
    """One event in the life of one job.

    kind     name                         what
    call     of the AWS call              HTTP status of the answer
    sent     of the call that sent it     a message, to the queue or to the topic
    fault    of the call that it struck   see `faults.Fault`
    effect   of the side effect           a receipt
    run      -                            - (the work has begun; `step` and `ran` follow)
    unnamed  an AWS call that points.py lacks  -
    other    of an AWS call to a resource of the user's own
    """

    kind: str
    name: str = ""
    what: str = ""
    job: int = NOBODY
    attempt: int = 0
    function: str = ""
    invocation: str = ""
    terminal: bool = False
    """Whether a call sets a terminal status."""
    t: float = field(default_factory=time.monotonic)
    """Seconds of the machine's own clock, whatever the sandbox's clock shows."""

    @property
    def accepted(self) -> bool:
        """Whether this is a call that AWS carried out."""
        return self.kind == "call" and self.what.startswith("2")

    @property
    def ends_job(self) -> bool:
        """Whether this call made the job terminal."""
        return self.accepted and self.terminal


class EffectLog:
    """The file. Writers and readers may be in different processes."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._read = 0

    def write(self, entry: Entry) -> None:
        """Append an entry."""
        os.write(self._file, json.dumps(asdict(entry)).encode() + b"\n")

    def read_new(self) -> Iterator[Entry]:
        """Read the entries written since the last time."""
        while chunk := os.pread(self._file, 1 << 20, self._read):
            whole = chunk[: chunk.rfind(b"\n") + 1]
            self._read += len(whole)
            for text in whole.splitlines():
                yield Entry(**json.loads(text))
            if not whole:
                return
