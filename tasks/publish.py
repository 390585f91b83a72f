"""Audit and publish: rows are checked against their contract; good ones land once, bad ones go to quarantine."""

import json
import logging
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from evalake.contracts.audit import RuleResult, audit, require
from evalake.contracts.contract import Contract, Row
from evalake.contracts.engines.arrow import NOTHING, conform
from evalake.contracts.tables import CONTRACT_CHECKS, QUARANTINE
from evalake.core.errors import EvalakeError
from evalake.core.hashing import content_hash
from evalake.core.redaction import REDACTED, KnownKeys
from evalake.sdk.results import FALLBACK_FOR, identity_columns
from evalake.storage.lake import Lake
from evalake.storage.landing import Landed, land, land_together
from evalake.suites.registry import suite_folders
from evalake.tasks.converse import Conversation
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import Tally

logger = logging.getLogger("evalake.scores")


@dataclass(frozen=True, slots=True)
class Refused:
    """A refused row, or the raw text of one, with the reason."""

    table: str
    payload: str
    rules: tuple[str, ...]
    reason: str
    origin: str | None = None
    identity: str = ""  # what tells it from others, where the payload has more, like where its replies came from


@dataclass(frozen=True, slots=True)
class Published:
    """The counts of a publication."""

    landed: Landed = field(default_factory=Landed)
    quarantined: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of rows landed, already present, and in quarantine."""
        landed = self.landed.inserted + self.landed.replaced
        return {"landed": landed, "already_present": self.landed.already_present, "quarantined": self.quarantined}

    @property
    def tally(self) -> Tally:
        """Its part of the run's tally."""
        return Tally(**{f"rows_{name}": count for name, count in self.counts.items()})

    def __add__(self, other: "Published") -> "Published":
        return Published(self.landed + other.landed, self.quarantined + other.quarantined)


def score_into(rows: dict[str, list[Mapping[str, Any]]], context: RunContext, conversation: Conversation) -> bool:
    """Score a conversation that has ended, and add its rows by table; returns whether there is a result among them.

    Where the scorer raises, the item goes to quarantine with file, line and sample.
    """
    try:
        scored = context.suite.scoring.score(conversation.item, conversation.answered, context.options)
    except Exception as error:  # noqa: BLE001 - a suite's code may raise anything, and other items are scored
        refused = _unscored(context, conversation, error)
        logger.error("%s", refused["reason"])
        rows.setdefault(QUARANTINE.table, []).append(refused)
        return False
    stated = {FALLBACK_FOR: conversation.fallback_for} if conversation.fallback_for else {}
    for table, of_table in scored.items():
        is_result = table == context.suite.results.table
        rows.setdefault(table, []).extend({**row, **stated} if is_result and stated else row for row in of_table)
    return bool(scored.get(context.suite.results.table))


def _unscored(context: RunContext, conversation: Conversation, error: Exception) -> Row:
    """Describe an item whose scorer raised, as `Refused` has it."""
    item, suite = conversation.item, context.suite
    frames = traceback.extract_tb(error.__traceback__)
    folder = suite_folders().get(suite.name)
    own = [frame for frame in frames if folder and Path(frame.filename).resolve().is_relative_to(folder.resolve())]
    last = (own or frames)[-1]
    what = str(error) if isinstance(error, EvalakeError) else f"{type(error).__name__}: {error}"
    where = "" if isinstance(error, EvalakeError) and not own else f"{last.filename}:{last.lineno}: "
    return {
        "table": suite.results.table,
        "payload": _as_json(identity_columns(item, conversation.answered, suite.scoring.version)),
        "rules": ("scorer_raised",),
        "reason": f"{where}the scorer of {suite.name} failed at the sample {item.sample.sample_id}: {what}",
    }


@dataclass(frozen=True, slots=True)
class Admitted:
    """A batch after its audit: the rows that may land, and how many are in quarantine."""

    rows: pl.DataFrame
    quarantined: int


def publish_results(context: RunContext, rows: Mapping[str, Sequence[Mapping[str, Any]]], origin: str) -> Published:
    """Publish a suite's rows, by table, each with the run that lands it and where its replies came from."""
    landing = {"landed_by_run": context.run_id, "origin": origin}
    done = [
        publish(context.lake, context.run_id, contract, rows[contract.table], landing)
        for contract in context.suite.contracts
        if rows.get(contract.table)
    ]
    if unscored := rows.get(QUARANTINE.table):
        refused = [Refused(**row) for row in unscored]
        batch_id = content_hash([context.run_id, *(each.payload for each in refused)])
        done.append(Published(quarantined=quarantine(context.lake, context.run_id, batch_id, refused)))
    return sum(done, Published())


def publish_conversations(context: RunContext, conversations: Iterable[Conversation], origin: str) -> Published:
    """Score conversations that have ended, and publish their rows."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for conversation in conversations:
        score_into(rows, context, conversation)
    return publish_results(context, rows, origin)


def publish(
    lake: Lake, run_id: str, contract: Contract, rows: Sequence[Row] | pl.DataFrame, shared: Row = NOTHING
) -> Published:
    """Audit one batch of rows for one table, and publish its good rows (write-audit-publish); see `admit`.

    Raises ContractError, before anything lands, where the batch breaks a critical rule of its table.
    """
    if not len(rows):
        return Published()
    admitted = admit(lake, run_id, contract, rows, shared)
    return Published(land(lake, contract, admitted.rows), admitted.quarantined)


def admit(
    lake: Lake,
    run_id: str,
    contract: Contract,
    rows: Sequence[Row] | pl.DataFrame,
    shared: Row = NOTHING,
    *,
    keeps_passed: bool = True,
) -> Admitted:
    """Audit one batch of rows for one table: record the result of each rule, and quarantine rows that break one.

    A frame is one that `conform` has made. `shared` are columns that have one value in all rows. Without
    `keeps_passed`, a batch that breaks no rule leaves no row in `contract_checks`.
    Raises ContractError where the batch breaks a critical rule of its table.
    """
    frame = without_keys(rows if isinstance(rows, pl.DataFrame) else conform(rows, contract, shared))
    batch_id = content_hash([contract.table, run_id, frame.select(contract.key).rows()])
    audited = audit(frame, contract)
    if keeps_passed or not all(result.passed for result in audited.results):
        checked = check_rows(contract, audited.results, run_id=run_id, batch_id=batch_id)
        land_together(lake, CONTRACT_CHECKS, checked)  # so that the quality of the data has a history
    require(audited)
    refused = [
        Refused(
            contract.table,
            _as_json(row),
            tuple(row["broken"]),
            f"breaks {', '.join(row['broken'])}",
            identity=_as_json({name: value for name, value in row.items() if name not in shared}),
        )
        for row in audited.bad.iter_rows(named=True)
    ]
    return Admitted(audited.good, quarantine(lake, run_id, batch_id, refused))


def without_keys(frame: pl.DataFrame) -> pl.DataFrame:
    """Redact our keys in every text of the rows, because a column may hold a decoded form of a reply."""
    keys = KnownKeys().values
    if not keys:
        return frame
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    lists = [name for name, kind in frame.schema.items() if kind == pl.List(pl.String)]
    return frame.with_columns(
        pl.col(texts).str.replace_many(keys, [REDACTED]),
        pl.col(lists).list.eval(pl.element().str.replace_many(keys, [REDACTED])),
    )


def quarantine(lake: Lake, run_id: str, batch_id: str, refused: Iterable[Refused]) -> int:
    """Quarantine refused rows with their reasons, each once for a run; returns their number, with earlier ones.

    A run that is continued puts its rows into other batches, so its key, which has the batch, does not tell.
    """
    rows = [
        {
            "batch_id": batch_id,
            "row_key": content_hash([row.table, row.origin, row.identity or row.payload]),
            "run_id": run_id,
            "table_name": row.table,
            "origin": row.origin,
            "payload": row.payload,
            "rules": list(row.rules),
            "reason": row.reason,
            "quarantined_at": datetime.now(UTC),
        }
        for row in refused
    ]
    if rows:
        there = lake.frame(QUARANTINE).filter(pl.col("run_id") == run_id).select("row_key").collect()
        land(lake, QUARANTINE, conform(rows, QUARANTINE).join(there, on="row_key", how="anti", maintain_order="left"))
    return len(rows)


def check_rows(
    contract: Contract,
    results: Sequence[RuleResult],
    *,
    run_id: str | None = None,
    batch_id: str | None = None,
    table_version: int | None = None,
    engine: str = "polars",
) -> pl.DataFrame:
    """Build the rows of CONTRACT_CHECKS for the results of a table's rules."""
    rows = [
        {
            "check_id": content_hash([contract.table, batch_id, table_version, result.rule_id, engine]),
            "run_id": run_id,
            "table_name": contract.table,
            "table_version": table_version,
            "batch_id": batch_id,
            **{name: getattr(result, name) for name in ("rule_id", "passed", "rows_checked", "rows_failed", "message")},
            "engine": engine,
            "severity": str(result.severity),
            "dimension": str(result.dimension),
            "checked_at": datetime.now(UTC),
        }
        for result in results
    ]
    return conform(rows, CONTRACT_CHECKS)


def _as_json(row: Mapping[str, Any]) -> str:
    return json.dumps({k: v for k, v in row.items() if k != "broken"}, ensure_ascii=False, default=str)
