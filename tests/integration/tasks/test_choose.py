"""Choosing samples: a draw has every label, is the same every time, and grows without changing what it held."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from evalake.core.errors import UsageError
from evalake.sdk import Dataset, Sample
from evalake.suites.registry import suite
from evalake.tasks.extract import choose, draw, draw_pooled


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


def test_a_pooled_draw_has_each_dataset_in_proportion_and_grows_without_changing_what_it_held() -> None:
    small = replace(
        dataset(a=60), name="small", samples=tuple(replace(s, dataset="small") for s in dataset(a=60).samples)
    )
    whole = [dataset(a=400, b=200), small]
    drawn = [draw_pooled(whole, size) for size in (40, 110, 660)]
    shares = [{d.name: len(d.samples) for d in each} for each in drawn]
    assert shares[-1] == {"d": 600, "small": 60}
    assert all(abs(each["small"] - size / 11) <= 2 for each, size in zip(shares, (40, 110, 660), strict=True))
    names = [{(d.name, s.sample_id) for d in each for s in d.samples} for each in drawn]
    assert names[0] < names[1] < names[2]
    assert [len(each) for each in names] == [40, 110, 660]


def test_a_pooled_draw_keeps_clusters_whole_and_gives_rare_strata_their_chance() -> None:
    samples = [
        Sample("s", "d", f"{c}-{n}", "x", label=f"l{c}", cluster=f"c{c}") for c in range(200) for n in range(1 + c % 4)
    ]
    early, *_ = draw_pooled([Dataset("d", tuple(samples))], 100)
    sizes = Counter(sample.cluster for sample in samples)
    drawn = Counter(sample.cluster for sample in early.samples)
    assert all(sizes[cluster] == count for cluster, count in drawn.items())
    assert 100 <= len(early.samples) <= 103
    assert 25 <= len(drawn) <= 60, "every label has one cluster only: about a fifth of them are drawn"


def test_neighbours_of_a_file_do_not_follow_each_other_in_a_pooled_draw() -> None:
    """Replies of blocks of five hang together: the first forty samples are of many blocks."""
    ordered = Dataset("d", tuple(Sample("s", "d", f"s{n}", "x", label="a") for n in range(500)))
    (early,) = draw_pooled([ordered], 40)
    assert len({int(sample.sample_id[1:]) // 5 for sample in early.samples}) >= 25
