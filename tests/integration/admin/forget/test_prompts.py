"""Which prompts were asked about a sample."""

from evalake.admin.forget import asked_about, choose, conversations, imported
from evalake.suites.registry import all_contracts
from evalake.tasks.runtime.context import RunContext


def test_imported_replies_are_told_by_the_sample_that_they_name(guard: RunContext) -> None:
    (sample,) = guard.lake.frame(guard.suite.results).filter(sample_id="s7").collect()["sample_hash"].unique()
    choice = choose(guard.lake, sample, None, None)
    ours, others = asked_about(guard.lake, all_contracts(), choice.hashes)
    assert imported(guard.lake, choice) == ours
    assert len(ours) == 2  # one of each model
    assert not ours & others


def test_no_prompt_has_no_conversation(guard: RunContext) -> None:
    assert conversations(guard.lake, set()) == set()
