"""The tables that all suites share."""

from evalake.contracts.contract import Contract
from evalake.contracts.tables.ledger import BATCH_JOBS as BATCH_JOBS
from evalake.contracts.tables.ledger import BATCH_REQUESTS as BATCH_REQUESTS
from evalake.contracts.tables.ledger import CALL_FAILURES as CALL_FAILURES
from evalake.contracts.tables.ledger import CALLS as CALLS
from evalake.contracts.tables.ledger import SAMPLES as SAMPLES
from evalake.contracts.tables.ledger import WITHDRAWN_CALLS as WITHDRAWN_CALLS
from evalake.contracts.tables.metrics import GATE_DECISIONS as GATE_DECISIONS
from evalake.contracts.tables.metrics import JUDGE_CANARIES as JUDGE_CANARIES
from evalake.contracts.tables.metrics import JUDGE_VERSIONS as JUDGE_VERSIONS
from evalake.contracts.tables.metrics import METRIC_SNAPSHOTS as METRIC_SNAPSHOTS
from evalake.contracts.tables.metrics import SNAPSHOTS as SNAPSHOTS
from evalake.contracts.tables.people import HUMAN_LABELS as HUMAN_LABELS
from evalake.contracts.tables.people import ROADMAP_MENTIONS as ROADMAP_MENTIONS
from evalake.contracts.tables.runs import CONTRACT_CHECKS as CONTRACT_CHECKS
from evalake.contracts.tables.runs import FORGOTTEN as FORGOTTEN
from evalake.contracts.tables.runs import QUARANTINE as QUARANTINE
from evalake.contracts.tables.runs import RUN_ATTEMPTS as RUN_ATTEMPTS
from evalake.contracts.tables.runs import RUN_CALLS as RUN_CALLS
from evalake.contracts.tables.runs import RUN_COVERAGE as RUN_COVERAGE
from evalake.contracts.tables.runs import RUN_ITEMS as RUN_ITEMS
from evalake.contracts.tables.runs import RUN_RESERVATIONS as RUN_RESERVATIONS
from evalake.contracts.tables.runs import RUNS as RUNS

CORE_CONTRACTS: tuple[Contract, ...] = (  # in the order in which tables are copied, migrated and forgotten
    SAMPLES,
    CALLS,
    CALL_FAILURES,
    WITHDRAWN_CALLS,
    BATCH_JOBS,
    BATCH_REQUESTS,
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
    GATE_DECISIONS,
    ROADMAP_MENTIONS,
    FORGOTTEN,
)
