"""Job ids: random, or derived from the caller and an idempotency key."""

import json
import re
import uuid

from jobs.settings import settings

_NAMESPACE = uuid.UUID("3a5b1d0c-6f0e-5f3b-9a55-0f6c2a7f6f0a")
_JOB_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def job_id_for(owner: str, key: str | None) -> str:
    """Return the id of a job that `owner` asks for.

    With a key, the id depends only on table, owner and key: a crash between two writes cannot make
    two jobs of one key. Stacks in one account, which have different tables, share no ids.
    """
    if key is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_NAMESPACE, json.dumps([settings.jobs_table, owner, key])))


def is_job_id(text: str) -> bool:
    """Tell whether `job_id_for` can have made this text."""
    return _JOB_ID.fullmatch(text) is not None
