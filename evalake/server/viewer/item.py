"""One item whole: its input and ground truth, and for each answer the conversation, word by word."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
from pydantic import BaseModel

from evalake.contracts.contract import Row
from evalake.contracts.tables import RUN_ITEMS, SAMPLES, SNAPSHOTS
from evalake.contracts.tables.runs import ITEM_KEY
from evalake.core.hashing import plain
from evalake.sdk import Suite
from evalake.server.viewer.access import IndexesHere, ItemId, RunId
from evalake.server.viewer.conversation import ANSWER_NAMES, Asked, CallView, Conversations
from evalake.server.viewer.items import AnswerView, Neighbours, WantedQuery, answer_view, matching, neighbours
from evalake.server.viewer.run_index import RunIndex
from evalake.storage.lake import Lake
from evalake.storage.snapshots import read_metrics
from evalake.tasks.extract import sample_of
from evalake.tasks.runtime.runs import as_scored, under_its_criteria


class Fact(BaseModel):
    """What is told of an answer: a heading, and a value of JSON."""

    name: str
    label: str
    value: Any


class Remark(BaseModel):
    """What was said of a line of `input_text`, from 1."""

    line: int
    text: str


class Detail(AnswerView):
    """An answer with what was read out of it; `calls` name the calls of its conversation, in order."""

    prompt_hash: str
    judge_hash: str | None
    scorer_version: str | None
    landed_by: str | None  # the run that landed its row first
    values: list[Fact]
    details: list[list[Fact]]
    remarks: list[Remark]
    calls: list[str]


class ItemContent(BaseModel):
    """An item whole."""

    run_id: str
    suite: str
    item_id: str
    dataset: str
    dataset_version: str
    sample_id: str
    label: str | None
    category: str | None
    severity: str | None
    difficulty: str | None
    cluster: str | None
    note: str | None
    input: str
    input_text: str  # as a reader reads it
    input_is_code: bool
    target: str | None
    answers: list[Detail]
    calls: list[CallView]


class ItemDetail(Neighbours, ItemContent):
    """An item whole, and where it stands among the items that were asked for."""


def item_detail(indexes: IndexesHere, run_id: RunId, item_id: ItemId, wanted: WantedQuery) -> ItemDetail:
    """Read an item of a run whole. Raises NotFoundError where there is no such run or item."""
    index = indexes.of(run_id)
    found = matching(indexes, index, wanted)
    place = neighbours(index, found, item_id)
    [content] = item_contents(indexes.lake, index, [item_id])
    of_item = index.samples.filter(pl.col("sample_hash") == item_id)
    matches = {_name(row): row["matches"] for row in found.answers.join(of_item, on="place", how="semi").to_dicts()}
    for answer in content.answers:
        answer.matches = matches.get(_name(dict(answer)))
    return ItemDetail(**dict(content), **dict(place))


def _name(answer: Row) -> tuple[Any, ...]:
    return tuple(answer[name] for name in ANSWER_NAMES)


def item_contents(lake: Lake, index: RunIndex, item_ids: Sequence[str]) -> Iterator[ItemContent]:
    """Read items of a run whole, in the order of `item_ids`; each table is read once for all of them."""
    material = Material(lake, index, item_ids)
    return (material.content(item_id) for item_id in item_ids)


class Material:
    """What the tables hold about some items of a run."""

    def __init__(self, lake: Lake, index: RunIndex, item_ids: Sequence[str]) -> None:
        self._index = index
        self._samples = _samples(lake, index.run, item_ids)
        manifest = lake.frame(RUN_ITEMS).filter(_of(item_ids), run_id=index.run["run_id"]).collect()
        self._manifest = manifest.rows_by_key("sample_hash", named=True, include_key=True)
        entries = manifest.to_dicts()
        rows = _result_rows(lake, index, entries)
        self._rows = rows.rows_by_key("sample_hash", named=True, include_key=True)
        self._details = _detail_rows(lake, index.suite, rows.to_dicts())
        of_items = index.samples.filter(_of(item_ids)).select("place", "sample_hash")
        self._answers = of_items.join(index.answers, on="place", maintain_order="right")
        self._options = _options(lake, index)
        self._deviations = _deviations(lake, index)
        self._asked = Asked(lake, index.run["run_id"], entries)

    def content(self, item_id: str) -> ItemContent:
        """Build one of the items."""
        suite = self._index.suite
        row = self._samples[item_id]
        sample = sample_of(row)
        conversations = Conversations(self._asked, self._index, sample, self._options)
        answers = self._answers.filter(pl.col("sample_hash") == item_id).drop("sample_hash").iter_rows(named=True)
        input_text = suite.presentation.viewing.input_text(sample)
        return ItemContent(
            run_id=self._index.run["run_id"],
            suite=suite.name,
            item_id=item_id,
            **{name: value for name, value in row.items() if name in ItemContent.model_fields and name != "suite"},
            input_text=input_text,
            input_is_code=suite.presentation.viewing.input_is_code,
            answers=[self._detail(item_id, input_text, answer, conversations) for answer in answers],
            calls=conversations.calls(),
        )

    def _detail(self, item_id: str, input_text: str, answer: Row, conversations: Conversations) -> Detail:
        suite = self._index.suite
        viewing = suite.presentation.viewing
        entry = next(
            entry for entry in self._manifest[item_id] if all(entry[name] == answer[name] for name in ANSWER_NAMES)
        )
        # A suite without judges leaves their hash out
        own = (row for row in self._rows.get(item_id, ()) if all(row.get(name) == entry[name] for name in ITEM_KEY))
        row = next(own, None)
        further = [each for key, each in self._details if row and all(each[name] == row[name] for name in key)]
        remarks = [] if row is None or viewing.remarks is None else viewing.remarks(input_text, row, further)
        return Detail(
            **answer_view(answer, self._index.flags).model_dump(),
            prompt_hash=entry["prompt_hash"],
            judge_hash=entry["judge_hash"],
            scorer_version=None if row is None else row["scorer_version"],
            landed_by=None if row is None else row["landed_by_run"],
            values=[] if row is None else self._values(row, answer),
            details=[_facts(each, viewing.details) for each in further],
            remarks=[Remark(line=line, text=text) for line, text in remarks],
            calls=conversations.of(entry),
        )

    def _values(self, row: Row, answer: Row) -> list[Fact]:
        """Tell what was read out of an answer; beside its score, how far that moves when asked again in this run."""
        viewing = self._index.suite.presentation.viewing
        facts = _facts(row, viewing.shown)
        if viewing.deviation is None or answer["score"] is None:
            return facts
        metric, label = viewing.deviation
        value, repeated = self._deviations.get((answer["model"], answer["judge"]), (None, 0))
        if value is None:
            told = Fact(name=metric, label=label, value="unknown: nothing was scored twice (--replicates 2)")
        else:
            told = Fact(name=metric, label=f"{label} (n = {repeated:,})", value=value)
        return [*facts[:1], told, *facts[1:]]


def _deviations(lake: Lake, index: RunIndex) -> Mapping[tuple[str, str | None], tuple[float | None, int]]:
    """Read the deviation of repeated scores in the run's snapshot, with n, by model and judge."""
    named, snapshot = index.suite.presentation.viewing.deviation, index.run["snapshot_id"]
    if named is None or snapshot is None:
        return {}
    rows = read_metrics(lake, snapshot).filter(metric=named[0], slice="all")
    return {(row["model"], row["judge"]): (row["value"], row["n"]) for row in rows.iter_rows(named=True)}


def _of(item_ids: Sequence[str]) -> pl.Expr:
    return pl.col("sample_hash").is_in(list(item_ids))


def _samples(lake: Lake, run: Row, item_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    versions = list(json.loads(run["dataset_versions"]).values())
    rows = lake.frame(SAMPLES).filter(pl.col("dataset_version").is_in(versions), _of(item_ids)).collect()
    return {row["sample_hash"]: row for row in rows.unique("sample_hash").iter_rows(named=True)}


def _result_rows(lake: Lake, index: RunIndex, manifest: Sequence[Row]) -> pl.DataFrame:
    wanted = (
        pl.col(name).is_in(sorted({row[name] for row in manifest})) for name in ("model", "prompt_hash", "sample_hash")
    )
    version = pl.col("scorer_version") == as_scored(lake, index.run).scoring.version
    under = under_its_criteria(lake, index.suite, index.run["run_id"])
    return lake.frame(index.suite.results).filter(*wanted, version, under).collect()


def _detail_rows(lake: Lake, suite: Suite, rows: Sequence[Row]) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Read the rows of the suite's further tables about result rows, each with the columns that join it to its row."""
    details = []
    for contract in suite.scoring.extra_tables:
        key = tuple(name for name in (*suite.results.key, "reply_revision") if name in contract.column)
        if not key or not rows:
            continue
        frame = lake.frame(contract)
        for name in key:
            frame = frame.filter(pl.col(name).is_in(sorted({row[name] for row in rows})))
        details += [(key, row) for row in frame.sort(list(contract.key)).collect().to_dicts()]
    return details


def _facts(row: Row, shown: Iterable[tuple[str, str]]) -> list[Fact]:
    return [Fact(name=name, label=label, value=plain(row[name])) for name, label in shown if name in row]


def _options(lake: Lake, index: RunIndex) -> Mapping[str, Any]:
    """Read the suite's options as the run was measured with them; its defaults where it was not."""
    snapshots = lake.frame(SNAPSHOTS).filter(pl.col("snapshot_id") == (index.run["snapshot_id"] or ""))
    options = snapshots.select("options").collect()
    return index.suite.options if options.is_empty() else json.loads(options.item())
