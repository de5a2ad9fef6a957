"""The job: what it is, how it is stored, and what may happen to it.

This package knows nothing of HTTP, and calls nothing that delivers or runs jobs.
"""

from jobs.exceptions import JobCancelled, PermanentError
from jobs.job import Job
from jobs.lifecycle import Status

__all__ = ["Job", "JobCancelled", "PermanentError", "Status"]
