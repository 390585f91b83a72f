"""Which samples a run takes: only those that failed elsewhere, only those named; and what its row says of it."""

import json

import pytest

from evalake.core.errors import SourceError, UsageError
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


def test_named_samples_are_taken_and_the_row_says_so(work: Workplace) -> None:
    data = work.dataset(6)
    run = work.run(data, samples=["s4", "s1"])
    assert (run["samples"], json.loads(run["parameters"])["samples"]) == (2, ["s4", "s1"])
    with pytest.raises(UsageError, match="exclude each other"):
        work.run(data, samples=["s4"], first=1)
