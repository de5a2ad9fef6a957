"""Tables."""

from collections.abc import Iterator

from tests.helpers.cloudformation import Stack
from tests.helpers.rules.rule import TABLE, drop, put, rule


@rule(
    drop("JobsTable/PointInTimeRecoverySpecification"),
    drop("JobsTable/TimeToLiveSpecification"),
    put("IdempotencyTable/TimeToLiveSpecification/AttributeName", "expires_at"),
    put("JobsTable/BillingMode", "PROVISIONED"),
)
def tables_recover_and_forget(stack: Stack) -> Iterator[str]:
    """The attributes are the store's, and those of Powertools' idempotency utility."""
    tables = stack.resources(TABLE)
    for name, key, ttl in (
        ("JobsTable", "job_id", "expires_at"),
        ("IdempotencyTable", "id", "expiration"),
    ):
        table = tables[name]
        if table["KeySchema"] != [{"AttributeName": key, "KeyType": "HASH"}]:
            yield f"{name}: key"
        if table.get("TimeToLiveSpecification") != {"AttributeName": ttl, "Enabled": True}:
            yield f"{name}: TTL"
        if table.get("BillingMode") != "PAY_PER_REQUEST":
            yield f"{name}: billing"
    recovery = tables["JobsTable"].get("PointInTimeRecoverySpecification", {})
    if recovery.get("PointInTimeRecoveryEnabled") is not True:
        yield "JobsTable: point-in-time recovery"
