"""The table `call_failures`: calls that were given up on."""

from datetime import datetime

from pydantic import Field

from contracts.changes import Added
from contracts.contract import Contract, RowModel
from contracts.rule import hash_rule, not_blank, not_negative


class CallFailureRow(RowModel):
    """One call that was given up on."""

    run_id: str = Field(description="The run that asked.")
    prompt_hash: str = Field(description="The request that was not answered.")
    replicate: int = Field(description="Which repeat of it.")
    model: str = Field(description="The model that was asked.")
    kind: str = Field(description="What went wrong, as a fixed word: timeout, rate_limit, authentication …")
    message: str = Field(description="What the provider said, with keys removed.")
    attempts: int = Field(description="How many attempts were made.")
    latency_ms: float | None = Field(description="Milliseconds of the last attempt; null where none was made.")
    failed_at: datetime = Field(description="When it was given up.")
    queue_ms: float | None = Field(description="Milliseconds waited for our own limits, over all attempts.")
    waited_ms: float | None = Field(description="Milliseconds paused between attempts.")
    concurrency: int | None = Field(description="Calls of the provider on their way when the last attempt began.")
    failed_cost_usd: float | None = Field(description="What its attempts cost, where they told; null where none did.")


CALL_FAILURES = Contract(
    "call_failures",
    CallFailureRow,
    ("run_id", "prompt_hash", "replicate"),
    "Calls given up on, with kind, attempts and message. Never served as replies: the next run tries them again.",
    (hash_rule("prompt_hash"), not_negative("replicate"), not_blank("kind")),
    changes=(Added(("queue_ms", "waited_ms", "concurrency", "failed_cost_usd")),),
)
