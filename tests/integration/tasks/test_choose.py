"""Choosing samples: a draw has every label, is the same every time, and grows without changing what it held."""

from collections import Counter
from itertools import pairwise

import pytest

from evalake.core.errors import UsageError
from evalake.sdk import Dataset, Sample
from evalake.suites.registry import suite
from evalake.tasks.choose import choose, draw


def dataset(**counts: int) -> Dataset:
    """So many samples of each label, label after label, in three categories."""
    return Dataset(
        "d",
        tuple(
            Sample("s", "d", f"{label}{number}", "x", label=label, category=f"c{number % 3}")
            for label, count in counts.items()
            for number in range(count)
        ),
    )


def test_few_samples_of_the_starter_data_hold_both_labels_and_every_category() -> None:
    starter = suite("command_guard").data.read("starter")
    for size in (2, 10, 50):
        labels = Counter(sample.label for sample in draw(starter, size).samples)
        assert labels == {"malicious": size // 2, "harmless": size // 2}
    assert len({sample.category for sample in draw(starter, 50).samples}) == len({s.category for s in starter.samples})


def test_a_draw_is_proportional_in_order_and_no_larger_than_asked() -> None:
    whole = dataset(a=90, b=10)
    drawn = draw(whole, 20)
    assert Counter(sample.label for sample in drawn.samples) == {"a": 18, "b": 2}
    assert list(drawn.samples) == [sample for sample in whole.samples if sample in drawn.samples]
    assert max(Counter((s.label, s.category) for s in drawn.samples if s.label == "a").values()) == 6
    assert draw(whole, 1000) == whole


def test_a_larger_draw_holds_the_smaller_ones() -> None:
    whole = dataset(a=40, b=25, c=3)
    draws = [{sample.sample_id for sample in draw(whole, size).samples} for size in range(1, 69)]
    assert [len(drawn) for drawn in draws] == list(range(1, 69))
    assert all(smaller < larger for smaller, larger in pairwise(draws))


def test_named_samples_are_kept_and_unknown_ones_are_named() -> None:
    other = Dataset("other", (Sample("s", "other", "z", "x"),))
    assert [d.name for d in choose([dataset(a=3), other], ["z"])] == ["other"]
    (kept,) = choose([dataset(a=3), other], ["a2", "a0"])
    assert [sample.sample_id for sample in kept.samples] == ["a0", "a2"]
    with pytest.raises(UsageError, match="'nowhere'"):
        choose([other], ["nowhere", "z"])
