"""The judge canary: frozen items judged again day after day, and a new version where the judge's answers moved.

It also tells which versions a run's judgements are from, and which judges have moved between two runs.

The first canary calls a judge REPLICATES times for each item. These answers and their distances identify the version.
Every later day calls once. Where these answers look moved (p <= SUSPICION), the day calls REPLICATES times. Where all
answers of the day have moved (p <= LEVEL), a new version begins with them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import polars as pl

from evalake.contracts.contract import Contract, Row, scales
from evalake.contracts.engines.arrow import conform
from evalake.contracts.tables import CALLS, RUN_ITEMS
from evalake.contracts.tables.metrics import JUDGE_CANARIES, JUDGE_VERSIONS
from evalake.contracts.tables.runs import JUDGE_CALL, SUBJECT_CALL
from evalake.core.errors import EvalakeError, LakeError
from evalake.core.hashing import content_hash
from evalake.core.redaction import redact
from evalake.metrics.drift import Drift, Given, drift
from evalake.models.endpoints import endpoint_of
from evalake.sdk import Suite
from evalake.storage.lake import Lake
from evalake.storage.landing import land
from evalake.storage.ledger import KEY, LedgerIndex, replies
from evalake.suites.registry import canary_items
from evalake.suites.registry import suite as find_suite
from evalake.tasks.call import recall_or_call
from evalake.tasks.converse import Conversation, next_request, replay_from_ledger
from evalake.tasks.failures import without_answer
from evalake.tasks.runtime.context import RunContext
from evalake.tasks.runtime.runs import run_row

REPLICATES = 5
SUSPICION = 0.01
LEVEL = 0.0001
PER_DAY = 100  # replicates that belong to one day

EVENT = "evalake.judge-version.began"

_MEASURED = ("distance", "noise", "shift", "p_value")  # columns of a day, and fields of Drift


class CanaryError(EvalakeError):
    """A judge did not answer today, so that its version stays."""


@dataclass(frozen=True)
class Canary:
    """The canary of one judge on one day. The suite is the context's."""

    context: RunContext
    judge: str
    day: str  # as 2026-11-22
    flow_run_id: str | None = None

    @property
    def first_replicate(self) -> int:
        """The replicate of the day's first answers: 2026112200 for the 22nd of November 2026.

        No run has so many replicates. A rerun of a day finds its answers in the ledger, and the next day finds none.
        """
        return int(self.day.replace("-", "")) * PER_DAY

    def rows(self, contract: Contract) -> pl.DataFrame:
        """Read a table's rows of the judge for this suite, the newest day first."""
        mine = (pl.col("suite") == self.context.suite_name) & (pl.col("judge") == self.judge)
        return self.context.lake.frame(contract).filter(mine).collect().sort("day", descending=True)


def watch(canary: Canary) -> Row:
    """Make the day's row of JUDGE_CANARIES, or return the present one.

    Raises CanaryError for failed calls, or where a later day has a row.
    """
    known = canary.rows(JUDGE_CANARIES)
    today = known.filter(day=canary.day)
    if not today.is_empty():
        row: Row = today.row(0, named=True)
    elif known.is_empty() or known["day"][0] < canary.day:
        row = _judge(canary, known)
    else:
        raise CanaryError(f"{canary.judge} has a row of a later day than {canary.day}: run the canary for a later day")
    if row["moved"]:
        _announce(canary, row)
    return row


def _judge(canary: Canary, known: pl.DataFrame) -> Row:
    # Without a version that an earlier attempt of this day began
    versions = canary.rows(JUDGE_VERSIONS).filter(pl.col("day") < canary.day)
    number = 1 if versions.is_empty() else int(versions["version"].max())  # type: ignore[arg-type]
    current = versions.filter(version=number)
    under = current.filter(canary_hash=_canary_hash(canary))
    if under.is_empty():
        _require_readable(canary, _asked(canary, REPLICATES))
        _begin(canary, number, datetime.now(UTC) if current.is_empty() else current["since"][0], None)
        return _land_day(canary, number, REPLICATES)
    earlier = _recall(canary, under.row(0, named=True))
    answers, measured = 1, drift(earlier, _ask(canary, 1))
    if measured.p_value <= SUSPICION:
        answers, measured = REPLICATES, drift(earlier, _ask(canary, REPLICATES))
    moved = answers == REPLICATES and measured.p_value <= LEVEL
    if moved:
        number += 1
        # Answers given after the last canary may be of either version: the new one begins at that canary.
        _begin(canary, number, known["judged_at"].max() or current["since"][0], measured)  # type: ignore[arg-type]
    return _land_day(canary, number, answers, measured, moved)


def _canary_hash(canary: Canary) -> str:
    requests = [next_request(canary.context, conversation) for conversation in _conversations(canary, 0)]
    hashes = [request.prompt_hash for request in requests if request is not None]
    judge = canary.context.configuration.real_model(canary.judge)
    endpoint = endpoint_of(judge, canary.context.configuration)
    return content_hash(hashes if endpoint.adopts_unknown else [*hashes, endpoint.name])


def _conversations(canary: Canary, replicate: int) -> list[Conversation]:
    items = canary_items(canary.context.suite_name, canary.judge, replicate)
    return [Conversation(item, answered=answered) for item, answered in items]


def _ask(canary: Canary, times: int) -> list[list[Given]]:
    """Get the day's first answers by item, `times` for each."""
    return _by_item(canary, _asked(canary, times))


def _asked(canary: Canary, times: int) -> list[list[Conversation]]:
    """Ask for the day's first answers, in `times` rounds; the ledger answers known calls."""
    rounds = [_conversations(canary, canary.first_replicate + number) for number in range(times)]
    conversations = list(chain.from_iterable(rounds))
    recall_or_call(canary.context, conversations, LedgerIndex.read(canary.context.lake))
    if problem := without_answer(conversations, canary.judge, "a retry"):
        raise CanaryError(problem)
    return rounds


def _require_readable(canary: Canary, rounds: Sequence[Sequence[Conversation]]) -> None:
    """Raise CanaryError where no answer can be read: nothing can move from a version that begins with them."""
    suite, shared = canary.context.suite, {"landed_by_run": canary.context.run_id, "origin": "call"}
    rows = [_result(canary.context, conversation) for conversation in chain.from_iterable(rounds)]
    outcomes = suite.scoring.outcomes
    why = [each.cast(pl.String) for each in (outcomes.missing, outcomes.without_verdict) if each is not None]
    if why and conform(rows, suite.results, shared).select(pl.coalesce(why).is_not_null().all()).item():
        raise CanaryError(
            f"none of the {len(rows)} answers of {canary.judge} to {suite.name} can be read, so no version begins with "
            "them: try the judge in a run, and read its replies in the viewer"
        )


def _recall(canary: Canary, version: Row) -> list[list[Given]]:
    """Read the answers that a version began with, by item, from the ledger."""
    first = version["first_replicate"]
    rounds = [_conversations(canary, first + number) for number in range(version["replicates"])]
    index = LedgerIndex.read(canary.context.lake)
    if replay_from_ledger(canary.context, list(chain.from_iterable(rounds)), index).unanswered:
        raise LakeError(
            f"the ledger has lost answers of {canary.judge} with which its version {version['version']} began: restore "
            f"the table calls from a backup, or delete its row of judge_versions, and the next canary begins it again"
        )
    return _by_item(canary, rounds)


def _by_item(canary: Canary, rounds: Sequence[Sequence[Conversation]]) -> list[list[Given]]:
    return [[_given(canary.context, conversation) for conversation in item] for item in zip(*rounds, strict=True)]


def _given(context: RunContext, conversation: Conversation) -> Given:
    """Read a judge's answers: the columns of the result row that hold answers, numbers on a scale from 0 to 1."""
    row = _result(context, conversation)
    return {
        name: row[name] if ends is None or row[name] is None else _share(row[name], *ends)
        for name, ends in scales(context.suite.results).items()
        if name in row
    }


def _result(context: RunContext, conversation: Conversation) -> Row:
    suite = context.suite
    (row,) = suite.scoring.score(conversation.item, conversation.answered, context.options)[suite.results.table]
    return row


def _share(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _shared(canary: Canary, version: int) -> dict[str, Any]:
    """Build the shared columns of a version and a day."""
    return {
        "suite": canary.context.suite_name,
        "judge": canary.judge,
        "day": canary.day,
        "canary_hash": _canary_hash(canary),
        "version": version,
        "items": len(_conversations(canary, 0)),
    }


def _begin(canary: Canary, version: int, since: datetime, measured: Drift | None) -> None:
    row = {
        **_shared(canary, version),
        "since": since,
        "first_replicate": canary.first_replicate,
        "replicates": REPLICATES,
        "p_value": None if measured is None else measured.p_value,
    }
    land(canary.context.lake, JUDGE_VERSIONS, conform([row], JUDGE_VERSIONS))


def _land_day(canary: Canary, version: int, answers: int, measured: Drift | None = None, moved: bool = False) -> Row:
    """Land the day's row, and return it."""
    row = {
        **_shared(canary, version),
        "moved": moved,
        "answers": answers,
        **({name: getattr(measured, name) for name in _MEASURED} if measured else dict.fromkeys(_MEASURED)),
        "run_id": canary.context.run_id,
        "flow_run_id": canary.flow_run_id,
        "judged_at": datetime.now(UTC),
    }
    land(canary.context.lake, JUDGE_CANARIES, conform([row], JUDGE_CANARIES))
    return row


def _announce(canary: Canary, row: Mapping[str, Any]) -> None:
    """Emit the event of a new version. A rerun emits it again under the same id, and the server keeps one."""
    from prefect.events import emit_event

    suite, lake = canary.context.suite_name, redact(canary.context.lake.uri)
    emit_event(
        EVENT,
        resource={
            "prefect.resource.id": f"evalake.judge.{suite}.{canary.judge}",
            "prefect.resource.name": canary.judge,
            "evalake.suite": suite,
        },
        payload={
            **{name: row[name] for name in ("suite", "judge", "version", *_MEASURED)},
            "day": canary.day,
            "lake": lake,
        },
        id=uuid5(NAMESPACE_URL, "/".join((EVENT, str(lake), suite, canary.judge, str(row["version"])))),
    )


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run, or one model of it."""

    run_id: str
    model: str | None = None


def versions_of(lake: Lake, suite: Suite, part: RunPart) -> pl.DataFrame:
    """Count the judgements by version, of the judges that have moved; one row a version, in order.

    The columns are judge, version, since (null for version 1) and judgements. A judgement is of the version that was
    current when its reply came, whichever run asked for it. Imported ones are left out:
    nobody knows when they were given.
    """
    moved = (pl.col("suite") == suite.name) & (pl.col("version") > 1)
    moves = (
        lake.frame(JUDGE_VERSIONS).filter(moved).select("judge", "version", "since").unique().sort("since").collect()
    )
    if moves.is_empty() or (judgements := _judgements(lake, suite, part, moves["judge"])).is_empty():
        return pl.DataFrame(schema={**moves.schema, "judgements": pl.UInt32})
    wanted = pl.col("prompt_hash").is_in(judgements["prompt_hash"].unique().implode())
    called = replies(lake.frame(CALLS).filter(wanted, pl.col("origin") == "call")).select(*KEY, "answered_at")
    timed = judgements.join(called.collect(), on=KEY).sort("answered_at")
    joined = timed.join_asof(moves, left_on="answered_at", right_on="since", by="judge", check_sortedness=False)
    by_version = joined.with_columns(pl.col("version").fill_null(1)).group_by(*moves.columns)
    return by_version.agg(judgements=pl.len()).sort("judge", "version")


def _judgements(lake: Lake, suite: Suite, part: RunPart, judges: pl.Series) -> pl.DataFrame:
    """Find the judge, and the first call to it, of each item of the part that one of the judges has judged."""
    mine = (pl.col("run_id") == part.run_id) & pl.col("judge").is_in(judges.unique().implode())
    if part.model is not None:
        mine &= pl.col("model") == part.model
    call = JUDGE_CALL if suite.conversation.asks_subject else SUBJECT_CALL
    asked = [pl.col(column).alias(name) for name, column in call.items()]
    items = lake.frame(RUN_ITEMS).filter(mine).select("judge", *asked)
    return items.drop_nulls().unique().collect()


def version_warnings(lake: Lake, suite: Suite, run_id: str) -> Iterator[str]:
    """Yield a sentence on the versions of each judge that has moved, for readers of a run's metrics."""
    for (judge,), rows in versions_of(lake, suite, RunPart(run_id)).group_by("judge", maintain_order=True):
        version, since = rows.row(-1, named=True)["version"], rows.row(-1, named=True)["since"]
        if rows.height > 1:
            counts = " and ".join(
                f"{row['judgements']} of version {row['version']}" for row in rows.iter_rows(named=True)
            )
            yield f"the judge {judge} moved between the judgements: {counts}, which do not compare with each other"
        elif version > 1:
            yield f"the judge {judge} is in version {version} since {since:%Y-%m-%d}: numbers of before do not compare"


def moves_between(lake: Lake, *parts: RunPart) -> list[str]:
    """Name each judge with several versions among the compared judgements.

    Raises UsageError where there is no such run.
    """
    suites = [find_suite(run_row(lake, part.run_id)["suite"], lake) for part in parts]
    versions = pl.concat([versions_of(lake, suite, part) for suite, part in zip(suites, parts, strict=True)])
    return [
        f"the judge {judge} moved between versions {' and '.join(map(str, sorted(set(rows['version']))))}"
        for (judge,), rows in versions.group_by("judge", maintain_order=True)
        if rows["version"].n_unique() > 1
    ]
