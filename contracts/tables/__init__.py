"""The tables that every suite shares, one file a table."""

from contracts.contract import Contract
from contracts.tables.call_failures import CALL_FAILURES as CALL_FAILURES
from contracts.tables.calls import CALLS as CALLS
from contracts.tables.contract_checks import CONTRACT_CHECKS as CONTRACT_CHECKS
from contracts.tables.forgotten import FORGOTTEN as FORGOTTEN
from contracts.tables.human_labels import HUMAN_LABELS as HUMAN_LABELS
from contracts.tables.judge_canaries import JUDGE_CANARIES as JUDGE_CANARIES
from contracts.tables.judge_versions import JUDGE_VERSIONS as JUDGE_VERSIONS
from contracts.tables.metric_snapshots import METRIC_SNAPSHOTS as METRIC_SNAPSHOTS
from contracts.tables.quarantine import QUARANTINE as QUARANTINE
from contracts.tables.roadmap_mentions import ROADMAP_MENTIONS as ROADMAP_MENTIONS
from contracts.tables.run_attempts import RUN_ATTEMPTS as RUN_ATTEMPTS
from contracts.tables.run_calls import RUN_CALLS as RUN_CALLS
from contracts.tables.run_coverage import RUN_COVERAGE as RUN_COVERAGE
from contracts.tables.run_items import RUN_ITEMS as RUN_ITEMS
from contracts.tables.run_reservations import RUN_RESERVATIONS as RUN_RESERVATIONS
from contracts.tables.runs import RUNS as RUNS
from contracts.tables.samples import SAMPLES as SAMPLES
from contracts.tables.snapshots import SNAPSHOTS as SNAPSHOTS
from contracts.tables.withdrawn_calls import WITHDRAWN_CALLS as WITHDRAWN_CALLS

CORE_CONTRACTS: tuple[Contract, ...] = (
    SAMPLES,
    CALLS,
    CALL_FAILURES,
    WITHDRAWN_CALLS,
    RUN_ITEMS,
    RUNS,
    RUN_ATTEMPTS,
    RUN_CALLS,
    RUN_COVERAGE,
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
