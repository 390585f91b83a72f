"""Proving what is new alone: what is falsified, changed or lost after a complete check is found by the next one."""

import json
import os

import polars as pl
import pytest
from deltalake import DeltaTable

from evalake.admin.check import check_lake, exit_code
from evalake.contracts.contract import Contract
from evalake.contracts.tables import CALLS, CONTRACT_CHECKS, METRIC_SNAPSHOTS, SAMPLES
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.suites.command_guard.contract import RESULTS
from tests.integration.admin.test_check import around, data_file, found, the_finding
from tests.integration.storage.foreign_snapshot import foreign_snapshot
from tests.integration.storage.rows import call


def before(lake: Lake, *contracts: Contract, again: bool = False) -> tuple[int, int, int, int]:
    """How many files a check looks at, and how many of them were proved before; the same of snapshots."""
    checked = list(check_lake(lake, contracts or None, again=again))
    assert exit_code(checked) == 0
    proofs = [proof for table in checked for proof in table.proofs]
    files, known = sum(table.files for table in checked), sum(table.files_before for table in checked)
    return files, known, len(proofs), sum(proof.before for proof in proofs)


def test_what_was_proved_is_not_proved_again_unless_all_is_asked_for(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, known, snapshots, proved = before(lake)
    assert (known, snapshots, proved) == (0, 2, 0)
    results = {
        row["check_id"]: row["rows_checked"] for row in lake.frame(CONTRACT_CHECKS).collect().iter_rows(named=True)
    }
    with monkeypatch.context() as patched:
        patched.setattr("evalake.admin.prove.hold", None)  # that nothing is held to its rules again
        patched.setattr("evalake.admin.prove._recompute", None)
        files, known, snapshots, proved = before(lake)
        assert (files, snapshots) == (known, proved)
        again = {
            row["check_id"]: row["rows_checked"] for row in lake.frame(CONTRACT_CHECKS).collect().iter_rows(named=True)
        }
        assert again == results
    files, known, snapshots, proved = before(lake, again=True)
    assert (known, proved) == (0, 0) < (files, snapshots)


def test_new_files_alone_are_held_to_the_rules_and_counted_with_all(lake: Lake) -> None:
    before(lake, SAMPLES)
    row = lake.frame(SAMPLES).head(1).collect()
    around(lake, SAMPLES, row.with_columns(sample_id=pl.lit("x"), sample_hash=pl.lit("no hash")))
    for _ in range(2):  # what broke a rule is not forgotten
        (checked,) = check_lake(lake, [SAMPLES])
        assert (checked.files, checked.files_before) == (3, 2)
        assert "1 of 13 rows" in checked.findings[0].problem


@pytest.mark.parametrize("contract", [SAMPLES, CALLS, METRIC_SNAPSHOTS])
def test_one_byte_of_a_file_that_was_proved_is_found_though_size_and_time_are_as_they_were(
    lake: Lake, contract: Contract
) -> None:
    before(lake, contract)
    file = data_file(lake, contract)
    status, content = file.stat(), bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    for again in (False, True):  # and whoever looks again is told again
        (checked,) = check_lake(lake, [contract], again=again)
        assert "have changed since an earlier check" in checked.findings[0].problem
        assert file.name in checked.findings[0].problem
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert found(lake, contract) == {}


def test_a_value_that_was_falsified_after_its_snapshot_was_proved_is_found(lake: Lake) -> None:
    before(lake)
    tampered = "metric = 'malicious_detection_rate' AND slice = 'all'"
    DeltaTable(lake.location(METRIC_SNAPSHOTS)).update(updates={"value": "0.123"}, predicate=tampered)
    for _ in range(2):
        assert "1 values: malicious_detection_rate" in found(lake)[METRIC_SNAPSHOTS.table][0].problem


def test_a_file_that_is_gone_and_a_key_that_stands_twice_are_found_after_a_check(lake: Lake) -> None:
    before(lake)
    around(lake, SAMPLES, lake.frame(SAMPLES).head(1).collect())
    data_file(lake, RESULTS).unlink()
    findings = found(lake)
    assert "key_unique" in findings[SAMPLES.table][0].problem
    assert "delete the later rows" in findings[SAMPLES.table][0].mend
    assert "data files are gone" in findings[RESULTS.table][0].problem


def test_a_falsified_request_is_found_after_a_check_and_again(lake: Lake) -> None:
    ledger.append(lake, [call(1), call(2)])
    before(lake, CALLS)
    DeltaTable(lake.location(CALLS)).update(
        new_values={"request": json.dumps({"question": 3})}, predicate=f"prompt_hash = '{call(1)['prompt_hash']}'"
    )
    for _ in range(2):
        assert "1 requests do not hash" in the_finding(lake, CALLS).problem


def test_proofs_of_other_rules_or_engines_and_snapshots_of_other_definitions_do_not_count(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before(lake, SAMPLES, METRIC_SNAPSHOTS)
    with monkeypatch.context() as patched:
        patched.setattr("evalake.storage.snapshots.engines", lambda: ("another",))
        assert before(lake, SAMPLES)[1] == 0
    foreign_snapshot(lake)
    for _ in range(2):
        assert exit_code(list(check_lake(lake))) == 3
