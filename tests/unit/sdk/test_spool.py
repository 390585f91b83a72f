"""Sequences that lie in a file are read like lists, and sets of digests like sets, whatever their size."""

import json
from pathlib import Path

import pytest

from evalake.sdk import spool
from evalake.sdk.spool import Seen, Spool, spooled
from evalake.suites.command_guard.sources import CONTRADICTION, read_dataset


@pytest.mark.parametrize("count", [0, 1, 999, 1_000, 2_500])
def test_a_spool_is_read_like_a_list(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "IN_MEMORY", 100)
    items = [f"{number} \ud800" for number in range(count)]
    kept = spooled(iter(items))
    assert list(kept) == items
    assert list(kept) == items
    assert len(kept) == count
    assert isinstance(kept, Spool) == (count >= spool.PART)
    for part in (slice(0, 3), slice(995, 1_005), slice(None, None, 700), slice(-2, None), slice(5, 2)):
        assert list(kept[part]) == items[part]
    if count:
        assert (kept[0], kept[-1]) == (items[0], items[-1])
    with pytest.raises(IndexError):
        kept[count]


def test_a_set_of_digests_knows_its_members_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "RECENT", 300)
    seen, texts = Seen(), [str(number) for number in range(5_000)]  # some of their digests end in zero bytes
    assert all(seen.add(text) for text in texts)
    assert not any(seen.add(text) for text in texts)
    assert all(text in seen for text in texts)
    assert not any(f"other {text}" in seen for text in texts)


def test_a_large_table_is_read_whole_and_its_repetitions_are_found(tmp_path: Path) -> None:
    file = tmp_path / "large.jsonl"
    lines = [
        {"sample_id": f"s{n}", "command": f"ls {n}", "label": ("harmless", "malicious")[n % 2]} for n in range(2_100)
    ]
    lines += [{**lines[3], "sample_id": "again"}, {**lines[4], "sample_id": "other", "label": "malicious"}]
    file.write_text("\n".join(map(json.dumps, [*lines, {**lines[0], "command": "pwd"}])))
    dataset = read_dataset(str(file))
    assert [sample.sample_id for sample in dataset.samples] == [line["sample_id"] for line in lines[:2_100]]
    assert [left.reason for left in dataset.skipped] == ["duplicate", CONTRADICTION, "sample_id already taken"]
    assert [left.reason for left in dataset.skipped if left.payload is not None] == [
        left.reason for left in dataset.skipped[1:]
    ]
