"""Which samples a run takes: only those that failed elsewhere, only those named; and what its row says of it."""

import json

import pytest

from evalake.contracts.tables import RUN_ITEMS
from evalake.core.errors import SourceError, UsageError
from evalake.suites.registry import suite as find_suite
from evalake.tasks.extract import failed_samples
from tests.integration.flows.workplace import Workplace


def test_only_what_failed_in_a_run_is_asked_of_the_models_and_datasets_of_that_run(work: Workplace) -> None:
    first = work.run(work.dataset(20), max_calls=15)
    assert first["state"] == "incomplete"
    missing = 20 - first["calls_made"]
    assert work.run(models=(), only_failed=first["run_id"])["samples"] == missing
    with pytest.raises(SourceError, match="has an answer"):
        work.run(models=(), only_failed=first["run_id"])
    with pytest.raises(UsageError, match="no run nowhere"):
        work.run(models=(), only_failed="nowhere")


def test_what_a_cut_off_run_never_listed_has_failed_too(work: Workplace) -> None:
    run = work.run(work.dataset(6))
    work.lake.open(RUN_ITEMS).delete("sample_id IN ('s2', 's5')")
    suite = find_suite("command_guard")
    assert failed_samples(work.lake, suite, run["run_id"]) == {"s2", "s5"}


def test_named_samples_are_taken_and_the_row_says_so(work: Workplace) -> None:
    data = work.dataset(6)
    run = work.run(data, samples=["s4", "s1"])
    assert (run["samples"], json.loads(run["parameters"])["samples"]) == (2, ["s4", "s1"])
    with pytest.raises(UsageError, match="exclude each other"):
        work.run(data, samples=["s4"], first=1)
