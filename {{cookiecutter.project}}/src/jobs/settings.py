"""What template.yaml tells the functions through their environment, read once at import."""

import os
from dataclasses import dataclass
from functools import cache
from typing import Any

import botocore.session
from botocore.config import Config


class SettingsError(RuntimeError):
    """An environment variable is missing or wrong; the message names it."""


def required(name: str) -> str:
    """Return the environment variable `name`.

    Raises:
        SettingsError: it is missing or empty.
    """
    value = os.environ.get(name, "")
    if not value:
        raise SettingsError(f"{name} is not set. template.yaml sets it for the deployed function.")
    return value


def required_int(name: str, minimum: int) -> int:
    """Return the environment variable `name` as a whole number of at least `minimum`.

    Raises:
        SettingsError: it is missing, not a whole number, or too small.
    """
    value = required(name)
    if not value.isdecimal() or int(value) < minimum:
        raise SettingsError(f"{name} is {value!r}. It takes a whole number from {minimum} on.")
    return int(value)


@dataclass(frozen=True)
class Settings:
    """The settings that every function has."""

    jobs_table: str
    idempotency_table: str
    job_events_topic: str
    """ARN of the topic for finished jobs; empty when notifications are off."""
    retention_seconds: int
    """How long a job is kept after its last change of status."""

    @classmethod
    def from_environment(cls) -> "Settings":
        """Read the environment.

        Raises:
            SettingsError: a variable is missing or wrong.
        """
        return cls(
            jobs_table=required("JOBS_TABLE"),
            idempotency_table=required("IDEMPOTENCY_TABLE"),
            job_events_topic=os.environ.get("JOB_EVENTS_TOPIC", ""),
            retention_seconds=required_int("JOB_RETENTION_DAYS", minimum=1) * 86_400,
        )


settings = Settings.from_environment()

_session = botocore.session.get_session()  # `import boto3` would also load s3transfer


@cache
def client(service: str) -> Any:
    """Return an AWS client. It gives up after about 15 seconds, not after minutes."""
    return _session.create_client(
        service,
        config=Config(
            connect_timeout=2,
            read_timeout=3,
            retries={"mode": "standard", "total_max_attempts": 3},
        ),
    )
