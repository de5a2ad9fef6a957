"""What is made of the exceptions that work.py raises."""

import pytest

from jobs import JobCancelled, PermanentError
from jobs.failure import describe, telling
from jobs.table import ConditionFailed


class Declined(PermanentError):
    """A permanent error of work.py's own."""


class Silent(PermanentError):
    """One that has no text."""

    def __str__(self) -> str:
        raise SystemExit


class Suspended(BaseException):
    """The engine's own."""


def told(error: BaseException) -> BaseException:
    """Return what is let out when `error` is raised."""
    with pytest.raises(BaseException) as caught, telling(Suspended):  # noqa: PT011 - any
        raise error
    return caught.value


def group(*errors: BaseException) -> BaseException:
    return BaseExceptionGroup("unhandled errors in a TaskGroup", errors)


STOPPED, HELD, CANCELLED = Suspended(), ConditionFailed(None), JobCancelled()


@pytest.mark.parametrize("error", [KeyError("site"), Declined("no"), STOPPED, HELD, CANCELLED])
def test_most_errors_pass_as_they_are(error: BaseException) -> None:
    assert told(error) is error


@pytest.mark.parametrize("error", [STOPPED, HELD, CANCELLED])
def test_of_a_group_what_is_no_failure_decides(error: BaseException) -> None:
    assert told(group(OSError("no"), group(error, PermanentError("no")))) is error


@pytest.mark.parametrize(
    ("error", "kind", "message", "permanent"),
    [
        (SystemExit(3), "SystemExit", "3", False),
        (KeyboardInterrupt(), "KeyboardInterrupt", "", False),
        (Silent(), "Silent", "(its text cannot be told)", True),
        (OSError("x" * 40_000), "OSError", "x" * 2_000, False),
        (OSError("\udcff"), "OSError", "?", False),
        (group(Declined("no card")), "Declined", "no card", True),
        (group(OSError("a"), Declined("b")), "Declined", "OSError: a; Declined: b", True),
        (group(OSError("a"), OSError("b")), "ExceptionGroup", "OSError: a; OSError: b", False),
    ],
)
def test_what_cannot_be_told_is_replaced(
    error: BaseException, kind: str, message: str, permanent: bool
) -> None:
    replaced = told(error)
    assert isinstance(replaced, Exception)
    assert describe(replaced) == {"type": kind, "message": message}
    assert str(replaced) == message
    assert isinstance(replaced, PermanentError) is permanent


def test_an_error_is_described_even_if_it_was_not_replaced() -> None:
    """The store is called by whoever writes a worker."""
    assert describe(KeyError("site")) == {"type": "KeyError", "message": "'site'"}
    assert describe(ValueError("x" * 2_001))["message"] == "x" * 2_000
    assert describe(Silent())["message"] == "(its text cannot be told)"
