"""Alarms, the dashboard, and the metrics that they look at."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.helpers.cloudformation import Stack, referenced, statements
from tests.helpers.rules.rule import (
    ALARM,
    API,
    DAY,
    FUNCTION,
    QUEUE,
    TOPIC_POLICY,
    drop,
    put,
    rule,
    swap,
)
from tests.helpers.rules.sources import counted

METRICS: dict[str, tuple[set[str], tuple[set[str], ...]]] = {
    # https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html
    "AWS/ApiGateway": (
        {"4xx", "5xx", "Count", "IntegrationLatency", "Latency", "DataProcessed"},
        ({"ApiId"}, {"ApiId", "Stage"}, {"ApiId", "Stage", "Resource", "Method"}),
    ),
    # https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
    "AWS/Lambda": (
        {"Invocations", "Errors", "Throttles", "Duration", "ConcurrentExecutions"}
        | {"AsyncEventsReceived", "AsyncEventAge", "AsyncEventsDropped", "DeadLetterErrors"}
        | {"ApproximateRunningDurableExecutions", "DurableExecutionStarted"}
        | {"DurableExecutionSucceeded", "DurableExecutionFailed", "DurableExecutionTimedOut"}
        | {"DurableExecutionStopped", "DurableExecutionDuration"}
        # Of the account, so without a dimension; AWS's page does not say:
        # https://docs.aws.amazon.com/lambda/latest/dg/durable-monitoring.html
        | {"ApproximateRunningDurableExecutionsUtilization"},
        ({"FunctionName"}, {"FunctionName", "Resource"}, set()),
    ),
    # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/
    # sqs-available-cloudwatch-metrics.html
    "AWS/SQS": (
        {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesDelayed"}
        | {"ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"}
        | {"NumberOfMessagesDeleted", "NumberOfMessagesReceived", "NumberOfMessagesSent"}
        | {"NumberOfEmptyReceives", "SentMessageSize"},
        ({"QueueName"},),
    ),
}
OWN = "Jobs"
SERVICE = [{"Name": "service", "Value": {"Ref": "AWS::StackName"}}]
ERRORS = ("AWS/Lambda", "Errors")
DASHBOARD = "Dashboard/DashboardBody/Fn::Sub"


def unknown_metric(
    stack: Stack, namespace: str, name: str, dimensions: list[dict[str, Any]]
) -> str | None:
    """Why a metric does not exist, or None if it does."""
    if namespace == OWN:
        if not any(re.fullmatch(pattern, name) for pattern in counted(stack.project)):
            return f"the sources do not count {name}"
        return None if dimensions == SERVICE else f"{name} is counted by service and stack"
    names, dimension_sets = METRICS.get(namespace, (set(), ()))
    if name not in names:
        return f"AWS knows no {namespace} {name}"
    if {dimension["Name"] for dimension in dimensions} not in dimension_sets:
        return f"{namespace} {name} has other dimensions"
    wanted = {"ApiId": API, "FunctionName": FUNCTION, "QueueName": QUEUE}
    for dimension in dimensions:
        kind = wanted.get(dimension["Name"])
        if kind and not referenced(dimension["Value"]) & set(stack.resources(kind)):
            return f"{namespace} {name}: {dimension['Value']} is no {kind}"
    return None


def alarm_metrics(alarm: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, int]]:
    """The metrics that an alarm looks at, each with its statistic and period."""
    if "Metrics" not in alarm:
        yield alarm, alarm["Statistic"], int(alarm["Period"])
    for query in alarm.get("Metrics", []):
        if "MetricStat" in query:
            how = query["MetricStat"]
            yield how["Metric"], how["Stat"], int(how["Period"])


@rule(
    put("ApiErrorsAlarm/MetricName", "5XXError"),
    put("ApiErrorsAlarm/Dimensions/0/Name", "ApiName"),
    put("ApiErrorsAlarm/Dimensions/0/Value", {"Ref": "ApiFunction"}),
    put("JobDeadLetteredAlarm/MetricName", "JobDead"),
    put("JobDeadLetteredAlarm/MetricName", "JobComplete"),
    put("JobDeadLetteredAlarm/Dimensions", []),
    put("JobDeadLetteredAlarm/Dimensions/0/Value", "jobs"),
    put("JobsQueueAgeAlarm/Dimensions/0/Value", {"Ref": "JobsQueue"}),
    put("JobsQueueAgeAlarm/Statistic", "Largest"),
)
def every_alarm_looks_at_a_metric_that_exists(stack: Stack) -> Iterator[str]:
    for name, alarm in stack.resources(ALARM).items():
        for metric, statistic, _ in alarm_metrics(alarm):
            dimensions = metric.get("Dimensions", [])
            fault = unknown_metric(stack, metric["Namespace"], metric["MetricName"], dimensions)
            if fault:
                yield f"{name}: {fault}"
            if statistic not in ("Sum", "Maximum", "Minimum", "Average"):
                yield f"{name}: no statistic {statistic}"
            for dimension in dimensions:
                # A queue's Ref is its URL, and the metric goes by its name.
                if dimension["Name"] == "QueueName" and "Ref" in dimension["Value"]:
                    yield f"{name}: {dimension['Value']} is no queue's name"


@rule(
    put("Globals/Function/Environment/Variables/POWERTOOLS_METRICS_NAMESPACE", "Work"),
    put("Globals/Function/Environment/Variables/POWERTOOLS_SERVICE_NAME", "jobs"),
)
def metrics_go_where_the_alarms_look(stack: Stack) -> Iterator[str]:
    for name, function in stack.resources(FUNCTION).items():
        variables = function["Environment"]["Variables"]
        if variables["POWERTOOLS_METRICS_NAMESPACE"] != OWN:
            yield f"{name}: namespace"
        if variables["POWERTOOLS_SERVICE_NAME"] != SERVICE[0]["Value"]:
            yield f"{name}: service"


@rule(
    drop("Resources/WorkerFunctionErrorsAlarm"),
    drop("Resources/ApiErrorsAlarm"),
    drop("Resources/JobDeadLetteredAlarm"),
    drop("Resources/JobsQueueAgeAlarm"),
    # Dead letters that cannot be settled are hidden nearly all the time.
    drop("DeadLetterQueueAlarm/Metrics/2"),
)
def whatever_goes_wrong_raises_an_alarm(stack: Stack) -> Iterator[str]:
    watched: set[tuple[str, str, str]] = set()
    for alarm in stack.resources(ALARM).values():
        for metric, _, _ in alarm_metrics(alarm):
            names = referenced(metric.get("Dimensions", [])) or {"-"}
            watched |= {(metric["Namespace"], metric["MetricName"], name) for name in names}
    wanted = {(OWN, "JobDeadLettered", "-"), ("AWS/ApiGateway", "5xx", "HttpApi")}
    wanted |= {(*ERRORS, function) for function in stack.resources(FUNCTION)}
    for name, queue in stack.resources(QUEUE).items():
        if "RedrivePolicy" in queue:
            wanted.add(("AWS/SQS", "ApproximateAgeOfOldestMessage", name))
        else:
            wanted.add(("AWS/SQS", "ApproximateNumberOfMessagesVisible", name))
            wanted.add(("AWS/SQS", "ApproximateNumberOfMessagesNotVisible", name))
    for missing in sorted(wanted - watched):
        yield " ".join(missing)


@rule(
    drop("ApiErrorsAlarm/AlarmActions"),
    drop("ApiErrorsAlarm/OKActions"),
    put("ApiErrorsAlarm/TreatMissingData", "breaching"),
    put("ApiErrorsAlarm/AlarmActions", [{"Ref": "JobEventsTopic"}]),
    put("ApiErrorsAlarm/EvaluationPeriods", 1441),
    put("ApiErrorsAlarm/DatapointsToAlarm", 6),
    put("ApiErrorsAlarm/AlarmDescription", "See docs/runbook.md: the sky falls."),
    put("AlarmTopicPolicy/PolicyDocument/Statement/0/Resource", {"Ref": "JobEventsTopic"}),
)
def every_alarm_reaches_somebody_who_can_act(stack: Stack) -> Iterator[str]:
    """It names a section of the runbook, and publishes where CloudWatch may."""
    headings = {
        line.lstrip("# ").lower()
        for line in stack.project.read("docs/runbook.md").splitlines()
        if line.startswith("## ")
    }
    open_topics = {
        topic
        for policy in stack.resources(TOPIC_POLICY).values()
        for statement in statements(policy["PolicyDocument"])
        if statement["Effect"] == "Allow"
        and statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        and statement["Action"] == ["sns:Publish"]
        and statement["Condition"]
        == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
        for topic in referenced(statement["Resource"]) & referenced(policy["Topics"])
    }
    for name, alarm in stack.resources(ALARM).items():
        told = referenced(alarm.get("AlarmActions", []))
        if not told or not told <= open_topics:
            yield f"{name} tells nobody"
        if alarm.get("OKActions") != alarm.get("AlarmActions"):
            yield f"{name} does not say that all is well again"
        if alarm["TreatMissingData"] != "notBreaching":
            yield f"{name} goes off when nothing happens"
        periods = int(alarm["EvaluationPeriods"])
        if any(periods * period > DAY for _, _, period in alarm_metrics(alarm)):
            yield f"{name} looks back for more than a day"
        if int(alarm.get("DatapointsToAlarm", 1)) > periods:
            yield f"{name} never goes off"
        section = re.search(r"docs/runbook\.md: (.+)\.$", alarm["AlarmDescription"])
        if not section or section[1].lower() not in headings:
            yield f"{name} names no section of the runbook"


@rule(
    swap(DASHBOARD, '"widgets": [', '"widgets": [,'),
    swap(DASHBOARD, "${HttpApi}", "${Api}"),
    swap(DASHBOARD, "4xx", "4XXError"),
    swap(DASHBOARD, "JobCompleted", "JobComplete"),
    swap(DASHBOARD, '"service", "${AWS::StackName}"', '"service", "jobs"'),
    swap(DASHBOARD, '"x": 12, "y": 0', '"x": 6, "y": 0'),
)
def the_dashboard_shows_metrics_that_exist(stack: Stack) -> Iterator[str]:
    """https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html"""
    (dashboard,) = stack.resources("AWS::CloudWatch::Dashboard").values()
    text = dashboard["DashboardBody"]["Fn::Sub"]
    taken: set[tuple[int, int]] = set()
    for name in re.findall(r"\$\{(\w+)(?:\.\w+)?\}", text):
        if name not in stack.cloudformation["Resources"]:
            yield f"there is no {name}"
    # What ${…} becomes: the reference itself.
    text = re.sub(r'"\$\{([\w:]+)\}"', r'{"Ref": "\1"}', text)
    text = re.sub(r'"\$\{(\w+)\.(\w+)\}"', r'{"Fn::GetAtt": ["\1", "\2"]}', text)
    try:
        widgets = json.loads(text)["widgets"]
    except ValueError as error:
        yield f"it is no JSON: {error}"
        return
    for widget in widgets:
        cells = {
            (x, y)
            for x in range(widget["x"], widget["x"] + widget["width"])
            for y in range(widget["y"], widget["y"] + widget["height"])
        }
        if cells & taken or max(x for x, _ in cells) > 23:
            yield f"{widget['properties']['title']} covers another widget"
        taken |= cells
        for namespace, name, *rest in widget["properties"]["metrics"]:
            pairs = rest[: len(rest) // 2 * 2]
            dimensions = [
                {"Name": key, "Value": value}
                for key, value in zip(pairs[::2], pairs[1::2], strict=True)
            ]
            if fault := unknown_metric(stack, namespace, name, dimensions):
                yield fault
