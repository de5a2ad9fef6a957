"""DynamoDB's expressions, in words: conditions that read as sentences, and changes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Condition:
    """What must hold of the stored item. `a & b` needs both, `a | b` at least one."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def __and__(self, other: "Condition") -> "Condition":
        return Condition(f"{self.text} AND {other.text}", {**self.values, **other.values})

    def __or__(self, other: "Condition") -> "Condition":
        return Condition(f"({self.text} OR {other.text})", {**self.values, **other.values})


def absent(name: str) -> Condition:
    """The item has no such attribute."""
    return Condition(f"attribute_not_exists(#{name})")


def equal(name: str, value: object) -> Condition:
    """The attribute has this value."""
    return Condition(f"#{name} = :equal_{name}", {f":equal_{name}": value})


def below(name: str, value: int) -> Condition:
    """The attribute is a smaller number."""
    return Condition(f"#{name} < :below_{name}", {f":below_{name}": value})


def one_of(name: str, values: Iterable[str]) -> Condition:
    """The attribute has one of these values."""
    named = {f":{name}_{value}": value for value in values}
    return Condition(f"#{name} IN ({', '.join(named)})", named)


def has_length(name: str, length: int) -> Condition:
    """The list has this many entries."""
    return Condition(f"size(#{name}) = :length_{name}", {f":length_{name}": length})


@dataclass(frozen=True)
class Change:
    """What an update does to an item, by attribute."""

    set: Mapping[str, Any] = field(default_factory=dict)
    set_first: Mapping[str, Any] = field(default_factory=dict)
    """Set only if the item has no such attribute."""
    append: Mapping[str, Any] = field(default_factory=dict)
    """An entry for the end of a list."""
    count: tuple[str, ...] = ()
    """Numbers to add one to."""
    remove: tuple[str, ...] = ()

    def expression(self) -> tuple[str, dict[str, Any]]:
        """Return the update expression, and its values."""
        sets = [
            *(f"#{name} = :{name}" for name in self.set),
            *(f"#{name} = if_not_exists(#{name}, :{name})" for name in self.set_first),
            *(f"#{name} = list_append(#{name}, :{name})" for name in self.append),
            *(f"#{name} = if_not_exists(#{name}, :zero) + :one" for name in self.count),
        ]
        removals = ", ".join(f"#{name}" for name in self.remove)
        values = {**self.set, **self.set_first} | {n: [entry] for n, entry in self.append.items()}
        if self.count:
            values |= {"zero": 0, "one": 1}
        text = f"SET {', '.join(sets)}" + (f" REMOVE {removals}" if removals else "")
        return text, {f":{name}": value for name, value in values.items()}
