"""The canonical JSON text of a value."""

import pytest

from jobs.canonical import canonical, fingerprint


def test_canonical_is_one_text_for_one_value() -> None:
    assert canonical({"b": "é", "a": [1, 2.5, None]}) == '{"a":[1,2.5,null],"b":"é"}'
    with pytest.raises(ValueError, match="Out of range"):
        canonical(float("inf"))
    with pytest.raises(TypeError, match="not JSON serializable"):
        canonical({1, 2})


def test_a_fingerprint_tells_payloads_apart_not_their_spelling() -> None:
    assert fingerprint(canonical({"a": 1, "b": 2})) == fingerprint(canonical({"b": 2, "a": 1}))
    assert fingerprint(canonical({"a": 1})) != fingerprint(canonical({"a": 2}))
    known = "b3a092a6af48807fa9482b2ee140105575daa26d5b24b3c0e60a7e2dee6683b1"
    assert fingerprint('{"a":"é"}') == known


def test_a_hundred_levels_are_not_too_deep() -> None:
    """Brackets in texts are no levels, and one beside another is none either."""

    def nested(levels: int) -> object:
        value: object = ['"[[[\\', [], [], "[["]
        for _ in range(levels - 2):
            value = [[], value]
        return value

    assert canonical(nested(100))
    assert canonical([[]] * 200)
    with pytest.raises(ValueError, match="more than 100 levels deep"):
        canonical(nested(101))
