"""Counts what the alarms and the dashboard look at, in CloudWatch's embedded metric format."""

from aws_lambda_powertools.metrics import MetricUnit, single_metric

from jobs.settings import required

_DIMENSIONS = {"service": required("POWERTOOLS_SERVICE_NAME")}


def count(name: str) -> None:
    """Add one to the metric `name`, at once: a function that is killed later has still counted."""
    with single_metric(name=name, unit=MetricUnit.Count, value=1, default_dimensions=_DIMENSIONS):
        pass
