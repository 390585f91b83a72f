"""Random frames of the example contract, with broken values for every kind of rule among the sound ones."""

import math
from datetime import UTC, datetime
from typing import Any

import polars as pl
from hypothesis import strategies as st

from evalake.contracts.engines.arrow import conform
from evalake.contracts.rule import WHITE_SPACE
from tests.unit.contracts.examples import EDGES, EXAMPLE

_ANY_TEXT = st.text(max_size=6) | st.text(alphabet=WHITE_SPACE + "a\x1c\u200b", max_size=3)
_ANY_NUMBER = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, 1.0])
_ANY_COUNT = st.integers(-2, 12) | st.integers(-(2**63), 2**63 - 1)
_ANY_TIME = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
_BY_TYPE: dict[type, st.SearchStrategy[Any]] = {
    str: _ANY_TEXT,
    float: _ANY_NUMBER,
    int: _ANY_COUNT,
    bool: st.booleans(),
    datetime: _ANY_TIME,
    list: st.lists(_ANY_TEXT, max_size=2),
}


def _values(name: str) -> st.SearchStrategy[Any]:
    column = EXAMPLE.column[name]
    at_edges = [edge[name] for sides in EDGES.values() for side in sides for edge in side if name in edge]
    listed = st.sampled_from(at_edges) if at_edges else st.nothing()
    usual = st.none() if name not in ("name", "needed") else st.text(min_size=1, max_size=2)
    return usual | usual | listed | _BY_TYPE[column.base]


def frames(max_rows: int = 25) -> st.SearchStrategy[pl.DataFrame]:
    """Frames with the example contract's schema, up to `max_rows` rows."""
    rows = st.lists(
        st.fixed_dictionaries({name: _values(name) for name in EXAMPLE.column}), min_size=1, max_size=max_rows
    )
    return rows.map(lambda drawn: conform(drawn, EXAMPLE))
