"""Arguments of Prefect tasks: a large one goes in as it is, not searched for futures."""

from typing import TypeVar, cast

from prefect.utilities.annotations import quote

T = TypeVar("T")


def as_it_is(value: T) -> T:
    """Wrap the value so that Prefect does not walk through it, which would take longer than the task itself."""
    return cast(T, quote(value))  # the task is given the value without the quotes
