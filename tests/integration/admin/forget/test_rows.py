"""Which rows go with a sample, table by table."""

from evalake.admin.forget import choose, column_of, count_rows, rows_of
from evalake.suites.registry import all_contracts
from evalake.tasks.runtime.context import RunContext


def test_everything_made_of_a_sample_goes_and_nothing_else(guard: RunContext) -> None:
    (sample,) = guard.lake.frame(guard.suite.results).filter(sample_id="s7").collect()["sample_hash"].unique()
    going = rows_of(guard.lake, all_contracts(), choose(guard.lake, sample, None, None))
    counts = count_rows(guard.lake, all_contracts(), going.rows)
    assert (counts["samples"], counts["calls"], counts[guard.suite.results.table]) == (
        2,
        2,
        2,
    )  # two versions of the dataset have it
    assert "solidity_audit_results" not in counts
    assert (going.shared_calls, going.orphan_calls) == (0, 0)


def test_tables_of_samples_are_told_by_sample_and_others_by_prompt() -> None:
    columns = {contract.table: column_of(contract) for contract in all_contracts()}
    assert columns["samples"] == "sample_hash"
    assert columns["calls"] == "prompt_hash"
    assert columns["quarantine"] == "row_key"
