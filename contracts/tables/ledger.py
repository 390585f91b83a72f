"""The tables of samples and calls: `samples`, `calls`, `call_failures`, `withdrawn_calls`, and those of batch jobs."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from evalake.contracts.contract import ALWAYS, ENDPOINT_OF_CALLS, Added, Contract, RowModel
from evalake.contracts.rule import TOKEN_RULES, TableKind, TableRule, hash_rule, not_blank, not_negative


class SampleRow(RowModel):
    """One dataset item."""

    suite: str = Field(description="The suite the sample belongs to.")
    dataset: str = Field(description="The name of its dataset.")
    dataset_version: str = Field(description="SHA-256 over the sample hashes of the dataset, in order.")
    sample_id: str = Field(description="The item's name, unique within its dataset version.")
    sample_hash: str = Field(description="SHA-256 over everything that defines the sample: input, target and labels.")
    position: int = Field(description="Its place in the dataset, from 0.")
    input: str = Field(description="The input of the model: text, or JSON where it has parts.")
    target: str | None = Field(description="The ground truth as JSON, where it is more than a label.")
    label: str | None = Field(description="The right answer's class.")
    category: str | None = Field(description="The kind of item, by which metrics are sliced.")
    severity: str | None = Field(description="The importance of the item.")
    difficulty: str | None = Field(description="The intended difficulty of the item.")
    cluster: str | None = Field(description="Samples of one cluster, like twins, are resampled together.")
    note: str | None = Field(description="The reason for the label.")


SAMPLES = Contract(
    "samples",
    SampleRow,
    ("dataset_version", "sample_id"),
    "Dataset items, one version of a dataset beside the other.",
    (hash_rule("dataset_version"), hash_rule("sample_hash"), not_blank("sample_id"), not_negative("position")),
    extra_table_rules=(TableRule("not_empty", TableKind.ROW_COUNT, {"minimum": 1, "maximum": None}),),
)


class CallRow(RowModel):
    """One answered call to a model."""

    prompt_hash: str = Field(description="SHA-256 over the canonical JSON of the whole request.")
    replicate: int = Field(description="The number of the repeat of the same request, from 0.")
    model: str = Field(description="The called model, by LiteLLM's name.")
    request: str = Field(description="The canonical JSON of the request; its SHA-256 is the prompt hash.")
    response: str | None = Field(description="The text of the reply; null where the model sent none.")
    finish_reason: str | None = Field(description="The reason of the end, in the provider's words.")
    model_reported: str | None = Field(description="The model that the provider names in its answer.")
    input_tokens: int | None = Field(description="Tokens of the prompt, cached ones included.")
    cached_input_tokens: int | None = Field(description="Tokens of the prompt that the provider had cached.")
    output_tokens: int | None = Field(description="Tokens of the reply, reasoning included.")
    reasoning_tokens: int | None = Field(description="Tokens of the reply spent on reasoning.")
    cost_usd: float | None = Field(description="The cost of the call in US dollars; null where the price is unknown.")
    latency_ms: float | None = Field(description="Milliseconds from the last byte sent to the last byte of the reply.")
    attempts: int = Field(description="The number of attempts.")
    error_kind: str | None = Field(description="The kind of error of a recorded result without a reply.")
    origin: Literal["call", "import"] = Field(description="call: made by evalake; import: from recorded results.")
    run_id: str = Field(description="The run that asked.")
    answered_at: datetime = Field(description="The time of the reply.")
    ledger_version: int = Field(description="The table version of the row's commit; the lowest counts.")
    queue_ms: float | None = Field(description="Milliseconds waited for our own limits, over all attempts.")
    waited_ms: float | None = Field(description="Milliseconds paused between attempts.")
    connect_ms: float | None = Field(description="Milliseconds until there was a connection; 0 where one was open.")
    first_byte_ms: float | None = Field(description="Milliseconds from the last byte sent to the reply's first.")
    concurrency: int | None = Field(description="Running calls to the provider when the last attempt began, with it.")
    failed_cost_usd: float | None = Field(description="The cost of failed attempts, where it is known.")
    reasoning: str | None = Field(description="The reasoning, where the provider separates it from the reply.")
    refusal: str | None = Field(description="The refusal, where the provider has a field for it.")
    tool_calls: str | None = Field(description="The tool calls in the reply, as JSON; null without any.")
    endpoint: str = Field(
        description="The answering server: provider, in-process, import, an address, a name, or unknown."
    )
    reply_revision: int = Field(description="0, or one more than the last withdrawn reply to this call.")


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


class CallFailureRow(RowModel):
    """One call that was given up on."""

    run_id: str = Field(description="The run that asked.")
    prompt_hash: str = Field(description="The hash of the failed request.")
    replicate: int = Field(description="The number of its repeat, from 0.")
    model: str = Field(description="The called model.")
    kind: str = Field(description="The kind of failure: timeout, rate_limit, authentication …")
    message: str = Field(description="The message of the provider, without keys.")
    attempts: int = Field(description="The number of attempts.")
    latency_ms: float | None = Field(description="Milliseconds of the last attempt; null where none was made.")
    failed_at: datetime = Field(description="The time of the last attempt's failure.")
    queue_ms: float | None = Field(description="Milliseconds waited for our own limits, over all attempts.")
    waited_ms: float | None = Field(description="Milliseconds paused between attempts.")
    concurrency: int | None = Field(description="Running calls to the provider when the last attempt began.")
    failed_cost_usd: float | None = Field(
        description="The cost of its attempts, where it is known; null where none is."
    )


CALL_FAILURES = Contract(
    "call_failures",
    CallFailureRow,
    ("run_id", "prompt_hash", "replicate"),
    "Calls given up on, with kind, attempts and message. Never served as replies: the next run tries them again.",
    (hash_rule("prompt_hash"), not_negative("replicate"), not_blank("kind")),
    replaced_when="new.failed_at > old.failed_at",
    changes=(Added(("queue_ms", "waited_ms", "concurrency", "failed_cost_usd")),),
)


class WithdrawnCallRow(RowModel):
    """One reply that was withdrawn."""

    prompt_hash: str = Field(description="The request.")
    replicate: int = Field(description="The number of its repeat, from 0.")
    endpoint: str = Field(description="The endpoint that answered.")
    reply_revision: int = Field(description="The revision of the withdrawn reply; the next reply has one more.")
    model: str = Field(description="The model that answered.")
    kind: str = Field(description="The kind of suspicion: empty, error-finish.")
    withdrawn_at: datetime = Field(description="When it was withdrawn.")


WITHDRAWN_CALLS = Contract(
    "withdrawn_calls",
    WithdrawnCallRow,
    (*CALL_KEY, "reply_revision"),
    "Replies that answer no longer. They stay in `calls`; the next reply to the same call has a higher revision.",
    (hash_rule("prompt_hash"), not_negative("replicate"), not_negative("reply_revision"), not_blank("kind")),
)


class BatchJobRow(RowModel):
    """One state of a batch job at a provider; the highest revision counts."""

    job_id: str = Field(
        description="The job; the provider's job has it in its metadata, or in the ids of its requests."
    )
    revision: int = Field(description="The number of its state, from 0.")
    run_id: str = Field(description="The run that asks.")
    holder_run: str = Field(description="The run that works on the job; another may take it over once that has ended.")
    model: str = Field(description="The called model, by LiteLLM's name.")
    endpoint: str = Field(description="The server that has the job.")
    state: Literal["planned", "submitting", "submitted", "cancelling", "collected", "closed"] = Field(
        description="submitting: a submission may have reached the provider; collected: the replies are in the ledger; "
        "closed: its files are deleted, too."
    )
    provider_id: str | None = Field(description="The provider's name of the job; null before its submission.")
    provider_state: str | None = Field(description="The state in the provider's words.")
    input_file: str | None = Field(description="The uploaded file of requests; null where there is none.")
    requests: int = Field(description="How many requests it has.")
    done: int = Field(description="Requests that are answered so far.")
    failed: int = Field(description="Requests that failed or expired so far.")
    submitted_at: datetime | None = Field(description="When it was submitted first; null before.")
    expires_at: datetime | None = Field(description="Until when the provider answers; null where it does not say.")
    message: str | None = Field(description="What went wrong last, in words.")
    changed_at: datetime = Field(description="When this state was written.")


BATCH_JOBS = Contract(
    "batch_jobs",
    BatchJobRow,
    ("job_id", "revision"),
    "Batch jobs at providers. A job has a row before it is submitted; each change of its state is a further revision.",
    (
        *map(not_blank, ("job_id", "run_id", "model", "endpoint")),
        *map(not_negative, ("revision", "requests", "done", "failed")),
    ),
)


class BatchRequestRow(RowModel):
    """One request of a batch job."""

    job_id: str = Field(description="The job.")
    request_id: str = Field(description="The request's name in the job.")
    prompt_hash: str = Field(description="The request.")
    replicate: int = Field(description="The number of its repeat, from 0.")
    endpoint: str = Field(description="The endpoint that answers.")
    reply_revision: int = Field(description="The revision of the reply to it.")
    request: str | None = Field(description="The canonical JSON of the request; null once it is answered.")
    state: Literal["open", "answered", "failed", "expired", "refused"] = Field(
        description="expired: the job ended before it was asked; refused: the provider refused the whole job."
    )
    message: str | None = Field(description="Why it failed, in the provider's words.")


BATCH_REQUESTS = Contract(
    "batch_requests",
    BatchRequestRow,
    ("job_id", "request_id"),
    "The requests of batch jobs: which call each line of a job's results answers.",
    (hash_rule("prompt_hash"), not_negative("replicate"), not_negative("reply_revision"), not_blank("request_id")),
    replaced_when=ALWAYS,
)
