"""What work.py raises, made fit to be logged, kept and shown to the job's owner."""

from collections.abc import Iterator
from contextlib import contextmanager

from jobs.exceptions import JobCancelled, PermanentError
from jobs.table import ConditionFailed

MAX_MESSAGE = 2_000


@contextmanager
def telling(*engine: type[BaseException]) -> Iterator[None]:
    """Let out only exceptions whose text can be told; those of `engine` pass unchanged.

    Replaces `sys.exit` and its like, exception groups, and exceptions whose text is too long, not
    UTF-8 or cannot be had. The cause of the replacement is what was raised.
    """
    try:
        yield
    except BaseException as error:
        told = _told(error, engine)
        if told is error:
            raise
        raise told from error


def describe(error: BaseException) -> dict[str, str]:
    """Return an error as a job holds it, without its stack trace."""
    return {"type": type(error).__name__, "message": _text(error)[0]}


def stand_in(full_name: str, base: type[Exception], message: str) -> Exception:
    """Return an exception whose type has this name, for one that is in no module here."""
    module, _, name = full_name.rpartition(".")
    made: type[Exception] = type(name, (base,), {"__module__": module or "builtins"})
    return made(message)


def type_name(type_: type) -> str:
    """Return the full name of a class."""
    return f"{type_.__module__}.{type_.__qualname__}"


def _told(error: BaseException, engine: tuple[type[BaseException], ...]) -> BaseException:
    leaves = _leaves(error)
    for kinds in (engine, ConditionFailed, JobCancelled):
        for leaf in leaves:
            if isinstance(leaf, kinds):
                return leaf
    if len(leaves) == 1:
        shown = leaves[0]
        message, whole = _text(shown)
        if whole and isinstance(shown, Exception):
            return shown
    else:  # a permanent one decides
        shown = next((leaf for leaf in leaves if isinstance(leaf, PermanentError)), error)
        message = "; ".join(f"{type(leaf).__name__}: {_text(leaf)[0]}" for leaf in leaves)
    base = PermanentError if isinstance(shown, PermanentError) else Exception
    return stand_in(type_name(type(shown)), base, message[:MAX_MESSAGE])


def _leaves(error: BaseException) -> list[BaseException]:
    """Return the exceptions of a group and of the groups in it; of another exception, itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for member in error.exceptions for leaf in _leaves(member)]


def _text(error: BaseException) -> tuple[str, bool]:
    """Return what an exception says, cut and in UTF-8, and whether that is all of it."""
    try:
        said = str(error)
    except BaseException:  # work.py may have written it
        return "(its text cannot be told)", False
    message = said[:MAX_MESSAGE].encode("utf-8", "replace").decode("utf-8")
    return message, message == said
