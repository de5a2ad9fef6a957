"""What a company may ask of a stack: its own key, network and boundary, and protected tables."""

from collections.abc import Iterator

from tests.helpers.cloudformation import Stack
from tests.helpers.rules.functions import allowed_to
from tests.helpers.rules.rule import FUNCTION, MAPPING, QUEUE, ROLE, TABLE, TOPIC, drop, put, rule

KEY = "arn:aws:kms:us-east-1:000000000000:key/ours"
BOUNDARY = "arn:aws:iam::000000000000:policy/ours"
ENCRYPTED = {
    FUNCTION: "KmsKeyArn",
    QUEUE: "KmsMasterKeyId",
    TOPIC: "KmsMasterKeyId",
    "AWS::Logs::LogGroup": "KmsKeyId",
}


@rule(
    put("JobsQueue/SqsManagedSseEnabled", True),
    drop("FunctionLogGroup/KmsKeyId"),
    drop("JobsTable/SSESpecification/SSEType"),
    put("JobEventsTopic/KmsMasterKeyId", "alias/aws/sns"),
    put("FunctionPolicy/PolicyDocument/Statement/2/Fn::If/1/Action", ["kms:Decrypt"]),
)
def a_key_of_yours_encrypts_whatever_can_be(stack: Stack) -> Iterator[str]:
    """Publishers to an encrypted topic and senders to a queue need both actions.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html
    """
    chosen = stack.having(KmsKeyArn=KEY)
    for kind, attribute in ENCRYPTED.items():
        for name, properties in chosen.resources(kind).items():
            if properties.get(attribute) != KEY:
                yield f"{name} is not encrypted with the key"
            if "SqsManagedSseEnabled" in properties:
                yield f"{name} asks for two kinds of encryption"
    for name, table in chosen.resources(TABLE).items():
        wanted = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": KEY}
        if table["SSESpecification"] != wanted:
            yield f"{name} is not encrypted with the key"
    for name, function in chosen.resources(FUNCTION).items():
        if function.get("DurableConfig", {"KMSKeyArn": KEY}).get("KMSKeyArn") != KEY:
            yield f"the executions of {name} are not encrypted with the key"
        granted = {a for s in allowed_to(chosen, name) if KEY in s["Resource"] for a in s["Action"]}
        if granted != {"kms:Decrypt", "kms:GenerateDataKey"}:
            yield f"{name} cannot use the key"


@rule(
    drop("Globals/Function/VpcConfig"),
    put("FunctionPolicy/PolicyDocument/Statement/3/Fn::If/0", "HasKmsKey"),
    drop("Rules/SubnetsNeedSecurityGroups"),
)
def functions_run_in_your_subnets(stack: Stack) -> Iterator[str]:
    """https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html"""
    chosen = stack.having(VpcSubnetIds="subnet-1,subnet-2", VpcSecurityGroupIds="sg-1")
    for name, function in chosen.resources(FUNCTION).items():
        if function.get("VpcConfig", {}).keys() != {"SubnetIds", "SecurityGroupIds"}:
            yield f"{name} runs elsewhere"
        actions = {action for s in allowed_to(chosen, name) for action in s["Action"]}
        if "ec2:CreateNetworkInterface" not in actions:
            yield f"{name} cannot make its network interface"
    if stack.having(VpcSubnetIds="subnet-1").allowed():
        yield "subnets without a security group are accepted"


@rule(drop("WorkerRole/PermissionsBoundary"))
def every_role_takes_your_boundary(stack: Stack) -> Iterator[str]:
    for name, role in stack.having(PermissionsBoundaryArn=BOUNDARY).resources(ROLE).items():
        if role.get("PermissionsBoundary") != BOUNDARY:
            yield name


@rule(drop("JobsTable/DeletionProtectionEnabled"))
def tables_can_be_protected(stack: Stack) -> Iterator[str]:
    for name, table in stack.having(DeletionProtection="enabled").resources(TABLE).items():
        if table.get("DeletionProtectionEnabled") is not True:
            yield name


@rule(
    put("WorkerFunction/Events/Jobs/Properties/ScalingConfig", {"MaximumConcurrency": 2}),
    drop("WorkerFunction/Events/Jobs/Properties/ProvisionedPollerConfig"),
    drop("Rules/OnePollerIsTooFew"),
)
def pollers_can_be_provisioned(stack: Stack) -> Iterator[str]:
    """Instead of a maximum concurrency, which Lambda refuses beside them.
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
    """
    if "ProvisionedPollers" not in stack.parameters:
        return
    mappings = stack.having(ProvisionedPollers=2).resources(MAPPING)
    wanted = {"MinimumPollers": "2", "MaximumPollers": "2"}
    if [m for m in mappings.values() if m.get("ProvisionedPollerConfig") == wanted] == []:
        yield "no mapping has the pollers"
    for name, mapping in mappings.items():
        if "ProvisionedPollerConfig" in mapping and "ScalingConfig" in mapping:
            yield f"{name} has pollers and a maximum concurrency"
    if stack.having(ProvisionedPollers=1).allowed():
        yield "one poller is accepted"


@rule(
    drop("HttpApi/DefaultRouteSettings"),
    put("Parameters/RequestRate/Default", 10_001),
    put("HttpApi/AccessLogSettings/Format", '{"ip":"$context.identity.sourceIp"}'),
    put("HttpApiLogGroup/LogGroupName", "/jobs/http-api"),
)
def the_api_is_throttled_and_logged(stack: Stack) -> Iterator[str]:
    """https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-throttling.html
    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html
    """
    for name, stage in stack.resources("AWS::ApiGatewayV2::Stage").items():
        settings = stage.get("DefaultRouteSettings", {})
        rate = float(settings.get("ThrottlingRateLimit", 0))
        if not 0 < rate <= 10_000 or not 0 < int(settings.get("ThrottlingBurstLimit", 0)) <= 5_000:
            yield f"{name} is not throttled within an account's quotas"
        line = stage["AccessLogSettings"]["Format"]
        if len(line) > 1024:
            yield f"{name} logs a line longer than API Gateway's model takes"
        for field in ("requestId", "identity.sourceIp", "error.message", "authorizer.error"):
            if f"$context.{field}" not in line:
                yield f"{name} does not log {field}"
    group = stack.source["Resources"]["HttpApiLogGroup"]["Properties"]["LogGroupName"]
    if not str(group.get("Fn::Sub") if isinstance(group, dict) else group).startswith(
        "/aws/vendedlogs/${AWS::StackName}/"
    ):
        yield "the access log has another name"


@rule(
    drop("Metadata/AWS::CloudFormation::Interface/ParameterGroups/0/Parameters/0"),
    put("Metadata/AWS::CloudFormation::Interface/ParameterGroups/0/Parameters/0", "Nothing"),
)
def every_parameter_has_its_place_in_the_console(stack: Stack) -> Iterator[str]:
    interface = stack.source["Metadata"]["AWS::CloudFormation::Interface"]
    shown = [name for group in interface["ParameterGroups"] for name in group["Parameters"]]
    if sorted(shown) != sorted(stack.source["Parameters"]):
        yield f"{set(shown) ^ set(stack.source['Parameters'])}"


@rule(
    drop("HttpApi/Auth/Authorizers/Jwt/AuthorizationScopes"),
    put("HttpApi/Auth/Authorizers/Jwt/JwtConfiguration/audience", [{"Ref": "JwtIssuer"}]),
    auth="jwt",
)
def tokens_can_be_asked_for_a_scope(stack: Stack) -> Iterator[str]:
    """Without one, an ID token passes as well.
    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
    """
    if "JwtScope" not in stack.parameters:
        return
    chosen = stack.having(JwtScope="jobs/write", JwtAudience="one,two")
    (api,) = chosen.resources("AWS::ApiGatewayV2::Api").values()
    for path, methods in api["Body"]["paths"].items():
        for method, route in methods.items():
            if method != "options" and route.get("security") != [{"Jwt": ["jobs/write"]}]:
                yield f"{method} {path} asks for no scope"
    configuration = api["Body"]["components"]["securitySchemes"]["Jwt"]
    audience = configuration["x-amazon-apigateway-authorizer"]["jwtConfiguration"]["audience"]
    if audience != "one,two":
        yield "the audiences do not arrive"
