"""The tables that every suite shares, one file a table."""

from contracts.contract import Contract
from contracts.tables.call_failures import CALL_FAILURES
from contracts.tables.calls import CALLS
from contracts.tables.contract_checks import CONTRACT_CHECKS
from contracts.tables.forgotten import FORGOTTEN
from contracts.tables.human_labels import HUMAN_LABELS
from contracts.tables.judge_canaries import JUDGE_CANARIES
from contracts.tables.judge_versions import JUDGE_VERSIONS
from contracts.tables.metric_snapshots import METRIC_SNAPSHOTS
from contracts.tables.quarantine import QUARANTINE
from contracts.tables.roadmap_mentions import ROADMAP_MENTIONS
from contracts.tables.run_attempts import RUN_ATTEMPTS
from contracts.tables.run_calls import RUN_CALLS
from contracts.tables.run_items import RUN_ITEMS
from contracts.tables.run_reservations import RUN_RESERVATIONS
from contracts.tables.runs import RUNS
from contracts.tables.samples import SAMPLES
from contracts.tables.snapshots import SNAPSHOTS

CORE_CONTRACTS: tuple[Contract, ...] = (
    SAMPLES,
    CALLS,
    CALL_FAILURES,
    RUN_ITEMS,
    RUNS,
    RUN_ATTEMPTS,
    RUN_CALLS,
    RUN_RESERVATIONS,
    METRIC_SNAPSHOTS,
    SNAPSHOTS,
    CONTRACT_CHECKS,
    QUARANTINE,
    HUMAN_LABELS,
    JUDGE_VERSIONS,
    JUDGE_CANARIES,
    ROADMAP_MENTIONS,
    FORGOTTEN,
)

__all__ = [
    "CALLS",
    "CALL_FAILURES",
    "CONTRACT_CHECKS",
    "CORE_CONTRACTS",
    "FORGOTTEN",
    "HUMAN_LABELS",
    "JUDGE_CANARIES",
    "JUDGE_VERSIONS",
    "METRIC_SNAPSHOTS",
    "QUARANTINE",
    "ROADMAP_MENTIONS",
    "RUNS",
    "RUN_ATTEMPTS",
    "RUN_CALLS",
    "RUN_ITEMS",
    "RUN_RESERVATIONS",
    "SAMPLES",
    "SNAPSHOTS",
]
