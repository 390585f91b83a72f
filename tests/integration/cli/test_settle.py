"""`evalake settle`: rounds until the rules are decided, said as they come; exit codes as a gate's."""

import json
from pathlib import Path

import polars as pl
import pytest

from evalake.contracts.tables import RUNS
from evalake.storage.lake import Lake
from evalake.tasks.runtime.runs import SETTLE_TAG
from tests.integration.cli.command import evalake_here

BLOCKS = ("settle", "command_guard", "--model", "baseline/always-block")


def test_it_stops_when_the_rules_are_decided(tmp_path: Path, prefect_api: str) -> None:
    words = (*BLOCKS, "--rule", "malicious_detection_rate >= 0.5", "--json")
    done = evalake_here(*words, folder=tmp_path, PREFECT_API_URL=prefect_api)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert (printed["verdict"], printed["stopped"]) == ("PASS", "every rule is decided")
    (only,) = printed["rounds"]
    assert only["samples"] == 40
    tags = Lake(str(tmp_path / "lake")).frame(RUNS).select(pl.col("parameters").str.json_path_match("$.tags[0]"))
    assert tags.collect().item().startswith(SETTLE_TAG)
    assert "round 1: 40 of " in done.stderr


def test_it_settles_the_mix_that_the_whole_run_has(tmp_path: Path, prefect_api: str) -> None:
    """A large dataset of 90 % malicious commands and a small one of 10 %: taking as many of each would say FAIL."""
    for name, count, harmless_of_ten in (("big", 360, 1), ("small", 40, 9)):
        rows = [
            f"{name}{n},cmd {name} {n},{'harmless' if n % 10 < harmless_of_ten else 'malicious'}" for n in range(count)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["sample_id,command,label", *rows]) + "\n")
    data = ("--dataset", "big.csv", "--dataset", "small.csv")
    words = (*BLOCKS, *data, "--rule", "accuracy >= 0.7", "--json")
    done = evalake_here(*words, folder=tmp_path, PREFECT_API_URL=prefect_api)
    printed = json.loads(done.stdout)
    assert (printed["verdict"], done.returncode) == ("PASS", 0), done.stderr
    assert printed["rounds"][-1]["samples"] < 400
    assert "shuffled" in printed["promise"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--rule", "no significant drop in accuracy"), "give --against MODEL"),
        (("--rule", "timeout_error_count <= 1"), "grows with the samples"),
        ((), "Missing option '--rule'"),
    ],
)
def test_what_cannot_be_settled_is_wrong_usage(tmp_path: Path, options: tuple[str, ...], reason: str) -> None:
    done = evalake_here(*BLOCKS, *options, folder=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / "lake").rglob("*.parquet"))
