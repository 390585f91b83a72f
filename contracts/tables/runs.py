"""The tables of runs (`runs`, `run_…`), and of the quality of data: `quarantine`, `contract_checks`, `forgotten`."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from evalake.contracts.contract import ALWAYS, ENDPOINTS_OF_ITEMS, Added, Contract, RowModel
from evalake.contracts.rule import Kind, Rule, at_least_one, consistent, hash_rule, not_blank, not_negative


class RunRow(RowModel):
    """One evaluation run."""

    run_id: str = Field(description="The run's name.")
    suite: str = Field(description="The suite that ran.")
    origin: Literal["run", "import"] = Field(description="Models were called, or recorded results were read.")
    state: Literal["running", "completed", "incomplete", "failed"] = Field(
        description="incomplete: too much is missing, or rows were refused; a rerun asks only for what is missing."
    )
    parameters: str = Field(description="The parameters of the run, as JSON.")
    dataset_versions: str = Field(description="Dataset name to dataset version, as JSON.")
    models: list[str] = Field(description="The subject models.")
    judges: list[str] = Field(description="The judge models.")
    samples: int = Field(description="How many samples its datasets hold.")
    items: int = Field(description="How many items it has: sample x model x judge x prompt type x replicate.")
    calls_made: int = Field(description="Calls answered by a provider in this run.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered.")
    calls_failed: int = Field(description="Calls given up on.")
    rows_landed: int = Field(description="Result rows that this run added.")
    rows_already_present: int = Field(description="Result rows that were there already.")
    rows_quarantined: int = Field(description="Rows refused by their contract.")
    input_tokens: int | None = Field(description="Prompt tokens of the calls made; null where a provider told none.")
    output_tokens: int | None = Field(description="Reply tokens of the calls made; null where a provider told none.")
    cost_usd: float | None = Field(description="What this run paid; null where a price is unknown.")
    cost_usd_avoided: float | None = Field(description="The former cost of the ledger's replies; null where unknown.")
    snapshot_id: str | None = Field(description="The metric snapshot made of it.")
    flow_run_id: str | None = Field(description="The Prefect flow run.")
    code_version: str = Field(description="The version of evalake.")
    message: str | None = Field(description="The end of it in words, for people.")
    started_at: datetime = Field(description="When it began.")
    alive_at: datetime = Field(description="When it last gave a sign of life, which it does at least every minute.")
    ended_at: datetime | None = Field(description="When it ended; null while it runs.")
    items_done: int | None = Field(description="Items answered or given up on so far; null in older rows.")


RUNS = Contract(
    "runs",
    RunRow,
    ("run_id",),
    "Evaluation runs: parameters, dataset versions, counts, cost, state, Prefect flow run.",
    (
        not_blank("suite"),
        *map(not_negative, ("samples", "cost_usd")),
        consistent("ends_after_start", "started_at", Kind.NOT_ABOVE, "ended_at"),
    ),
    replaced_when=ALWAYS,
    changes=(Added(("items_done",)),),
)


class RunAttemptRow(RowModel):
    """One attempt of a run."""

    run_id: str = Field(description="The run.")
    attempt: int = Field(description="Its number, from 1.")
    state: Literal["running", "completed", "incomplete", "failed"] = Field(description="How the attempt ended.")
    started_by: str | None = Field(
        description="Who or what started it: schedule, Prefect UI, API, automation, command line or Python; null where "
        "that is unknown."
    )
    started_at: datetime = Field(description="When it began.")
    ended_at: datetime | None = Field(description="When it ended; null while it runs.")
    calls_made: int = Field(description="Calls answered by a provider in this attempt.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered for other runs before.")
    calls_failed: int = Field(description="Calls given up on in this attempt.")
    cost_usd: float | None = Field(description="What this attempt paid; null where a price is unknown.")
    message: str | None = Field(description="The end of it in words, for people.")


RUN_ATTEMPTS = Contract(
    "run_attempts",
    RunAttemptRow,
    ("run_id", "attempt"),
    "The attempts of each run: who or what started each, when, what it asked and paid, and how it ended.",
    (
        at_least_one("attempt"),
        *map(not_negative, ("calls_made", "calls_failed", "cost_usd")),
        consistent("ends_after_start", "started_at", Kind.NOT_ABOVE, "ended_at"),
    ),
    replaced_when=ALWAYS,
)


class RunCallsRow(RowModel):
    """The calls of one run for one subject and one judge."""

    run_id: str = Field(description="The run.")
    model: str = Field(description="The subject model.")
    judge: str = Field(description="The judge model; empty where none is involved.")
    calls_made: int = Field(description="Calls answered by a provider in this run, subject and judge together.")
    calls_from_ledger: int = Field(description="Calls that the ledger answered.")
    calls_failed: int = Field(description="Calls given up on.")
    input_tokens: int | None = Field(description="Prompt tokens of the calls made; null where a provider told none.")
    output_tokens: int | None = Field(description="Reply tokens of the calls made; null where a provider told none.")
    cost_usd: float | None = Field(description="The cost of the calls made; null where a price is unknown.")
    cost_usd_avoided: float | None = Field(description="The former cost of the ledger's replies; null where unknown.")
    latency_from_ledger: int | None = Field(description="Latencies of this run that are of the calls that bought them.")


RUN_CALLS = Contract(
    "run_calls",
    RunCallsRow,
    ("run_id", "model", "judge"),
    "Calls of each run by subject and judge: made, from the ledger, failed. A call that two judges share is in both.",
    (not_blank("model"), not_negative("calls_made"), not_negative("calls_from_ledger"), not_negative("cost_usd")),
    replaced_when=ALWAYS,
    changes=(Added(("latency_from_ledger",)),),
)


class RunItemRow(RowModel):
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
    endpoint: str = Field(description="The endpoint of the subject call, or of the first.")
    judge_endpoint: str | None = Field(description="The endpoint of the judge call; null until its hash is known.")


ITEM_KEY = (
    *("prompt_hash", "endpoint", "judge_hash", "judge_endpoint"),
    *("sample_hash", "model", "judge", "replicate"),
)
"""The columns by which result rows belong to items of a run; tables without judges lack those of the judge."""

SUBJECT_CALL = {"prompt_hash": "prompt_hash", "replicate": "replicate", "endpoint": "endpoint"}
JUDGE_CALL = {"prompt_hash": "judge_hash", "replicate": "replicate", "endpoint": "judge_endpoint"}
"""The columns of an item, or of a result row, that name its calls, by the columns of the calls' key."""

RUN_ITEMS = Contract(
    "run_items",
    RunItemRow,
    ("run_id", "item_id"),
    "What each run consists of: sample x model x judge x replicate, and the prompt hash of each call.",
    (
        *map(hash_rule, ("item_id", "prompt_hash", "sample_hash")),
        not_negative("replicate"),
        not_blank("endpoint"),
    ),
    # A retry of an incomplete run may find another judgement than its first attempt did, ask another endpoint, with
    # another prompt of its suite, or read a source that has grown.
    replaced_when="(new.judge_hash IS NOT NULL AND (old.judge_hash IS NULL OR old.judge_hash <> new.judge_hash "
    "OR old.judge_endpoint <> new.judge_endpoint)) OR old.endpoint <> new.endpoint "
    "OR old.prompt_hash <> new.prompt_hash OR old.dataset_version <> new.dataset_version",
    changes=(ENDPOINTS_OF_ITEMS,),
)


class RunCoverageRow(RowModel):
    """The coverage of one run's items of one subject, judge and dataset."""

    run_id: str = Field(description="The run.")
    model: str = Field(description="The subject model; empty for imported lines that name none.")
    judge: str = Field(description="The judge model; empty where none is involved.")
    dataset: str = Field(description="The dataset; empty for imported lines that name none.")
    asked: int = Field(description="Items of the run.")
    answered: int = Field(description="Items with an answer and, where there is a judge, a judgement.")
    without_verdict: int = Field(description="Answered items whose reply holds no verdict that can be read.")
    missing: int = Field(description="Items without an answer or without a judgement.")
    without_verdict_kinds: str = Field(description="Answered items without a verdict by kind, as JSON.")
    missing_kinds: str = Field(description="Missing items by kind, as JSON.")
    left_out: str = Field(description="Rows of the source that a documented rule left out, by reason, as JSON.")
    refused: str = Field(description="Rows of the source that could not be read, by reason, as JSON.")
    source_rows: int | None = Field(description="Rows of the source, with those left out; null where unknown.")
    lost_labels: list[str] = Field(description="Labels of the dataset of which no item is answered.")


RUN_COVERAGE = Contract(
    "run_coverage",
    RunCoverageRow,
    ("run_id", "model", "judge", "dataset"),
    "Coverage of each run's items by subject, judge and dataset: asked, answered, without a verdict, missing.",
    (
        *map(not_negative, ("asked", "answered", "without_verdict", "missing", "source_rows")),
        consistent("answered_within_asked", "answered", Kind.NOT_ABOVE, "asked"),
        consistent("without_verdict_within_answered", "without_verdict", Kind.NOT_ABOVE, "answered"),
    ),
    replaced_when=ALWAYS,
)


class RunReservationRow(RowModel):
    """The reservation of one process, and its spending outside the ledger."""

    run_id: str = Field(description="The run.")
    holder: str = Field(description="The process that makes calls of the run, by a random name.")
    beat: int = Field(description="The number of its heartbeats. A process whose number stands still has died.")
    reserved_usd: float = Field(description="US dollars reserved for running calls and later ones.")
    reserved_calls: int = Field(description="Calls reserved in the same way.")
    outside_usd: float = Field(description="US dollars spent on attempts without a reply in the ledger.")
    outside_calls: int = Field(description="Failed calls that it made.")
    changed_at: datetime = Field(description="When the row was last written.")


RUN_RESERVATIONS = Contract(
    "run_reservations",
    RunReservationRow,
    ("run_id", "holder"),
    "Ceilings: what each process that makes calls of a run with a ceiling holds back of it, and spent outside the "
    "ledger.",
    (
        *map(not_blank, ("run_id", "holder")),
        *map(not_negative, ("reserved_usd", "reserved_calls", "outside_usd", "outside_calls")),
    ),
    replaced_when=ALWAYS,
)


class QuarantineRow(RowModel):
    """One refused row."""

    batch_id: str = Field(description="The batch in which it was refused.")
    row_key: str = Field(description="SHA-256 over the refused row.")
    run_id: str = Field(description="The run.")
    table_name: str = Field(description="The table it was meant for.")
    origin: str | None = Field(description="Its source, like file and line number.")
    payload: str = Field(description="The row as JSON, or the raw line where it is not JSON.")
    rules: list[str] = Field(description="The rules it broke.")
    reason: str = Field(description="The reason, in words.")
    quarantined_at: datetime = Field(description="When.")


QUARANTINE = Contract(
    "quarantine",
    QuarantineRow,
    ("batch_id", "row_key"),
    "Rows refused by their contract, with the rules they broke.",
    (hash_rule("row_key"), not_blank("reason")),
)


class ContractCheckRow(RowModel):
    """One rule's result on one batch or table version."""

    check_id: str = Field(description="SHA-256 over rule, engine, and what was checked.")
    run_id: str | None = Field(description="The run whose rows were checked; null for `evalake check`.")
    table_name: str = Field(description="The table.")
    table_version: int | None = Field(description="The version that was checked; null for a batch before its commit.")
    batch_id: str | None = Field(description="The batch that was checked; null for a table version.")
    rule_id: str = Field(description="The rule.")
    engine: Literal["polars", "great_expectations", "delta"] = Field(description="What checked it.")
    severity: Literal["warning", "error", "critical"] = Field(description="The severity of a broken rule.")
    dimension: str = Field(description="The side of data quality that the rule looks after.")
    passed: bool = Field(description="Whether every row kept the rule.")
    rows_checked: int = Field(description="How many rows were looked at.")
    rows_failed: int = Field(description="How many broke the rule.")
    message: str | None = Field(description="The finding, in words.")
    checked_at: datetime = Field(description="When.")


CONTRACT_CHECKS = Contract(
    "contract_checks",
    ContractCheckRow,
    ("check_id",),
    "Results of contract rules, by batch or table version.",
    (hash_rule("check_id"), Rule("failed_in_checked", "rows_failed", Kind.NOT_ABOVE, {"other": "rows_checked"})),
)


class ForgottenRow(RowModel):
    """Rows of one table that were removed, or are still to be."""

    table_name: str = Field(description="The table.")
    row_hash: str = Field(
        description="What is removed from it: a sample's content hash, a request's prompt hash, or the key of a row."
    )
    requested_at: datetime = Field(description="When it was asked for.")
    first_version: int | None = Field(
        description="The table's first version without it; earlier ones are gone. Null until the removal is done."
    )


FORGOTTEN = Contract(
    "forgotten",
    ForgottenRow,
    ("table_name", "row_hash"),
    "What `evalake forget` removed, by hash: never imported or asked about again.",
    (not_blank("table_name"), hash_rule("row_hash"), not_negative("first_version")),
    replaced_when=ALWAYS,
)
