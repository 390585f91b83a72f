"""Inputs: one column for equal expressions, and rows in an order that does not depend on how they came."""

from polars.testing import assert_frame_equal

from evalake.metrics.compute import Inputs, Metric
from evalake.metrics.estimators import Rate
from tests.unit.metrics.frames import guard_samples
from tests.unit.metrics.guard import GUARD_METRICS, blocked, malicious

GROUPS = ("model", "judge")


def test_equal_expressions_share_a_column() -> None:
    twice = (Metric("one", Rate(blocked, malicious)), Metric("other", Rate(blocked, malicious)))
    inputs = Inputs.read(guard_samples(20).lazy(), twice, GROUPS, None)
    assert inputs.columns[0] == inputs.columns[1]


def test_rows_are_in_one_order_whichever_they_came_in() -> None:
    frame = guard_samples(300)
    for cluster in (None, "cluster"):
        once, again = (
            Inputs.read(rows.lazy(), GUARD_METRICS, GROUPS, cluster)
            for rows in (frame, frame.sample(fraction=1.0, shuffle=True, seed=1))
        )
        assert_frame_equal(once.rows(), again.rows(), check_exact=True)
        assert once.group.tolist() == again.group.tolist() == sorted(once.group)
        assert once.cluster.tolist() == again.cluster.tolist()
