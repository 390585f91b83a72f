"""Progress of runs and shards: its key, and what is counted for a run that nobody shows."""

from tasks.runtime.progress import advance, ended, key_of


def test_a_shard_has_a_key_of_its_own_that_prefect_takes() -> None:
    assert key_of("run-1") == "progress-run-1"
    assert key_of("run-1", "2/4") == "progress-run-1-2-of-4"


def test_a_process_that_shows_nothing_counts_nothing() -> None:
    advance("nobody's")
    ended("nobody's", "part", 3)
