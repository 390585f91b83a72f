"""The table `calls`: the ledger of answered calls."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.changes import Added
from contracts.contract import Contract, RowModel
from contracts.endpoints import ENDPOINT_OF_CALLS
from contracts.rule import TOKEN_RULES, hash_rule, not_blank, not_negative


class CallRow(RowModel):
    """One answered call to a model."""

    prompt_hash: str = Field(description="SHA-256 over the canonical JSON of the whole request.")
    replicate: int = Field(description="Which repeat of the same request this is, from 0.")
    model: str = Field(description="The model that was asked, as LiteLLM names it.")
    request: str = Field(description="The canonical JSON of the request; its SHA-256 is the prompt hash.")
    response: str | None = Field(description="The text of the reply; null where the model sent none.")
    finish_reason: str | None = Field(description="Why the model stopped, in its provider's words.")
    model_reported: str | None = Field(description="The model that the provider says answered.")
    input_tokens: int | None = Field(description="Tokens of the prompt, cached ones included.")
    cached_input_tokens: int | None = Field(description="Tokens of the prompt that the provider had cached.")
    output_tokens: int | None = Field(description="Tokens of the reply, reasoning included.")
    reasoning_tokens: int | None = Field(description="Tokens of the reply spent on reasoning.")
    cost_usd: float | None = Field(description="What the call cost in US dollars; null where the price is unknown.")
    latency_ms: float | None = Field(description="Milliseconds from the last byte sent to the last byte of the reply.")
    attempts: int = Field(description="How many attempts it took.")
    error_kind: str | None = Field(description="For recorded results: what went wrong where no reply came.")
    origin: Literal["call", "import"] = Field(description="Asked by evalake, or imported from recorded results.")
    run_id: str = Field(description="The run that asked.")
    answered_at: datetime = Field(description="When the reply came.")
    ledger_version: int = Field(description="The version of the ledger whose commit brought the row; the lowest wins.")
    queue_ms: float | None = Field(description="Milliseconds waited for our own limits, over all attempts.")
    waited_ms: float | None = Field(description="Milliseconds paused between attempts.")
    connect_ms: float | None = Field(description="Milliseconds until there was a connection; 0 where one was open.")
    first_byte_ms: float | None = Field(description="Milliseconds from the last byte sent to the reply's first.")
    concurrency: int | None = Field(description="Calls of the provider on their way when this began, with it.")
    failed_cost_usd: float | None = Field(description="What attempts that failed before it cost, where they told.")
    reasoning: str | None = Field(description="What the model thought, where the provider gave it apart.")
    refusal: str | None = Field(description="Why the model refused, where the provider has a field for that.")
    tool_calls: str | None = Field(description="The calls of tools in the reply, as JSON; null where there is none.")
    endpoint: str = Field(description="Who answered: provider, in-process, import, an address, a name, or unknown.")
    reply_revision: int = Field(description="0; one more than the last reply to this call that was withdrawn.")


CALL_KEY = ("prompt_hash", "replicate", "endpoint")
"""The columns that tell calls apart, here and wherever a call is named."""

CALLS = Contract(
    "calls",
    CallRow,
    CALL_KEY,
    "The ledger: every answered model or judge call. Append-only; of the highest revision of a key, the reply that was "
    "committed first is the reply.",
    (
        hash_rule("prompt_hash"),
        not_blank("endpoint"),
        *map(not_negative, ("replicate", "input_tokens", "output_tokens", "cost_usd", "latency_ms", "reply_revision")),
        *TOKEN_RULES,
    ),
    append_only=True,
    changes=(
        Added(("queue_ms", "waited_ms", "connect_ms", "first_byte_ms", "concurrency", "failed_cost_usd")),
        Added(("reasoning", "refusal", "tool_calls")),
        ENDPOINT_OF_CALLS,
    ),
)
