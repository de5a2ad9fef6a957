"""The fault plan of each engine: the same for a seed, and complete."""

import pytest

from tests.conftest import Oven
from tests.helpers.documents import read_yaml
from tests.tools.prove.engine import ENGINES, KIT_RESOURCES, Engine, load_engine
from tests.tools.prove.fault_plan import assign, every_case, scenarios
from tests.tools.prove.faults import KILLS, WORKER, Fault

NOT_CALLED_BY_THE_KIT = {"AlarmTopic", "FollowUpTopic"}
"""CloudWatch sends to the one, the sample's work.py to the other."""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine."""
    return load_engine(request.param)


def test_a_seed_assigns_the_same_cases(engine: Engine) -> None:
    assert assign(engine, 200, seed=7) == assign(engine, 200, seed=7)
    assert assign(engine, 200, seed=7) != assign(engine, 200, seed=8)


def test_500_jobs_see_every_case(engine: Engine) -> None:
    assigned = assign(engine, 500, seed=1)
    assert len(assigned) == 500
    assert all(case in assigned for case in every_case(engine))


def test_a_function_is_killed_on_both_sides_of_every_call(engine: Engine) -> None:
    assigned = {(f.function, f.call, f.what) for case in every_case(engine) for f in case.faults}
    for function, calls in engine.calls.items():
        for name, call in calls.items():
            assert not call.scenario or {(function, name, kill) for kill in KILLS} <= assigned


def test_every_fault_strikes_at_a_named_point(engine: Engine) -> None:
    for case in every_case(engine):
        assert case.scenario in scenarios(engine)
        for fault in case.faults:
            assert fault.call in engine.calls[fault.function] or _at_work(fault)


def test_no_two_calls_of_a_function_look_alike(engine: Engine) -> None:
    for calls in engine.calls.values():
        requests = [call.request for call in calls.values()]
        assert len(set(requests)) == len(requests)


def test_every_resource_of_the_kit_is_known(engine: Engine, baked: Oven) -> None:
    """Calls to other resources pass unnoticed: a new one of the kit must be added to the list."""
    template = read_yaml(baked(worker=engine.name).read("template.yaml"))
    called = ("DynamoDB::Table", "SQS::Queue", "SNS::Topic", "S3::Bucket")
    declared = {name for name, raw in template["Resources"].items() if raw["Type"].endswith(called)}
    assert declared - NOT_CALLED_BY_THE_KIT <= set(KIT_RESOURCES)


def _at_work(fault: Fault) -> bool:
    return fault.function == WORKER and fault.call in ("work", "run", "import", "import again")
