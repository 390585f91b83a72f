"""Links of reports lead to the viewer that is named, and names of others stay within their part of an address."""

import pytest

from evalake.core.configuration import VIEWER_URL
from evalake.reports.page import items_address


def test_filters_that_choose_nothing_are_left_out_and_names_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VIEWER_URL, "http://v")
    assert items_address("r", model=None, judge=None) == "http://v/runs/r/items"
    assert items_address("../r?x", model="a/b&c=d", judge=None) == "http://v/runs/..%2Fr%3Fx/items?model=a%2Fb%26c%3Dd"
    assert items_address("r", model="\udcff").endswith("?model=%3F")  # half a character has no other spelling
