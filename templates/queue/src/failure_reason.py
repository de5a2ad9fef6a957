"""Why the queue has given up a job, in words for the job's owner."""

from jobs import Job


def failure_reason(job: Job) -> dict[str, str]:
    """Return the error of a job that was given up: the last one that it told, if it told any."""
    if not job.recent_attempts:
        return {
            "type": "NeverStarted",
            "message": "No attempt could begin: the worker was throttled or did not start,"
            " or the store did not answer.",
        }
    gave_up = f"Given up at attempt {job.attempts}."
    if job.error:
        return {**job.error, "message": f"{gave_up} The last error told: {job.error['message']}"}
    return {
        "type": "AttemptLost",
        "message": f"{gave_up} Each attempt ended without a word:"
        " a timeout, a crash or lack of memory.",
    }
