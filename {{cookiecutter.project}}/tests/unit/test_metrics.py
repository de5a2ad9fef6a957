"""Metrics: a line on stdout, which CloudWatch makes a metric of."""

import json

import pytest

from jobs.metrics import Metric, count


def test_a_count_is_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    count(Metric.ACCEPTED)

    line = json.loads(capsys.readouterr().out)
    (metric,) = line["_aws"]["CloudWatchMetrics"]
    assert metric == {
        "Namespace": "Jobs",
        "Dimensions": [["service"]],
        "Metrics": [{"Name": "JobAccepted", "Unit": "Count"}],
    }
    assert line["JobAccepted"] == [1]
    assert line["service"] == "local"  # the stack's name
