"""The metrics of the alarms and the dashboard, in CloudWatch's embedded metric format."""

from enum import StrEnum

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from jobs.lifecycle import Status
from jobs.settings import required

_DIMENSIONS = {"service": required("POWERTOOLS_SERVICE_NAME")}


class Metric(StrEnum):
    """Everything that is counted, by its name in CloudWatch."""

    ACCEPTED = "JobAccepted"
    COMPLETED = "JobCompleted"
    FAILED = "JobFailed"
    CANCELLED = "JobCancelled"
    DEAD_LETTERED = "JobDeadLettered"
    ATTEMPT_LOST = "AttemptLost"
    """An attempt ended without a record. The next attempt counts it."""


def count(metric: Metric) -> None:
    """Add one to a metric at once, so that a function that is killed later has counted."""
    with single_metric(
        name=metric.value, unit=MetricUnit.Count, value=1, default_dimensions=_DIMENSIONS
    ):
        pass


def count_ended(status: Status) -> None:
    """Count a job that an attempt brought to this terminal status."""
    count(Metric[status.name])
