"""The template is read as CloudFormation and SAM read it."""

import textwrap
from pathlib import Path
from typing import Any

import pytest

from local.template import Template, TemplateError

TEMPLATE = """
    Parameters:
      Timeout: {Type: Number, Default: 60, AllowedValues: [5, 60]}
      Attempts: {Type: Number, Default: 5, MinValue: 1, MaxValue: 10}
      Origin: {Type: String, Default: '', AllowedPattern: '^$|^https://.+$', MaxLength: 20}
      Zones: {Type: CommaDelimitedList, Default: 'a, b'}
      Issuer: {Type: String}
    Mappings:
      Visibility: {'5': {Seconds: 30}, '60': {Seconds: 360}}
    Conditions:
      HasOrigin: !Not [!Equals [!Ref Origin, '']]
      Slow: !Equals [!Ref Timeout, '60']
      Both: !And [!Condition HasOrigin, Condition: Slow]
      Either: !Or [!Condition HasOrigin, !Condition Slow]
    Globals:
      Function:
        Runtime: python3.13
        CodeUri: .
        Timeout: 20
        Environment:
          Variables: {TABLE: !Ref Jobs, GONE: !If [HasOrigin, x, !Ref AWS::NoValue]}
    Resources:
      Jobs: {Type: AWS::DynamoDB::Table, Properties: {}}
      Queue: {Type: AWS::SQS::Queue, Properties: {}}
      Ordered: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}
      Named: {Type: AWS::SQS::Queue, Properties: {QueueName: orders}}
      Topic: {Type: AWS::SNS::Topic}
      Maybe: {Type: AWS::SNS::Topic, Condition: HasOrigin}
      Worker:
        Type: AWS::Serverless::Function
        Properties:
          Handler: worker.handler
          Timeout: !Ref Timeout
          Environment: {Variables: {QUEUE: !Ref Queue, FLAG: true, N: 3}}
"""


def load(tmp_path: Path, text: str = TEMPLATE, **parameters: str) -> Template:
    path = tmp_path / "template.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return Template.load(path, parameters)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ({"Ref": "Timeout"}, "60"),
        ({"Ref": "Zones"}, ["a", "b"]),
        ({"Ref": "Jobs"}, "Jobs"),
        ({"Ref": "Queue"}, "http://aws/000000000000/Queue"),
        ({"Ref": "Ordered"}, "http://aws/000000000000/Ordered.fifo"),
        ({"Ref": "Named"}, "http://aws/000000000000/orders"),
        ({"Ref": "Topic"}, "arn:aws:sns:us-east-1:000000000000:Topic"),
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, "arn:aws:sqs:us-east-1:000000000000:Queue"),
        ({"Fn::GetAtt": "Queue.QueueName"}, "Queue"),
        ({"Fn::GetAtt": ["Jobs", "Arn"]}, "arn:aws:dynamodb:us-east-1:000000000000:table/Jobs"),
        ({"Fn::GetAtt": "Worker.Arn"}, "arn:aws:lambda:us-east-1:000000000000:function:Worker"),
        ({"Fn::Sub": "${AWS::AccountId}/${Queue.QueueName}/${!x}"}, "000000000000/Queue/${x}"),
        ({"Fn::Sub": ["${A}-${Timeout}", {"A": {"Ref": "Attempts"}}]}, "5-60"),
        ({"Fn::FindInMap": ["Visibility", {"Ref": "Timeout"}, "Seconds"]}, 360),
        ({"Fn::Join": ["-", ["a", {"Ref": "Timeout"}]]}, "a-60"),
        ({"Fn::Select": ["1", {"Fn::Split": [",", "a,b"]}]}, "b"),
        ({"Fn::Base64": "a"}, "YQ=="),
        ({"Fn::If": ["Slow", "slow", "fast"]}, "slow"),
        ({"Fn::If": ["Both", 1, 2]}, 2),
        ({"Fn::If": ["Either", 1, 2]}, 1),
        ([1, {"Ref": "AWS::NoValue"}], [1]),
        ({"a": {"Fn::If": ["HasOrigin", 1, {"Ref": "AWS::NoValue"}]}, "b": 1}, {"b": 1}),
        ({"StringEquals": {"Condition": "x"}}, {"StringEquals": {"Condition": "x"}}),
    ],
)
def test_intrinsic_functions(tmp_path: Path, expression: Any, value: Any) -> None:
    assert load(tmp_path).at("http://aws/").resolve(expression) == value


def test_short_forms_equal_the_long_ones(tmp_path: Path) -> None:
    template = load(
        tmp_path,
        """
        Resources:
          Queue: {Type: AWS::SQS::Queue}
        Metadata:
          short: [!Ref Queue, !GetAtt Queue.Arn, !Sub '${Queue.QueueName}!', !Join ['', [a, b]]]
        """,
    )
    short = template.resolve(template.document["Metadata"]["short"])
    assert short[1:] == ["arn:aws:sqs:us-east-1:000000000000:Queue", "Queue!", "ab"]


def test_globals_are_merged_into_functions(tmp_path: Path) -> None:
    (worker,) = load(tmp_path, Timeout="5").functions()
    assert (worker.timeout, worker.memory, worker.runtime) == (5, 128, "python3.13")
    assert worker.environment == {
        "TABLE": "Jobs",
        "QUEUE": "http://127.0.0.1/000000000000/Queue",
        "FLAG": "true",
        "N": "3",
    }
    assert worker.declared == {"TABLE", "QUEUE", "FLAG", "N", "GONE"}


def test_a_resource_whose_condition_fails_is_not_there(tmp_path: Path) -> None:
    def names(template: Template) -> list[str]:
        return [name for name, _, _ in template.resources("AWS::SNS::Topic")]

    assert names(load(tmp_path)) == ["Topic"]
    assert names(load(tmp_path, Origin="https://a")) == ["Topic", "Maybe"]


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("Timeout", "7", "parameter Timeout=7: must be one of 5, 60"),
        ("Attempts", "0", "parameter Attempts=0: must be at least 1"),
        ("Attempts", "11", "parameter Attempts=11: must be at most 10"),
        ("Attempts", "many", "parameter Attempts=many: must be a number"),
        ("Origin", "ftp://a", "parameter Origin=ftp://a: must match ^$|^https://.+$"),
        ("Origin", "https://" + "a" * 20, "must have at most 20 characters"),
        ("Nothing", "1", "no parameter Nothing; there are: Timeout, Attempts, Origin, Zones"),
    ],
)
def test_parameters_are_checked(tmp_path: Path, parameter: str, value: str, message: str) -> None:
    with pytest.raises(TemplateError) as refused:
        load(tmp_path, **{parameter: value})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_parameter_without_a_value_is_missed_where_it_is_used(tmp_path: Path) -> None:
    template = load(tmp_path)
    with pytest.raises(TemplateError, match="Issuer has no default; give --parameter Issuer=VALUE"):
        template.resolve({"Ref": "Issuer"})


FUNCTION = (
    "Resources: {F: {Type: AWS::Serverless::Function, Properties: {Runtime: python3.13, %s}}}"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Resources: {A: [}", "template.yaml:1: "),
        ("a: b", "no Resources; this is not a SAM template"),
        ("Resources: {A: {Properties: {}}}", "resource A has no Type"),
        (FUNCTION % "Timeout: 3", "F has no Handler"),
        (FUNCTION % "Handler: a.b, CodeUri: none/", "is not a folder"),
        (FUNCTION % "Handler: a.b, ReservedConcurrentExecutions: 0", "switches it off"),
        (FUNCTION % "Handler: !Ref Nobody", "there is no Nobody"),
        (FUNCTION % "Handler: !ImportValue x", "Fn::ImportValue is not supported here"),
        (FUNCTION % "Handler: !FindInMap [A, b, c]", "Mappings has no A.b.c"),
        ("Resources: {F: {Type: 'A::B', Condition: Nobody}}", "there is no condition Nobody"),
    ],
)
def test_a_broken_template_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TemplateError) as refused:
        print(list(load(tmp_path, text).resources()), load(tmp_path, text).functions())
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_template_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"template\.yaml: No such file"):
        Template.load(tmp_path / "template.yaml")


def test_what_is_not_supported_is_named(tmp_path: Path) -> None:
    template = load(
        tmp_path,
        """
        Globals: {Function: {Runtime: python3.13, Handler: a.b, CodeUri: .}}
        Conditions: {InVpc: !Equals [a, b]}
        Resources:
          Plain:
            Type: AWS::Serverless::Function
            Properties: {Tracing: Active, VpcConfig: !If [InVpc, {}, !Ref AWS::NoValue]}
          Restored: {Type: AWS::Serverless::Function, Properties: {SnapStart: {}}}
          Node: {Type: AWS::Serverless::Function, Properties: {Runtime: nodejs22.x}}
          Bucket: {Type: AWS::S3::Bucket, Properties: {NotificationConfiguration: {}}}
          Stream: {Type: AWS::Kinesis::Stream}
          OneApi: {Type: AWS::Serverless::HttpApi, Properties: {StageName: v1}}
          Topic:
            Type: AWS::SNS::Topic
            Properties:
              DisplayName: "{{resolve:ssm:name}}"
              Subscription: [{Protocol: lambda, Endpoint: x}, {Protocol: email, Endpoint: x}]
          Called:
            Type: AWS::SNS::Subscription
            Properties: {TopicArn: !Ref Topic, Protocol: https, Endpoint: x}
          OtherApi: {Type: AWS::Serverless::HttpApi}
          Alarm: {Type: AWS::CloudWatch::Alarm}
          Logs: {Type: AWS::Logs::LogGroup}
          MoreLogs: {Type: AWS::Logs::LogGroup}
        """,
    )
    topic = "arn:aws:sns:us-east-1:000000000000:Topic"
    assert sorted(template.unsupported()) == [
        "Bucket.NotificationConfiguration",
        f"Called (https subscription of {topic})",
        "Node (runtime nodejs22.x)",
        "OneApi.StageName",
        "OtherApi (a second HTTP API)",
        "Restored.SnapStart",
        "Stream (AWS::Kinesis::Stream)",
        f"Topic (lambda subscription of {topic})",
        "dynamic references (resolve:…)",
    ]
    assert template.without_effect() == {"Alarm": 1, "LogGroup": 2}
    assert [f.name for f in template.functions()] == ["Plain", "Restored"]
