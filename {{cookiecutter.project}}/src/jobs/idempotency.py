"""Idempotent acceptance: from a caller's Idempotency-Key to a job id, and what it stands for."""

import hashlib
import json
import re
import uuid

from jobs.problems import InvalidIdempotencyKey
from jobs.settings import settings

_NAMESPACE = uuid.UUID("3a5b1d0c-6f0e-5f3b-9a55-0f6c2a7f6f0a")
_KEY = re.compile(r"[\x20-\x7e]{1,255}")
_QUOTED = re.compile(r'"((?:[^"\\]|\\["\\])*)"')


def parse_key(header: str) -> str:
    """Return the key in an `Idempotency-Key` header: bare, or a string of RFC 8941.

    Raises:
        InvalidIdempotencyKey: it is not 1 to 255 printable ASCII characters.
    """
    key = header.strip(" \t")
    if quoted := _QUOTED.fullmatch(key):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    if not _KEY.fullmatch(key):
        raise InvalidIdempotencyKey("A key has 1 to 255 printable ASCII characters.")
    return key


def job_id_for(owner: str, key: str | None) -> str:
    """Return the id of the job that `owner` asks for.

    With a key it is derived from both, so that a crash between two writes cannot fork the job; and
    from the table, since the names of durable executions are shared by the stacks of an account.
    """
    if key is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_NAMESPACE, json.dumps([settings.jobs_table, owner, key])))


def fingerprint(canonical_payload: str) -> str:
    """Return what tells this payload from another under the same key."""
    return hashlib.sha256(canonical_payload.encode("utf-8")).hexdigest()
