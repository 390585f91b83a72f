"""Items in segments and batches: none twice, none left out, and what shares a call stays together."""

from evalake.sdk import Item
from evalake.suites.registry import suite
from evalake.tasks.converse import Conversation
from evalake.tasks.plan import cut_batches, segments

GUARD = suite("command_guard").data.read("starter")


def test_every_item_comes_once_and_judges_of_a_sample_beside_each_other() -> None:
    items = [
        item for part in segments([GUARD], "a/model", ["one", "two"], ["direct", "other"], range(2)) for item in part
    ]
    identities = {(item.sample.sample_hash, item.judge, item.prompt_type, item.replicate) for item in items}
    assert len(items) == len(identities) == len(GUARD.samples) * 2 * 2 * 2
    for first, second in zip(items[::2], items[1::2], strict=True):
        assert first.sample is second.sample
        assert (first.judge, second.judge) == ("one", "two")


def test_batches_are_of_about_the_size_and_no_shared_call_is_parted() -> None:
    def asking(number: int, judge: str) -> Conversation:
        return Conversation(Item(GUARD.samples[number], "a/model", judge, "direct", 0), f"hash {number}")

    asked = [asking(number, judge) for number in range(7) for judge in ("one", "two", "three")]
    batches = list(cut_batches(asked, 4))
    assert [len(batch) for batch in batches] == [6, 6, 6, 3]
    assert [conversation for batch in batches for conversation in batch] == asked
