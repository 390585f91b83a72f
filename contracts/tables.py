"""The tables every suite shares: one row model and one contract each."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from contracts.contract import Contract, Row
from contracts.rules import Dimension, Kind, Rule, Severity, TableKind, TableRule

HASH = r"[0-9a-f]{64}"


def hash_rule(column: str) -> Rule:
    """The column holds a SHA-256 in hexadecimal."""
    return Rule(f"{column}_is_sha256", column, Kind.MATCHES, {"pattern": HASH})


def not_negative(column: str, severity: Severity = Severity.ERROR) -> Rule:
    """The column is never below zero."""
    return Rule(f"{column}_not_negative", column, Kind.BETWEEN, {"minimum": 0, "maximum": None}, severity)


def not_blank(column: str) -> Rule:
    """The column says something."""
    return Rule(f"{column}_not_blank", column, Kind.NOT_BLANK, dimension=Dimension.COMPLETENESS)


class SampleRow(Row):
    """One dataset item."""

    suite: str = Field(description="The suite the sample belongs to.")
    dataset: str = Field(description="The name of its dataset.")
    dataset_version: str = Field(description="SHA-256 over the sample hashes of the dataset, in order.")
    sample_id: str = Field(description="The item's name, unique within its dataset version.")
    sample_hash: str = Field(description="SHA-256 over everything that defines the sample: input, target and labels.")
    position: int = Field(description="Its place in the dataset, from 0.")
    input: str = Field(description="What the model is asked about: text, or JSON where it has parts.")
    target: str | None = Field(description="The ground truth as JSON, where it is more than a label.")
    label: str | None = Field(description="The right answer's class.")
    category: str | None = Field(description="The kind of item, by which metrics are sliced.")
    severity: str | None = Field(description="How much the item matters.")
    difficulty: str | None = Field(description="How hard the item is meant to be.")
    cluster: str | None = Field(description="Items of one cluster (such as twins) are resampled together.")
    note: str | None = Field(description="Why the label is what it is.")


SAMPLES = Contract(
    "samples",
    SampleRow,
    ("dataset_version", "sample_id"),
    "Dataset items, one version of a dataset beside the other.",
    (hash_rule("dataset_version"), hash_rule("sample_hash"), not_blank("sample_id"), not_negative("position")),
    extra_table_rules=(TableRule("not_empty", TableKind.ROW_COUNT, {"minimum": 1, "maximum": None}),),
)


class CallRow(Row):
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
    latency_ms: float | None = Field(description="Milliseconds from the last attempt's start to its reply.")
    attempts: int = Field(description="How many attempts it took.")
    error_kind: str | None = Field(description="For recorded results: what went wrong where no reply came.")
    origin: Literal["call", "import"] = Field(description="Asked by evalake, or imported from recorded results.")
    run_id: str = Field(description="The run that asked.")
    answered_at: datetime = Field(description="When the reply came.")
    ledger_version: int = Field(description="The version of the ledger whose commit brought the row; the lowest wins.")


CALLS = Contract(
    "calls",
    CallRow,
    ("prompt_hash", "replicate"),
    "The ledger: every answered model or judge call. Append-only; the first committed reply of a key is the reply.",
    (
        hash_rule("prompt_hash"),
        not_negative("replicate"),
        not_negative("input_tokens"),
        not_negative("output_tokens"),
        not_negative("cost_usd"),
        not_negative("latency_ms"),
        Rule("cached_within_input", "cached_input_tokens", Kind.NOT_ABOVE, {"other": "input_tokens"}, Severity.WARNING),
        Rule("reasoning_in_output", "reasoning_tokens", Kind.NOT_ABOVE, {"other": "output_tokens"}, Severity.WARNING),
    ),
    append_only=True,
)


class CallFailureRow(Row):
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


CALL_FAILURES = Contract(
    "call_failures",
    CallFailureRow,
    ("run_id", "prompt_hash", "replicate"),
    "Calls given up on, with kind, attempts and message. Never served as replies: the next run tries them again.",
    (hash_rule("prompt_hash"), not_negative("replicate"), not_blank("kind")),
)


class RunItemRow(Row):
    """One item of a run's manifest."""

    run_id: str = Field(description="The run.")
    item_id: str = Field(description="The item: SHA-256 over sample, model, judge, prompt type and replicate.")
    suite: str = Field(description="The suite.")
    dataset: str = Field(description="The sample's dataset.")
    dataset_version: str = Field(description="The version of the dataset.")
    sample_id: str = Field(description="The sample.")
    sample_hash: str = Field(description="The sample's content hash.")
    model: str = Field(description="The subject model.")
    judge: str | None = Field(description="The judge model, where there is one.")
    prompt_type: str = Field(description="Which of the suite's prompts was used.")
    replicate: int = Field(description="Which repeat.")
    prompt_hash: str = Field(description="The subject call's prompt hash.")
    judge_hash: str | None = Field(description="The judge call's prompt hash; null until it is known.")


RUN_ITEMS = Contract(
    "run_items",
    RunItemRow,
    ("run_id", "item_id"),
    "What each run consists of: sample x model x judge x replicate, and the prompt hash of each call.",
    (hash_rule("item_id"), hash_rule("prompt_hash"), hash_rule("sample_hash"), not_negative("replicate")),
    # A retry of an incomplete run may find another judgement than its first attempt did.
    replaced_when="new.judge_hash IS NOT NULL AND (old.judge_hash IS NULL OR old.judge_hash <> new.judge_hash)",
)


class RunRow(Row):
    """One evaluation run."""

    run_id: str = Field(description="The run's name.")
    suite: str = Field(description="The suite that ran.")
    origin: Literal["run", "import"] = Field(description="Models were called, or recorded results were read.")
    state: Literal["running", "completed", "incomplete", "failed"] = Field(
        description="incomplete: some calls were given up or rows refused; a rerun asks only for what is missing."
    )
    parameters: str = Field(description="What the run was asked for, as JSON.")
    dataset_versions: str = Field(description="Dataset name to dataset version, as JSON.")
    models: list[str] = Field(description="The subject models.")
    judges: list[str] = Field(description="The judge models.")
    samples: int = Field(description="How many samples its datasets hold.")
    items: int = Field(description="How many items its manifest holds.")
    calls_made: int = Field(description="Calls answered by a provider in this run.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered.")
    calls_failed: int = Field(description="Calls given up on.")
    rows_landed: int = Field(description="Result rows that this run added.")
    rows_already_present: int = Field(description="Result rows that were there already.")
    rows_quarantined: int = Field(description="Rows refused by their contract.")
    input_tokens: int | None = Field(description="Prompt tokens of the calls made; null where a provider told none.")
    output_tokens: int | None = Field(description="Reply tokens of the calls made; null where a provider told none.")
    cost_usd: float | None = Field(description="What this run paid; null where a price is unknown.")
    cost_usd_avoided: float | None = Field(description="What the ledger's replies had cost; null where unknown.")
    snapshot_id: str | None = Field(description="The metric snapshot made of it.")
    flow_run_id: str | None = Field(description="The Prefect flow run.")
    code_version: str = Field(description="The version of evalake.")
    message: str | None = Field(description="What a person should know about how it ended.")
    started_at: datetime = Field(description="When it began.")
    alive_at: datetime = Field(description="When it last gave a sign of life, which it does every minute.")
    ended_at: datetime | None = Field(description="When it ended; null while it runs.")


RUNS = Contract(
    "runs",
    RunRow,
    ("run_id",),
    "Evaluation runs: parameters, dataset versions, counts, cost, state, Prefect flow run.",
    (
        not_blank("suite"),
        not_negative("samples"),
        not_negative("cost_usd"),
        Rule("ends_after_start", "started_at", Kind.NOT_ABOVE, {"other": "ended_at"}, dimension=Dimension.CONSISTENCY),
    ),
    replaced_when="TRUE",
)


class RunCallsRow(Row):
    """What one run asked about one subject with one judge."""

    run_id: str = Field(description="The run.")
    model: str = Field(description="The subject model.")
    judge: str = Field(description="The judge model; empty where none is involved.")
    calls_made: int = Field(description="Calls answered by a provider in this run, subject and judge together.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered.")
    calls_failed: int = Field(description="Calls given up on.")
    input_tokens: int | None = Field(description="Prompt tokens of the calls made; null where a provider told none.")
    output_tokens: int | None = Field(description="Reply tokens of the calls made; null where a provider told none.")
    cost_usd: float | None = Field(description="What the calls made cost; null where a price is unknown.")
    cost_usd_avoided: float | None = Field(description="What the ledger's replies had cost; null where unknown.")


RUN_CALLS = Contract(
    "run_calls",
    RunCallsRow,
    ("run_id", "model", "judge"),
    "Calls of each run by subject and judge: made, from the ledger, failed. A call that two judges share is in both.",
    (not_blank("model"), not_negative("calls_made"), not_negative("calls_from_ledger"), not_negative("cost_usd")),
    replaced_when="TRUE",
)


class MetricRow(Row):
    """One metric value of one snapshot."""

    snapshot_id: str = Field(description="The snapshot.")
    row_key: str = Field(description="SHA-256 over model, judge, slice, slice value and metric.")
    suite: str = Field(description="The suite.")
    model: str = Field(description="The subject model.")
    judge: str | None = Field(description="The judge or panel; null where none is involved.")
    slice: str = Field(description="What the samples are sliced by; `all` where they are not.")
    slice_value: str = Field(description="Which part of the slice; empty for `all`.")
    metric: str = Field(description="The metric's name.")
    tier: int | None = Field(description="The metric's tier, where its suite has tiers.")
    value: float | None = Field(description="The value; null where it is undefined.")
    n: int = Field(description="The denominator.")
    se: float | None = Field(description="The standard error.")
    ci_low: float | None = Field(description="Lower end of the 95 % interval.")
    ci_high: float | None = Field(description="Upper end of the 95 % interval.")
    reliable: bool = Field(description="Whether n is at least 30.")


METRIC_SNAPSHOTS = Contract(
    "metric_snapshots",
    MetricRow,
    ("snapshot_id", "row_key"),
    "Metric values, versioned over time: one row per value of a snapshot.",
    (
        hash_rule("snapshot_id"),
        hash_rule("row_key"),
        not_negative("n"),
        not_negative("se"),
        Rule("interval_ordered", "ci_low", Kind.NOT_ABOVE, {"other": "ci_high"}, dimension=Dimension.CONSISTENCY),
    ),
)


class SnapshotRow(Row):
    """One metric snapshot."""

    snapshot_id: str = Field(description="SHA-256 over what went in: run, pinned versions, definitions, options, seed.")
    run_id: str = Field(description="The run that was measured.")
    suite: str = Field(description="The suite.")
    pinned_versions: str = Field(description="Table name to the version read, as JSON; null: no such table yet.")
    definition_hash: str = Field(description="SHA-256 over the metric definitions.")
    scorer_version: str = Field(description="The version of the rules that turned replies into rows.")
    code_version: str = Field(description="The version of evalake.")
    seed: int = Field(description="The seed of every bootstrap.")
    options: str = Field(description="The suite's options, as JSON.")
    warnings: list[str] = Field(description="What a reader of the numbers must know.")
    created_at: datetime = Field(description="When it was first made.")


SNAPSHOTS = Contract(
    "snapshots",
    SnapshotRow,
    ("snapshot_id",),
    "Snapshots: the run, the pinned version of every input table, the metric definitions, the seed.",
    (hash_rule("snapshot_id"), hash_rule("definition_hash")),
)


class ContractCheckRow(Row):
    """One rule's result on one batch or table version."""

    check_id: str = Field(description="SHA-256 over rule, engine, and what was checked.")
    run_id: str | None = Field(description="The run whose rows were checked; null for `evalake check`.")
    table_name: str = Field(description="The table.")
    table_version: int | None = Field(description="The version that was checked; null for a batch before its commit.")
    batch_id: str | None = Field(description="The batch that was checked; null for a table version.")
    rule_id: str = Field(description="The rule.")
    engine: Literal["polars", "great_expectations", "delta"] = Field(description="What checked it.")
    severity: Literal["warning", "error", "critical"] = Field(description="What a break of the rule means.")
    dimension: str = Field(description="The side of data quality that the rule looks after.")
    passed: bool = Field(description="Whether every row kept the rule.")
    rows_checked: int = Field(description="How many rows were looked at.")
    rows_failed: int = Field(description="How many broke the rule.")
    message: str | None = Field(description="What was found, in words.")
    checked_at: datetime = Field(description="When.")


CONTRACT_CHECKS = Contract(
    "contract_checks",
    ContractCheckRow,
    ("check_id",),
    "Results of contract rules, by batch or table version.",
    (hash_rule("check_id"), Rule("failed_in_checked", "rows_failed", Kind.NOT_ABOVE, {"other": "rows_checked"})),
)


class QuarantineRow(Row):
    """One refused row."""

    batch_id: str = Field(description="The batch in which it was refused.")
    row_key: str = Field(description="SHA-256 over the refused row.")
    run_id: str = Field(description="The run.")
    table_name: str = Field(description="The table it was meant for.")
    origin: str | None = Field(description="Where it came from, such as file and line number.")
    payload: str = Field(description="The row as JSON, or the raw line where it is not JSON.")
    rules: list[str] = Field(description="The rules it broke.")
    reason: str = Field(description="What is wrong, in words.")
    quarantined_at: datetime = Field(description="When.")


QUARANTINE = Contract(
    "quarantine",
    QuarantineRow,
    ("batch_id", "row_key"),
    "Rows refused by their contract, with the rules they broke.",
    (hash_rule("row_key"), not_blank("reason")),
)

CORE_CONTRACTS: tuple[Contract, ...] = (
    SAMPLES,
    CALLS,
    CALL_FAILURES,
    RUN_ITEMS,
    RUNS,
    RUN_CALLS,
    METRIC_SNAPSHOTS,
    SNAPSHOTS,
    CONTRACT_CHECKS,
    QUARANTINE,
)
