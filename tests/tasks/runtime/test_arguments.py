"""An argument goes to a task as it is."""

from prefect.utilities.annotations import quote

from tasks.runtime.arguments import as_it_is


def test_prefect_is_told_not_to_walk_through_it() -> None:
    value = [object()]
    given: object = as_it_is(value)
    assert isinstance(given, quote)
    assert given.unquote() is value
