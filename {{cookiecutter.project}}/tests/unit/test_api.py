"""The API: each route, with the events that API Gateway sends."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response

import job_routes
from jobs import Job
from jobs.job_id import job_id_for
from jobs.settings import settings
from jobs.store import JobStore
from tests import samples
from tests.unit import client, given
from tests.unit.client import Answer, answer, cancel, get, post, request, retry, shown_problems
from tests.unit.conftest import Clock, Counted, Read
from tests.unit.given import NO_JOB, OWNER, new_id, store, stored
from tests.unit.receiver import Receiver
from web import base_path, owner
from web.body import MAX_BYTES
from web.problems import Problem

pytestmark = pytest.mark.usefixtures("receiver")

JSON = {"Content-Type": "application/json"}


def before(monkeypatch: pytest.MonkeyPatch, write: str, happens: Callable[[], object]) -> None:
    """Let something happen just before the store's next write of this name."""
    method = getattr(JobStore, write)

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(JobStore, write, method)
        happens()
        return method(*arguments)

    monkeypatch.setattr(JobStore, write, late)


# ---------------------------------------------------------------- POST /jobs


def test_accepted(receiver: Receiver, counted: Counted) -> None:
    accepted = post(samples.HAPPY)

    job = stored(accepted.body["job_id"])
    assert (job.status, job.payload, job.owner) == ("queued", samples.HAPPY, OWNER)
    assert receiver.handed_over() == [{"job_id": job.job_id}]
    assert accepted.status == 202
    assert accepted.body == job.public()
    assert accepted.headers == {
        "content-type": "application/json",
        "location": f"/jobs/{job.job_id}",
        "retry-after": "2",
        "cache-control": "no-store",
    }
    assert counted() == ["JobAccepted"]


def test_a_key_seen_before_gives_the_same_job(receiver: Receiver, counted: Counted) -> None:
    key = new_id()
    first = post(samples.HAPPY, key)
    again = post(dict(reversed(samples.HAPPY.items())), f' "{key}" ')

    assert first.body["job_id"] == again.body["job_id"] == job_id_for(OWNER, key)
    assert first.body == again.body
    assert (again.status, again.headers["idempotent-replayed"]) == (202, "true")
    assert "idempotent-replayed" not in first.headers
    assert counted() == ["JobAccepted"]


def test_a_job_that_no_attempt_has_begun_is_handed_over_again(receiver: Receiver) -> None:
    key = new_id()
    job_id = post(samples.HAPPY, key).body["job_id"]
    post(samples.HAPPY, key)
    assert receiver.handed_over() == [{"job_id": job_id}] * 2


@pytest.mark.parametrize("proceed", ["claim", "release", "complete", "cancel"])
def test_a_replay_tells_the_state_and_hands_nothing_over(proceed: str, receiver: Receiver) -> None:
    key = new_id()
    job_id = post(samples.HAPPY, key).body["job_id"]
    receiver.handed_over()
    if proceed == "cancel":
        job = store.cancel(stored(job_id))
    else:
        job = given.claim(job_id)
        if proceed == "release":
            job = store.release(job, ValueError("no"))
        if proceed == "complete":
            job = store.complete(job, {})

    again = post(samples.HAPPY, key)

    assert (again.status, again.headers["idempotent-replayed"]) == (202, "true")
    assert again.body == job.public()
    assert receiver.handed_over() == []


def test_a_key_seen_with_another_payload(receiver: Receiver) -> None:
    key = new_id()
    job_id = post(samples.HAPPY, key).body["job_id"]
    job = stored(job_id)
    receiver.handed_over()

    refused = post(samples.OTHER, key)

    assert (refused.status, refused.problem) == (422, "idempotency-key-reused")
    assert stored(job_id) == job
    assert receiver.handed_over() == []


def test_a_job_that_cannot_be_handed_over_is_not_accepted(
    receiver: Receiver, counted: Counted
) -> None:
    receiver.fail()
    key = new_id()

    refused = post(samples.HAPPY, key)

    assert (refused.status, refused.problem) == (503, "service-unavailable")
    assert refused.headers["retry-after"] == "5"
    assert store.get(job_id_for(OWNER, key)) is None
    assert counted() == []


def test_a_job_that_arrived_although_its_hand_over_failed_is_accepted(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.fail()
    key = new_id()
    before(monkeypatch, "withdraw", lambda: given.claim(job_id_for(OWNER, key)))

    accepted = post(samples.HAPPY, key)

    assert (accepted.status, accepted.body["status"]) == (202, "running")


def test_so_is_one_that_was_cancelled_meanwhile(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.fail()
    key = new_id()
    before(monkeypatch, "withdraw", lambda: cancel(job_id_for(OWNER, key)))

    accepted = post(samples.HAPPY, key)

    assert (accepted.status, accepted.body["status"]) == (202, "cancelled")


def test_a_job_that_another_request_relies_on_is_not_withdrawn(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.fail()
    key = new_id()
    before(monkeypatch, "withdraw", lambda: store.adopt(job_id_for(OWNER, key)))

    assert post(samples.HAPPY, key).problem == "service-unavailable"
    assert stored(job_id_for(OWNER, key)).status == "queued"


def test_a_job_that_was_never_handed_over_is_handed_over_by_the_next_request(
    receiver: Receiver,
) -> None:
    key = new_id()
    job = store.create(job_id_for(OWNER, key), OWNER, samples.HAPPY)  # and then a crash

    assert post(samples.HAPPY, key).status == 202
    assert receiver.handed_over() == [{"job_id": job.job_id}]


def test_a_job_that_is_claimed_while_it_is_asked_for_again(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_id()
    job_id = post(samples.HAPPY, key).body["job_id"]
    receiver.handed_over()
    before(monkeypatch, "adopt", lambda: given.claim(job_id))

    again = post(samples.HAPPY, key)

    assert (again.status, again.body["status"]) == (202, "running")
    assert again.headers["idempotent-replayed"] == "true"
    assert receiver.handed_over() == []


def test_a_job_that_is_withdrawn_while_it_is_asked_for_again_is_made_anew(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = new_id()
    job = store.create(job_id_for(OWNER, key), OWNER, samples.HAPPY)
    before(monkeypatch, "adopt", lambda: store.withdraw(job))

    accepted = post(samples.HAPPY, key)

    assert accepted.status == 202
    assert "idempotent-replayed" not in accepted.headers
    assert stored(job.job_id).public() == accepted.body
    assert receiver.handed_over() == [{"job_id": job.job_id}]


BODY = json.dumps(samples.HAPPY).encode()
TOO_LONG = BODY.ljust(MAX_BYTES + 1)
TEXT = {"Content-Type": "text/plain"}
NO_KEY = JSON | {"Idempotency-Key": ""}


@pytest.mark.parametrize(
    ("headers", "body", "status", "problem"),
    [  # in the order of the checks: each request breaks one rule and all that follow
        ({}, BODY, 415, "unsupported-media-type"),
        (TEXT | {"Idempotency-Key": ""}, TOO_LONG, 415, "unsupported-media-type"),
        (NO_KEY, TOO_LONG, 413, "payload-too-large"),
        (NO_KEY, b"{", 400, "invalid-idempotency-key"),
        (JSON, b"", 400, "invalid-json"),
        (JSON, b"{", 400, "invalid-json"),
        (JSON, b'{"site": "\xff"}', 400, "invalid-json"),
        (JSON, b"[]", 400, "not-an-object"),
        (JSON, json.dumps(samples.INVALID).encode(), 422, "invalid-payload"),
    ],
)
def test_refused(
    headers: dict[str, str], body: bytes, status: int, problem: str, receiver: Receiver
) -> None:
    refused = answer(request("POST", "/jobs", body, headers))

    assert (refused.status, refused.problem) == (status, problem)
    assert refused.headers["cache-control"] == "no-store"
    assert "location" not in refused.headers
    assert receiver.handed_over() == []


@pytest.mark.parametrize(
    ("media_type", "size"),
    [("application/json", MAX_BYTES), ("Application/JSON", 0), ("application/json; a=b", 0)],
)
def test_media_types_of_json_and_the_largest_body(media_type: str, size: int) -> None:
    headers = {"content-type": media_type}
    assert answer(request("POST", "/jobs", BODY.ljust(size), headers)).status == 202


def test_a_body_in_base64() -> None:
    event = request("POST", "/jobs", BODY, JSON)
    event |= {"body": base64.b64encode(BODY).decode(), "isBase64Encoded": True}
    accepted = answer(event)
    assert accepted.status == 202
    assert stored(accepted.body["job_id"]).payload == samples.HAPPY


def test_a_body_that_no_bytes_stand_for() -> None:
    event = request("POST", "/jobs", BODY, JSON) | {"body": '"\ud800"'}
    assert answer(event).problem == "invalid-json"


# ---------------------------------------------------------------- GET /jobs/{job_id}


@pytest.mark.parametrize("state", sorted(given.STATES.keys() - {"gone"}))
def test_status(state: str) -> None:
    job = given.STATES[state]()

    told = get(job.job_id)

    assert (told.status, told.body) == (200, stored(job.job_id).public())
    assert told.headers == {
        "content-type": "application/json",
        "cache-control": "no-store",
        **({} if job.status.terminal else {"retry-after": "2"}),
    }


ROUTES = [get, cancel, retry]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("job_id", [NO_JOB, "17", NO_JOB.upper(), "a%2Fb", "%00"])
def test_no_such_job(route: Callable[[str], Answer], job_id: str) -> None:
    told = route(job_id)
    assert (told.status, told.problem) == (404, "job-not-found")


@pytest.mark.parametrize("route", ROUTES)
def test_the_job_of_somebody_else(route: Callable[[str], Answer], receiver: Receiver) -> None:
    job = given.failed()
    given.change(job, owner="somebody else")
    item = given.item(job)

    told = route(job.job_id)

    assert (told.status, told.problem) == (404, "job-not-found")
    assert told.text == route(new_id()).text  # not even that it exists
    assert given.item(job) == item
    assert receiver.handed_over() == []


@pytest.mark.parametrize("route", ROUTES)
def test_an_expired_job(route: Callable[[str], Answer], clock: Clock) -> None:
    job = given.failed()
    clock.forward(settings.retention_seconds)
    assert route(job.job_id).problem == "job-not-found"


# ---------------------------------------------------------------- POST /jobs/{job_id}/cancel


@pytest.mark.parametrize("state", ["queued", "released", "asked_and_released"])
def test_cancel_before_or_between_attempts(state: str, counted: Counted) -> None:
    job = given.STATES[state]()
    told = cancel(job.job_id)
    assert (told.status, told.body["status"]) == (202, "cancelled")
    assert told.headers["location"] == f"/jobs/{job.job_id}"
    assert told.body == stored(job.job_id).public()
    assert counted() == ["JobCancelled"]


@pytest.mark.parametrize("state", given.UNDER_WAY)
def test_cancel_under_way(state: str) -> None:
    job = given.STATES[state]()
    told = cancel(job.job_id)
    assert told.status == 202
    assert told.body == stored(job.job_id).public()
    assert stored(job.job_id).cancel_requested


def test_cancel_twice(counted: Counted) -> None:
    job = given.cancelled()
    told = cancel(job.job_id)
    assert (told.status, told.body) == (200, job.public())
    assert "location" not in told.headers
    assert counted() == []


@pytest.mark.parametrize("state", ["completed", "failed"])
def test_cancel_too_late(state: str) -> None:
    job = given.STATES[state]()
    told = cancel(job.job_id)
    assert (told.status, told.problem) == (409, "job-finished")
    assert stored(job.job_id) == job


def test_cancel_while_the_job_is_cancelled_and_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    job = given.queued()

    def cancel_and_retry() -> None:
        cancelled = store.cancel(job)
        store.retry(job.job_id, len(cancelled.history))

    before(monkeypatch, "cancel", cancel_and_retry)
    told = cancel(job.job_id)

    assert (told.status, told.body["status"]) == (202, "queued")
    assert stored(job.job_id).status == "queued"


def test_cancel_while_an_attempt_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    job = given.queued()
    before(monkeypatch, "cancel", lambda: given.claim(job))
    assert cancel(job.job_id).status == 202
    assert stored(job.job_id).cancel_requested


@pytest.mark.parametrize(
    ("make", "write", "happens", "says"),
    [
        (given.queued, "cancel", store.withdraw, "job-not-found"),
        (given.running, "ask_to_stop", lambda job: store.release(job, OSError()), "cancelled"),
        (given.running, "ask_to_stop", lambda job: store.complete(job, {}), "job-finished"),
    ],
    ids=["it is withdrawn", "an attempt fails", "it completes"],
)
def test_cancel_while(
    make: Callable[[], Job],
    write: str,
    happens: Callable[[Job], object],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = make()
    before(monkeypatch, write, lambda: happens(job))

    told = cancel(job.job_id)

    problem = str(told.body.get("type")).removeprefix("urn:problem:")
    assert says in (told.body.get("status"), problem)


# ---------------------------------------------------------------- POST /jobs/{job_id}/retry


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_retry(state: str, receiver: Receiver) -> None:
    job = given.STATES[state]()

    told = retry(job.job_id)

    assert (told.status, told.body["status"]) == (202, "queued")
    assert told.headers["location"] == f"/jobs/{job.job_id}"
    assert told.headers["retry-after"] == "2"
    assert told.body == stored(job.job_id).public()
    assert receiver.handed_over() == [{"job_id": job.job_id, "retry_of": len(job.history)}]
    assert stored(job.job_id).retry_of == len(job.history)


@pytest.mark.parametrize("state", ["queued", *given.UNDER_WAY, "completed"])
def test_retry_of_what_has_not_failed(state: str, receiver: Receiver) -> None:
    job = given.STATES[state]()
    told = retry(job.job_id)
    assert (told.status, told.problem) == (409, "job-not-retryable")
    assert stored(job.job_id).history == job.history
    assert receiver.handed_over() == []


def test_retry_too_often(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    job = given.failed()
    monkeypatch.setattr("jobs.job.MAX_HISTORY", len(job.history))
    told = retry(job.job_id)
    assert (told.status, told.problem) == (409, "job-not-retryable")
    assert receiver.handed_over() == []


def test_a_retry_that_cannot_be_handed_over(receiver: Receiver) -> None:
    receiver.fail()
    job = given.failed()
    assert retry(job.job_id).problem == "service-unavailable"
    assert stored(job.job_id) == job


def test_a_retry_that_the_worker_made_first(monkeypatch: pytest.MonkeyPatch) -> None:
    job = given.failed()

    def work() -> None:
        store.retry(job.job_id, len(job.history))
        store.complete(given.claim(job), {})

    before(monkeypatch, "retry", work)
    told = retry(job.job_id)
    assert (told.status, told.body["status"]) == (202, "completed")
    assert "retry-after" not in told.headers


# ---------------------------------------------------------------- a paused intake


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(job_routes, "INTAKE", "paused")


@pytest.mark.parametrize("key", [None, new_id()], ids=["no key", "a key"])
def test_a_paused_intake_stores_nothing(
    paused: Callable[[], None], receiver: Receiver, counted: Counted, key: str | None
) -> None:
    paused()
    told = post(samples.HAPPY, key)
    assert (told.status, told.problem, told.headers["retry-after"]) == (503, "intake-paused", "60")
    assert key is None or store.get(job_id_for(OWNER, key)) is None
    assert (receiver.handed_over(), counted()) == ([], [])


def test_a_paused_intake_retries_nothing(paused: Callable[[], None], receiver: Receiver) -> None:
    job = given.failed()
    paused()
    assert retry(job.job_id).problem == "intake-paused"
    assert (stored(job.job_id), receiver.handed_over()) == (job, [])


def test_a_paused_intake_answers_for_accepted_jobs(paused: Callable[[], None]) -> None:
    key = new_id()
    job_id = post(samples.HAPPY, key).body["job_id"]
    paused()
    assert (get(job_id).status, post(samples.HAPPY, key).body["job_id"]) == (200, job_id)
    assert cancel(job_id).status == 202


# ---------------------------------------------------------------- what fails, and the log


@pytest.mark.parametrize("route", [*ROUTES, lambda _: post(samples.HAPPY)])
def test_a_store_that_does_not_answer(
    route: Callable[[str], Answer], receiver: Receiver, monkeypatch: pytest.MonkeyPatch, log: Read
) -> None:
    for module in (job_routes, owner):
        monkeypatch.setattr(module.store, "_table", "NoSuchTable")
    told = route(new_id())
    assert (told.status, told.problem) == (503, "service-unavailable")
    assert told.headers["retry-after"] == "5"
    assert receiver.handed_over() == []
    assert log()[-1]["exception_name"] == "ResourceNotFoundException"


@pytest.mark.parametrize("route", ROUTES)
def test_a_job_of_a_newer_schema(route: Callable[[str], Answer]) -> None:
    job = given.failed()
    given.change(job, schema=2)
    assert route(job.job_id).problem == "service-unavailable"


def test_our_own_mistake_is_told_to_the_log_alone(
    monkeypatch: pytest.MonkeyPatch, log: Read
) -> None:
    monkeypatch.setattr(owner, "store", None)
    told = get(new_id())
    assert (told.status, told.problem) == (500, "internal-error")
    assert told.body["detail"] == "The request could not be carried out."
    assert "NoneType" not in told.text
    assert log()[-1]["exception_name"] == "AttributeError"


def test_the_document_shows_what_is_answered(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, running, completed = new_id(), given.running().job_id, given.completed().job_id
    post(samples.HAPPY, key)
    answers = [
        answer(request("POST", "/jobs", b"\xff", JSON)),
        post([]),
        post(samples.HAPPY, key=""),
        get(new_id()),
        cancel(completed),
        retry(running),
        answer(request("POST", "/jobs", TOO_LONG, JSON)),
        answer(request("POST", "/jobs", BODY)),
        post(samples.OTHER, key),
    ]
    receiver.fail()
    answers.append(post(samples.HAPPY))
    monkeypatch.setattr(owner, "store", None)
    answers.append(get(new_id()))

    shown = shown_problems()
    assert {told.body["type"]: told.body for told in answers}.items() <= shown.items()
    known = {f"urn:problem:{kind.slug}": kind for kind in Problem.__subclasses__()}
    assert {(known[name].title, known[name].status) for name in shown} == {
        (example["title"], example["status"]) for example in shown.values()
    }


@pytest.mark.parametrize("path", ["/", "//jobs/{}", "/jobs/{}\n", "/elsewhere/jobs/{}"])
def test_no_such_route(path: str) -> None:
    job_id = given.queued().job_id
    event = request("GET", f"/jobs/{job_id}") | {"rawPath": path.format(job_id)}
    assert answer(event).problem == "job-not-found"


@pytest.mark.parametrize("base", ["/orders/v1", "/jobs", ""])
@pytest.mark.parametrize(
    ("stage", "kept", "at"),
    [
        ("$default", "", "{base}"),  # an API mapping, as AWS describes it
        ("$default", "{base}", "{base}"),  # as others have seen it
        ("prod", "", "{base}"),  # a mapping to a named stage
        ("prod", "{base}", "{base}"),
        ("prod", "/prod", "/prod"),  # a named stage at API Gateway's own domain
        ("jobs", "/jobs", "/jobs"),
    ],
)
def test_the_api_may_be_below_the_root(
    base: str, stage: str, kept: str, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_path, "BASE_PATH", base)
    event = request("POST", "/jobs", BODY, JSON)
    event["rawPath"] = kept.format(base=base) + "/jobs"
    event["requestContext"]["stage"] = stage

    accepted = answer(event)

    assert accepted.status == 202
    assert accepted.headers["location"] == f"{at.format(base=base)}/jobs/{accepted.body['job_id']}"


def test_a_route_may_lead_to_another_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a presigned address: there the base path is no part of it."""
    monkeypatch.setattr(base_path, "BASE_PATH", "/orders/v1")
    away: Response[str] = Response(303, headers={"Location": "https://bucket.example/object"})
    monkeypatch.setattr(job_routes, "job_response", lambda *_: away)
    assert get(given.queued().job_id).headers["location"] == "https://bucket.example/object"


def test_each_line_of_the_log_has_the_job(log: Read) -> None:
    job_id = post(samples.HAPPY, new_id()).body["job_id"]
    cancel(job_id)
    retry(job_id)
    lines = log()
    assert [line["message"] for line in lines] == [
        "job accepted",
        "cancellation requested",
        "retry requested",
    ]
    assert {line["job_id"] for line in lines} == {job_id}
    assert lines[0]["correlation_id"] == stored(job_id).request_id
    assert len({line["correlation_id"] for line in lines}) == 3  # requests


def test_what_the_log_tells_of_one_request_is_not_in_the_next(log: Read) -> None:
    get(new_id())
    client.post({}, key="a")
    Logger().info("afterwards")
    assert "job_id" not in log()[-1]
