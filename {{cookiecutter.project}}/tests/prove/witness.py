"""The outside witness: a file to which every sandbox appends what it does, before it goes on.

One line is one write to a file opened for appending, so a sandbox that is killed leaves whole
lines, and the order of lines is the order of what happened.
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
class Line:
    """One thing that happened to one job.

    kind     name                         what
    call     of the AWS call              HTTP status of the answer
    sent     of the call that sent it     a message, to the queue or to the topic
    fault    of the call it struck at     see `faults.Fault`
    effect   of the side effect           a receipt
    run      -                            - (the work has begun; `step` and `ran` follow)
    odd      what was not foreseen        -
    """

    kind: str
    name: str = ""
    what: str = ""
    job: int = NOBODY
    attempt: int = 0
    function: str = ""
    invocation: str = ""
    t: float = field(default_factory=time.monotonic)
    """Seconds of the machine's own clock, whatever the sandbox's is made to show."""

    @property
    def accepted(self) -> bool:
        """Whether this is a call that AWS carried out."""
        return self.kind == "call" and self.what.startswith("2")


class Witness:
    """The file. Writers and readers may be in different processes."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._read = 0

    def write(self, line: Line) -> None:
        """Append a line."""
        os.write(self._file, json.dumps(asdict(line)).encode() + b"\n")

    def news(self) -> Iterator[Line]:
        """Read what was written since the last time."""
        while chunk := os.pread(self._file, 1 << 20, self._read):
            whole = chunk[: chunk.rfind(b"\n") + 1]
            self._read += len(whole)
            for text in whole.splitlines():
                yield Line(**json.loads(text))
            if not whole:
                return
