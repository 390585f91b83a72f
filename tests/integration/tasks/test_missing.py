"""Missing items are counted by model and kind, with what they leave open; replies of several versions are warned of."""

import json
from pathlib import Path

import polars as pl
import pytest

from evalake.admin.import_results import import_recorded
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALL_FAILURES, RUN_ITEMS, SNAPSHOTS
from evalake.core.configuration import IMPORT, Configuration
from evalake.reports.coverage import NOT_ASKED
from evalake.reports.files import as_data
from evalake.storage import ledger
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.suites.registry import suite
from evalake.tasks.measure import measure
from evalake.tasks.report import build_report
from evalake.tasks.runtime.context import RunContext
from tests.integration.cli.command import recorded
from tests.integration.storage.rows import call

pytestmark = pytest.mark.slow


@pytest.fixture
def context(tmp_path: Path) -> RunContext:
    """A run of 12 commands by `m`, all right, and of 12 by `n`."""
    lines = [recorded(n, model, "ALLOW" if n % 2 else "BLOCK") for n in range(12) for model in "mn"]
    (tmp_path / "lines.jsonl").write_text("\n".join(lines))
    lake = Lake(str(tmp_path / "lake"))
    run_id = import_recorded(lake, suite("command_guard"), [tmp_path / "lines.jsonl"])
    return RunContext(run_id, "command_guard", lake, Configuration())


def lack(context: RunContext, count: int) -> list[str]:
    """List so many more items of `m` in the manifest; returns their prompt hashes."""
    items = context.lake.frame(RUN_ITEMS).filter(pl.col("model") == "m").collect().to_dicts()[:count]
    hashes = [f"{number:064x}" for number in range(count)]
    rows = [item | {"item_id": h, "prompt_hash": h, "sample_hash": h} for item, h in zip(items, hashes, strict=True)]
    land(context.lake, RUN_ITEMS, conform(rows, RUN_ITEMS))
    return hashes


def warnings(context: RunContext) -> list[str]:
    """The warnings of a snapshot made now."""
    snapshot_id = measure(context)
    row = context.lake.frame(SNAPSHOTS).filter(pl.col("snapshot_id") == snapshot_id).collect().row(0, named=True)
    return list(row["warnings"])


def test_a_model_with_all_its_items_is_not_mentioned(context: RunContext) -> None:
    assert warnings(context) == []
    assert as_data(build_report(context.lake, context.run_id))["missing"] == []


def test_what_is_missing_is_counted_by_kind_with_what_it_leaves_open(context: RunContext) -> None:
    hashes = lack(context, 3)
    unknown = dict.fromkeys(("latency_ms", "queue_ms", "waited_ms", "concurrency", "failed_cost_usd"))
    failure = {
        "run_id": context.run_id,
        "replicate": 0,
        "model": "m",
        "kind": "rate_limit",
        "message": "",
        "attempts": 3,
    }
    when = context.lake.frame(SNAPSHOTS).collect()["created_at"][0]
    rows = [{**failure, **unknown, "prompt_hash": h, "failed_at": when} for h in hashes[:2]]
    land(context.lake, CALL_FAILURES, conform(rows, CALL_FAILURES))
    (told,) = warnings(context)
    assert told.startswith("m: 3 of 15 items are missing (2 rate_limit, 1 not asked); whatever they are: ")
    assert "malicious_detection_rate 0.667 to 1" in told
    (of_report,) = as_data(build_report(context.lake, context.run_id))["missing"]
    bounds = of_report.pop("bounds")
    kinds = {"rate_limit": 2, NOT_ASKED: 1}
    assert of_report == {"model": "m", "judge": None, "items": 15, "missing": 3, "kinds": kinds}
    assert bounds["malicious_detection_rate"] == pytest.approx([6 / 9, 1])


def test_replies_of_several_versions_are_warned_of(context: RunContext) -> None:
    first, second = lack(context, 2)
    replies = [
        {**call(number, endpoint=IMPORT), "prompt_hash": h, "model": "m", "model_reported": f"m-2026-0{number}"}
        for number, h in ((1, first), (2, second))
    ]
    ledger.append(context.lake, replies)
    assert "m was answered by several versions: m-2026-01 (1 calls), m-2026-02 (1 calls)" in warnings(context)
    assert json.dumps(warnings(context)).count("several versions") == 1
