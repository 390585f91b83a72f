"""Records: values that are compared, hashed, copied and sent between processes by what they hold."""

import pickle
from dataclasses import replace

from evalake.core.hashing import record


@record
class Point:
    """Something with fields."""

    x: int
    name: str = "here"


def test_records_of_equal_fields_are_equal_and_one_key() -> None:
    assert Point(1) == Point(1) != Point(2)
    assert {Point(1): "kept"}[Point(1, "here")] == "kept"


def test_a_record_is_changed_by_copies_and_reaches_other_processes() -> None:
    assert replace(Point(1), name="there") == Point(1, "there")
    assert pickle.loads(pickle.dumps(Point(3))) == Point(3)
    assert not hasattr(Point(1), "__dict__")
