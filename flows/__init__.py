"""What runs: one module per flow, the only place that decides order."""

from tasks.logs import redact_logs

redact_logs()  # before Prefect says its first word about a run
