"""The deck: the same for a seed, and complete."""

from tests.prove.deck import SCENARIOS, deal, deck
from tests.prove.faults import KILLS, WORKER, Fault
from tests.prove.points import CALLS


def test_a_seed_deals_the_same_cards() -> None:
    assert deal(200, seed=7) == deal(200, seed=7)
    assert deal(200, seed=7) != deal(200, seed=8)


def test_500_jobs_see_every_card() -> None:
    cards = deck()
    dealt = deal(500, seed=1)
    assert len(dealt) == 500
    assert all(card in dealt for card in cards)


def test_a_function_is_killed_on_both_sides_of_every_call() -> None:
    dealt = {(f.function, f.call, f.what) for card in deck() for f in card.faults}
    for function, calls in CALLS.items():
        for name, call in calls.items():
            assert not call.scenario or {(function, name, kill) for kill in KILLS} <= dealt


def test_every_fault_strikes_at_a_named_point() -> None:
    for card in deck():
        assert card.scenario in SCENARIOS
        for fault in card.faults:
            assert fault.call in CALLS[fault.function] or _at_work(fault)


def test_no_two_calls_of_a_function_look_alike() -> None:
    for calls in CALLS.values():
        requests = [call.request for call in calls.values()]
        assert len(set(requests)) == len(requests)


def _at_work(fault: Fault) -> bool:
    return (fault.function, fault.call) == (WORKER, "work")
