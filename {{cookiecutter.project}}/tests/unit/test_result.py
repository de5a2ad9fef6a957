"""The result that a job keeps."""

from typing import Any

import pytest

from jobs import PermanentError
from jobs.result import as_result


def test_a_result_may_have_just_so_many_bytes() -> None:
    def result(size: int) -> dict[str, str]:
        return {"text": "é" + "x" * (size - len('{"text":"__"}'))}

    assert len(as_result(result(100_000)).encode()) == 100_000
    with pytest.raises(PermanentError) as error:
        as_result(result(100_001))
    assert str(error.value) == (
        "the result has 100001 bytes and 100000 are allowed: store it elsewhere and return where"
    )


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (None, "run() returned NoneType; it returns a JSON object"),
        (["pages"], "run() returned list; it returns a JSON object"),
        ({"sites": {"docs.example"}}, "the result is not JSON: Object of type set is not"),
        ({"ratio": float("nan")}, "the result is not JSON: Out of range float values"),
        ({"text": "\ud800"}, "the result is not JSON: 'utf-8' codec can't encode"),
    ],
)
def test_a_result_is_a_json_object(result: Any, why: str) -> None:
    with pytest.raises(PermanentError) as error:
        as_result(result)
    assert str(error.value).startswith(why)
