"""Durable functions of small projects: how they are declared and invoked."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.laptop.projects import function

APP = """
    from aws_durable_execution_sdk_python import durable_execution

    @durable_execution
    def handler(event, context):
        return event["number"] * 2
"""
DURABLE: dict[str, Any] = {
    "DurableConfig": {"ExecutionTimeout": 60, "RetentionPeriodInDays": 1},
    "AutoPublishAlias": "live",
}


@pytest.fixture
def invoke(run: Callable[..., Any]) -> Callable[[str], Any]:
    """Invoke a function that is durable by Globals alone, by its name."""
    stack = run({"Globals.": {"Function": DURABLE}, "F": function("app.handler")}, {"app": APP})
    lambda_ = stack.aws.client("lambda")

    def call(name: str) -> Any:
        answer = lambda_.invoke(FunctionName=name, Payload=json.dumps({"number": 21}))
        return json.load(answer["Payload"]), answer["ExecutedVersion"]

    return call


def test_globals_make_a_function_durable(invoke: Callable[[str], Any]) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/durable-invoking.html"""
    assert invoke("F:live") == (42, "1")
    assert invoke("F:$LATEST") == (42, "$LATEST")
    for name, error in (("F", "InvalidParameterValueException"), ("F:other", "ResourceNotFound")):
        with pytest.raises(ClientError, match=error):
            invoke(name)


@pytest.mark.parametrize("returned", ["None", "float('nan')", "[]"])
def test_a_handler_without_the_decorator_fails_its_execution(
    run: Callable[..., Any], returned: str
) -> None:
    """What it returns has no Status."""
    app = {"app": f"def handler(event, context):\n    return {returned}\n"}
    stack = run({"F": function("app.handler", **DURABLE)}, app)
    answer = stack.aws.client("lambda").invoke(FunctionName="F:live", Payload="{}")
    assert answer["FunctionError"] == "Unhandled"
    assert len(stack.invocations) == 1
    (execution,) = stack.durable.state()
    assert execution["status"] == "FAILED"


def test_a_name_is_taken_once(run: Callable[..., Any]) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html"""
    stack = run({"F": function("app.handler", **DURABLE)}, {"app": APP})
    lambda_ = stack.aws.client("lambda")

    def begin(payload: str) -> Any:
        return lambda_.invoke(
            FunctionName="F:live",
            InvocationType="Event",
            DurableExecutionName="a-name",
            Payload=payload,
        )

    first, again = begin('{"number": 21}'), begin('{"number": 21}')
    assert first["StatusCode"] == 202
    assert again["DurableExecutionArn"] == first["DurableExecutionArn"]
    with pytest.raises(ClientError, match="DurableExecutionAlreadyStarted"):
        begin('{"number":21}')


def test_days_are_skipped(run: Callable[..., Any]) -> None:
    app = """
        from aws_durable_execution_sdk_python import durable_execution
        from aws_durable_execution_sdk_python.config import Duration

        @durable_execution
        def handler(event, context):
            context.wait(Duration.from_days(30))
            return "waited"
    """
    config = {**DURABLE["DurableConfig"], "ExecutionTimeout": 60 * 86_400}
    functions = {"F": function("app.handler", **{**DURABLE, "DurableConfig": config})}
    stack = run(functions, {"app": app}, skip_time=True)
    answer = stack.aws.client("lambda").invoke(FunctionName="F:live", Payload="{}")
    assert json.load(answer["Payload"]) == "waited"


def test_without_concurrency_an_event_is_dead_lettered_at_once(run: Callable[..., Any]) -> None:
    """https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html"""
    letters = {"Type": "SQS", "TargetArn": {"Fn::GetAtt": ["Letters", "Arn"]}}
    off = {**DURABLE, "ReservedConcurrentExecutions": 0, "DeadLetterQueue": letters}
    resources = {"F": function("app.handler", **off), "Letters": {"Type": "AWS::SQS::Queue"}}
    stack = run(resources, {"app": APP})
    event = {"FunctionName": "F:live", "Payload": json.dumps({"number": 21})}

    stack.aws.client("lambda").invoke(InvocationType="Event", **event)

    (letter,) = stack.dead_letters()
    assert json.loads(letter["body"]) == {"number": 21}
    assert (stack.durable.state(), list(stack.invocations)) == ([], [])
    with pytest.raises(ClientError, match="TooManyRequestsException"):
        stack.aws.client("lambda").invoke(**event)
