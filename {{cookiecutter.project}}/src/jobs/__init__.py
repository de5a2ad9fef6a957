"""The job: what it is, how it is stored, and what may happen to it.

Nothing in this package knows of HTTP, of queues or of durable functions.
"""

from jobs.job import Job, JobCancelled, PermanentError, Status

__all__ = ["Job", "JobCancelled", "PermanentError", "Status"]
