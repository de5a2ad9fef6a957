"""Why the queue has given up a job, in words for the job's owner."""

from jobs import Job


def last_words(job: Job) -> dict[str, str]:
    """Return the error of a job that was given up: the last one that it told, if it told any."""
    gave_up = f"Given up at attempt {job.attempts}."
    if job.error:
        return {**job.error, "message": f"{gave_up} The last error told: {job.error['message']}"}
    return {
        "type": "AttemptLost",
        "message": f"{gave_up} Each ended without a word: a timeout, a crash or no memory.",
    }
