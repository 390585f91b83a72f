"""What a service does at its start so that nobody waits long for an answer."""

import gc
from collections.abc import Iterator

import pytest

from service.pauses import spare_what_lasts


@pytest.fixture
def as_before() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("as_before")
def test_the_collector_passes_over_what_was_there_at_the_start() -> None:
    of_the_start = [[number] for number in range(1000)]
    spare_what_lasts()
    assert gc.get_freeze_count() > len(of_the_start)
    assert not any(each is of_the_start for each in gc.get_objects())
